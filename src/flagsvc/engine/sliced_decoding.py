"""Decodes the JSON of a large feature or segment in slices, because decoding it at once would delay requests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from flagsvc.engine.digest import SIZE

STEP: Final = 2_048
"""The cost of a step, in the time that compiling one byte of a feature takes."""

# the costs of work
READING: Final = 4
"""Bytes that are decoded for a cost of 1."""
PIECE: Final = 40
"""What a piece costs that is decoded alone, beside its bytes."""
SPLITTING: Final = 64
"""Bytes that are split into pieces, hashed or copied for a cost of 1."""
HASHED: Final = STEP * SPLITTING

OBJECT: Final[Any] = dict[str, msgspec.Raw]
LIST: Final[Any] = list[msgspec.Raw]
DEPTH: Final = 6
"""The depth to which a piece is split: down to the values of a feature's constraints."""


class PieceReading:
    """Decodes a piece of JSON, and makes its digest. `value` and `content` are set after the last step."""

    def __init__(self, item: object) -> None:
        self.item = item
        self.value: object = None
        self.content = b""
        self.hash: Any = hashlib.blake2b(digest_size=SIZE)

    def steps(self) -> Iterator[int]:
        """Yield the cost of each step. Raises msgspec.MsgspecError or UnicodeDecodeError, as decoding does."""
        box: dict[str, object] = {}
        yield from self.read(self.item, DEPTH, box, "")
        self.value = box[""]
        self.content = self.hash.digest()

    def read(self, item: object, depth: int, owner: dict[str, object], key: str) -> Iterator[int]:
        """Store the decoded value of a piece under a key of its owner."""
        opening = opening_of(item)
        size = len(memoryview(item))  # type: ignore[arg-type]
        if size <= STEP * READING:
            owner[key] = self.decoded(item)
            yield PIECE + size // READING
        elif depth == 0 or opening not in ("{", "[{", "[["):
            yield from self.read_whole(item, owner, key)
        elif opening == "{":
            yield from self.read_object(item, depth, owner, key)
        else:
            yield from self.read_list(item, depth, owner, key)

    def read_whole(self, item: object, owner: dict[str, object], key: str) -> Iterator[int]:
        """Store the decoded value of a piece that cannot be split: a long text or a list of texts."""
        value: object = msgspec.json.decode(item)  # type: ignore[call-overload]
        owner[key] = value
        yield STEP
        text = encoded(value)
        yield STEP
        for at in range(0, len(text), HASHED):
            self.hash.update(text[at : at + HASHED])
            yield STEP

    def read_object(self, item: object, depth: int, owner: dict[str, object], key: str) -> Iterator[int]:
        """Store an object under a key of its owner, property by property in the order of the canonical form."""
        pieces: dict[str, object] = msgspec.json.decode(item, type=OBJECT)  # type: ignore[call-overload]
        yield len(memoryview(item)) // SPLITTING  # type: ignore[arg-type]
        found: dict[str, object] = dict.fromkeys(pieces)
        self.hash.update(b"{")
        mark = b""
        for name in sorted(pieces):
            self.hash.update(mark + msgspec.json.encode(name) + b":")
            yield from self.read(pieces[name], depth - 1, found, name)
            mark = b","
        self.hash.update(b"}")
        owner[key] = found

    def read_list(self, item: object, depth: int, owner: dict[str, object], key: str) -> Iterator[int]:
        """Store a list under a key of its owner, one large item or a few small ones at a time."""
        pieces: list[object] = msgspec.json.decode(item, type=LIST)  # type: ignore[call-overload]
        yield len(memoryview(item)) // SPLITTING  # type: ignore[arg-type]
        found: list[object] = []
        box: dict[str, object] = {}
        self.hash.update(b"[")
        mark = b""
        at = 0
        while at < len(pieces):
            self.hash.update(mark)
            end = end_of_batch(pieces, at)
            if end == at:
                yield from self.read(pieces[at], depth - 1, box, "")
                found.append(box[""])
                at += 1
            else:
                yield self.read_few(pieces[at:end], found)
                at = end
            mark = b","
        self.hash.update(b"]")
        owner[key] = found

    def read_few(self, pieces: list[object], found: list[object]) -> int:
        """Decode some items of a list, add them, and return the cost."""
        text = b"[" + b",".join(pieces) + b"]"  # type: ignore[arg-type]
        values: list[object] = msgspec.json.decode(text)
        self.hash.update(encoded(values)[1:-1])
        found += values
        return len(text) // READING

    def decoded(self, item: object) -> object:
        """Return the decoded value of a piece."""
        value: object = msgspec.json.decode(item)  # type: ignore[call-overload]
        self.hash.update(encoded(value))
        return value


def encoded(value: object) -> bytes:
    """Return the canonical form of a value from the strict decoder, which needs no other encoder."""
    return msgspec.json.encode(value, order="deterministic")


def opening_of(item: object) -> str:
    """Return the beginning of a piece of JSON; of a list also the beginning of its first item."""
    head = memoryview(item)[:64].tobytes()  # type: ignore[arg-type]
    return (head[:1] + head[1:].lstrip()[:1]).decode("latin-1") if head[:1] == b"[" else head[:1].decode("latin-1")


def end_of_batch(pieces: list[object], at: int) -> int:
    """Return the end of the small pieces from `at` on that are decoded in one call; `at` if that is a large piece."""
    size = 0
    end = at
    while end < len(pieces):
        size += len(memoryview(pieces[end]))  # type: ignore[arg-type]
        if size > STEP * READING:
            break
        end += 1
    return end
