"""Requests, responses and refusals."""

from __future__ import annotations

from flagsvc.http.messages import HttpError, Request, Response, below, invalid


def test_a_request_keeps_what_it_is_given() -> None:
    """A request has all given parts, with defaults for its origin."""
    request = Request(b"GET", b"/a", b"b=c", [(b"d", b"e")])
    assert (request.method, request.path, request.query) == (b"GET", b"/a", b"b=c")
    assert request.headers == [(b"d", b"e")]
    assert (request.peer, request.scheme, request.root) == ("", "http", b"")


def test_headers_are_the_shared_ones_and_the_own_ones() -> None:
    """Adding the own headers does not change the shared list."""
    fixed, own = [(b"a", b"1")], [(b"b", b"2")]
    assert Response(200, fixed, own, b"").headers() == [(b"a", b"1"), (b"b", b"2")]
    assert fixed == [(b"a", b"1")]


def test_json_pointers_are_escaped() -> None:
    """`~` and `/` in a name are escaped. An empty name is valid."""
    assert below("/body", "a/b~c") == "/body/a~1b~0c"
    assert below("/body", "") == "/body/"


def test_invalid_names_the_place_and_the_rule() -> None:
    """A 400 with one problem, for a field or for the whole."""
    refused = invalid("/body", "a", "must be string")
    assert isinstance(refused, HttpError)
    assert (refused.status, refused.problems) == (400, [("/body/a", "must be string")])
    assert invalid("/body", None, "must be object").problems == [("/body", "must be object")]


def test_a_body_in_pieces() -> None:
    """It is joined when it is read; another body takes its place."""
    response = Response(200, [], [], b"", [b"a", b"bc"])
    assert [response.pieces, response.body, response.pieces] == [[b"a", b"bc"], b"abc", None]
    response = Response(200, [], [], b"", [b"a"])
    response.body = b""
    assert (response.body, response.pieces) == (b"", None)
