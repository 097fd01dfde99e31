"""CORS headers decided in the constructor."""

from __future__ import annotations

from typing import Any

from flagsvc.api.cors import Cors
from flagsvc.api.settings import ServiceSettings


def cors(**settings: Any) -> Cors:
    """Return the rules for these options."""
    return Cors(ServiceSettings(client_keys=("k",), **settings))


def test_any_origin_depends_on_nothing() -> None:
    """`*` goes with every answer, and nothing has to be looked at per request."""
    rules = cors()
    assert (b"access-control-allow-origin", b"*") in rules.fixed
    assert not rules.dynamic
    assert rules.vary == ()
    assert rules.own(b"https://a.example") == []


def test_a_list_is_looked_at() -> None:
    """The origin of the request is sent back when it is in the list."""
    rules = cors(cors_origin=("https://a.example",))
    assert rules.dynamic
    assert rules.vary == (b"Origin",)
    assert rules.own(b"https://a.example") == [(b"access-control-allow-origin", b"https://a.example")]
    assert rules.own(b"https://b.example") == []
    assert rules.own(None) == []


def test_answers_do_not_share_what_is_changed() -> None:
    """What is added to one answer's own headers is not in the next one's."""
    rules = cors()
    rules.own(None).append((b"x", b"y"))
    rules.preflight_own(None, None).append((b"x", b"y"))
    assert rules.own(None) == []
    assert rules.preflight_own(None, None) == []


def test_allowed_headers_are_not_repeated_where_they_are_set() -> None:
    """Only where none are set what the preflight asks for is repeated."""
    assert cors().preflight_own(None, b"a") == [(b"access-control-allow-headers", b"a")]
    assert cors().preflight_own(None, b"") == []
    assert cors(cors_allowed_headers=("b",)).preflight_own(None, b"a") == []
