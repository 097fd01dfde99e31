"""From the bytes of a document to everything that replaces what is served, in slices: requests are answered in between.

A thread would be no help: compiled code does not let go of the interpreter's lock, and would hold up every request.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

import msgspec

from flagsvc.core.errors import DocumentError
from flagsvc.engine.fragments import encode
from flagsvc.engine.source import Unusual
from flagsvc.proxy.configuration.holder import ConfigurationDocument
from flagsvc.proxy.configuration.ports import CompilationLike, Compile, CompiledLike, Incremental, ProblemLike, S

SLICE_BYTES = 12_288
"""Bytes of new features that are compiled in one go: about half a millisecond's work."""
HASHED_BYTES = 524_288
"""Bytes that are hashed in one go."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MOST_DIGITS = 400
"""A whole number of so many digits is beyond all doubles."""

FeatureFilter = Callable[[object], bool]


@dataclass(frozen=True)
class PreparedDocument(Generic[S]):
    """A document ready to be served: its bytes as they came, its snapshot, what server-side SDKs get, what was left out."""

    raw: bytes
    snapshot: S
    document: ConfigurationDocument
    problems: Sequence[ProblemLike]


class Preparer(Generic[S]):
    """Decodes, compiles, and shapes the document for server-side SDKs.

    Where `compile` is `Incremental`, what did not change since the snapshot before is taken over from it, and the event loop gets
    its turn after every slice. `wanted` tells which features belong to this proxy's project and name prefix, so that these hold for
    every source (behaviour: Towards the upstream server); without it the document is passed on byte for byte.
    """

    def __init__(self, compile: Compile[S], wanted: FeatureFilter | None = None) -> None:
        self._compile = compile
        self._wanted = wanted
        self._sliced: Incremental[S] | None = incremental(compile)

    async def __call__(self, body: bytes, previous: S | None) -> PreparedDocument[S]:
        """Return what can replace `previous`. Raises DocumentError when the document is not JSON or not of the right shape."""
        if self._sliced is None:
            return self.prepare(body, previous)
        building = self._sliced.begin_text(body.removeprefix(BYTE_ORDER_MARK), previous)
        if building is not None:
            await yield_to_loop(body)
            try:
                compiled = await in_slices(building)
            except Unusual:
                pass
            else:
                passed_on = body if self._wanted is None else reduced(body, building)
                return await finished(body, compiled, passed_on)
        document = decode(body)
        await yield_to_loop(body)
        compiled = await in_slices(self._sliced.begin(document, previous))
        return await finished(body, compiled, self._passed_on(body, document))

    def prepare(self, body: bytes, previous: S | None) -> PreparedDocument[S]:
        """Return the same, on the spot."""
        document = decode(body)
        compiled = self._compile(document, previous)
        passed_on = self._passed_on(body, document)
        tag = f'"{hashlib.sha256(passed_on).hexdigest()[:32]}"'
        return PreparedDocument(body, compiled.snapshot, ConfigurationDocument(passed_on, tag), compiled.problems)

    def _passed_on(self, body: bytes, document: object) -> bytes:
        return body if self._wanted is None else narrowed(body, document, self._wanted)


def incremental(compile: object) -> Incremental[S] | None:
    """Return what compiles as one that can work some at a time, None where it cannot."""
    return compile if isinstance(compile, Incremental) else None


async def yield_to_loop(body: bytes) -> None:
    """Let the event loop have its turn, where the document is so large that a step on it takes long."""
    if len(body) > SLICE_BYTES:
        await asyncio.sleep(0)


async def in_slices(building: CompilationLike[S]) -> CompiledLike[S]:
    """Return what compiling gives, and let the event loop have its turn after every slice."""
    done = building.advance(SLICE_BYTES)
    while not done:
        await asyncio.sleep(0)
        done = building.advance(SLICE_BYTES)
    return building.compiled()


async def finished(body: bytes, compiled: CompiledLike[S], passed_on: bytes) -> PreparedDocument[S]:
    """Return what can be served, with the ETag of what is passed on."""
    await yield_to_loop(body)
    whole = hashlib.sha256(passed_on[:HASHED_BYTES])
    for at in range(HASHED_BYTES, len(passed_on), HASHED_BYTES):
        await asyncio.sleep(0)
        whole.update(passed_on[at : at + HASHED_BYTES])
    document = ConfigurationDocument(passed_on, f'"{whole.hexdigest()[:32]}"')
    return PreparedDocument(body, compiled.snapshot, document, compiled.problems)


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


def narrowed(body: bytes, document: object, wanted: FeatureFilter) -> bytes:
    """Return the document with only the features that are wanted; the same bytes when that is all of them."""
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(features, list):
        return body
    kept = [feature for feature in features if wanted(feature)]
    return body if len(kept) == len(features) else encode({**document, "features": kept})


def reduced(body: bytes, building: CompilationLike[S]) -> bytes:
    """Return the document with only the features that compiling kept, as they were written; the same bytes when that is all."""
    if not building.left_out:
        return body
    top = msgspec.json.decode(body.removeprefix(BYTE_ORDER_MARK), type=dict[str, msgspec.Raw])
    return encode({**top, "features": building.kept})
