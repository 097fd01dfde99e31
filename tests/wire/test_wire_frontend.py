"""The frontend API, row by row (dialects: Frontend API).

Metrics and registrations at the frontend API (dialects: Reports of the frontend API).
"""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import ANY

import pytest

from support.scene import document, toggle
from support.wirekit import KEY, TOKEN, Opener, asking

URL = "/api/frontend"
NO_KEY = {"message": "This endpoint requires an API token. Please add an authorization header to your request with a valid token"}
OTHER_TYPE = {"message": "invalid token: expected a different token type for this endpoint"}
REPORT = {"appName": "a", "bucket": {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z", "toggles": {}}}
PLAIN_VARIANT = {"name": "disabled", "enabled": False, "feature_enabled": True, "featureEnabled": True}
PAYLOAD = {"type": "json", "value": '{"x":{},"impressionData":false}'}
VARIANT = {"name": "v", "weight": 1000, "payload": PAYLOAD}
DOCUMENT = document(toggle("z", impressionData=True), toggle("with/slash ü", variants=[VARIANT]), toggle("off", enabled=False))


def test_the_shape_of_an_answer(opened: Opener) -> None:
    """Both impression names, the state of the toggle in its variant, no payload where there is none; the order of the document."""
    answer = opened(document=DOCUMENT).get(URL)
    variant = {"name": "v", "enabled": True, "payload": PAYLOAD, "feature_enabled": True, "featureEnabled": True}
    first = {"name": "z", "enabled": True, "variant": PLAIN_VARIANT, "impressionData": True, "impression_data": True}
    second = {"name": "with/slash ü", "enabled": True, "variant": variant, "impressionData": False, "impression_data": False}
    assert (answer.status, answer.json()) == (200, {"toggles": [first, second]})
    assert answer.header("cache-control") == "no-cache"
    assert answer.header("access-control-expose-headers") == "ETag"


@pytest.mark.parametrize("alias", ["/api/proxy", "/api//frontend//", "//api/frontend", "/api/frontend/", "/API/Frontend"])
def test_other_spellings_of_the_path(opened: Opener, alias: str) -> None:
    """They have the same answer and the same entity tag."""
    wire = opened(document=DOCUMENT)
    answer, other = wire.get(URL), wire.get(alias)
    assert (other.status, other.body, other.header("etag")) == (200, answer.body, answer.header("etag"))


@pytest.mark.parametrize("path", [f"{URL}/all", "/api/proxy/all"])
def test_every_toggle(opened: Opener, path: str) -> None:
    """It is 404 with a hint unless it is switched on; then it has switched-off toggles, too."""
    wire = opened(document=DOCUMENT)
    for answer in (wire.get(path), wire.post(path, {})):
        assert answer.status == 404 and "enableAllEndpoint" in answer.json()["message"]
    wire = opened(document=DOCUMENT, enable_all_endpoint=True)
    for answer in (wire.get(path), wire.post(path, {})):
        off = answer.json()["toggles"][-1]
        assert [toggle["name"] for toggle in answer.json()["toggles"]] == ["z", "with/slash ü", "off"]
        state = {"name": "disabled", "enabled": False, "feature_enabled": False, "featureEnabled": False}
        assert off == {"name": "off", "enabled": False, "variant": state, "impressionData": False, "impression_data": False}


@pytest.mark.parametrize("name", ["with%2Fslash%20%C3%BC", "with/slash%20%c3%bc", "z", "off", "off/"])
def test_one_toggle(opened: Opener, name: str) -> None:
    """It is the toggle of the whole list, without the list around it, by GET and by POST; the look-up is counted."""
    wire = opened(document=DOCUMENT, enable_all_endpoint=True)
    known = {toggle["name"]: toggle for toggle in wire.get(f"{URL}/all").json()["toggles"]}
    first, second = wire.get(f"{URL}/features/{name}"), wire.post(f"{URL}/features/{name}", {"userId": "7"})
    assert first.json() == second.json() == known[first.json()["name"]]
    assert wire.get(f"{URL}/features/{name}", {"if-none-match": str(first.header("etag"))}).status == 304
    assert sum(wire.counted()[first.json()["name"]][:2]) == 2


@pytest.mark.parametrize("name", ["nobody", "Z", "%FF", "a/b", "z/z"])
def test_one_unknown_toggle(opened: Opener, name: str) -> None:
    """It is 404 as JSON, and counted nowhere."""
    wire = opened(document=DOCUMENT)
    for answer in (wire.get(f"{URL}/features/{name}"), wire.post(f"{URL}/features/{name}", {})):
        assert (answer.status, list(answer.json())) == (404, ["message"])
    assert wire.counted() == {}


@pytest.mark.parametrize(
    ("sent", "status", "body"),
    [
        (KEY, 200, None),
        (f"Bearer {KEY}", 200, None),
        (f"bearer   {KEY}", 200, None),
        (None, 401, NO_KEY),
        ("", 401, NO_KEY),
        ("Bearer", 401, NO_KEY),
        (f"Bearer Bearer {KEY}", 401, NO_KEY),
        (f"Basic {KEY}", 401, NO_KEY),
        (KEY.upper(), 401, NO_KEY),
        (TOKEN, 403, OTHER_TYPE),
        (f"Bearer {TOKEN}", 403, OTHER_TYPE),
    ],
)
def test_keys(opened: Opener, sent: str | None, status: int, body: Any) -> None:
    """A wrong key is 401, a server-side token is 403, both as JSON; a server-side token may report."""
    wire = opened(document=DOCUMENT)
    for path in (URL, f"{URL}/features/z"):
        answer = wire.get(path, key=sent)
        assert answer.status == status
        assert body is None or answer.json() == body
    reported = wire.post(f"{URL}/client/metrics", REPORT, key=sent)
    assert reported.status == (200 if status in (200, 403) else 401)


def test_rates_count_a_key_once(opened: Opener) -> None:
    """The key has one limit, with and without the word before it."""
    wire = opened(document=DOCUMENT, rate_limit_key=1, rate_limit_burst=2)
    assert [wire.get(URL, key=sent).status for sent in (KEY, f"Bearer {KEY}", KEY)] == [200, 200, 429]
    assert list(wire.get(URL, key=TOKEN).json()) == ["message"]
    assert [wire.get(URL, key=sent).status for sent in (TOKEN, f"Bearer {TOKEN}", "")] == [403, 403, 401]


@pytest.mark.parametrize(
    ("query", "field", "value"),
    [
        ("userId=7", "userId", "7"),
        ("userId[]=7", "userId", "7"),
        ("properties[userId]=7", "userId", "7"),
        ("region=eu", "region", "eu"),
        ("properties[region]=eu&region=us", "region", "eu"),
        ("region=us&region=eu", "region", "us,eu"),
        ("toggles=x", "toggles", "x"),
        ("userId=1&userId=&region=eu", "region", "eu"),
    ],
)
def test_a_query_is_read(opened: Opener, query: str, field: str, value: str) -> None:
    """A toggle with a constraint on the field is on."""
    assert opened(document={"features": [asking(field, "IN", value)]}).get(f"{URL}?{query}").names == ["asked"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("userId=7&userId=8", "userId"),
        ("properties[a][b]=c", "a"),
        ("a[b]=c", "a"),
        ("userId[a]=7", "userId"),
        ("properties=foo", "properties"),
        ('properties={"region":"eu"}', "region"),
        ("currentTime=garbage", "x"),
        (f"currentTime={'9' * 5000}", "x"),
        ("=x&&[]=1&[=2", "x"),
    ],
)
def test_what_cannot_be_read_is_ignored(opened: Opener, query: str, field: str) -> None:
    """The answer is 200, and the field is missing: it is in no list, and not empty."""
    wire = opened(document={"features": [asking(field, "NOT_IN", "x"), asking(field, "STR_CONTAINS", "", name="there")]})
    assert wire.get(f"{URL}?{query}").names == ["asked"]


@pytest.mark.parametrize(("field", "default"), [("appName", "flagsvc-proxy"), ("environment", "default")])
def test_the_default_context(opened: Opener, field: str, default: str) -> None:
    """A missing, empty or repeated application or environment has the default of `/proxy`, as on the real server."""
    wire = opened(document={"features": [asking(field, "IN", default)]})
    for query in ("", f"?{field}=", f"?{field}=1&{field}=2"):
        assert wire.get(URL + query).names == ["asked"]
    assert wire.get(f"{URL}?{field}=x").names == []


def test_a_repeated_time_is_now(opened: Opener) -> None:
    """A time that comes twice counts as missing; one alone counts."""
    wire = opened(document={"features": [asking("currentTime", "DATE_AFTER", "2031-01-01T00:00:00Z")]})
    later = "currentTime=2032-01-01T00:00:00Z"
    assert wire.get(f"{URL}?{later}").names == ["asked"]
    assert wire.get(f"{URL}?{later}&{later}").names == []


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ({"context": {"userId": "7"}}, "userId", "7"),
        ({"userId": "7"}, "userId", "7"),
        ({"context": {"userId": 7.0}}, "userId", "7"),
        ({"properties": {"region": "eu"}, "region": "us"}, "region", "eu"),
        ({"context": {"userId": "7"}, "userId": "8"}, "userId", "7"),
        ({"context": {"properties": {"n": 5, "nul": None, "list": []}}}, "n", "5"),
    ],
)
def test_a_body_is_read(opened: Opener, body: Any, field: str, value: str) -> None:
    """The context may be the body itself; an object `context` wins."""
    assert opened(document={"features": [asking(field, "IN", value)]}).post(URL, body).names == ["asked"]


@pytest.mark.parametrize("value", [None, [], ["7"], {}, {"a": 1}])
@pytest.mark.parametrize("field", ["userId", "appName", "region", "properties", "currentTime"])
def test_a_value_of_another_kind_is_dropped(opened: Opener, field: str, value: object) -> None:
    """Lists, objects and null are no values; the rest of the body counts."""
    wire = opened(document={"features": [asking(field, "NOT_IN", "x"), asking("sessionId", "IN", "s", name="rest")]})
    for body in ({field: value, "sessionId": "s"}, {"context": {field: value, "sessionId": "s"}}):
        assert wire.post(URL, body).names == ["asked", "rest"]


@pytest.mark.parametrize("value", ["text", 7, True, [], None])
def test_a_body_of_another_structure_is_refused(opened: Opener, value: object) -> None:
    """A body and a context that are no objects get a 400."""
    wire = opened(document=DOCUMENT)
    for body, path in ((value, "/body"), ({"context": value}, "/body/context")):
        answer = wire.post(URL, body)
        assert answer.status == 400
        details = [{"message": "must be object", "path": path}]
        assert answer.json() == {"name": "BadDataError", "details": details, "message": ANY}
    assert wire.post(URL, b"{").status == 400


@pytest.mark.parametrize(
    ("toggles", "names"),
    [(["off", "nobody"], ["off", "nobody"]), ([], None), ("off", None), (["off", 7], None), ({}, None), (None, None)],
)
def test_toggles_select(opened: Opener, toggles: object, names: list[str] | None) -> None:
    """A list of names selects, in its order and unknown ones too; anything else is ignored."""
    assert opened(document=DOCUMENT).post(URL, {"toggles": toggles}).names == names or ["z", "with/slash ü"]


def test_media_types(opened: Opener) -> None:
    """A POST without a type is 415, with a body and without one; so is any other type. JSON of no length is an empty context."""
    wire = opened(document=DOCUMENT)
    refused: list[dict[str, str]] = [{}, {"content-type": "application/vnd.api+json"}, {"content-type": "text/plain"}]
    for headers in refused:
        answer = wire.ask("POST", URL, headers, body=b'{"userId":"7"}')
        assert (answer.status, list(answer.json())) == (415, ["message"]), headers
    assert wire.ask("POST", URL).status == 415
    assert wire.post(URL, b"").status == 200
    assert wire.post(URL, b"\xef\xbb\xbf{}").status == 200
    assert wire.post(URL, b'{"x":"' + b"y" * 102_400 + b'"}').status == 413


@pytest.mark.parametrize("condition", ["{}", "W/{}", '"other", {}', "*"])
def test_conditions(opened: Opener, condition: str) -> None:
    """If-None-Match is compared weakly, on GET and on POST; the 304 has the tag and the rule for caches."""
    wire = opened(document=DOCUMENT)
    tag = wire.get(f"{URL}?userId=7&sessionId=1").header("etag")
    assert tag is not None and tag.startswith("W/")
    sent = {"if-none-match": condition.format(tag.removeprefix("W/"))}
    for answer in (
        wire.get(f"{URL}?userId=7&sessionId=1", sent),
        wire.post(URL, {"context": {"userId": "7", "sessionId": 1}}, sent),
    ):
        assert (answer.status, answer.body, answer.header("etag")) == (304, b"", tag)
        assert answer.header("cache-control") == "no-cache"
        assert answer.header("access-control-allow-origin") == "*"


def test_a_tag_of_proxy_is_none_here(opened: Opener) -> None:
    """The two dialects have different bytes, and so different tags."""
    wire = opened(document=DOCUMENT)
    tag = str(wire.get("/proxy?userId=7&sessionId=1").header("etag"))
    assert wire.get(f"{URL}?userId=7&sessionId=1", {"if-none-match": tag}).status == 200


@pytest.mark.parametrize("path", ["/api", "/api/", "//api", "/api/client", "/", "/client/features"])
def test_a_wrong_url_of_an_sdk(opened: Opener, path: str) -> None:
    """The answer is 404, and names the URL."""
    answer = opened(document=DOCUMENT).get(f"{path}?sessionId=1")
    assert answer.status == 404 and "/api/frontend" in answer.body.decode()


def test_the_hint_has_the_base_path(opened: Opener) -> None:
    """The URL in it is the whole path."""
    wire = opened(document=DOCUMENT, base_path="/base")
    assert "`/base/api/frontend`" in wire.get("/base/api").json()["message"]
    assert wire.get("/base/api/frontend/features/z").json()["name"] == "z"


@pytest.mark.parametrize("path", ["/client/features", "/health", "/internal-backstage/prometheus", "/features", "/features/"])
def test_paths_that_are_none(opened: Opener, path: str) -> None:
    """They are 404 as JSON; another method of a known path is 405."""
    wire = opened(document=DOCUMENT)
    answer = wire.get(URL + path)
    assert (answer.status, list(answer.json())) == (404, ["message"])
    answer = wire.ask("DELETE", URL)
    assert (answer.status, list(answer.json())) == (405, ["message"])
    assert answer.header("allow") == "GET, HEAD, POST, OPTIONS"


def test_a_dialect_that_is_off(opened: Opener) -> None:
    """All its paths are 404, and the answer says why; the other dialect is as before."""
    wire = opened(document=DOCUMENT, dialects=("proxy",))
    for path in (URL, f"{URL}/all", "/api/proxy"):
        answer = wire.get(path)
        assert answer.status == 404 and "`frontend` is switched off" in answer.json()["message"]
    assert wire.get("/proxy").status == 200
    assert "/api/frontend" not in json.dumps(wire.get("/", {"accept": "application/json"}, key=None).json())
    wire = opened(document=DOCUMENT, dialects=("frontend",))
    assert (wire.get("/proxy").status, wire.get(URL).status, wire.get("/proxy/health").status) == (404, 200, 200)


@pytest.mark.parametrize("path", ["", "/all"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (REPORT, 200),
        ({"appName": "a"}, 200),
        (REPORT | {"instanceId": "browser", "impactMetrics": []}, 200),
        ({}, 400),
        (REPORT | {"appName": 7}, 200),
        ({"appName": "a", "bucket": {"start": "yesterday", "stop": "x", "toggles": {}}}, 400),
        ({"appName": "a", "bucket": {"toggles": {}}}, 400),
    ],
)
def test_metrics(opened: Opener, path: str, body: Any, status: int) -> None:
    """Only the name of the application is needed; a good report is 200 `OK`, a bad one 400 as JSON."""
    answer = opened(document=DOCUMENT, enable_all_endpoint=True).post(f"{URL}{path}/client/metrics", body)
    assert answer.status == status
    if status == 200:
        assert answer.body == b"OK"
    else:
        assert (answer.json()["name"], len(answer.json()["details"])) == ("BadDataError", 1)
