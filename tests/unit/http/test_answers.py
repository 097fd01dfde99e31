"""A handler's answer becomes the same response as on the real server (import validation 1.3). A call of the flag server's API."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from flagsvc.http import answers
from flagsvc.http.answers import Answer, encode
from flagsvc.http.call import HEADERS, Call
from flagsvc.http.messages import Request
from flagsvc.server.api.call import ANONYMOUS, ApiCall

LONG = {"text": "x" * 5000}


def respond(answer: Answer, method: bytes = b"GET", media: bytes = b"application/json", **headers: str) -> Any:
    """Return the status, the headers and the body of an answer."""
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    head = Call(Request(method, b"/", b"", pairs))
    head.read(HEADERS)
    made = answers.respond(head, answer, media)
    return made.status, {name.decode(): value.decode() for name, value in made.headers()}, made.body


NUMBERS = [
    (1.0, b"1"),
    (-0.5, b"-0.5"),
    (2.0**53, b"9007199254740992"),
    ([{"a": 3.0, "b": [1.5, 4.0]}], b'[{"a":3,"b":[1.5,4]}]'),
    ({"version": "1.0.0", "order": 9999.0}, b'{"version":"1.0.0","order":9999}'),
    (float("inf"), b"null"),
    (float("nan"), b"null"),
    ({"a": "10.0.0.1", "b": 2.0}, b'{"a":"10.0.0.1","b":2}'),
    ([3.0, "v1.0"], b'[3,"v1.0"]'),
    (["a.0,", {"b": [4.0]}], b'["a.0,",{"b":[4]}]'),
    (5.0, b"5"),
    ("ä\u2028", '"ä\u2028"'.encode()),
]


@pytest.mark.parametrize(("value", "body"), NUMBERS, ids=repr)
def test_json_is_written_as_javascript_writes_it(value: object, body: bytes) -> None:
    """JSON is compact. Characters are not escaped, whole numbers have no fraction, and infinity and NaN become null."""
    assert encode(value) == body


def test_no_body_has_no_type() -> None:
    """An empty 200 has only a length of 0. A 204 has no length either."""
    status, headers, body = respond(Answer())
    assert (status, headers, body) == (200, {"vary": "Accept-Encoding", "content-length": "0"}, b"")
    assert respond(Answer(status=204))[1] == {"vary": "Accept-Encoding"}


def test_gzip_for_long_bodies() -> None:
    """A long body is compressed, or the handler's own compressed form is sent. A short body is not compressed."""
    _, headers, body = respond(Answer(LONG), accept_encoding="gzip")
    assert headers["content-encoding"] == "gzip"
    assert int(headers["content-length"]) == len(body)
    assert json.loads(gzip.decompress(body)) == LONG
    gzipped = gzip.compress(b"something else")
    assert respond(Answer(b"x" * 5000, gzipped=gzipped), accept_encoding="gzip")[2] == gzipped
    for accepted, value in (("gzip", {"a": 1}), ("identity", LONG), ("gzip;q=0", LONG)):
        assert "content-encoding" not in respond(Answer(value), accept_encoding=accepted)[1]


def test_a_tag_of_the_handler_is_kept() -> None:
    """The handler's entity tag is sent, and `If-None-Match` compares it weakly and as a whole."""
    answer = Answer(b"{}", tag=b'"one"')
    assert respond(answer)[1]["etag"] == '"one"'
    assert respond(answer, if_none_match='W/"one"')[0] == 304
    assert respond(answer, if_none_match='"two", "one"')[0] == 304
    assert respond(answer, if_none_match='"x-one"')[0] == 200
    assert respond(answer, b"POST", if_none_match='"one"')[0] == 200
    assert respond(Answer({}, 404), if_none_match="*")[0] == 404


def test_the_media_type() -> None:
    """The media type is JSON unless the route or the handler sets another."""
    assert respond(Answer({}))[1]["content-type"] == "application/json; charset=utf-8"
    assert respond(Answer(b"x"), media=b"text/plain")[1]["content-type"] == "text/plain"
    own = Answer(b"x", headers=((b"content-type", b"text/css"),))
    assert respond(own)[1]["content-type"] == "text/css"


def test_a_caller_that_a_route_did_not_ask_for() -> None:
    """A handler that reads the caller of another kind of route is a mistake of ours, which says so."""
    call = object.__new__(ApiCall)
    call.caller = ANONYMOUS
    call.query = {}
    with pytest.raises(LookupError, match=r"Auth\.ADMIN"):
        _ = call.actor
    with pytest.raises(LookupError, match=r"Auth\.CLIENT"):
        _ = call.token
    assert call.first_value("x") is None
