"""Answers and their headers."""

from __future__ import annotations

import gzip

import pytest

from flagsvc.engine.fragments import AnswerPieces
from flagsvc.http.call import Call
from flagsvc.http.messages import Headers, Request
from flagsvc.proxy.api.answers import Answers, Cors
from flagsvc.proxy.api.cache import CachedAnswer
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.wire_format import WireFormat


def answers() -> Answers:
    """Return answers under default options."""
    return Answers(Cors(ServiceSettings(client_keys=("k",))), "x-key", WireFormat())


def call(method: bytes = b"GET", **attributes: bytes) -> Call:
    """Return a call with these attributes."""
    found = Call(Request(method, b"/proxy", b"", []))
    for name, value in attributes.items():
        setattr(found, name, value)
    return found


def header(headers: Headers, name: bytes) -> bytes | None:
    """Return the value of a header."""
    return dict(headers).get(name)


def test_a_known_tag_is_taken() -> None:
    """An answer with a given tag is not hashed."""
    made = answers()
    response = made.respond(made.evaluation, call(if_none_match=b'"t"'), b"{}", b'W/"t"')
    assert (response.status, response.body) == (304, b"")
    assert header(response.headers(), b"etag") == b'W/"t"'


@pytest.mark.parametrize(("size", "packed"), [(10, False), (5000, True)])
def test_a_known_answer_is_packed_once(size: int, packed: bool) -> None:
    """Its forms are made when they are asked for, and no response can change them for the next."""
    made, entry = answers(), CachedAnswer(b'W/"t"', b"x" * size, [])
    first = made.respond_cached(made.evaluation, call(accept_encoding=b"gzip"), entry)
    first.own.append((b"x", b"y"))
    second = made.respond_cached(made.evaluation, call(accept_encoding=b"gzip"), entry)
    assert (gzip.decompress(second.body) if packed else second.body) == entry.body
    assert second.body is first.body
    assert second.own == [(b"etag", b'W/"t"'), (b"content-length", str(len(second.body)).encode())]
    assert header(second.headers(), b"content-encoding") == (b"gzip" if packed else None)
    plain = made.respond_cached(made.evaluation, call(), entry)
    assert (plain.status, plain.body, header(plain.headers(), b"content-encoding")) == (200, entry.body, None)


@pytest.mark.parametrize(("accepted", "packed"), [(b"identity", False), (b"gzip", True)])
def test_an_answer_in_pieces(accepted: bytes, packed: bool) -> None:
    """It is sent in its pieces. Who accepts gzip gets it packed as a whole."""
    made, pieces = answers(), [b"x" * 2000, b"y" * 3000]
    entry = CachedAnswer(b'W/"t"', b"", [], AnswerPieces(pieces, 5000))
    response = made.respond_cached(made.evaluation, call(accept_encoding=accepted), entry)
    assert response.pieces == (None if packed else pieces)
    length = header(response.headers(), b"content-length")
    assert length == str(len(response.body)).encode()
    assert (gzip.decompress(response.body) if packed else response.body) == b"".join(pieces)
