"""Bodies and the context in them (behaviour: Context by POST; Statuses and bodies; Size limits).

The context in a query string, as it was seen on the wire of the reference (behaviour: Context by GET).
"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from support.wirekit import KEY, Opener, Wire, asking

MUST_BE_TEXT = "must be string"
MUST_BE_OBJECT = "must be object"
MUST_BE_ARRAY = "must be array"


def window(opened: Opener, *features: dict[str, Any]) -> Wire:
    """Return a proxy whose toggles show the context that it read."""
    return opened(document={"version": 2, "features": list(features)})


@pytest.mark.parametrize(
    ("context", "field", "value"),
    [
        ({"userId": 7}, "userId", "7"),
        ({"userId": 1e21}, "userId", "1e+21"),
        ({"userId": True}, "userId", "true"),
        ({"properties": {"a": 2}, "a": 1}, "a", "2"),
        ({"a": [1, 2]}, "a", "1,2"),
        ({"a": {"b": 1}}, "a", "[object Object]"),
        ({"properties": {"userId": "9"}}, "userId", "9"),
    ],
)
def test_what_a_context_says(opened: Opener, context: object, field: str, value: str) -> None:
    """The field has this value, seen through a constraint on it."""
    wire = window(opened, asking(field, "IN", value))
    assert wire.post("/proxy", {"context": context}).names == ["asked"]


@pytest.mark.parametrize("value", [None, ""])
def test_a_standard_field_that_is_null_or_empty_is_absent(opened: Opener, value: object) -> None:
    """Absent fields have their defaults."""
    wire = window(opened, asking("appName", "IN", "flagsvc-proxy"))
    assert wire.post("/proxy", {"context": {"appName": value}}).names == ["asked"]


def test_an_empty_property_and_a_null_one(opened: Opener) -> None:
    """A property that is null is the empty text; an unknown field that is null is absent."""
    wire = window(opened, asking("a", "NUM_EQ", "0"))
    for context in ({"properties": {"a": None}}, {"properties": {"a": ""}}, {"a": ""}, {"a": 7, "properties": {"a": None}}):
        assert wire.post("/proxy", {"context": context}).names == ["asked"]
    for context in ({"a": None}, {}):  # type: ignore[assignment]
        assert wire.post("/proxy", {"context": context}).names == []


@pytest.mark.parametrize(
    ("time", "after"), [(1640000000000, True), ("2021-12-20 12:00", True), (-1, False), (True, False), ("2021-12-20 11:33", False)]
)
def test_current_time(opened: Opener, time: object, after: bool) -> None:
    """currentTime is a text that JavaScript's Date reads, or epoch milliseconds."""
    wire = window(opened, asking("currentTime", "DATE_AFTER", "2021-12-20T11:33:19.999Z"))
    assert wire.post("/proxy", {"context": {"currentTime": time}}).names == (["asked"] if after else [])


@pytest.mark.parametrize("time", [None, "", 0, False, "x", "1640000000000", 1e300, 8.65e15])
def test_a_current_time_that_is_no_date_is_ignored(opened: Opener, time: object) -> None:
    """The proxy uses its clock instead."""
    wire = window(opened, asking("currentTime", "DATE_AFTER", "2025-01-01T00:00:00.000Z"))
    assert wire.post("/proxy", {"context": {"currentTime": time}}).names == ["asked"]


def test_a_context_that_is_not_wrapped_is_ignored(opened: Opener) -> None:
    """Only the member `context` is read."""
    wire = window(opened, asking("userId", "IN", "7"))
    assert wire.post("/proxy", {"userId": "7", "properties": {"userId": "7"}}).names == []
    assert wire.post("/proxy", {"userId": "8", "context": {"userId": "7"}}).names == ["asked"]


@pytest.mark.parametrize(
    ("toggles", "names"), [(["a", 5], ["a", "5"]), ([None], [""]), ([True, ""], ["true", ""]), (["__proto__"], ["__proto__"])]
)
def test_names_are_texts(opened: Opener, toggles: object, names: list[str]) -> None:
    """Numbers and booleans among the names become text, null the empty text."""
    assert opened().post("/proxy", {"toggles": toggles}).names == names


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        (b"[]", "/body", MUST_BE_OBJECT),
        ({"toggles": None}, "/body/toggles", MUST_BE_ARRAY),
        ({"toggles": ["on", ["on"]]}, "/body/toggles/1", MUST_BE_TEXT),
        ({"context": None}, "/body/context", MUST_BE_OBJECT),
        ({"context": {"userId": [1]}}, "/body/context/userId", MUST_BE_TEXT),
        ({"context": {"properties": None}}, "/body/context/properties", MUST_BE_OBJECT),
        ({"context": {"properties": {"a/b~": {}}}}, "/body/context/properties/a~1b~0", MUST_BE_TEXT),
    ],
)
def test_what_a_body_may_not_say(opened: Opener, body: object, pointer: str, message: str) -> None:
    """The answer is a 400 with the place and the rule."""
    answer = opened().post("/proxy", body)
    assert answer.status == 400
    assert answer.json()["validation"] == [{"instancePath": pointer, "message": message}]
    assert answer.header("content-type") == "application/json; charset=utf-8"
    assert answer.header("cache-control") == "no-store"


@pytest.mark.parametrize(
    ("body", "position"),
    [
        (b"{bad", "line 1 column 2 (position 1)"),
        (b'{"a":1', "line 1 column 7 (position 6)"),
        (b'{"a":1}x', "line 1 column 8 (position 7)"),
        (b'{"a":\n  tru}', "line 2 column 3 (position 8)"),
        (b"{'a':1}", "line 1 column 2 (position 1)"),
    ],
)
def test_where_a_body_is_not_json(opened: Opener, body: bytes, position: str) -> None:
    """The answer is a 400 with the parser's position and no name of the parser."""
    answer = opened().post("/proxy", body)
    assert answer.status == 400
    assert position in answer.json()["error"]
    assert "Traceback" not in answer.json()["error"]
    assert "validation" not in answer.json()


@pytest.mark.parametrize(
    "body",
    [
        b" ",
        b"NaN",
        b'{"context":{"userId":NaN}}',
        b'{"context":{"userId":-Infinity}}',
        b"[" * 50_000 + b"]" * 50_000,
        b'{"context":' * 8_000 + b"1" + b"}" * 8_000,
        b'{"context":{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}}",
        b'{"context":{"a":' + b"[" * 102 + b"1" + b"]" * 102 + b"}}",
        b'{"context":{"a":' + b"[" * 400 + b"1" + b"]" * 400 + b"}}",
        b'{"context":{"a":' + b"[" * 500 + b'"\\ud800"' + b"]" * 500 + b"}}",
        b'{"context":{"userId":' + b"1" * 90_000 + b".5e}}",
        b"\x00\x01\x02",
        b'{"a":"\n"}',
        b'{"a":01}',
    ],
)
def test_other_bodies_that_are_refused(opened: Opener, body: bytes) -> None:
    """Blanks, constants that JSON does not have, and very deep nesting are a 400, never a 500."""
    wire = opened()
    assert wire.post("/proxy", body).status == 400
    assert wire.log.lines == []


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"context":{"a":1e400}}', "Infinity"),
        (b'{"context":{"a":-1e400}}', "-Infinity"),
        (b'{"context":{"a":"\\ud83d\\ude00"}}', "😀"),
        (b'{"context":{"a":"\\ud800"}}', "\ufffd"),
        (b'{"context":{"a":"\xff"}}', "\ufffd"),
        (b'\xef\xbb\xbf{"context":{"a":"bom"}}', "bom"),
        (b'{"context":{"a":1},"context":{"a":2}}', "2"),
        (b' \n{"context":{"a":"blanks"}}\r\n ', "blanks"),
        (b'{"context":{"a":' + b"1" * 400 + b"}}", "Infinity"),
    ],
)
def test_bodies_a_strict_parser_would_refuse(opened: Opener, body: bytes, value: str) -> None:
    """What JavaScript's parser accepts is accepted: half surrogate pairs, and bytes that are not UTF-8 as U+FFFD."""
    assert window(opened, asking("a", "IN", value)).post("/proxy", body).names == ["asked"]


def test_half_a_surrogate_pair_in_a_name(opened: Opener) -> None:
    """A name with half a surrogate pair comes back as text, and does not break the answer."""
    answer = opened().post("/proxy", b'{"toggles":["\\udc00x", {"\\ud800":1}]}')
    assert answer.status == 400
    assert opened().post("/proxy", b'{"toggles":["\\udc00x"]}').names == ["\ufffdx"]


ASKED = {"context": {"userId": "ä"}}
CONTENT = json.dumps(ASKED, ensure_ascii=False)


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        (None, "utf-8"),
        ("", "utf-8"),
        ("application/json", "utf-8"),
        ("application/JSON", "utf-8"),
        ("application/json;", "utf-8"),
        ("application/json; charset=", "utf-8"),
        ("application/json; charset=utf-8", "utf-8"),
        ('application/json;charset="UTF-8"', "utf-8"),
        ("application/json; charset=utf8", "utf-8"),
        ("application/json; v=1; charset=utf-16", "utf-16"),
        ("application/json; charset=utf-16", "utf-16-le"),
        ("application/json; charset=utf-16", "utf-16-be"),
        ("application/json; charset=utf-16le", "utf-16-le"),
        ("application/json; charset=UTF-16BE", "utf-16-be"),
    ],
)
def test_media_types_that_are_read(opened: Opener, content_type: str | None, encoding: str) -> None:
    """JSON in UTF-8 or UTF-16; without a Content-Type a body is read as JSON."""
    headers = {} if content_type is None else {"content-type": content_type}
    wire = window(opened, asking("userId", "IN", "ä"))
    assert wire.ask("POST", "/proxy", headers, body=CONTENT.encode(encoding)).names == ["asked"]


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "application/vnd.api+json",
        "application/jsonx",
        "application",
        "*/*",
        "application/json; charset=latin1",
        "application/json; charset=us-ascii",
        "application/json; charset=utf-7",
        "application/json; charset=foo",
    ],
)
def test_media_types_that_are_not(opened: Opener, content_type: str) -> None:
    """Another media type or charset is a 415, sized or chunked; the media type of a POST without a body is ignored."""
    wire = opened()
    headers = {"content-type": content_type}
    for answer in (wire.ask("POST", "/proxy", headers, body=b"{}"), wire.ask("POST", "/proxy", headers, chunks=[b"{}"])):
        assert answer.status == 415
        assert answer.header("cache-control") == "no-store"
        assert answer.json()["error"]
    assert wire.ask("POST", "/proxy", headers).status == 200
    assert wire.ask("POST", "/proxy", {**headers, "content-length": "0"}).status == 200


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("identity", bytes),
        ("", bytes),
    ],
)
def test_content_codings_that_are_read(opened: Opener, coding: str, pack: Any) -> None:
    """gzip and deflate, in one piece or in several."""
    wire = window(opened, asking("userId", "IN", "ä"))
    body = pack(CONTENT.encode())
    headers = {"content-encoding": coding}
    assert wire.ask("POST", "/proxy", headers, body=body).names == ["asked"]
    assert wire.ask("POST", "/proxy", headers, chunks=[body[:5], b"", body[5:]]).names == ["asked"]


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress", "foo"])
def test_content_codings_that_are_not(opened: Opener, coding: str) -> None:
    """Any other content coding is a 415."""
    assert opened().ask("POST", "/proxy", {"content-encoding": coding}, body=b"{}").status == 415


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"{}"),
        ("gzip", gzip.compress(b"{}", mtime=0)[:-3]),
        ("gzip", gzip.compress(b"{}", mtime=0) + b"x"),
        ("deflate", b"{}"),
        ("gzip", b"\x1f"),
    ],
)
def test_a_damaged_coding(opened: Opener, coding: str, body: bytes) -> None:
    """The answer is a 400 if the body cannot be decoded."""
    wire = opened()
    assert wire.ask("POST", "/proxy", {"content-encoding": coding}, body=body).status == 400
    assert wire.log.lines == []


def test_get_ignores_a_body(opened: Opener) -> None:
    """The body of a GET is neither read nor checked."""
    wire = opened()
    headers = {"content-type": "text/plain"}
    assert wire.ask("GET", "/proxy", headers, body=b"x" * 500_000, key=KEY).status == 200
    assert wire.last is not None
    assert wire.last.taken == 0


@pytest.mark.parametrize(
    ("query", "field", "value"),
    [
        ("userId=7", "userId", "7"),
        ("user%49d=7", "userId", "7"),
        ("[userId]=7", "userId", "7"),
        ("userId=+", "userId", " "),
        ("properties%5bregion%5d=eu", "region", "eu"),
        ("a=2&properties[a]=1", "a", "1"),
        ("a=1&a=2&a=", "a", "1,2,"),
        ("properties[a]=1&properties[a]=2", "a", "1,2"),
        ("a=1&a[]=2", "a", "1,2"),
        ("a=%41+%zz", "a", "%41 %zz"),
        ("a=%C3%28", "a", "%C3%28"),
        ("a=%F0%9F%98%80", "a", "😀"),
        ("a=x+y", "a", "x y"),
        ("a==1", "a", "=1"),
        ("[=1", "[", "1"),
        ("properties[a[b]]=1", "a[b]", "1"),
        ("properties[userId]=9", "userId", "9"),
        ("__proto__=1", "__proto__", "1"),
    ],
)
def test_what_a_query_says(opened: Opener, query: str, field: str, value: str) -> None:
    """The field has this value, seen through a constraint on it."""
    features = [asking(field, "STR_STARTS_WITH", value, name="starts"), asking(field, "IN", value, name="is")]
    if value.strip() != value:  # constraints trim their values: only that the field is there can be seen
        features = [asking(field, "STR_CONTAINS", " ", name="is there")]
    wire = opened(document={"version": 2, "features": features})
    assert wire.get(f"/proxy?{query}").names == [feature["name"] for feature in features]


@pytest.mark.parametrize("query", ["a=", "a", "properties[a]=", "properties[a]", "properties[a]=&a=1"])
def test_an_empty_property_is_the_empty_text(opened: Opener, query: str) -> None:
    """An empty property is present: as a number it is 0."""
    wire = opened(document={"version": 2, "features": [asking("a", "NUM_EQ", "0")]})
    assert wire.get(f"/proxy?{query}").names == ["asked"]
    assert wire.get("/proxy").names == []


@pytest.mark.parametrize("query", ["userId=", "userId", "=1", "", "userid=7"])
def test_an_empty_standard_field_is_absent(opened: Opener, query: str) -> None:
    """An empty standard field counts as absent."""
    wire = opened(document={"version": 2, "features": [asking("userId", "STR_CONTAINS", "7", " ")]})
    assert wire.get(f"/proxy?{query}").names == []


@pytest.mark.parametrize(
    ("query", "pointer", "message"),
    [
        ("userId=7&userId=8", "/query/userId", MUST_BE_TEXT),
        ("userId[]=7", "/query/userId", MUST_BE_TEXT),
        ("currentTime=2022&currentTime=2023", "/query/currentTime", MUST_BE_TEXT),
        ("properties=foo", "/query/properties", MUST_BE_OBJECT),
        ("properties[a]=1&properties=x", "/query/properties", MUST_BE_OBJECT),
        ("properties[a~/b][c]=x", "/query/properties/a~0~1b", MUST_BE_TEXT),
        ("a[b][c]=x", "/query/a", MUST_BE_TEXT),
    ],
)
def test_what_a_query_may_not_say(opened: Opener, query: str, pointer: str, message: str) -> None:
    """The answer is a 400 with the place and the rule."""
    answer = opened().get(f"/proxy?{query}")
    assert answer.status == 400
    assert answer.json()["validation"] == [{"instancePath": pointer, "message": message}]
    assert answer.header("cache-control") == "no-store"


def test_bytes_that_are_no_utf8_do_no_harm(over_asgi: Opener) -> None:
    """Raw bytes beyond ASCII are read as UTF-8; invalid ones become U+FFFD."""
    wire = over_asgi(document={"version": 2, "features": [asking("a", "IN", "ä", "\ufffd")]})
    assert wire.get("/proxy?a=" + "ä".encode().decode("latin-1")).names == ["asked"]
    assert wire.get("/proxy?a=\xff").names == ["asked"]
