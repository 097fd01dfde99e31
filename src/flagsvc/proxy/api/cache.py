"""Answers that were given before, for requests that must get the same (specification: GET /proxy; POST /proxy). Compiled.

A bound in bytes holds all of it. An answer is kept from the second time it is asked for, so that callers who never come back cost
nothing but a number each; what was not asked for again while half of the bound was filled anew goes.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from flagsvc.engine.canonical import CacheKeys
from flagsvc.http.etag import Tagger
from flagsvc.http.messages import Headers

OVERHEAD: Final = 800
"""Bytes that an entry takes beside its key, body and packed body: objects, header fields, its place in the dictionary."""
SLOTS: Final = 8192
"""Numbers of what was asked for once; a power of two."""


class CachedAnswer:
    """One answer: its body and, once somebody asked for it, the body in gzip format; empty until then.

    `states` tells for each name of a look-up whether it is on. `plain` and `compressed` are its own header fields, for either form.
    `size` is what the cache counts for it, 0 where it is not kept.
    """

    def __init__(self, tag: bytes, body: bytes, states: list[bool]) -> None:
        self.tag = tag
        self.body = body
        self.states = states
        self.packed: bytes = b""
        self.plain: Headers = []
        self.compressed: Headers = []
        self.size: i64 = 0


class AnswerCache:
    """The answers of one snapshot under their canonical bytes, at most `limit` bytes of them; 0 keeps none.

    `hits` and `misses` count what was looked for; `size` is the bytes held now.
    """

    def __init__(self, limit: int) -> None:
        self.half: i64 = limit // 2
        self.young: dict[bytes, CachedAnswer] = {}
        self.old: dict[bytes, CachedAnswer] = {}
        self.young_size: i64 = 0
        self.old_size: i64 = 0
        self.seen: vec[i64] = vec[i64]([0] * SLOTS)
        self.hits: int = 0
        self.misses: int = 0
        self.cache_keys: CacheKeys | None = None
        self.tagger = Tagger("")

    @property
    def size(self) -> int:
        """The bytes held now."""
        return self.young_size + self.old_size

    def follow(self, cache_keys: CacheKeys) -> None:
        """Belong to the snapshot of `cache_keys` from now on; the answers of another one go."""
        if self.cache_keys is cache_keys:
            return
        if self.cache_keys is None or self.cache_keys.revision != cache_keys.revision:
            self.tagger = Tagger(cache_keys.revision)
            self.clear()
        self.cache_keys = cache_keys

    def clear(self) -> None:
        """Forget every answer."""
        self.young = {}
        self.old = {}
        self.young_size = 0
        self.old_size = 0

    def find(self, key: bytes) -> CachedAnswer | None:
        """Return the answer that is kept under these canonical bytes."""
        entry = self.young.get(key)
        if entry is None and self.old:
            entry = self.revive(key)
        if entry is None:
            self.misses += 1
        else:
            self.hits += 1
        return entry

    def revive(self, key: bytes) -> CachedAnswer | None:
        """Return an answer of the older half, which makes it one of the younger."""
        entry = self.old.pop(key, None)
        if entry is not None:
            self.old_size -= entry.size
            self.put(key, entry, entry.size)
        return entry

    def offer(self, key: bytes, entry: CachedAnswer) -> None:
        """Keep an answer, if it has been asked for before."""
        number: i64 = hash(key)
        slot = number & (SLOTS - 1)
        if self.seen[slot] != number:
            self.seen[slot] = number
            return
        self.put(key, entry, OVERHEAD + len(key) + len(entry.body) + 8 * len(entry.states))

    def put(self, key: bytes, entry: CachedAnswer, size: i64) -> None:
        """Keep an answer of this size among the younger ones; where they fill their half, they become the older ones."""
        if size > self.half:
            return
        if self.young_size + size > self.half:
            self.old = self.young
            self.old_size = self.young_size
            self.young = {}
            self.young_size = 0
        entry.size = size
        self.young[key] = entry
        self.young_size += size

    def grown(self, key: bytes, entry: CachedAnswer) -> None:
        """Count the packed form of an answer that is kept, which has just been made: `find` has put it among the younger ones."""
        del self.young[key]
        self.young_size -= entry.size
        size = entry.size + len(entry.packed)
        entry.size = 0
        self.put(key, entry, size)
