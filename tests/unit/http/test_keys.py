"""Client keys."""

from __future__ import annotations

import pytest

from flagsvc.http import keys as module
from flagsvc.http.keys import Keys, KeySet


def test_a_ring_holds_its_keys_and_nothing_else() -> None:
    """A set contains its keys as UTF-8, but no parts, extensions or other letter cases of them."""
    ring = KeySet(["abc", "d", "ключ"])
    assert all(ring.contains(key) for key in (b"abc", b"d", "ключ".encode()))
    assert not any(ring.contains(key) for key in (b"", b"ab", b"abcd", b"ABC", b"a bc", b"\xff"))


def test_blanks_round_a_value_do_not_belong_to_it() -> None:
    """White space around a key is ignored, because parsers handle it differently."""
    assert KeySet(["abc"]).contains(b" abc\t ")


def test_every_key_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key is compared, whichever matches, so that the time reveals nothing."""
    compared: list[bytes] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return one == other

    monkeypatch.setattr(module, "compare_digest", compare)
    ring = KeySet(["abc", "d", "e"])
    for key, opens in ((b"abc", True), (b"e", True), (b"x", False)):
        compared.clear()
        assert ring.contains(key) is opens and compared == ring.digests


def test_an_empty_ring_holds_nothing() -> None:
    """A set without keys does not contain the empty key."""
    assert not KeySet([]).contains(b"")


def test_keys_are_not_kept() -> None:
    """The set keeps only digests of its keys."""
    ring = KeySet(["very-secret-key"])
    assert b"very-secret-key" not in b"".join(ring.digests)
    assert "very-secret-key" not in repr(ring)


def test_a_ring_whose_keys_are_replaced() -> None:
    """After `replace` the set contains only the new keys."""
    ring = KeySet(["old"])
    ring.replace(["new"])
    assert ring.contains(b"new") and not ring.contains(b"old")


def test_the_rings_of_an_application() -> None:
    """Client keys and server tokens are separate sets, and `either` contains both. This holds after `replace` too."""
    keys = Keys(["client"], ["server"])
    rings = (keys.client, keys.server, keys.either)
    assert [ring.contains(b"client") for ring in rings] == [True, False, True]
    assert [ring.contains(b"server") for ring in rings] == [False, True, True]
    keys.replace((key for key in ["other"]), ())
    assert [ring.contains(b"other") for ring in rings] == [True, False, True]
    assert not any(ring.contains(key) for ring in rings for key in (b"client", b"server"))
