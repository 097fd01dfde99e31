"""Encoding of answers. Shared parts are encoded once."""

from __future__ import annotations

import pytest

from flagsvc.http.messages import Response
from flagsvc.http.server.writer import CLOSE, KEEP, KEEP_1_0, MAX_KEPT, ResponseEncoder, status_line
from support.frontkit import State


def test_an_answer() -> None:
    """Status line, the server's headers, the fixed ones, its own, the connection's, the body."""
    encoder = ResponseEncoder(State([(b"date", b"now"), (b"x", b"y")]))
    response = Response(200, [(b"a", b"1")], [(b"b", b"2"), (b"content-length", b"4")], b"body")
    head = b"HTTP/1.1 200 OK\r\ndate: now\r\nx: y\r\na: 1\r\nb: 2\r\ncontent-length: 4\r\n"
    assert encoder.encode(response, KEEP, [response.body]) == head + b"\r\nbody"
    assert encoder.encode(response, KEEP_1_0, [response.body]) == head + b"connection: keep-alive\r\n\r\nbody"
    assert encoder.encode(response, CLOSE, [response.body]) == head + b"connection: close\r\n\r\nbody"
    assert encoder.encode(response, KEEP, [b"bo", b"d", b"y"]) == head + b"\r\nbody"


def test_the_date_goes_on() -> None:
    """The server's headers are taken again as soon as there is another list of them."""
    state = State([(b"date", b"one")])
    encoder = ResponseEncoder(state)
    response = Response(204, [], [], b"")
    assert encoder.encode(response, KEEP, [response.body]) == b"HTTP/1.1 204 No Content\r\ndate: one\r\n\r\n"
    state.default_headers = [(b"date", b"two")]
    assert encoder.encode(response, KEEP, [response.body]) == b"HTTP/1.1 204 No Content\r\ndate: two\r\n\r\n"


def test_answers_that_take_turns() -> None:
    """Answers that share headers but not the status, or the status but not the headers, are kept apart."""
    encoder = ResponseEncoder(State())
    one, two = [(b"a", b"1")], [(b"a", b"2")]
    for _ in range(2):
        for status, fixed in ((200, one), (404, one), (200, two)):
            wanted = status_line(status) + b"a: " + fixed[0][1] + b"\r\n\r\n"
            assert encoder.encode(Response(status, fixed, [], b""), KEEP, []) == wanted


def test_what_is_kept_is_bounded() -> None:
    """Headers that are new with every answer do not add up; lists that live no longer are not taken for others."""
    encoder = ResponseEncoder(State())
    for at in range(3 * MAX_KEPT):
        answer = encoder.encode(Response(200, [(b"a", str(at).encode())], [], b""), KEEP, [])
        assert answer == b"HTTP/1.1 200 OK\r\na: %d\r\n\r\n" % at
    assert len(encoder.kept) <= MAX_KEPT


@pytest.mark.parametrize(("status", "line"), [(404, b"HTTP/1.1 404 Not Found\r\n"), (299, b"HTTP/1.1 299 \r\n")])
def test_status_lines(status: int, line: bytes) -> None:
    """A status without a name has no words."""
    assert status_line(status) == line
