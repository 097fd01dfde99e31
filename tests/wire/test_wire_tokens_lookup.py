"""How tokens are looked up: questions to the upstream, its failures, revocation (behaviour: Tokens looked up upstream)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.aio import asynchronous, until
from support.fake_upstream import VALIDATE, fake_upstream, granted
from support.processes import free_port
from support.scene import document, toggle
from support.token_scene import (
    BACK,
    DEV,
    FRONT,
    FRONT_A,
    LISTED,
    TOKENS,
    UNKNOWN,
    UP,
    TokenScene,
    decoded,
    fail,
    knowing_upstream,
    recover,
    restored,
    token_proxy,
    token_scene,
)

HOUR = 3600.0
BODIES = {"/proxy": b"", "/api/frontend": b'{"message":', "/api/client/features": b'{"message":'}
"""Path → how the body of an error there begins."""


async def statuses(scene: TokenScene, path: str, *tokens: str) -> list[int]:
    """Return the statuses of requests that are sent at once, each with one of the tokens."""
    return list(await asyncio.gather(*(scene.status(path, token) for token in tokens)))


# ---- questions


@pytest.mark.parametrize(
    ("headers", "own", "gateway"),
    [
        (
            "x-gateway: pass\nauthorization-of: gateway",
            "authorization",
            {"x-gateway": "pass", "authorization-of": "gateway"},
        ),
        ("authorization: Basic gateway", "x-api-token", {"authorization": "Basic gateway"}),
    ],
)
@asynchronous
async def test_the_question(headers: str, own: str, gateway: dict[str, str]) -> None:
    """It goes to the route beside the API with the headers for a gateway, without the token of the proxy under any name."""
    async with token_scene(upstream_headers=headers, upstream_auth_header=own) as scene:
        assert await scene.status("/proxy", FRONT) == 200
        [asked] = scene.upstream.received(VALIDATE)
        assert (asked.method, asked.json()) == ("POST", {"tokens": [FRONT]})
        assert asked.headers["content-type"] == "application/json"
        assert own not in asked.headers and UP not in str(asked.headers)
        assert gateway.items() <= dict(asked.headers).items()


@asynchronous
async def test_one_question_for_a_token() -> None:
    """Callers that come at once wait for the same answer; no caller asks about a token that is known."""
    async with token_scene() as scene:
        assert await statuses(scene, "/proxy", *[FRONT] * 30, *[UNKNOWN] * 30) == [200] * 30 + [401] * 30
        assert sorted(token for each in scene.questions() for token in each) == sorted([FRONT, UNKNOWN])
        assert await statuses(scene, "/api/frontend", *[FRONT] * 30) == [200] * 30
        assert len(scene.questions()) <= 2


@asynchronous
async def test_a_refusal_is_kept() -> None:
    """For half a minute the upstream is not asked again; then a new token is let in."""
    async with token_scene() as scene:
        assert await statuses(scene, "/proxy", UNKNOWN) == [401]
        assert scene.upstream.tokens is not None
        scene.upstream.tokens[UNKNOWN] = granted("frontend", "a")
        await scene.clock.advance(29)
        assert await statuses(scene, "/proxy", UNKNOWN) == [401] and len(scene.questions()) == 1
        await scene.clock.advance(1)
        assert await scene.flags("/proxy", UNKNOWN) == ["of-a", "free"]


# ---- failures of the upstream


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("status", [204, 301, 400, 401, 403, 404, 413, 429, 500, 502, 503])
@asynchronous
async def test_a_failure_never_reaches_a_caller(path: str, status: int) -> None:
    """A caller whose token is unknown is told to try again, with the error of its API; known ones and listed keys go on."""
    token = BACK if path == "/api/client/features" else FRONT
    async with token_scene() as scene:
        assert await scene.status(path, token) == 200
        fail(scene.upstream, status, location="http://127.0.0.1:1/")
        for _ in range(3):
            answer = await scene.ask(path, UNKNOWN, headers={"origin": "https://a.example"})
            assert answer.status_code == 503 and 1 <= int(answer.headers["retry-after"]) <= 60
            assert answer.content.startswith(BODIES[path]) and answer.headers["cache-control"] == "no-store"
            assert answer.headers["access-control-allow-origin"] == "*", "a browser may read it"
            assert await scene.status(path, token) == 200 and await scene.status("/proxy", LISTED) == 200
        assert len(scene.questions()) == 2, "the upstream is left alone for a while"
        recover(scene.upstream)
        await scene.clock.advance(60)
        assert await scene.status(path, UNKNOWN) == 401


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"tokens":{}}',
        b"<html>",
        b"\xff",
        b"[" * 100_000,
        b'{"tokens":null}',
        b'{"tokens":[]}',
    ],
    ids=lambda body: body[:15].decode("latin-1"),
)
@asynchronous
async def test_an_answer_that_is_none(body: bytes) -> None:
    """An answer of another form, or a page of a gateway, is a failure, and not the answer that the token is unknown."""
    media = "text/html" if body == b'{"tokens":[]}' else "application/json"
    async with token_scene() as scene:
        fail(scene.upstream, 200, body, content_type=media)
        assert await scene.status("/proxy", FRONT) == 503


@pytest.mark.parametrize(
    "entry",
    [
        {**granted("frontend"), "type": "admin"},
        {**granted("frontend"), "projects": []},
        {**granted("frontend"), "environment": None},
        {**granted("frontend"), "environment": "development"},
        {**granted("frontend"), "token": "another"},
    ],
    ids=["admin", "no project", "no environment", "another environment", "another token"],
)
@asynchronous
async def test_an_entry_that_opens_nothing(entry: dict[str, Any]) -> None:
    """The upstream knows the token, but not for this proxy."""
    async with token_scene() as scene:
        fail(scene.upstream, 200, json.dumps({"tokens": [{"token": FRONT, **entry}, 7, None]}).encode())
        assert await statuses(scene, "/proxy", FRONT, FRONT) == [401, 401]


@asynchronous
async def test_the_upstream_is_away() -> None:
    """Without a listener, unknown tokens wait for it to come back, and known ones work, also beyond the time of a check."""
    port = free_port()
    with fake_upstream(document(toggle("of-a", project="a"), toggle("free")), port) as upstream:
        upstream.tokens = dict(TOKENS)
        scene_of = token_proxy(upstream)
        scene = await scene_of.__aenter__()
        assert await scene.status("/proxy", FRONT_A) == 200
    try:
        answer = await scene.ask("/proxy", FRONT)
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
        await scene.clock.advance(2 * HOUR)
        assert await statuses(scene, "/proxy", FRONT_A, FRONT) == [200, 503]
        with fake_upstream(document(toggle("of-a", project="a"), toggle("free")), port) as upstream:
            upstream.tokens = dict(TOKENS)
            await scene.clock.advance(60)
            assert await statuses(scene, "/proxy", FRONT_A, FRONT) == [200, 200]
    finally:
        await scene_of.__aexit__(None, None, None)


@asynchronous
async def test_the_pause_that_the_upstream_asks_for() -> None:
    """Callers are told of it, and the upstream is not asked before."""
    async with token_scene() as scene:
        fail(scene.upstream, 429, retry_after="30")
        answer = await scene.ask("/proxy", FRONT)
        assert answer.status_code == 503 and 30 <= int(answer.headers["retry-after"]) <= 31
        recover(scene.upstream)
        await scene.clock.advance(29)
        assert await scene.status("/proxy", FRONT) == 503 and len(scene.questions()) == 1
        await scene.clock.advance(2)
        assert await scene.status("/proxy", FRONT) == 200


# ---- what was valid once


@asynchronous
async def test_revocation() -> None:
    """Tokens are asked about again after an hour, by the proxy itself. Revoked tokens are refused then, all other tokens go on."""
    async with token_scene() as scene:
        assert await statuses(scene, "/proxy", FRONT, FRONT_A) == [200, 200]
        assert scene.upstream.tokens is not None
        del scene.upstream.tokens[FRONT], scene.upstream.tokens[FRONT_A]
        assert await statuses(scene, "/proxy", FRONT, FRONT_A) == [200, 200]
        await scene.clock.advance(HOUR)
        await until(lambda: len(scene.questions()) >= 2)
        await refused(scene, FRONT, FRONT_A)
        assert await scene.status("/api/frontend", FRONT) == 401


@asynchronous
async def test_revocation_at_once() -> None:
    """An operator can have all known tokens asked about. Until the upstream has answered, and while it fails, they work."""
    async with token_scene() as scene:
        assert await statuses(scene, "/proxy", FRONT, FRONT_A) == [200, 200]
        assert scene.upstream.tokens is not None
        del scene.upstream.tokens[FRONT]
        fail(scene.upstream, 500)
        scene.app.check_tokens()
        await until(lambda: len(scene.questions()) >= 2)
        assert await statuses(scene, "/proxy", FRONT, FRONT_A) == [200, 200]
        recover(scene.upstream)
        scene.app.check_tokens()
        await refused(scene, FRONT)
        assert await statuses(scene, "/proxy", FRONT, FRONT_A) == [401, 200]


async def refused(scene: TokenScene, *tokens: str) -> None:
    """Wait until tokens are refused; until then they are accepted, and never anything else."""

    async def are_refused() -> bool:
        found = await statuses(scene, "/proxy", *tokens)
        assert set(found) <= {200, 401}
        return found == [401] * len(tokens)

    await until(are_refused)


@asynchronous
async def test_another_grant() -> None:
    """A token that opens something else upstream opens that after the next check, and no longer what it opened before."""
    async with token_scene() as scene:

        async def opens_other() -> bool:
            found = await scene.flags("/proxy", FRONT_A)
            assert found in (["of-a", "free"], ["of-b", "free"])
            return found == ["of-b", "free"]

        assert not await opens_other()
        assert scene.upstream.tokens is not None
        scene.upstream.tokens[FRONT_A] = granted("frontend", "b")
        await scene.clock.advance(HOUR)
        await until(lambda: len(scene.questions()) >= 2)
        await until(opens_other)
        scene.upstream.tokens[FRONT_A] = granted("client", "b")
        await scene.clock.advance(HOUR)
        await refused(scene, FRONT_A)
        assert await scene.flags("/api/client/features", FRONT_A) == ["of-b", "free"]


@asynchronous
async def test_a_reload_of_the_options() -> None:
    """Tokens stay known without a question. One that is revoked later is refused; one that is listed now stays."""
    async with token_scene() as scene:
        assert await statuses(scene, "/proxy", FRONT, FRONT_A) == [200, 200]
        await scene.renew(client_keys=[LISTED, FRONT_A, "new-key"])
        assert scene.upstream.tokens is not None
        del scene.upstream.tokens[FRONT], scene.upstream.tokens[FRONT_A]
        assert await statuses(scene, "/proxy", FRONT_A, "new-key") == [200, 200]
        assert len(scene.questions()) <= 2
        await scene.clock.advance(HOUR)
        await refused(scene, FRONT)
        assert await statuses(scene, "/proxy", FRONT_A, "new-key", LISTED) == [200] * 3
        assert await scene.status("/proxy", DEV) == 401


@asynchronous
async def test_a_reload_before_the_next_request() -> None:
    """A token that was used before a reload, and is revoked before it is used again, is refused."""
    async with token_scene() as scene:
        assert await statuses(scene, "/proxy", FRONT, FRONT_A) == [200, 200]
        await scene.renew(client_keys=[LISTED, "new-key"])
        assert scene.upstream.tokens is not None
        del scene.upstream.tokens[FRONT], scene.upstream.tokens[FRONT_A]
        await scene.clock.advance(HOUR)
        await until(lambda: len(scene.questions()) >= 2)
        await refused(scene, FRONT, FRONT_A)


@asynchronous
async def test_a_restart(tmp_path: Path) -> None:
    """Known tokens are stored without their texts, and work in the next process, also while the upstream fails."""
    with knowing_upstream() as upstream:
        async with token_proxy(upstream, storage=tmp_path.as_uri()) as scene:
            assert await statuses(scene, "/proxy", FRONT, FRONT_A, UNKNOWN) == [200, 200, 401]
        stored = everything_in(tmp_path)
        assert stored and b"hidden" not in stored
        upstream.forget()
        fail(upstream, 500)
        async with token_proxy(upstream, storage=tmp_path.as_uri()) as scene:
            await restored(scene, FRONT_A)
            assert await scene.flags("/proxy", FRONT_A) == ["of-a", "free"]
            assert await statuses(scene, "/api/frontend", FRONT) == [200]
            recover(upstream)
            assert upstream.tokens is not None
            del upstream.tokens[FRONT]
            scene.app.check_tokens()
            await refused(scene, FRONT)
            assert await statuses(scene, "/proxy", FRONT_A) == [200]


def everything_in(folder: Path) -> bytes:
    """Return the content of all files in a folder."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("status", [401, 403])
@asynchronous
async def test_an_upstream_that_refuses_questions(status: int) -> None:
    """Callers are told to try again. The log blames no token, because none was sent, and says what may help."""
    async with token_scene() as scene:
        fail(scene.upstream, status)
        assert await scene.status("/proxy", FRONT) == 503
        assert f"refused a question about tokens, which is sent without a token: status {status}" in scene.log
        assert "upstreamHeaders" in scene.log and "refused the token" not in scene.log


# ---- several environments


@pytest.mark.parametrize("of_process", [False, True])
@asynchronous
async def test_a_switch_of_one_environment(of_process: bool) -> None:
    """enableAllEndpoint is the option of the environment that the token opens, at its first request, too; an unknown one gets
    401."""
    tables = {
        "production": {"flagsvc_api_token": UP, "enable_all_endpoint": True},
        "development": {"flagsvc_api_token": "*:development.hidden-up", "enable_all_endpoint": False},
    }
    given = {"client_keys": None, "flagsvc_api_token": None, "enable_all_endpoint": of_process}
    async with token_scene(**given, environments=tables) as scene:
        for path, off in (("/proxy/all", 501), ("/api/frontend/all", 404)):
            for token, status in ((FRONT, 200), (DEV, off), (f"{UNKNOWN}-{off}", 401)):
                assert [await scene.status(path, token) for _ in range(2)] == [status] * 2
        assert sorted(token for each in scene.questions() for token in each)[:2] == sorted([DEV, FRONT])
        for table in tables.values():
            table["enable_all_endpoint"] = not table["enable_all_endpoint"]
        await scene.renew(**given, environments=tables)

        async def is_turned() -> bool:
            return [await scene.status("/api/frontend/all", token) for token in (FRONT, DEV)] == [404, 200]

        await until(is_turned)


@asynchronous
async def test_environments_of_one_upstream() -> None:
    """Each token opens its own environment. The upstream's answer decides, whichever environment asked it."""
    tables = {
        "production": {"flagsvc_api_token": UP},
        "development": {"flagsvc_api_token": "*:development.hidden-up", "client_keys": "dev-key"},
    }
    async with token_scene(client_keys=None, flagsvc_api_token=None, environments=tables) as scene:
        told = decoded(
            await scene.ask("/edge/validate", None, "POST", json={"tokens": [FRONT, DEV, FRONT_A, "dev-key"]})
        )
        assert {each["token"]: each["environment"] for each in told["tokens"]} == {
            FRONT: "production",
            FRONT_A: "production",
            DEV: "development",
            "dev-key": "development",
        }
        assert await statuses(scene, "/proxy", FRONT, DEV, "dev-key", "*:test.hidden") == [200, 200, 200, 401]
        assert await scene.flags("/proxy", FRONT_A) == ["of-a", "free"]
        assert not [each for each in scene.questions() if "*:test.hidden" in each]


@asynchronous
async def test_environments_of_two_upstreams() -> None:
    """Neither upstream sees a token of the other one's environment, and neither can open it."""
    with fake_upstream(document(toggle("dev"))) as other, knowing_upstream() as upstream:
        other.tokens = {DEV: granted("frontend", environment="development"), FRONT: granted("frontend")}
        tables = {
            "production": {"flagsvc_url": upstream.url, "flagsvc_api_token": UP},
            "development": {"flagsvc_url": other.url, "flagsvc_api_token": "*:development.hidden-up"},
        }
        assert upstream.tokens is not None
        del upstream.tokens[FRONT]
        async with token_proxy(upstream, client_keys=None, flagsvc_api_token=None, environments=tables) as scene:
            assert await statuses(scene, "/proxy", DEV, FRONT_A, FRONT, "hidden-legacy") == [200, 200, 401, 401]
            assert await scene.flags("/proxy", DEV) == ["dev"]
            assert {token for each in upstream.asked_tokens() for token in each} == {FRONT_A, FRONT}
            assert other.asked_tokens() == [[DEV]]
