"""Turns the bytes of a document into a configuration that can be served, in slices: requests are answered in between.

A thread would not help: compiled code does not release the interpreter's lock, and would delay every request.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from flagsvc.core.errors import DocumentError
from flagsvc.core.garbage import collect_new
from flagsvc.engine.compile import Compilation, Compiled, Compiler
from flagsvc.engine.fragments import encode
from flagsvc.engine.model import DocumentProblem
from flagsvc.engine.snapshot import Snapshot
from flagsvc.engine.source import Unusual
from flagsvc.proxy.configuration.holder import ConfigurationDocument

SLICE_BYTES = 4_096
"""Bytes of new features that are compiled in one slice, which mostly takes a tenth of a millisecond: requests wait meanwhile."""
HASHED_BYTES = 262_144
"""Bytes that are hashed in one slice."""
COLLECTED_SLICES = 8
"""Slices after which the cyclic collector looks at what is new. By itself it does that seldom, and stops requests for 1 to 7 ms."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
META = "meta"
"""The member of a document of our flag server that has the digest of its content."""
MAX_DIGITS = 400
"""An integer with this many digits is larger than any double."""

FeatureFilter = Callable[[object], bool]


@dataclass(frozen=True)
class PreparedDocument:
    """A compiled document: its bytes as received, its snapshot, the document for server-side SDKs, and its problems."""

    raw: bytes
    snapshot: Snapshot
    document: ConfigurationDocument
    problems: Sequence[DocumentProblem]

    @property
    def left_out(self) -> Sequence[DocumentProblem]:
        return [each for each in self.problems if not each.served]

    @property
    def odd(self) -> Sequence[DocumentProblem]:
        """The problems of parts that are served all the same."""
        return [each for each in self.problems if each.served]


class Preparer:
    """Decodes and compiles a document, and makes the one for server-side SDKs.

    The unchanged parts of the previous snapshot are reused, and the event loop runs after every slice. `wanted` tells which
    features belong to this proxy's project and name prefix, so that these hold for every source (behaviour: Fetching the
    configuration); without it the document is passed on byte for byte.
    """

    def __init__(self, compiler: Compiler, wanted: FeatureFilter | None = None) -> None:
        self._compiler = compiler
        self._wanted = wanted

    async def __call__(self, body: bytes, previous: Snapshot | None) -> PreparedDocument:
        """Return the configuration that can replace `previous`. Raises DocumentError if the document is not JSON or malformed."""
        await yield_to_loop(body)
        compilation = self._compiler.begin_text(body.removeprefix(BYTE_ORDER_MARK), previous)
        if compilation is not None:
            await yield_to_loop(body)
            try:
                compiled = await compile_in_slices(compilation)
            except Unusual:
                pass
            else:
                sdk_body = body if self._wanted is None else filter_compiled(body, compilation)
                return await finish_document(body, compiled, sdk_body)
        document = decode(body)
        await yield_to_loop(body)
        compiled = await compile_in_slices(self._compiler.begin(document, previous))
        sdk_body = body if self._wanted is None else filter_features(body, document, self._wanted)
        return await finish_document(body, compiled, sdk_body)


async def yield_to_loop(body: bytes) -> None:
    """Let the event loop run if the document is so large that one step on it takes long."""
    if len(body) > SLICE_BYTES:
        await asyncio.sleep(0)


async def compile_in_slices(compilation: Compilation) -> Compiled:
    """Return the result of a compilation. The event loop runs after every slice."""
    slices = 1
    try:
        while not compilation.advance(SLICE_BYTES):
            if slices % COLLECTED_SLICES == 0:
                collect_new()
            slices += 1
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        compilation.close()
        raise
    return compilation.compiled()


async def finish_document(body: bytes, compiled: Compiled, sdk_body: bytes) -> PreparedDocument:
    await yield_to_loop(body)
    digest = hashlib.sha256(sdk_body[:HASHED_BYTES])
    for start in range(HASHED_BYTES, len(sdk_body), HASHED_BYTES):
        await asyncio.sleep(0)
        digest.update(sdk_body[start : start + HASHED_BYTES])
    document = ConfigurationDocument(sdk_body, f'"{digest.hexdigest()[:32]}"')
    return PreparedDocument(body, compiled.snapshot, document, compiled.problems)


def decode(body: bytes) -> object:
    """Return the decoded JSON. Raises DocumentError if it is not JSON.

    The strict decoder refuses some valid JSON: an escaped lone surrogate, and a number that is larger than any double or has
    thousands of digits. The reference accepts these, and one such value must not make all other toggles unavailable.
    """
    text = body.removeprefix(BYTE_ORDER_MARK)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refused = DocumentError("", f"the document is not JSON: {error}")
    try:
        return json.loads(text.decode(), parse_constant=refuse_constant, parse_int=parse_integer)
    except (ValueError, RecursionError):
        raise refused from None


def parse_integer(digits: str) -> int | float:
    """Return the number of these digits. A number larger than any double becomes infinity, as in JavaScript, in linear time."""
    return int(digits) if len(digits) < MAX_DIGITS else float(digits)


def refuse_constant(constant: str) -> object:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(constant)


def filter_features(body: bytes, document: object, wanted: FeatureFilter) -> bytes:
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(features, list):
        return body
    kept = [feature for feature in features if wanted(feature)]
    return body if len(kept) == len(features) else encode_part(document, kept)


def filter_compiled(body: bytes, compilation: Compilation) -> bytes:
    """Return the document with only the features that the compilation kept, unchanged; the same bytes if it kept all."""
    if not compilation.excluded_count:
        return body
    top = msgspec.json.decode(body.removeprefix(BYTE_ORDER_MARK), type=dict[str, msgspec.Raw])
    return encode_part(top, compilation.included)


def encode_part(document: Mapping[str, object], features: Sequence[object]) -> bytes:
    """Return the JSON of a document with some of its features. The member `meta` is left out, as its digest is that of all."""
    return encode({name: value for name, value in document.items() if name != META} | {"features": features})
