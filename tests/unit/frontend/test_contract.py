"""The frontend API of the flag server: who may ask, what comes back, and what a change does (decision 0026)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from sqlalchemy.exc import OperationalError

from flagsvc.core.errors import DatabaseError
from flagsvc.frontend.contract import FrontendContract, make_frontend
from flagsvc.http.call import Call
from flagsvc.http.messages import Request, Response
from flagsvc.http.parts import PartsResponse
from flagsvc.proxy.api.scopes import SCOPED_CACHE_SHARE
from flagsvc.proxy.api.stream_routes import read_module
from flagsvc.server.store.actors import ClientToken
from flagsvc.settings.server import ServerOptions
from support import processes
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, FRONTEND_SECRET, USER_SECRET, AppClient, app_client

PATH = "/api/frontend"
SHOP_SECRET = "shop:development.secret-of-a-page"
LATE_SECRET = "*:development.secret-that-has-expired"
EU = {"contextName": "region", "operator": "IN", "values": ["eu"]}
BASE = {"environment": "development", "name": "flexibleRollout"}
EVERYBODY = {"rollout": "100", "stickiness": "default", "groupId": "group"}
VARIANT = {
    "name": "green",
    "weight": 1000,
    "weightType": "variable",
    "stickiness": "default",
    "payload": {"type": "string", "value": "g"},
}
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}],
    "tokens": [
        {"type": "frontend", "secret": SHOP_SECRET, "projects": ["shop"]},
        {"type": "frontend", "secret": LATE_SECRET, "expiresAt": "2020-01-01T00:00:00Z"},
    ],
    "features": [
        {"name": "on", "enabled": ["development"]},
        {"name": "in-eu", "enabled": ["development"]},
        {"name": "off", "enabled": []},
        {"name": "elsewhere", "enabled": ["production"]},
        {"name": "basket", "project": "shop", "enabled": ["development"]},
    ],
    "strategies": [
        BASE | {"feature": "on", "parameters": EVERYBODY, "variants": [VARIANT]},
        BASE | {"feature": "in-eu", "parameters": EVERYBODY, "constraints": [EU]},
        BASE | {"feature": "off", "parameters": EVERYBODY},
        BASE | {"feature": "basket", "parameters": EVERYBODY},
    ],
}
NEEDS_TOKEN = "This endpoint requires an API token. Please add an authorization header to your request with a valid token"
OTHER_TYPE = "invalid token: expected a different token type for this endpoint"
BUCKET = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z", "toggles": {}}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[AppClient]:
    """Give a server with flags of two projects."""
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client:
        yield client


def ask(client: AppClient, path: str = PATH, method: str = "GET", body: Any = None, **given: Any) -> processes.Answer:
    """Ask with the frontend token, unless another one is given."""
    return client.ask(method, path, body, **{"token": FRONTEND_SECRET, **given})


def names(answer: processes.Answer) -> list[str]:
    """Return the names of the toggles in an answer, sorted."""
    assert answer.status == 200, answer.body
    return sorted(each["name"] for each in answer.json()["toggles"])


def test_flags_of_the_environment_are_evaluated(client: AppClient) -> None:
    """The toggles that are on for the context, by GET and by POST, in the shape of the real server."""
    assert names(ask(client)) == ["basket", "on"]
    assert names(ask(client, f"{PATH}?properties[region]=eu")) == ["basket", "in-eu", "on"]
    posted = ask(client, method="POST", body={"context": {"properties": {"region": "eu"}}})
    assert names(posted) == ["basket", "in-eu", "on"]
    variant = {"name": "green", "enabled": True, "payload": {"type": "string", "value": "g"}}
    states = {"feature_enabled": True, "featureEnabled": True}
    flags = {"impressionData": False, "impression_data": False}
    assert next(each for each in posted.json()["toggles"] if each["name"] == "on") == {
        "name": "on",
        "enabled": True,
        "variant": variant | states,
        **flags,
    }
    assert posted.headers["cache-control"] == "no-cache"


def test_a_token_of_some_projects_opens_these(client: AppClient) -> None:
    """A token of one project sees its flags alone, with an entity tag of its own."""
    whole, part = ask(client), ask(client, token=SHOP_SECRET)
    assert names(part) == ["basket"]
    assert whole.headers["etag"] != part.headers["etag"]
    again = {"If-None-Match": part.headers["etag"]}
    assert ask(client, token=SHOP_SECRET, headers=again).status == 304
    assert ask(client, headers=again).status == 200


def test_a_change_is_seen_by_the_next_request(client: AppClient) -> None:
    """After a change is committed no request gets the former answer, and its tag matches no longer."""
    before = ask(client)
    switched = client.post("/api/admin/projects/default/features/off/environments/development/on", {})
    assert switched.status == 200, switched.body
    after = ask(client, headers={"If-None-Match": before.headers["etag"]})
    assert names(after) == ["basket", "off", "on"]
    assert names(ask(client, token=SHOP_SECRET)) == ["basket"]


REFUSED = (
    (None, 401, NEEDS_TOKEN),
    ("unknown", 401, NEEDS_TOKEN),
    (LATE_SECRET, 401, NEEDS_TOKEN),
    (FRONTEND_SECRET.upper(), 401, NEEDS_TOKEN),
    (USER_SECRET, 401, NEEDS_TOKEN),
    (BACKEND_SECRET, 403, OTHER_TYPE),
    (ADMIN_SECRET, 403, OTHER_TYPE),
)


def test_tokens_that_are_refused(client: AppClient) -> None:
    """Only a frontend token opens it. Other callers do not learn which paths there are, and scripts can read the answer."""
    for token, status, message in REFUSED:
        for path in (PATH, f"{PATH}/client/metrics", f"{PATH}/client/register", f"{PATH}/nosuch"):
            answer = ask(client, path, "GET" if path == PATH else "POST", token=token)
            assert (answer.status, answer.json()) == (status, {"message": message})
            assert answer.headers["access-control-allow-origin"] == "*"


def test_a_bearer_and_other_spellings(client: AppClient) -> None:
    """The word `Bearer`, a slash at the end, doubled slashes and capitals in the path do not matter; two tokens are a 400."""
    assert names(ask(client, token=f"Bearer {FRONTEND_SECRET}")) == ["basket", "on"]
    for path in ("/api/frontend/", "//api//frontend", "/API/Frontend"):
        assert names(ask(client, path)) == ["basket", "on"]
    assert ask(client, more=[("authorization", FRONTEND_SECRET)]).status == 400
    assert ask(client, "/api/frontends").status == 403


REGISTRATION = {"appName": "a", "interval": 1, "started": "2026-01-01T00:00:00Z", "strategies": []}
STATUSES: tuple[tuple[str, str, Any, int], ...] = (
    ("PUT", "", {}, 405),
    ("GET", "/features/on", None, 404),
    ("POST", "", [], 400),
    ("POST", "", {"context": {"properties": {"a": "x" * 110_000}}}, 413),
    ("POST", "/client/register", REGISTRATION, 200),
    ("POST", "/client/register", {"strategies": []}, 400),
    ("POST", "/client/metrics", {"appName": "a", "bucket": BUCKET}, 200),
    ("POST", "/client/metrics", {"bucket": BUCKET}, 400),
)


def test_statuses(client: AppClient) -> None:
    """Only what the real server has is there; errors have a message, and 200 without toggles is `OK`."""
    for method, end, body, status in STATUSES:
        answer = ask(client, PATH + end, method, body)
        assert answer.status == status
        assert answer.body == b"OK" if status == 200 else isinstance(answer.json()["message"], str)


def test_preflights(tmp_path: Path) -> None:
    """Any origin may ask by default. With a list, only its origins; a preflight needs no token."""
    asked = {"Origin": "https://shop.example", "Access-Control-Request-Headers": "authorization,unleash-sdk"}
    with app_client(str(tmp_path / "any.db"), given=GIVEN) as client:
        answer = ask(client, method="OPTIONS", token=None, headers=asked)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (204, "*")
        assert answer.headers["access-control-allow-headers"] == "authorization,unleash-sdk"
        assert ask(client, headers=asked).headers["access-control-expose-headers"] == "ETag"
    listed = ("https://shop.example", "https://*.shop.example")
    with app_client(str(tmp_path / "listed.db"), given=GIVEN, frontend_api_origins=listed) as client:
        for origin, allowed in (("https://shop.example", True), ("https://a.shop.example", True), ("https://b.example", False)):
            for method in ("OPTIONS", "GET"):
                found = ask(client, method=method, headers={"Origin": origin}).headers
                assert found.get("access-control-allow-origin") == (origin if allowed else None)
        assert client.get("/api/admin/projects").headers.get("access-control-allow-origin") is None


def test_openfeature_providers(tmp_path: Path) -> None:
    """With the option `ofrep`, frontend tokens open every flag of their projects, and backend tokens one flag at a time."""
    path, body = "/ofrep/v1/evaluate/flags", {"context": {"targetingKey": "7", "region": "eu"}}
    with app_client(str(tmp_path / "on.db"), given=GIVEN, ofrep=True) as client:
        told = {each["key"]: each.get("value") for each in client.post(path, body, token=FRONTEND_SECRET).json()["flags"]}
        assert told == {"on": "g", "on:enabled": True, "in-eu": True, "off": False, "elsewhere": False, "basket": True}
        shop = client.post(path, body, token=None, headers={"X-API-Key": SHOP_SECRET}).json()["flags"]
        assert [each["key"] for each in shop] == ["basket"]
        asked = [(BACKEND_SECRET, "/on", 200), (BACKEND_SECRET, "", 403), (SHOP_SECRET, "/on", 404), (None, "/on", 401)]
        asked += [(LATE_SECRET, "/on", 401), (USER_SECRET, "/on", 401), (ADMIN_SECRET, "/on", 403)]
        for token, rest, status in asked:
            answer = client.post(path + rest, body, token=token)
            assert (answer.status, "errorDetails" in answer.json()) == (status, status != 200), (token, rest)
        assert path in client.get("/docs/openapi.json").json()["paths"]
    with app_client(str(tmp_path / "off.db"), given=GIVEN) as client:
        assert client.post(path, body, token=FRONTEND_SECRET).status == 404
        assert path not in client.get("/docs/openapi.json").json()["paths"]


def test_the_address_of_the_caller(tmp_path: Path) -> None:
    """A constraint on the address sees the address of the connection, or with `trustProxy` the forwarded address."""
    near = {"contextName": "remoteAddress", "operator": "IN", "values": ["198.51.100.7"]}
    given = {
        "features": [{"name": "near", "enabled": ["development"]}],
        "strategies": [BASE | {"feature": "near", "parameters": EVERYBODY, "constraints": [near]}],
    }
    forwarded = {"X-Forwarded-For": "198.51.100.7"}
    for trusts in (False, True):
        with app_client(str(tmp_path / f"{trusts}.db"), given=given, trust_proxy=trusts) as client:
            assert names(ask(client, headers=forwarded)) == (["near"] if trusts else [])


def test_metrics_and_documentation(client: AppClient) -> None:
    """Answers are counted by route, and the OpenAPI document has the operations of the real server with their token."""
    ask(client)
    ask(client, token=None)
    counted = client.get("/internal-backstage/prometheus", token=None).body.decode()
    assert 'flagsvc_http_requests_total{method="GET",route="/api/frontend",status="200"} 1.0' in counted
    assert 'flagsvc_http_requests_total{method="GET",route="unmatched",status="401"} 1.0' in counted
    described = client.get("/docs/openapi.json", token=None).json()
    found = {
        operation["operationId"]: operation["security"]
        for path, methods in described["paths"].items()
        if path.startswith(PATH)
        for operation in methods.values()
    }
    evaluating = ("getFrontendFeatures", "getFrontendApiFeaturesWithPost", "streamFrontendChanges")
    reporting = ("registerFrontendMetrics", "registerFrontendClient")
    keyed: dict[str, list[dict[str, list[str]]]] = {name: [{"frontendToken": []}] for name in (*evaluating, *reporting)}
    assert found == {**keyed, "getFrontendLiveModule": []}
    assert "FrontendToggles" in described["components"]["schemas"]


def test_anybody_reads_the_module(client: AppClient) -> None:
    """The module for pages needs no token, and its requests are counted."""
    answer = client.get(f"{PATH}/live.js", token=None)
    assert (answer.status, answer.body, answer.headers["access-control-allow-origin"]) == (200, read_module(), "*")
    assert client.get(f"{PATH}/live.js", token=None, headers={"If-None-Match": answer.headers["etag"]}).status == 304
    assert client.ask("POST", f"{PATH}/live.js", token=None).status == 405
    counted = client.get("/internal-backstage/prometheus", token=None).body.decode()
    assert 'flagsvc_http_requests_total{method="GET",route="/api/frontend/live.js",status="200"} 1.0' in counted


def test_nothing_about_a_user_is_logged(client: AppClient) -> None:
    """Contexts, good and bad, leave no trace in the log."""
    mark = "marked-user-4711"
    ask(client, f"{PATH}?userId={mark}&properties[a]={mark}")
    ask(client, method="POST", body={"context": {"userId": mark, "properties": {"a": {"b": mark}}}})
    ask(client, method="POST", body={"context": mark})
    ask(client, f"{PATH}/client/metrics", "POST", {"appName": "a", "bucket": {"toggles": {mark: {"yes": 1}}}})
    assert mark not in repr(client.log.lines)


def test_before_the_first_document(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database is away from the start, the answer is a 503 that says when to come back. Any other error is a 500."""
    away = DatabaseError("away")
    away.__cause__ = OperationalError("", {}, Exception())
    for error, status in ((away, 503), (DatabaseError("broken"), 500), (ValueError("some-detail"), 500)):
        with monkeypatch.context() as patch:
            patch.setattr(client.server.documents, "get", Mock(side_effect=error))
            answer = ask(client)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (status, "*")
        assert answer.headers.get("retry-after") == ("5" if status == 503 else None)
    assert names(ask(client)) == ["basket", "on"]
    assert client.log.at("error") == ["an unexpected error"] * 2
    assert "some-detail" not in repr(client.log.lines)


def test_a_failing_check_is_an_answer(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a check is logged without its message, and answered with 500."""
    monkeypatch.setattr(client.server.keyring, "find", Mock(side_effect=ValueError("some-detail")))
    assert ask(client).status == 500
    assert client.log.at("error") == ["an unexpected error"]
    assert "some-detail" not in repr(client.log.lines)


def test_what_a_transport_asks(client: AppClient) -> None:
    """A request that cannot be read and an unexpected error have answers, too."""
    with ThreadPoolExecutor(1) as threads:
        contract = make_frontend(client.server, ServerOptions(), threads, threads)
    assert contract.early_refusal(431).status == 431
    call = Call(Request(b"GET", PATH.encode(), b"", []))
    assert contract.fail(call, ValueError("some-detail")).status == 500


def test_caches_are_bounded(client: AppClient) -> None:
    """The answers of a part of an environment may take a share of what those of the whole environment may."""
    with ThreadPoolExecutor(1) as threads:
        contract = make_frontend(client.server, ServerOptions(), threads, threads)
        tokens = [ClientToken("frontend", "development", projects) for projects in (("*",), ("shop",))]

        async def find() -> list[int]:
            found = [await contract.environments.find(each) for each in tokens]
            return [each.settings.answer_cache_bytes for each in found]

        whole, part = asyncio.run(find())
    assert (whole, part) == (4 * 1024 * 1024, whole // SCOPED_CACHE_SHARE)


async def ask_contract(contract: FrontendContract, method: bytes, target: str, **headers: str) -> Response:
    """Return the response of the contract itself, which may be a stream."""
    path, _, query = target.partition("?")
    pairs = [(name.encode().replace(b"_", b"-"), value.encode()) for name, value in headers.items()]
    body = b'{"context":{}}' if method == b"POST" else b""
    checked = contract.admit(Request(method, path.encode(), query.encode(), pairs))
    if isinstance(checked, Response):
        return checked
    answer = checked.handler.answer(checked, body)
    return answer if isinstance(answer, Response) else await answer


async def test_a_stream_lasts_as_long_as_its_token(client: AppClient) -> None:
    """Tokens open streams by themselves, and by the ticket that they got. A token that is deleted ends both."""
    with ThreadPoolExecutor(1) as threads:
        contract = make_frontend(client.server, ServerOptions(ofrep=True), threads, threads)
        json = {"content_type": "application/json", "content_length": "14"}
        answer = await ask_contract(contract, b"POST", "/ofrep/v1/evaluate/flags", authorization=FRONTEND_SECRET, **json)
        assert answer.status == 200, answer.body
        url = msgspec.json.decode(answer.body)["eventStreams"][0]["endpoint"]["requestUri"]
        assert (await ask_contract(contract, b"HEAD", url.replace("ticket=", "ticket=x"))).status == 401
        by_ticket = await ask_contract(contract, b"GET", url)
        by_token = await ask_contract(contract, b"GET", f"{PATH}/stream", authorization=FRONTEND_SECRET)
        other = await ask_contract(contract, b"GET", f"{PATH}/stream", authorization=SHOP_SECRET)

        def stay() -> list[bool]:
            streams = (by_ticket, by_token, other)
            return [each.parts.may_stay() for each in streams if isinstance(each, PartsResponse)]  # type: ignore[attr-defined]

        assert stay() == [True] * 3
        deleted = await asyncio.to_thread(client.ask, "DELETE", f"/api/admin/api-tokens/{FRONTEND_SECRET}", token=ADMIN_SECRET)
        assert deleted.status == 200
        assert stay() == [False, False, True]
