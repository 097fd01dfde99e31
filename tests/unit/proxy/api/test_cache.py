"""The bound of the answer cache, and what stays in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.engine.canonical import CacheKeys
from flagsvc.engine.fragments import AnswerPieces
from flagsvc.engine.reads import Reads
from flagsvc.proxy.api.cache import OVERHEAD, AnswerCache, CachedAnswer

SIZE = OVERHEAD + 3 + 100
"""What an entry under a key of three bytes with a body of a hundred counts for."""


def key(number: int) -> bytes:
    return b"%03d" % number


def keep(cache: AnswerCache, number: int) -> CachedAnswer:
    """Ask for an answer twice, and return it."""
    entry = CachedAnswer(b"tag", b"x" * 100, [])
    for _ in range(2):
        assert cache.find(key(number)) is None
        cache.add_repeated(key(number), entry)
    return entry


def test_pieces_are_joined_when_they_are_kept() -> None:
    """What a caller asks for once stays in pieces. The whole answer counts for the size."""
    cache = AnswerCache(100_000)
    entry = CachedAnswer(b"tag", b"", [], AnswerPieces([b"ab", b"c" * 98], 100))
    cache.add_repeated(b"key", entry)
    states = [entry.pieces is None]
    cache.add_repeated(b"key", entry)
    assert [*states, entry.pieces is None] == [False, True]
    assert (entry.body, entry.length, cache.size) == (b"ab" + b"c" * 98, 100, SIZE)


def test_the_bound() -> None:
    """Entries that were not requested while others filled half of the limit are dropped; the others stay."""
    cache = AnswerCache(8 * SIZE)
    entries = [keep(cache, number) for number in range(4)]
    assert cache.size == 4 * SIZE
    keep(cache, 4)
    assert cache.size == 5 * SIZE and cache.find(key(0)) is entries[0]
    for number in range(5, 8):
        keep(cache, number)
    assert cache.find(key(1)) is None
    assert cache.find(key(0)) is entries[0]
    assert cache.size <= 8 * SIZE


def test_what_is_larger_than_half_is_not_kept() -> None:
    """One answer must not push out all others; nothing at all fits into nothing."""
    for limit in (0, 1, 2 * SIZE - 1):
        cache = AnswerCache(limit)
        assert keep(cache, 1).size == 0
        assert (cache.find(key(1)), cache.size) == (None, 0)
    cache = AnswerCache(2 * SIZE)
    assert cache.find(key(1)) is None
    assert keep(cache, 1).size == SIZE


def test_the_packed_form_counts() -> None:
    """The compressed form is made later. If it does not fit into the limit, the answer is dropped."""
    cache = AnswerCache(4 * SIZE)
    first, second = keep(cache, 1), keep(cache, 2)
    first.packed = b"z" * 40
    cache.add_packed_size(key(1), first)
    assert (first.size, cache.size, cache.young_size) == (SIZE + 40, 2 * SIZE + 40, SIZE + 40)
    assert cache.find(key(2)) is second
    second.packed = b"z" * (SIZE + 1)
    cache.add_packed_size(key(2), second)
    assert second.size == 0
    assert cache.find(key(2)) is None
    assert cache.find(key(1)) is first


def cache_keys(revision: str) -> CacheKeys:
    """Return the canon of a snapshot of this revision."""
    return CacheKeys(Reads(), revision)


def test_it_belongs_to_one_revision() -> None:
    """Another revision has other answers and other tags; another snapshot of the same one has the same."""
    cache = AnswerCache(100_000)
    first = cache_keys("a")
    cache.use_snapshot(first)
    tag = cache.tagger.tag(b"key")
    keep(cache, 1)
    cache.use_snapshot(first)
    cache.use_snapshot(cache_keys("a"))
    assert cache.find(key(1)) is not None
    assert cache.tagger.tag(b"key") == tag
    cache.use_snapshot(cache_keys("b"))
    assert (cache.find(key(1)), cache.size) == (None, 0)
    assert cache.tagger.tag(b"key") != tag


steps = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 400), st.booleans()), max_size=120)


@given(steps, st.integers(0, 6000))
def test_the_bound_holds_whatever_comes(asked: list[tuple[int, int, bool]], limit: int) -> None:
    """`size` is the sum of the kept entries and at most the limit. A found answer is the answer that was added last for its key."""
    cache = AnswerCache(limit)
    offered: dict[bytes, CachedAnswer] = {}
    for number, length, packs in asked:
        entry = cache.find(key(number))
        if entry is None:
            entry = offered[key(number)] = CachedAnswer(b"tag", b"x" * length, [])
            cache.add_repeated(key(number), entry)
        assert entry is offered[key(number)]
        if packs and not entry.packed and entry.size:
            entry.packed = b"z" * (length // 2 + 1)
            cache.add_packed_size(key(number), entry)
        kept = [*cache.young.values(), *cache.old.values()]
        assert cache.size == sum(each.size for each in kept)
        assert all(each.size == OVERHEAD + 3 + len(each.body) + len(each.packed) for each in kept)
        assert cache.size <= limit
    assert cache.hits + cache.misses == len(asked)
