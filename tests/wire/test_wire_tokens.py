"""Tokens that are looked up: what each opens, at every API (behaviour: Tokens looked up upstream).

What callers with unknown tokens may cost: the upstream gets its budget, and one network leaves room for the others.
Environments that divide the projects of one upstream, for tokens that are looked up (behaviour: Tokens looked up upstream).
No upstream is asked about a secret of this process that it does not have itself (behaviour: Tokens looked up upstream).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flagsvc.proxy.tokens.lookup import MAX_WAITING
from flagsvc.testing import turns
from support.aio import asynchronous, until
from support.fake_upstream import FakeUpstream, granted
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
    TOKENS,
    UNKNOWN,
    UP,
    TokenScene,
    decoded,
    fail,
    knowing_upstream,
    named,
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
@asynchronous
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
@asynchronous
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
@asynchronous
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
@asynchronous
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
@asynchronous
async def test_a_token_that_opens_nothing(path: str, token: str) -> None:
    """An admin token, an unknown one and one of another environment are refused like any wrong key, again and again."""
    async with token_scene() as scene:
        wrong = await scene.ask(path, "a wrong key")
        for _ in range(2):
            answer = await scene.ask(path, token)
            assert (answer.status_code, answer.text, answer.headers) == (401, wrong.text, wrong.headers)
        assert scene.questions() == ([] if token == DEV else [[token]]), (
            "another upstream's token is not shown to this one"
        )


@asynchronous
async def test_listed_keys_beside_tokens() -> None:
    """They open the whole environment, and no question is asked about them, nor about a token that is on the list."""
    async with token_scene(client_keys=[LISTED, FRONT_A], exp_server_side_sdk_config_tokens=[BACK_B]) as scene:
        assert await scene.flags("/proxy", LISTED) == EVERY
        assert await scene.flags("/api/frontend", FRONT_A) == EVERY
        assert await scene.flags("/api/client/features", BACK_B) == EVERY
        assert scene.questions() == []


@asynchronous
async def test_only_listed_keys() -> None:
    """Without tokenValidation no key leaves the process, in any form."""
    async with token_scene(token_validation="static") as scene:
        for token in (FRONT, BACK, UNKNOWN):
            assert [await scene.status(path, token) for path in (*LISTS, *DOCUMENTS)] == [401] * 8
        body = {"tokens": [FRONT, LISTED]}
        assert [
            each["token"] for each in decoded(await scene.ask("/edge/validate", None, "POST", json=body))["tokens"]
        ] == [LISTED]
        assert scene.questions() == []


@asynchronous
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
        assert [await scene.status("/api/client/features", each, headers=conditional) for each in (BACK_B, BACK)] == [
            304,
            200,
        ]


@asynchronous
async def test_the_configuration_changes() -> None:
    """Every token sees the new one at the next request."""
    async with token_scene() as scene:
        assert await scene.flags("/proxy", FRONT_A) == OF_A
        assert await scene.flags("/api/client/features", BACK_B) == OF_B
        more = {"name": "new", "enabled": True, "project": "a", "strategies": [{"name": "default"}]}
        scene.upstream.replace({"version": 2, "features": [more]})
        await scene.poll("new")
        assert await scene.flags("/proxy", FRONT_A) == ["new"]
        assert decoded(await scene.ask("/api/client/features", BACK_B))["features"] == []


# ---- the question of proxies below


@asynchronous
async def test_which_of_these_are_tokens() -> None:
    """Our own /edge/validate tells of listed keys and tokens what they open, before and after a token was used."""
    async with token_scene(exp_server_side_sdk_config_tokens=["server-key"]) as scene:
        body = {
            "tokens": [FRONT, FRONT_A, FRONT_AB, BACK_B, LEGACY, ADMIN, UNKNOWN, DEV, LISTED, "server-key", "a b", ""]
        }
        expected = {
            FRONT: ("frontend", ["*"], "production"),
            FRONT_A: ("frontend", ["a"], "production"),
            FRONT_AB: ("frontend", ["a", "b"], "production"),
            BACK_B: ("client", ["b"], "production"),
            LEGACY: ("frontend", ["a"], "production"),
            LISTED: ("frontend", ["*"], "production"),
            "server-key": ("client", ["*"], "production"),
        }
        for _ in range(2):
            answer = await scene.ask("/edge/validate", None, "POST", json=body)
            assert (
                answer.status_code == 200
                and {
                    each["token"]: (each["type"], each["projects"], each["environment"])
                    for each in decoded(answer)["tokens"]
                }
                == expected
            )
            for token in (FRONT, FRONT_A, FRONT_AB, LEGACY):
                assert await scene.status("/proxy", token) == 200
        assert [sorted(each) for each in scene.questions()] == [
            sorted([FRONT, FRONT_A, FRONT_AB, BACK_B, LEGACY, ADMIN, UNKNOWN])
        ]


@asynchronous
async def test_a_proxy_for_one_project_tells_of_one_project() -> None:
    """A token that opens all that this proxy has is a token of that project, for a proxy below as well."""
    async with token_scene(flagsvc_api_token="a:production.hidden-up-a") as scene:
        for _ in range(2):
            [told] = decoded(await scene.ask("/edge/validate", None, "POST", json={"tokens": [FRONT_A, FRONT]}))[
                "tokens"
            ]
            assert told == {"token": FRONT_A, "type": "frontend", "projects": ["a"], "environment": "production"}
            assert await scene.flags("/proxy", FRONT_A) == EVERY, (
                "what the upstream sends for its token is not filtered again"
            )


@asynchronous
async def test_tokens_cannot_be_told_now() -> None:
    """A question that would need an upstream that fails gets 503 as a whole; one about known tokens does not."""
    async with token_scene() as scene:
        assert await scene.status("/proxy", FRONT_A) == 200
        fail(scene.upstream, 429, retry_after="7")
        answer = await scene.ask("/edge/validate", None, "POST", json={"tokens": [FRONT_A, UNKNOWN]})
        assert answer.status_code == 503 and 7 <= int(answer.headers["retry-after"]) <= 8
        answer = await scene.ask("/edge/validate", None, "POST", json={"tokens": [FRONT_A, LISTED]})
        assert [each["token"] for each in decoded(answer)["tokens"]] == [LISTED, FRONT_A]


@asynchronous
async def test_many_tokens() -> None:
    """A hundred go into one question. Those beyond what one network may have are turned away, callers from elsewhere are not."""
    many = [f"*:production.hidden-{number}" for number in range(MAX_WAITING // 2 + 50)]
    async with token_scene(token_lookup_rate=1) as scene:
        assert await scene.status("/proxy", UNKNOWN) == 401  # this second's budget
        asking = [asyncio.ensure_future(scene.ask("/proxy", token)) for token in many]
        other = asyncio.ensure_future(scene.status("/proxy", FRONT, peer="198.51.100.1"))
        await turns()
        turned_away = [each.result() for each in asking if each.done()]
        waiting = [each for each in asking if not each.done()]
        assert {(each.status_code, each.headers["retry-after"]) for each in turned_away} == {(503, "1")}
        assert len(turned_away) == 50 and len(scene.questions()) == 1
        for number in range(2, 8):
            while len(scene.questions()) < number:
                await scene.clock.advance(0.1)
        assert await other == 200
        assert [(await each).status_code for each in waiting] == [401] * (MAX_WAITING // 2)
        assert [len(each) for each in scene.questions()] == [1, *[100] * 5, 1]
        assert FRONT in scene.questions()[1], "the other network does not wait for all of this one"


@asynchronous
async def test_the_budget() -> None:
    """However many tokens come, the upstream gets no more questions than the option allows."""
    async with token_scene(token_lookup_rate=2) as scene:
        for second in range(10):
            for part in range(4):
                token = f"*:production.hidden-{second}-{part}"
                asyncio.ensure_future(scene.ask("/proxy", token, peer=f"198.51.{second}.{part}"))  # noqa: RUF006
                await turns()
                await scene.clock.advance(0.25)
            assert len(scene.questions()) <= 2 * (second + 2)
        await scene.clock.advance(5)
        await until(lambda: len({token for each in scene.questions() for token in each}) == 40)


@asynchronous
async def test_addresses_behind_a_proxy() -> None:
    """The caller's address is that of X-Forwarded-For if the peer is trusted: one caller's flood leaves room for others."""
    async with token_scene(trust_proxy="true", token_lookup_rate=1) as scene:
        assert await scene.status("/proxy", UNKNOWN) == 401  # this second's budget
        flood = [
            asyncio.ensure_future(
                scene.ask("/proxy", f"{UNKNOWN}-{number}", headers={"x-forwarded-for": "198.51.100.9"})
            )
            for number in range(MAX_WAITING // 2 + 30)
        ]
        other = asyncio.ensure_future(scene.ask("/proxy", FRONT, headers={"x-forwarded-for": "198.51.101.9"}))
        await turns()
        assert sum(each.done() for each in flood) == 30 and not other.done()
        await scene.clock.advance(2)
        await until(lambda: len(scene.questions()) >= 2)
        assert (await other).status_code == 200
        for _ in range(5):
            await scene.clock.advance(1.1)
            await turns()
        assert {(await each).status_code for each in flood} == {401, 503}


FRONT_B = "b:production.hidden-front-b"
UP_AB = "[]:production.hidden-up-ab"
CALLERS = (FRONT_A, FRONT_B, FRONT_AB, FRONT)
PART_A, PART_B, BOTH_PARTS = ["of-a", "free"], ["of-b", "free"], ["of-a", "of-b", "free"]
ONLY_A, ONLY_B = {"flagsvc_api_token": UP, "project_name": "a"}, {"flagsvc_api_token": UP, "project_name": "b"}


def tables(*given: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the options of a process with these environments, in this order."""
    return {"client_keys": None, "flagsvc_api_token": None, "environments": dict(given)}


async def flags(scene: TokenScene, token: str) -> list[str] | None:
    """Return the flags that a token gets; None if it is refused."""
    answer = await scene.ask("/api/frontend/all", token)
    assert answer.status_code in (200, 401)
    return [each["name"] for each in decoded(answer)["toggles"]] if answer.status_code == 200 else None


async def check(options: dict[str, Any], expected: list[list[str] | None]) -> str:
    """Assert what each of CALLERS gets, and that /edge/validate knows the callers that get something. Returns what was logged."""
    with knowing_upstream() as upstream:
        upstream.tokens = {**TOKENS, FRONT_B: granted("frontend", "b"), UP_AB: granted("client", "a", "b")}
        async with token_proxy(upstream, **options) as scene:
            for _ in range(2):
                assert [await flags(scene, token) for token in CALLERS] == expected
            answer = decoded(await scene.ask("/edge/validate", None, "POST", json={"tokens": list(CALLERS)}))
            known = [each["token"] for each in answer["tokens"]]
            assert known == [token for token, got in zip(CALLERS, expected, strict=True) if got is not None]
            return scene.log


@pytest.mark.parametrize("turn", [1, -1])
@asynchronous
async def test_an_environment_for_each_project(turn: int) -> None:
    """Each token gets the flags of its project. One of both projects is refused, and the log says why, without the token."""
    log = await check(tables(*[("x", ONLY_A), ("y", ONLY_B)][::turn]), [PART_A, PART_B, None, None])
    [line] = [line for line in log.splitlines() if "a valid token is refused" in line]
    assert "x, y" in line and "a, b" in line and "one backend token" in line and "hidden" not in log


@pytest.mark.parametrize("turn", [1, -1])
@asynchronous
async def test_an_environment_for_one_project_and_one_for_all(turn: int) -> None:
    """The narrow one takes nothing away from the wide one."""
    await check(
        tables(*[("x", ONLY_A), ("y", {"flagsvc_api_token": UP})][::turn]),
        [PART_A, PART_B, BOTH_PARTS, BOTH_PARTS],
    )


@pytest.mark.parametrize("several", [True, False])
@asynchronous
async def test_one_environment_for_some_projects(several: bool) -> None:
    """A token of more projects than the proxy has is refused, not answered with a part."""
    options = {"flagsvc_api_token": UP_AB} if several else {"project_name": "a"}
    await check(
        options,
        [PART_A, PART_B, BOTH_PARTS, None] if several else [PART_A, None, None, None],
    )


@asynchronous
async def test_metrics_of_several_environments() -> None:
    """Environments share the look-ups of tokens: their numbers are those of the process. Cached answers are the environment's."""
    with knowing_upstream() as upstream:
        async with token_proxy(upstream, **tables(("x", {"flagsvc_api_token": UP}))) as scene:
            for _ in range(3):
                assert [await flags(scene, token) for token in (FRONT_A, FRONT)] == [
                    PART_A,
                    BOTH_PARTS,
                ]
            page = (await scene.ask("/proxy/internal-backstage/prometheus", None)).text
    assert "\nflagsvc_tokens_known 2.0\n" in page and "\nflagsvc_token_lookups_total 2.0\n" in page
    assert '\nflagsvc_answer_cache_hits_total{environment="x"} 2.0\n' in page


UP_A, KEY_A, SERVER_A = "*:production.hidden-up-a", "hidden-key-of-a", "*:production.hidden-server-key-of-a"
NEW: dict[str, Any] = {"client_keys": "hidden-new-key-of-a", "exp_server_side_sdk_config_tokens": None}


def secret_tables(own: str, other: str, validation: str = "static", **of_a: Any) -> dict[str, Any]:
    """Return options: `a` of the upstream at `other`, and `b` of the upstream at `own`, which is asked about tokens."""
    a = {"flagsvc_url": other, "flagsvc_api_token": UP_A, "client_keys": KEY_A, "token_validation": validation}
    b = {"flagsvc_url": own, "flagsvc_api_token": UP, "client_keys": LISTED}
    environments = {"a": {**a, "exp_server_side_sdk_config_tokens": SERVER_A, **of_a}, "b": b}
    return {"client_keys": None, "flagsvc_api_token": None, "environments": environments, "key_overlap": 0}


@asynccontextmanager
async def two_upstreams(validation: str) -> AsyncIterator[tuple[TokenScene, FakeUpstream]]:
    """Run a proxy of both, and yield it with the upstream of `a`. Both upstreams would know every text."""
    texts = dict.fromkeys((UP_A, KEY_A, SERVER_A), granted("client"))
    with knowing_upstream() as upstream, knowing_upstream() as other:
        upstream.tokens, other.tokens = TOKENS | texts, {UP_A: granted("client")}
        async with token_proxy(upstream, **secret_tables(upstream.url, other.url, validation)) as scene:
            yield scene, other


async def try_everywhere(scene: TokenScene, *texts: str) -> list[set[int]]:
    """Return for each text what a caller with it gets, wherever a text is looked at."""
    found = []
    for text in texts:
        paths = ("/proxy", "/api/frontend", "/api/client/features", "/proxy/client/features")
        got = {await scene.status(path, text) for path in paths}
        found.append(got | {await scene.status("/api/frontend", f"Bearer {text}")})
        await scene.ask("/edge/validate", None, "POST", json={"tokens": [text]})
    return found


@asynchronous
async def test_secrets_of_another_environment() -> None:
    """Its upstream token, a former key, a former server-side key, and a key that is mistyped open nothing, and stay here."""
    async with two_upstreams("static") as (scene, other):
        assert await scene.status("/proxy", KEY_A) == 200
        await scene.renew(**secret_tables(scene.upstream.url, other.url, **NEW))
        assert await try_everywhere(scene, UP_A, KEY_A, SERVER_A, KEY_A + "x") == [{401}] * 4
        assert scene.questions() == other.asked_tokens() == []
        assert await scene.status("/proxy", FRONT) == 200 and scene.questions() == [[FRONT]]
        assert "hidden-key" not in scene.log and "hidden-up" not in scene.log


@asynchronous
async def test_an_upstream_may_be_asked_about_its_own_token() -> None:
    """A service may use the token of the proxy. It opens the environment of that upstream. No other upstream is asked."""
    async with two_upstreams("upstream") as (scene, other):
        assert await scene.status("/api/client/features", UP_A) == 200
        assert other.asked_tokens() == [[UP_A]] and scene.questions() == []


@pytest.mark.parametrize("key", [FRONT, BACK])
@asynchronous
async def test_a_token_that_is_no_longer_listed(key: str) -> None:
    """A token of the flag server may be listed first and looked up later. A key of another form ends."""
    async with token_scene(client_keys=[LISTED, "hidden-key", key], key_overlap=0) as scene:
        assert await scene.status("/proxy", key) == await scene.status("/proxy", "hidden-key") == 200
        await scene.renew(client_keys=LISTED, key_overlap=0)
        assert await scene.status("/proxy" if key == FRONT else "/api/client/features", key) == 200
        assert await scene.status("/proxy", "hidden-key") == 401 and scene.questions() == [[key]]


@asynchronous
async def test_every_other_text_is_asked_about() -> None:
    """A caller that sends a secret of something else shows it to the upstream: it may be a token."""
    async with token_scene() as scene:
        assert await scene.status("/proxy", "password-of-something-else") == 401
        answer = await scene.ask("/edge/validate", None, "POST", json={"tokens": [UNKNOWN, LISTED]})
        assert [each["token"] for each in decoded(answer)["tokens"]] == [LISTED]
        assert scene.questions() == [["password-of-something-else"], [UNKNOWN]]
