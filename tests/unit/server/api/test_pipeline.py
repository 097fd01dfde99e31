"""The checks before a handler, in their order (import validation 1; 1.2; 5; decision 0024)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flagsvc.server.api import pipeline
from flagsvc.server.api.pipeline import Router, plain_path
from support.flagservers import (
    ADMIN_SECRET,
    BACKEND_SECRET,
    EDITOR_SECRET,
    FRONTEND_SECRET,
    USER_SECRET,
    VIEWER_SECRET,
    AppClient,
    app_client,
)
from unit.server.api.pipeline_scene import NO_TOKEN, ROUTES, THINGS, UNKNOWN_TOKEN, message


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppClient]:
    """Give a server with the routes of these tests."""
    with app_client(str(tmp_path_factory.mktemp("pipeline") / "flags.db"), routes=ROUTES) as made:
        yield made


def test_what_a_handler_is_told(client: AppClient) -> None:
    """A handler gets the caller, the decoded parameters, the query string and the coerced body. The route sets the status."""
    answer = client.post(f"{THINGS}?a=1&a=2", {"name": 7, "tags": [True]})
    assert answer.status == 201
    assert answer.json() == {
        "who": "boss",
        "params": {"projectId": "default", "environment": "development"},
        "query": {"a": ["1", "2"]},
        "body": {"name": "7", "tags": ["true"]},
    }
    assert client.get("/api/client/things", token=BACKEND_SECRET).json()["who"] == "backend"
    assert client.get("/open", token=None).json()["who"] is None
    assert client.delete("/api/admin/things/a%2Fb").json()["params"] == {"name": "a/b"}


LARGE = "request entity too large"
OTHER_TYPE = "invalid token: expected a different token type"
NO_SHAPE = "Request validation failed: your request body or params contain"
NO_MEDIA = "We do not accept the content-type you provided"
NONE = f"{NO_MEDIA} (you didn't provide one)."
DELETED = "/api/admin/things/"
STEPS: list[tuple[str, dict[str, Any], int, str]] = [
    ("a broken body", {"body": b"{"}, 400, "the body is not JSON"),
    ("too large a body", {"body": b'"' + b"x" * 512_000 + b'"'}, 413, LARGE),
    ("a body that grows too large", {"chunks": [b'"', b"x" * 512_000, b'"']}, 413, LARGE),
    ("an unknown charset", {"body": b"{}", "charset": "x-y"}, 415, 'unsupported charset "X-Y"'),
    ("no token", {"body": {}, "token": None}, 401, NO_TOKEN),
    ("no token, a broken body", {"body": b"{", "token": None}, 401, NO_TOKEN),
    ("no token, too large a body", {"body": b"x" * 600_000, "token": None}, 401, NO_TOKEN),
    ("no token, an unknown charset", {"body": b"{}", "token": None, "charset": "x-y"}, 401, NO_TOKEN),
    ("a backend token, a broken body", {"body": b"{", "token": BACKEND_SECRET}, 403, OTHER_TYPE),
    ("an empty token", {"body": {}, "token": " "}, 401, NO_TOKEN),
    ("an unknown token", {"body": {}, "token": "*:*.unknown"}, 401, UNKNOWN_TOKEN),
    ("Basic", {"body": {}, "token": "Basic eDp5"}, 401, UNKNOWN_TOKEN),
    ("a backend token", {"body": {}, "token": BACKEND_SECRET}, 403, OTHER_TYPE),
    ("a frontend token", {"body": {}, "token": FRONTEND_SECRET}, 403, OTHER_TYPE),
    ("an unknown path", {"path": "/api/admin/no", "body": {}}, 404, "The path you were looking for (/api/admin/no)"),
    ("another method", {"method": "PUT", "body": {}}, 405, f"The path {THINGS} does not take PUT. It takes POST, PATCH"),
    ("no permission, and no shape", {"body": {}, "token": VIEWER_SECRET}, 403, "You don't have the required permis"),
    ("no media type", {"body": b"{}", "type": ""}, 415, NONE),
    ("no body at all", {}, 415, NONE),
    ("another media type", {"body": b"{", "type": "text/plain"}, 415, f"{NO_MEDIA} (text/plain)."),
    ("too large, of another type", {"body": b"x" * 600_000, "type": "text/plain"}, 415, NO_MEDIA),
    ("no shape", {"body": {"name": []}}, 400, NO_SHAPE),
    ("an empty body", {"body": b""}, 400, NO_SHAPE),
    ("a NUL", {"body": {"name": "a", "tags": ["b\0"]}}, 400, NO_SHAPE),
    ("an escape that is none", {"method": "DELETE", "path": f"{DELETED}%zz"}, 400, NO_SHAPE),
    ("a NUL in the path", {"method": "DELETE", "path": f"{DELETED}a%00"}, 400, NO_SHAPE),
    ("a NUL in the query", {"method": "GET", "path": f"{THINGS}?a=%00"}, 400, NO_SHAPE),
]


@pytest.mark.parametrize(("given", "status", "start"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS])
def test_each_check_and_its_answer(client: AppClient, given: dict[str, Any], status: int, start: str) -> None:
    """Each check answers with its status and its message."""
    headers = {"content-type": f"application/json; charset={given['charset']}"} if "charset" in given else {}
    headers |= {"content-type": given["type"]} if "type" in given else {}
    rest = {name: given[name] for name in ("token", "chunks") if name in given}
    path, method = given.get("path", THINGS), given.get("method", "POST")
    answer = client.ask(method, path, given.get("body"), headers=headers, **rest)
    assert (answer.status, message(answer)[: len(start)]) == (status, start)


def test_the_error_objects_in_full(client: AppClient) -> None:
    """Each error object has exactly the expected fields."""
    unknown = client.get("/api/admin/nosuch?secret=1").json()
    text = "The path you were looking for (/api/admin/nosuch) is not available."
    assert unknown == {"id": unknown["id"], "name": "NotFoundError", "message": text, "details": [{"message": text}]}
    nobody = client.get(THINGS, token=None).json()
    assert nobody == {
        "id": nobody["id"],
        "name": "AuthenticationRequired",
        "message": NO_TOKEN,
        "details": [{"message": NO_TOKEN}],
        "path": "/docs/openapi",
        "type": "password",
        "defaultHidden": False,
    }
    shape = client.post(THINGS, {"tags": []}).json()
    assert shape["name"] == "BadDataError"
    assert [each["path"] for each in shape["details"]] == ["/body/name"]
    refused = client.get("/api/admin/refusing").json()
    assert refused == {
        "name": "BadDataError",
        "message": "Request validation failed: your request body or params contain invalid data: The thing is odd",
        "details": [{"message": "The thing is odd"}],
    }


def test_a_missing_permission_is_named(client: AppClient) -> None:
    """The message names the missing permission, or all that suffice. Administrators and editors pass."""
    one = client.post(THINGS, {"name": "a"}, token=VIEWER_SECRET)
    assert message(one).endswith('To perform this action, you need the "CREATE_FEATURE_STRATEGY" permission.')
    several = client.get("/api/admin/either", token=VIEWER_SECRET)
    assert message(several).endswith('you need one of the following permissions: "ADMIN", "CREATE_SEGMENT".')
    for secret in (USER_SECRET, ADMIN_SECRET, EDITOR_SECRET):
        assert client.post(THINGS, {"name": "a"}, token=secret).status == 201
        assert client.get("/api/admin/either", token=secret).status == 200
    assert client.post(THINGS.replace("default", "other"), {"name": "a"}, token=EDITOR_SECRET).status == 403


def test_options_tells_the_methods(client: AppClient) -> None:
    """OPTIONS answers with the list of methods as text, as on the real server. It needs a token if the path does."""
    answer = client.ask("OPTIONS", THINGS)
    assert (answer.status, answer.headers["allow"], answer.body) == (200, "POST,PATCH,GET,HEAD", b"POST,PATCH,GET,HEAD")
    assert client.ask("OPTIONS", THINGS, token=None).status == 401
    assert client.ask("OPTIONS", "/api/admin/nosuch").status == 404
    assert client.ask("OPTIONS", "/open", token=None).body == b"GET,HEAD"


def test_head_is_get_without_the_body(client: AppClient) -> None:
    """The headers are the same. On a route for POST only, it is a 405 like any other method."""
    full, head = client.get(THINGS), client.ask("HEAD", THINGS)
    assert (head.status, head.body) == (200, b"")
    assert head.headers == full.headers
    missing = client.ask("HEAD", "/api/admin/nosuch")
    assert (missing.status, missing.body) == (404, b"")
    assert client.ask("HEAD", "/api/admin/deep").status == 405


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [(THINGS, USER_SECRET, 201), (THINGS, "user:nobody", 401), ("/api/frontend", FRONTEND_SECRET, 200), ("/ui/x.json", None, 404)],
)
def test_a_path_is_read_once(client: AppClient, monkeypatch: pytest.MonkeyPatch, path: str, token: str | None, status: int) -> None:
    """From the check of the head to the handler, path and routes are found once, also if the key is checked twice."""
    found: list[str] = []

    def counted(name: str, function: Any) -> Any:
        """Return a function that notes its calls."""
        return lambda *given: (found.append(name), function(*given))[1]  # type: ignore[func-returns-value]

    monkeypatch.setattr(Router, "matches", counted("routes", Router.matches))
    monkeypatch.setattr(pipeline, "plain_path", counted("path", plain_path))
    assert client.post(path, {"name": "a"}, token=token).status == status
    assert sorted(found) == ["path", "routes"]


def test_maintenance_stops_changes_of_the_admin_api(client: AppClient) -> None:
    """It rejects POST, PUT and DELETE, after the token and before the path.
    Other requests work, and maintenance can be switched off again."""
    stopped = "The server is in maintenance mode: it takes no changes until that is switched off."
    assert client.post("/api/admin/maintenance", {"enabled": True}).status == 204
    try:
        for method, path in (("POST", THINGS), ("PUT", "/api/admin/nosuch"), ("DELETE", "/API/admin//things/x")):
            answer = client.ask(method, path, {"name": "a"})
            assert (answer.status, message(answer)) == (503, stopped)
        assert client.post(THINGS, {}, token=None).status == 401
        assert client.post(THINGS, b"{").status == 400
        assert client.ask("PATCH", THINGS, {"name": "a"}).status == 200
        assert client.get(THINGS).status == 200
        assert client.get("/api/client/things", token=BACKEND_SECRET).status == 200
        assert client.get("/api/admin/maintenance").json() == {"enabled": True}
    finally:
        assert client.post("/api/admin/maintenance/", {"enabled": False}).status == 204
    assert client.post(THINGS, {"name": "a"}).status == 201


def test_a_failure_tells_nothing_and_is_logged(client: AppClient) -> None:
    """The caller gets an error without detail. The log names the route, nothing else of the request, and an outage once."""
    for path, status in (("/failing", 500), ("/broken", 500), ("/away", 503)):
        answer = client.get(f"/api/admin{path}?key=hunter2")
        assert answer.status == status
        assert b"hunter2" not in answer.body
        assert b"Error:" not in answer.body
    assert client.get("/api/admin/away").headers["retry-after"] == "5"
    text = repr(client.log.lines)
    assert "GET /api/admin/failing" in text
    assert "hunter2" not in text
    for _ in range(20):
        assert client.get("/api/admin/away").status == 503
    loud = [line for line in client.log.at("error") if "the database is away" in repr(line)]
    assert len(loud) == 1


def test_a_body_that_recursion_cannot_follow_is_refused(client: AppClient) -> None:
    """Too deep nesting is a 400 in the parser, in a shape and in the handler. The server then still works."""
    assert client.post("/api/admin/deep", {"name": "a"}).status == 400
    for depth in (200, 900, 1100, 100_000):
        nested = b'{"name":' + b"[" * depth + b"]" * depth + b"}"
        assert client.post(THINGS, nested).status == 400
    assert client.post(THINGS, {"name": "a"}).status == 201


def test_a_base_path_stands_before_everything(tmp_path: Path) -> None:
    """Other paths are a 404, and the 401 names the documentation below the base path."""
    with app_client(str(tmp_path / "flags.db"), routes=ROUTES, base="/Flags") as client:
        assert client.get("/flags/open", token=None).status == 200
        assert client.get("/open", token=None).status == 404
        assert client.get("/flagship/open", token=None).status == 404
        assert client.get(f"/flags{THINGS}", token=None).json()["path"] == "/Flags/docs/openapi"


def test_too_large_a_head_is_refused(client: AppClient) -> None:
    """Headers and the query string have a limit of 16 kB. The connection closes, and the metric of the limit counts it."""
    before = dict(client.server.reached.counts)
    answer = client.get("/open", headers={"x-much": "x" * 17_000})
    assert (answer.status, answer.headers["connection"]) == (431, "close")
    assert client.get("/open?" + "q" * 17_000).status == 414
    assert {name for name, count in client.server.reached.counts.items() if count != before[name]} == {"headers", "query"}


def test_a_body_without_a_token_is_not_looked_at(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of a refused request is neither decompressed nor parsed."""
    seen: list[bytes] = []
    monkeypatch.setattr(pipeline, "parse", lambda how, body: seen.append(body))
    bomb = gzip.compress(b'"' + b" " * 400_000 + b'"')
    packed: dict[str, str | None] = {"content-encoding": "gzip", "content-type": "application/json"}
    for token in (None, "*:*.unknown", BACKEND_SECRET):
        assert client.post(THINGS, bomb, token=token, headers=packed).status in (401, 403)
    assert seen == []


def test_a_body_that_anybody_can_send_is_small(client: AppClient) -> None:
    """Outside `/api` no token is looked at. There a body may have 100 kB, packed or not."""
    packed: dict[str, str | None] = {"content-encoding": "gzip", "content-type": "application/json"}
    for size, status in ((50_000, 404), (200_000, 413)):
        body = b'"' + b" " * size + b'"'
        assert client.post("/nosuch", body).status == status
        assert client.post("/nosuch", gzip.compress(body), headers=packed).status == status
    assert client.post(THINGS, b'{"name":"a"}' + b" " * 200_000).status == 201
