"""Client keys."""

from __future__ import annotations

import runpy
from hashlib import sha256

import pytest

from flagsvc.http.keys import SALT, KeyCheck, Keys, KeySet, salted
from flagsvc.http.messages import HttpError
from support import forms


def test_a_key_set_holds_its_keys_and_nothing_else() -> None:
    """A set contains its keys as UTF-8, but no parts, extensions or other letter cases of them. An empty set has no empty key."""
    keys = KeySet(["abc", "d", "ключ"])
    assert all(keys.contains(key) for key in (b"abc", b"d", "ключ".encode(), b" abc\t "))
    assert not any(keys.contains(key) for key in (b"", b"ab", b"abcd", b"ABC", b"a bc", b"\xff"))
    assert not KeySet([]).contains(b"")


def test_digests_cannot_be_foreseen() -> None:
    """A key is looked up by a digest with a secret in it, so that the time of a look-up reveals nothing."""
    other = runpy.run_path(str(forms.SOURCES / "flagsvc" / "http" / "keys.py"))["SALT"]
    assert len(SALT) == len(other) == 32 and other != SALT
    assert salted(b"abc") == sha256(SALT + b"abc").digest() != sha256(b"abc").digest()
    assert KeySet(["abc"]).digests == {salted(b"abc")}


def test_keys_are_not_kept() -> None:
    """The set keeps only digests of its keys, and of keys that are added."""
    keys = KeySet(["very-secret-key"])
    assert b"very-secret-key" not in b"".join(keys.digests)
    assert "very-secret-key" not in repr(keys)
    more = Keys([], [])
    more.add(b"very-secret-key", server=False)
    assert more.client.added == {salted(b"very-secret-key")}


def test_keys_that_are_added() -> None:
    """An added key opens the routes of its kind, like a listed one, until it is removed. `either` contains both kinds."""
    keys = Keys(["client"], ["server"])
    sets = (keys.client, keys.server, keys.either)
    listed = [[each.contains(key) for each in sets] for key in (b"client", b"server")]
    assert listed == [[True, False, True], [False, True, True]]
    keys.add(b"app", server=False)
    keys.add(b"backend", server=True)
    assert [each.contains(b"app") for each in sets] == [True, False, True]
    assert [each.contains(b" backend\t") for each in sets] == [False, True, True]
    for key in (b"app", b"backend", b"nobody"):
        keys.remove(key)
        assert not any(each.contains(key) for each in sets)
    assert not any(each.added for each in sets)


def test_a_key_that_is_listed_and_added() -> None:
    """It is a listed one; when the added one is removed, the listed one stays."""
    keys = Keys(["both"], [])
    keys.add(b"both", server=False)
    keys.add(b"added", server=False)
    assert keys.client.lists(b" both ") and not keys.client.lists(b"added") and not keys.server.lists(b"both")
    keys.remove(b"both")
    assert keys.client.contains(b"both") and keys.either.contains(b"both")


def test_an_added_key_of_the_other_kind() -> None:
    """Where the kinds of keys are told apart, it gets the 403 and not the 401."""
    keys = Keys([], [])
    keys.add(b"app", server=False)
    check = KeyCheck(keys.server, keys.either, bearer=True)
    for sent, status in ((b"app", 403), (b"Bearer app", 403), (b"nobody", 401), (None, 401)):
        with pytest.raises(HttpError) as caught:
            check.find_key(sent)
        assert caught.value.status == status
