"""How tokens are looked up: questions to the upstream, its failures, revocation (behaviour: Tokens looked up upstream)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.aio import until
from support.fake_upstream import granted
from support.token_scene import (
    BACK,
    DEV,
    FRONT,
    FRONT_A,
    LISTED,
    UNKNOWN,
    UP,
    TokenScene,
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


# ---- failures of the upstream


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("status", [204, 301, 400, 401, 403, 404, 413, 429, 500, 502, 503])
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


# ---- what was valid once


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


async def refused(scene: TokenScene, *tokens: str) -> None:
    """Wait until tokens are refused; until then they are accepted, and never anything else."""

    async def are_refused() -> bool:
        found = await statuses(scene, "/proxy", *tokens)
        assert set(found) <= {200, 401}
        return found == [401] * len(tokens)

    await until(are_refused)


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
async def test_an_upstream_that_refuses_questions(status: int) -> None:
    """Callers are told to try again. The log blames no token, because none was sent, and says what may help."""
    async with token_scene() as scene:
        fail(scene.upstream, status)
        assert await scene.status("/proxy", FRONT) == 503
        assert f"refused a question about tokens, which is sent without a token: status {status}" in scene.log
        assert "upstreamHeaders" in scene.log and "refused the token" not in scene.log


# ---- several environments


@pytest.mark.parametrize("of_process", [False, True])
async def test_a_switch_of_one_environment(of_process: bool) -> None:
    """enableAllEndpoint is the option of the environment that the token opens, at its first request, too."""
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
