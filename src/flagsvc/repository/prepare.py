"""From the bytes of a document to everything that replaces what is served. A large one is worked on in a thread."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

import msgspec

from flagsvc.engine.fragments import encode
from flagsvc.errors import DocumentError
from flagsvc.repository.holder import ConfigurationDocument
from flagsvc.repository.ports import Compile, ProblemLike, S

IN_THREAD_BYTES = 32_768
"""A document of this size or more is compiled off the event loop."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MOST_DIGITS = 400
"""A whole number of so many digits is beyond all doubles."""

Wanted = Callable[[object], bool]


@dataclass(frozen=True)
class Prepared(Generic[S]):
    """A document ready to be served: its bytes as they came, its snapshot, what server-side SDKs get, what was left out."""

    raw: bytes
    snapshot: S
    document: ConfigurationDocument
    problems: Sequence[ProblemLike]


class Preparer(Generic[S]):
    """Decodes, compiles, and shapes the document for server-side SDKs.

    `wanted` tells which features belong to this proxy's project and name prefix, so that these hold for every source (behaviour:
    Towards the upstream server); without it the document is passed on byte for byte.
    """

    def __init__(self, compile: Compile[S], wanted: Wanted | None = None) -> None:
        self._compile = compile
        self._wanted = wanted

    async def __call__(self, body: bytes, previous: S | None) -> Prepared[S]:
        """Return what can replace `previous`. Raises DocumentError when the document is not JSON or not of the right shape."""
        if len(body) < IN_THREAD_BYTES:
            return self.prepare(body, previous)
        return await asyncio.to_thread(self.prepare, body, previous)

    def prepare(self, body: bytes, previous: S | None) -> Prepared[S]:
        """Return the same, on the spot."""
        document = decode(body)
        compiled = self._compile(document, previous)
        passed_on = body if self._wanted is None else narrowed(body, document, self._wanted)
        etag = f'"{hashlib.sha256(passed_on).hexdigest()[:32]}"'
        return Prepared(body, compiled.snapshot, ConfigurationDocument(passed_on, etag), compiled.problems)


def decode(body: bytes) -> object:
    """Return the decoded JSON; raises DocumentError when it is none.

    What only the strict decoder refuses (an escaped lone surrogate, a number beyond all doubles or of thousands of digits) is valid
    JSON that the reference takes, and must not cost every other toggle.
    """
    text = body.removeprefix(BYTE_ORDER_MARK)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refused = DocumentError("", f"the document is not JSON: {error}")
    try:
        return json.loads(text.decode(), parse_constant=refuse, parse_int=whole)
    except (ValueError, RecursionError):
        raise refused from None


def whole(digits: str) -> int | float:
    """Return the number of these digits; one beyond all doubles is an infinity, as in JavaScript, at the cost of its length."""
    return int(digits) if len(digits) < MOST_DIGITS else float(digits)


def refuse(constant: str) -> object:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(constant)


def narrowed(body: bytes, document: object, wanted: Wanted) -> bytes:
    """Return the document with only the features that are wanted; the same bytes when that is all of them."""
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(features, list):
        return body
    kept = [feature for feature in features if wanted(feature)]
    return body if len(kept) == len(features) else encode({**document, "features": kept})
