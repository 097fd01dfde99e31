"""Answers and their headers, also the headers of CORS."""

from __future__ import annotations

import gzip
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.engine.fragments import AnswerPieces
from flagsvc.http.call import Call
from flagsvc.http.messages import Request
from flagsvc.proxy.api.answers import WILDCARD, Answers, Cors, compile_origin
from flagsvc.proxy.api.cache import CachedAnswer
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.wire_format import WireFormat


def answers() -> Answers:
    """Return answers under default options."""
    return Answers(Cors(ServiceSettings(client_keys=("k",))), "x-key", WireFormat())


def call(accepted: bytes | None = None) -> Call:
    """Return a call of a caller who accepts these encodings."""
    found = Call(Request(b"GET", b"/proxy", b"", []))
    found.accept_encoding = accepted
    return found


def test_a_known_tag_is_taken() -> None:
    """An answer with a given tag is not hashed."""
    made, asked = answers(), call()
    asked.if_none_match = b'"t"'
    response = made.respond(made.evaluation, asked, b"{}", b'W/"t"')
    assert (response.status, response.body, response.own) == (304, b"", [(b"etag", b'W/"t"')])


@pytest.mark.parametrize(("size", "packed"), [(10, False), (5000, True)])
def test_a_known_answer_is_packed_once(size: int, packed: bool) -> None:
    """Its forms are made when they are asked for, and no response can change them for the next."""
    made, entry = answers(), CachedAnswer(b'W/"t"', b"x" * size, [])
    first = made.respond_cached(made.evaluation, call(b"gzip"), entry)
    first.own.append((b"x", b"y"))
    second = made.respond_cached(made.evaluation, call(b"gzip"), entry)
    assert (gzip.decompress(second.body) if packed else second.body) == entry.body
    assert second.body is first.body
    assert second.own == [(b"etag", b'W/"t"'), (b"content-length", str(len(second.body)).encode())]
    assert dict(second.headers()).get(b"content-encoding") == (b"gzip" if packed else None)
    plain = made.respond_cached(made.evaluation, call(), entry)
    assert (plain.status, plain.body) == (200, entry.body) and b"content-encoding" not in dict(plain.headers())


@pytest.mark.parametrize(("accepted", "packed"), [(b"identity", False), (b"gzip", True)])
def test_an_answer_in_pieces(accepted: bytes, packed: bool) -> None:
    """It is sent in its pieces. Who accepts gzip gets it packed as a whole."""
    made, pieces = answers(), [b"x" * 2000, b"y" * 3000]
    entry = CachedAnswer(b'W/"t"', b"", [], AnswerPieces(pieces, 5000))
    response = made.respond_cached(made.evaluation, call(accepted), entry)
    assert response.pieces == (None if packed else pieces)
    assert dict(response.headers())[b"content-length"] == str(len(response.body)).encode()
    assert (gzip.decompress(response.body) if packed else response.body) == b"".join(pieces)


def cors(**settings: Any) -> Cors:
    return Cors(ServiceSettings(client_keys=("k",), **settings))


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
