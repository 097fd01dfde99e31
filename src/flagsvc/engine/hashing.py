"""MurmurHash3 x86 32-bit of `group:identifier`, split so that half of the work is done before a request arrives.

A rollout hashes a text. The configuration decides its first part (`group:`), and the caller decides the second (the identifier).
`Prefix` keeps the hash state after the 4-byte blocks of the first part, and the up to three bytes after them. `Identifier` keeps,
for each of the four alignments, the mixed blocks of the second part, computed at most once for each request. Joining the two takes
a few integer operations. All values have 32 bits, so that the same source is exact with Python's integers and with native ones.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.values.text import low_bytes

M32: Final = 0xFFFFFFFF
C1: Final = 0xCC9E2D51
C2: Final = 0x1B873593
STRATEGY_SEED: Final = 0
VARIANT_SEED: Final = 86028157


def encode(text: str, utf8: bool) -> bytes:
    """Return the bytes to hash: the low byte of each UTF-16 unit, or UTF-8 if the option asks for it."""
    if text.isascii():
        return text.encode("ascii")
    return text.encode("utf-8", "surrogatepass") if utf8 else low_bytes(text)


def scramble(block: i64) -> i64:
    """Mix one 4-byte block, before it is combined with the state."""
    block = (block * C1) & M32
    block = ((block << 15) | (block >> 17)) & M32
    return (block * C2) & M32


def absorb(state: i64, scrambled: i64) -> i64:
    """Combine one scrambled block with the state."""
    state ^= scrambled
    state = ((state << 13) | (state >> 19)) & M32
    return (state * 5 + 0xE6546B64) & M32


def finish(state: i64) -> i64:
    state ^= state >> 16
    state = (state * 0x85EBCA6B) & M32
    state ^= state >> 13
    state = (state * 0xC2B2AE35) & M32
    return state ^ (state >> 16)


def little_endian(data: bytes, start: i64, end: i64) -> i64:
    """Return the bytes from `start` to `end` as one little-endian integer."""
    value: i64 = 0
    shift: i64 = 0
    while start < end:
        byte: i64 = data[start]
        value |= byte << shift
        shift += 8
        start += 1
    return value


@mypyc_attr(acyclic=True)
class Aligned:
    """An identifier after a prefix with `shift / 8` remaining bytes.

    `head` completes the prefix's last block (already shifted into place), `blocks` are scrambled, `tail` is the scrambled rest.
    If the identifier is too short to complete that block (`short`), everything is in `head`.
    """

    def __init__(self, data: bytes, left_over: i64) -> None:
        size: i64 = len(data)
        first: i64 = 4 - left_over
        self.short: bool = size < first
        self.head: i64 = little_endian(data, 0, size if self.short else first) << (8 * left_over)
        self.tail: i64 = 0
        blocks = vec[i64]()
        if not self.short:
            at: i64 = first
            while at + 4 <= size:
                blocks = append(blocks, scramble(little_endian(data, at, at + 4)))
                at += 4
            self.tail = scramble(little_endian(data, at, size))
        self.blocks: vec[i64] = blocks


@mypyc_attr(acyclic=True)
class Identifier:
    """One identifier (a user id, a session id, …) of one request, ready to be hashed after any prefix."""

    def __init__(self, text: str, utf8: bool) -> None:
        self.data: bytes = encode(text, utf8)
        self.size: i64 = len(self.data)
        self.after_0: Aligned | None = None
        self.after_1: Aligned | None = None
        self.after_2: Aligned | None = None
        self.after_3: Aligned | None = None

    def aligned(self, left_over: i64) -> Aligned:
        """Return the identifier's blocks after a prefix with 0 to 3 remaining bytes."""
        if left_over == 0:
            if self.after_0 is None:
                self.after_0 = Aligned(self.data, 0)
            return self.after_0
        if left_over == 1:
            if self.after_1 is None:
                self.after_1 = Aligned(self.data, 1)
            return self.after_1
        if left_over == 2:
            if self.after_2 is None:
                self.after_2 = Aligned(self.data, 2)
            return self.after_2
        if self.after_3 is None:
            self.after_3 = Aligned(self.data, 3)
        return self.after_3


def hashed(identifier: Identifier, state: i64, rest: i64, size: i64) -> i64:
    """Return the 32-bit hash of a prefix of `size` bytes followed by an identifier, from the state of a Prefix."""
    aligned = identifier.aligned(size & 3)
    joined = scramble(rest | aligned.head)
    if aligned.short:
        state ^= joined
    else:
        state = absorb(state, joined)
        blocks = aligned.blocks
        count: i64 = len(blocks)
        at: i64 = 0
        while at < count:
            state = absorb(state, blocks[at])
            at += 1
        state ^= aligned.tail
    return finish(state ^ (size + identifier.size))


@mypyc_attr(acyclic=True)
class Prefix:
    """The half of a hash that the configuration decides: `group:`, with a seed."""

    def __init__(self, group: str, seed: i64, utf8: bool) -> None:
        self.group = group
        data = encode(f"{group}:", utf8)
        size: i64 = len(data)
        state: i64 = seed
        at: i64 = 0
        while at + 4 <= size:
            state = absorb(state, scramble(little_endian(data, at, at + 4)))
            at += 4
        self.state: i64 = state
        self.size: i64 = size
        self.rest: i64 = little_endian(data, at, size)

    def hash(self, identifier: Identifier) -> i64:
        """Return the 32-bit hash of the prefix followed by the identifier."""
        return hashed(identifier, self.state, self.rest, self.size)

    def bucket(self, identifier: Identifier, total: i64) -> i64:
        """Return the identifier's bucket, 1 to `total` (behaviour: Hash)."""
        return self.hash(identifier) % total + 1
