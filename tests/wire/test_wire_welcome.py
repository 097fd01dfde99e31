"""`GET /` of the proxy names the proxy and its endpoints to every caller, from the start, and shows no configuration."""

from __future__ import annotations

import pytest

from support.wirekit import KEY, TOKEN, Opener

BEGINNING = "flagsvc proxy evaluates feature flags for applications"


def test_text_for_a_person(opened: Opener) -> None:
    """Without key and configuration the text has a line for each endpoint, with the kind of its key."""
    wire = opened(document=None)
    answer = wire.get("/", key=None)
    assert (answer.status, answer.header("content-type")) == (200, "text/plain; charset=utf-8")
    text = answer.body.decode()
    assert text.startswith(BEGINNING)
    lines = [line.split() for line in text.splitlines()[2:]]
    assert ["GET", "/proxy"] in [line[:2] for line in lines]
    assert next(line for line in lines if line[:2] == ["POST", "/proxy"])[-2:] == ["(client", "key)"]
    assert ["GET", "/proxy/ready"] in [line[:2] for line in lines]


def test_json_for_a_program(opened: Opener) -> None:
    """`Accept` chooses JSON with the same content; both forms have it in `Vary`."""
    wire = opened()
    text, json = (wire.get("/", key=None, headers=fields) for fields in ({}, {"accept": "application/json"}))
    assert json.header("content-type") == "application/json; charset=utf-8"
    content = json.json()
    assert content["name"] == "flagsvc proxy" and content["description"] in text.body.decode()
    assert {"method": "GET", "path": "/proxy", "key": "client key"}.items() <= content["endpoints"][0].items()
    assert all("Accept" in (each.header("vary") or "").split(", ") for each in (text, json))


@pytest.mark.parametrize("path", ["/", "/base", "/base/", "/BASE/", "/?userId=7"])
def test_a_base_path(opened: Opener, path: str) -> None:
    """The page is the same at the root and below the base path, and its paths have the base path."""
    answer = opened(base_path="/base").get(path, key=None)
    assert answer.status == 200
    assert " /base/proxy " in answer.body.decode() and " /livez " in answer.body.decode()


def test_where_it_is_mounted(over_asgi: Opener) -> None:
    """The paths have the mount in them."""
    wire = over_asgi(base_path="/base")
    for path in ("", "/", "/base"):
        text = wire.get(path, key=None, root="/mounted").body.decode()
        assert " /mounted/base/proxy " in text and " /mounted/livez " in text


def test_it_tells_nothing_of_the_configuration(opened: Opener) -> None:
    """It shows no key, token, name or version, and does not tell whether /proxy/all is on: only key holders may know."""
    off, on = (opened(enable_all_endpoint=each, app_name="my-app").get("/", key=None).body for each in (False, True))
    assert off == on
    for secret in (KEY, TOKEN, "my-app"):
        assert secret not in off.decode()
    for name in ("on", "varied"):
        assert f" {name} " not in off.decode()
    docs, none = (opened(enable_oas=each).get("/", key=None).body for each in (True, False))
    assert b"/docs/openapi" in docs and b"/docs/openapi" not in none
