"""Tokens that are looked up: what each opens, failures of the upstream, revocation (behaviour: Tokens looked up upstream)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.aio import until
from support.fake_upstream import granted
from support.token_scene import (
    ADMIN,
    BACK,
    BACK_B,
    DEV,
    FRONT,
    FRONT_A,
    FRONT_AB,
    LEGACY,
    LISTED,
    UNKNOWN,
    UP,
    TokenScene,
    decoded,
    fail,
    knowing_upstream,
    named,
    recover,
    restored,
    token_proxy,
    token_scene,
)

EVERY = ["of-a", "of-b", "free"]
OF_A = ["of-a", "free"]
OF_B = ["of-b", "free"]
FRONTENDS = {FRONT: EVERY, FRONT_A: OF_A, FRONT_AB: EVERY, LEGACY: OF_A}
SERVERS = {BACK: EVERY, BACK_B: OF_B}
LISTS = ("/proxy", "/proxy/all", "/api/frontend", "/api/frontend/all", "/api/proxy", "/api/proxy/all")
DOCUMENTS = ("/api/client/features", "/proxy/client/features")
JSON_TYPE = {"content-type": "application/json"}


@pytest.mark.parametrize(("token", "flags"), FRONTENDS.items())
async def test_a_frontend_token(token: str, flags: list[str]) -> None:
    """It gets the flags of its projects, and those without a project, in every list and with either method; no others by name."""
    async with token_scene() as scene:
        for path in LISTS:
            assert await scene.flags(path, token) == flags, path
            assert await scene.flags(path, token, "POST", json={"context": {}}) == flags, path
        for path in ("/proxy", "/proxy/all"):
            answer = decoded(await scene.ask(path, token, "POST", json=named(*EVERY, "nobody")))
            found = {each["name"]: each["enabled"] for each in answer["toggles"]}
            assert found == {name: name in flags for name in (*EVERY, "nobody")}
        for name in (*EVERY, "nobody"):
            for method in ("GET", "POST"):
                answer = await scene.ask(f"/api/frontend/features/{name}", token, method, headers=JSON_TYPE)
                hidden = await scene.ask("/api/frontend/features/nobody", token, method, headers=JSON_TYPE)
                assert (answer.status_code == 200 and decoded(answer)["enabled"]) is (name in flags)
                assert name in flags or answer.text.replace(name, "nobody") == hidden.text
        assert scene.questions() == [[token]]


@pytest.mark.parametrize(("token", "flags"), SERVERS.items())
async def test_a_server_side_token(token: str, flags: list[str]) -> None:
    """It gets the configuration of its projects, and of flags without a project; a flag of another one is not found."""
    async with token_scene() as scene:
        for path in DOCUMENTS:
            assert await scene.flags(path, token) == flags, path
            assert await scene.flags(f"{path}", token, headers={"unleash-client-spec": "3.0.0"}) == flags, path
        for name in (*EVERY, "nobody"):
            answer = await scene.ask(f"/api/client/features/{name}", token)
            assert answer.status_code == (200 if name in flags else 404)
        filtered = [await scene.flags(f"/api/client/features?project={project}", token) for project in "ab"]
        assert filtered == [[name for name in own if name in flags] for own in (OF_A, OF_B)]
        assert scene.questions() == [[token]]


@pytest.mark.parametrize("token", [FRONT, FRONT_A])
async def test_a_frontend_token_opens_no_configuration(token: str) -> None:
    """At the server-side API it is of the wrong type, at the first request and later; the dialect of /proxy only knows 401."""
    async with token_scene() as scene:
        for _ in range(2):
            assert await scene.status("/api/client/features", token) == 403
            assert await scene.status("/api/client/features/of-a", token) == 403
            assert await scene.status("/api/client/register", token, "POST", json={}) == 403
            assert await scene.status("/proxy/client/features", token) == 401
        assert await scene.status("/proxy", token) == 200


@pytest.mark.parametrize("token", [BACK, BACK_B])
async def test_a_server_side_token_opens_no_evaluation(token: str) -> None:
    """And the other way round. Reports are open to both."""
    async with token_scene() as scene:
        for _ in range(2):
            assert await scene.status("/api/frontend", token) == 403
            assert await scene.status("/api/frontend", token, "POST", json={}) == 403
            assert await scene.status("/api/frontend/features/of-b", token) == 403
            assert await scene.status("/proxy", token) == 401
        started = {"appName": "a", "instanceId": "b", "interval": 1, "started": 1, "strategies": []}
        assert await scene.status("/proxy/client/register", token, "POST", json=started) == 200
        assert await scene.status("/api/client/features", token) == 200


@pytest.mark.parametrize("path", [*LISTS, *DOCUMENTS])
@pytest.mark.parametrize("token", [ADMIN, UNKNOWN, "unknown", DEV], ids=["admin", "unknown", "legacy", "other"])
async def test_a_token_that_opens_nothing(path: str, token: str) -> None:
    """An admin token, an unknown one and one of another environment are refused like any wrong key, again and again."""
    async with token_scene() as scene:
        wrong = await scene.ask(path, "a wrong key")
        for _ in range(2):
            answer = await scene.ask(path, token)
            assert (answer.status_code, answer.text, answer.headers) == (401, wrong.text, wrong.headers)
        assert scene.questions() == ([] if token == DEV else [[token]]), "another upstream's token is not shown to this one"


async def test_only_listed_keys() -> None:
    """Without tokenValidation no key leaves the process, in any form."""
    async with token_scene(token_validation="static") as scene:
        for token in (FRONT, BACK, UNKNOWN):
            assert [await scene.status(path, token) for path in (*LISTS, *DOCUMENTS)] == [401] * 8
        body = {"tokens": [FRONT, LISTED]}
        assert [each["token"] for each in decoded(await scene.ask("/edge/validate", None, "POST", json=body))["tokens"]] == [LISTED]
        assert scene.questions() == []


async def test_tags_of_answers() -> None:
    """Answers to tokens of different projects have tags of their own. A tag counts at the first request with a token, too."""
    async with token_scene() as scene:
        tags = {}
        for path, tokens in (("/proxy", (FRONT, FRONT_A, FRONT_AB)), ("/api/client/features", (BACK, BACK_B))):
            for token in tokens:
                tags[token] = (await scene.ask(path, token)).headers["etag"]
        assert len({tags[FRONT], tags[FRONT_A]}) == 2 and tags[BACK] != tags[BACK_B]
        scene.upstream.forget()
    async with token_scene() as scene:
        conditional = {"if-none-match": tags[FRONT_A]}
        assert [await scene.status("/proxy", token, headers=conditional) for token in (FRONT_A, FRONT)] == [304, 200]
        conditional = {"if-none-match": tags[BACK_B]}
        found = [await scene.status("/api/client/features", each, headers=conditional) for each in (BACK_B, BACK)]
        assert found == [304, 200]


# ---- the question of proxies below


async def test_tokens_cannot_be_told_now() -> None:
    """A question that would need an upstream that fails gets 503 as a whole; one about known tokens does not."""
    async with token_scene() as scene:
        assert await scene.status("/proxy", FRONT_A) == 200
        fail(scene.upstream, 429, retry_after="7")
        answer = await scene.ask("/edge/validate", None, "POST", json={"tokens": [FRONT_A, UNKNOWN]})
        assert answer.status_code == 503 and 7 <= int(answer.headers["retry-after"]) <= 8
        answer = await scene.ask("/edge/validate", None, "POST", json={"tokens": [FRONT_A, LISTED]})
        assert [each["token"] for each in decoded(answer)["tokens"]] == [LISTED, FRONT_A]


@pytest.mark.parametrize("key", [FRONT, BACK])
async def test_a_token_that_is_no_longer_listed(key: str) -> None:
    """A token of the flag server may be listed first and looked up later. A key of another form ends."""
    async with token_scene(client_keys=[LISTED, "hidden-key", key], key_overlap=0) as scene:
        assert await scene.status("/proxy", key) == await scene.status("/proxy", "hidden-key") == 200
        await scene.renew(client_keys=LISTED, key_overlap=0)
        assert await scene.status("/proxy" if key == FRONT else "/api/client/features", key) == 200
        assert await scene.status("/proxy", "hidden-key") == 401 and scene.questions() == [[key]]


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
