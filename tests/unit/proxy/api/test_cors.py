"""CORS headers decided in the constructor."""

from __future__ import annotations

import re
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.proxy.api.answers import WILDCARD, Cors, compile_origin
from flagsvc.proxy.api.settings import ServiceSettings


def cors(**settings: Any) -> Cors:
    """Return the rules for these options."""
    return Cors(ServiceSettings(client_keys=("k",), **settings))


def test_any_origin_depends_on_nothing() -> None:
    """`*` goes with every answer, and nothing has to be looked at per request."""
    rules = cors()
    assert (b"access-control-allow-origin", b"*") in rules.fixed
    assert not rules.dynamic
    assert rules.vary == ()
    assert rules.headers_for(b"https://a.example") == []


def test_answers_do_not_share_what_is_changed() -> None:
    """Fields that are added to one answer do not appear in the next one."""
    rules = cors()
    rules.headers_for(None).append((b"x", b"y"))
    rules.preflight_headers_for(None, None).append((b"x", b"y"))
    assert rules.headers_for(None) == []
    assert rules.preflight_headers_for(None, None) == []


@given(st.text("*.-a!", max_size=8), st.sampled_from(["", ":1", ":*"]), st.text(".-a!:1/", max_size=12))
def test_wildcards_stand_for_what_they_say(host: str, port: str, rest: str) -> None:
    """A pattern matches exactly the origins that it matches when every wildcard is tried in every length."""
    pattern = f"s://*{host}{port}"
    slow = re.compile(WILDCARD.join(re.escape(part) for part in pattern.split("*")))
    for origin in (f"s://{rest}", f"s://{rest}{port}", pattern.replace("*", "a.a")):
        assert bool(compile_origin(pattern).fullmatch(origin.encode())) is bool(slow.fullmatch(origin))


def test_a_hostile_origin_takes_little_time() -> None:
    """The time is linear in the Origin, however many wildcards there are: it comes without a key, and may be 64 kB."""
    rules = cors(cors_origin=("https://*.*.*.*.example.com:*",))
    started = time.process_time()
    for origin in (b"https://" + b"a." * 30_000, b"https://" + b"." * 60_000, b"https://" + b"a" * 60_000):
        assert rules.headers_for(origin) == []
    assert time.process_time() - started < 1
    assert rules.headers_for(b"https://a.b.c.d.example.com:8443") != []
