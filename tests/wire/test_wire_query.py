"""The context in a query string, as it was seen on the wire of the reference (behaviour: Context by GET)."""

from __future__ import annotations

import pytest

from support.wirekit import Opener, asking

MUST_BE_TEXT = "must be string"
MUST_BE_OBJECT = "must be object"


@pytest.mark.parametrize(
    ("query", "field", "value"),
    [
        ("userId=7", "userId", "7"),
        ("user%49d=7", "userId", "7"),
        ("[userId]=7", "userId", "7"),
        ("sessionId=s", "sessionId", "s"),
        ("userId=+", "userId", " "),
        ("userId=%207", "userId", " 7"),
        ("properties[region]=eu", "region", "eu"),
        ("properties%5Bregion%5D=eu", "region", "eu"),
        ("properties%5bregion%5d=eu", "region", "eu"),
        ("p%72operties[%61]=1", "a", "1"),
        ("region=eu", "region", "eu"),
        ("USERID=3", "USERID", "3"),
        ("toggles=on", "toggles", "on"),
        ("a.b=1", "a.b", "1"),
        ("properties.a=1", "properties.a", "1"),
        # explicit properties win, in either order
        ("properties[a]=1&a=2", "a", "1"),
        ("a=2&properties[a]=1", "a", "1"),
        ("properties[a]=x&a=2&a=3", "a", "x"),
        # repeated properties are joined
        ("a=1&a=2", "a", "1,2"),
        ("a=1&a=2&a=", "a", "1,2,"),
        ("properties[a]=1&properties[a]=2", "a", "1,2"),
        ("a[]=1&a[]=2", "a", "1,2"),
        ("a=1&a[]=2", "a", "1,2"),
        ("a[0]=1", "a", "1"),
        ("properties[a][]=1&properties[a][]=2", "a", "1,2"),
        # bad percent escapes and what is no UTF-8 stay literal, the whole of it
        ("a=%", "a", "%"),
        ("a=%zz", "a", "%zz"),
        ("a=%41%zz", "a", "%41%zz"),
        ("a=%41+%zz", "a", "%41 %zz"),
        ("a=%E4", "a", "%E4"),
        ("a=%C3%28", "a", "%C3%28"),
        ("a=%ed%a0%80", "a", "%ed%a0%80"),
        ("a=%C0%80", "a", "%C0%80"),
        ("a=%F4%90%80%80", "a", "%F4%90%80%80"),
        ("a=%u0041", "a", "%u0041"),
        ("a%zz+%41=1", "a%zz %41", "1"),
        ("a=%5B%zz", "a", "[%zz"),
        ("a=%C3%A4", "a", "ä"),
        ("a=%F0%9F%98%80", "a", "😀"),
        ("a=%ED%9F%BF", "a", "\ud7ff"),
        # odd punctuation
        ("a=x+y", "a", "x y"),
        ("a+b=1", "a b", "1"),
        ("a=%2B", "a", "+"),
        ("a==1", "a", "=1"),
        ("a=b=c", "a", "b=c"),
        ("a=1;b=2", "a", "1;b=2"),
        ("&&a=1&", "a", "1"),
        ("[a]=1", "a", "1"),
        ("[=1", "[", "1"),
        ("a]=1", "a]", "1"),
        ("properties[a=1", "[a", "1"),
        ("properties[a]b=1", "a", "1"),
        ("properties[a]]=1", "a", "1"),
        ("properties[a[b]]=1", "a[b]", "1"),
        ("properties[[a]]=1", "[a]", "1"),
        ("properties]=1", "properties]", "1"),
        ("properties%255Ba%255D=1", "properties%5Ba%5D", "1"),
        ("properties[userId]=9", "userId", "9"),
        ("properties[0]=x", "0", "x"),
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
        ("userId&userId=7", "/query/userId", MUST_BE_TEXT),
        ("userId=a&[userId]=b", "/query/userId", MUST_BE_TEXT),
        ("userId[]=7", "/query/userId", MUST_BE_TEXT),
        ("userId[a]=7", "/query/userId", MUST_BE_TEXT),
        ("appName=a&appName=b", "/query/appName", MUST_BE_TEXT),
        ("environment=a&environment=b", "/query/environment", MUST_BE_TEXT),
        ("sessionId=a&sessionId=a", "/query/sessionId", MUST_BE_TEXT),
        ("remoteAddress=a&remoteAddress=b", "/query/remoteAddress", MUST_BE_TEXT),
        ("currentTime=2022&currentTime=2023", "/query/currentTime", MUST_BE_TEXT),
        ("properties=foo", "/query/properties", MUST_BE_OBJECT),
        ("properties=", "/query/properties", MUST_BE_OBJECT),
        ("properties", "/query/properties", MUST_BE_OBJECT),
        ("properties[]=x", "/query/properties", MUST_BE_OBJECT),
        ("properties[]]=x", "/query/properties", MUST_BE_OBJECT),
        ("properties[a]=1&properties=x", "/query/properties", MUST_BE_OBJECT),
        ("properties[a][b]=x", "/query/properties/a", MUST_BE_TEXT),
        ("properties[a~/b][c]=x", "/query/properties/a~0~1b", MUST_BE_TEXT),
        ("a[b]=x", "/query/a", MUST_BE_TEXT),
        ("a[b][c]=x", "/query/a", MUST_BE_TEXT),
        ("a[][]=x", "/query/a", MUST_BE_TEXT),
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
