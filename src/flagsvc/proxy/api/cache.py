"""Answers that were given before, for requests that must get the same (specification: GET /proxy; POST /proxy). Compiled.

The cache has a limit in bytes. An answer is kept from the second request for it on, so that contexts that come only once cost no
more than one number each. An answer that is not requested while half of the limit is filled with others is dropped.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from flagsvc.engine.canonical import CacheKeys
from flagsvc.engine.fragments import AnswerPieces
from flagsvc.http.etag import Tagger
from flagsvc.http.messages import Headers

OVERHEAD: Final = 800
"""Bytes of an entry without its key, body and packed body: objects, header fields, its place in the dictionary."""
SLOTS: Final = 8192
"""The number of hashes of keys that were asked for once; a power of two."""


class CachedAnswer:
    """An answer: its body, and the body in gzip format, which is empty until the first request for it.

    The body may be given in pieces. The first read joins the pieces. An answer that is not kept is sent in pieces. `length` is
    its length. `states` tells for each name of a look-up whether it is on. `plain` and `compressed` are the header fields of
    either form. `size` is the size that the cache counts for it; 0 if it is not kept.
    """

    def __init__(self, tag: bytes, body: bytes, states: list[bool], pieces: AnswerPieces | None = None) -> None:
        self.tag = tag
        self.whole = body
        self.pieces = pieces
        self.length: i64 = len(body) if pieces is None else pieces.size
        self.states = states
        self.packed: bytes = b""
        self.plain: Headers = []
        self.compressed: Headers = []
        self.size: i64 = 0

    @property
    def body(self) -> bytes:
        self.join()
        return self.whole

    def join(self) -> None:
        if self.pieces is not None:
            self.whole = self.pieces.join()
            self.pieces = None


class AnswerCache:
    """The answers of one snapshot under their canonical bytes, with at most `limit` bytes; 0 keeps none.

    `hits` and `misses` count the look-ups. The caches for parts of the configuration count in `totals`.
    """

    def __init__(self, limit: int) -> None:
        self.half: i64 = limit // 2
        self.young: dict[bytes, CachedAnswer] = {}
        self.old: dict[bytes, CachedAnswer] = {}
        self.young_size: i64 = 0
        self.old_size: i64 = 0
        self.asked_once: vec[i64] = vec[i64]([0] * SLOTS)
        self.hits: int = 0
        self.misses: int = 0
        self.parts: list[AnswerCache] = []
        self.cache_keys: CacheKeys | None = None
        self.tagger = Tagger("")

    @property
    def size(self) -> int:
        """The bytes of all kept answers."""
        return self.young_size + self.old_size

    def add_part(self, part: AnswerCache) -> None:
        """Count what is in the cache for a part, too."""
        self.parts.append(part)

    def remove_part(self, part: AnswerCache) -> None:
        """Count the look-ups that there were in the cache for a part, which ends."""
        self.parts.remove(part)
        self.hits += part.hits
        self.misses += part.misses

    def totals(self) -> tuple[int, int, int]:
        """Return the hits, the misses and the bytes of this cache and of those for parts."""
        hits, misses, size = self.hits, self.misses, self.size
        for part in self.parts:
            hits += part.hits
            misses += part.misses
            size += part.size
        return hits, misses, size

    def successor(self) -> AnswerCache:
        """Return an empty cache of the same size that counts on."""
        made = AnswerCache(int(self.half) * 2)
        made.hits, made.misses, _ = self.totals()
        return made

    def use_snapshot(self, cache_keys: CacheKeys) -> None:
        """Cache answers of the snapshot of `cache_keys` from now on. The answers of another revision are dropped."""
        if self.cache_keys is cache_keys:
            return
        if self.cache_keys is None or self.cache_keys.revision != cache_keys.revision:
            self.tagger = Tagger(cache_keys.revision)
            self.clear()
        self.cache_keys = cache_keys

    def clear(self) -> None:
        self.young = {}
        self.old = {}
        self.young_size = 0
        self.old_size = 0

    def find(self, key: bytes) -> CachedAnswer | None:
        """Return the answer that is kept under these canonical bytes, or None."""
        entry = self.young.get(key)
        if entry is None and self.old:
            entry = self.promote(key)
        if entry is None:
            self.misses += 1
        else:
            self.hits += 1
        return entry

    def promote(self, key: bytes) -> CachedAnswer | None:
        """Return an answer of the older half, and move it to the younger half."""
        entry = self.old.pop(key, None)
        if entry is not None:
            self.old_size -= entry.size
            self.put(key, entry, entry.size)
        return entry

    def add_repeated(self, key: bytes, entry: CachedAnswer) -> None:
        """Keep an answer if it was asked for before."""
        number: i64 = hash(key)
        slot = number & (SLOTS - 1)
        if self.asked_once[slot] != number:
            self.asked_once[slot] = number
            return
        self.put(key, entry, OVERHEAD + len(key) + entry.length + 8 * len(entry.states))

    def put(self, key: bytes, entry: CachedAnswer, size: i64) -> None:
        """Keep an answer of this size in the younger half. If that is full, it becomes the older half."""
        if size > self.half:
            return
        entry.join()
        if self.young_size + size > self.half:
            self.old = self.young
            self.old_size = self.young_size
            self.young = {}
            self.young_size = 0
        entry.size = size
        self.young[key] = entry
        self.young_size += size

    def add_packed_size(self, key: bytes, entry: CachedAnswer) -> None:
        """Add the size of an answer's packed form, which was just made. `find` has moved the answer to the younger half."""
        del self.young[key]
        self.young_size -= entry.size
        size = entry.size + len(entry.packed)
        entry.size = 0
        self.put(key, entry, size)
