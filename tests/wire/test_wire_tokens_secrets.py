"""No upstream is asked about a secret of this process that it does not have itself (behaviour: Tokens looked up upstream)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from support.aio import asynchronous
from support.fake_upstream import FakeUpstream, granted
from support.token_scene import (
    BACK,
    FRONT,
    LISTED,
    TOKENS,
    UNKNOWN,
    UP,
    TokenScene,
    decoded,
    knowing_upstream,
    token_proxy,
    token_scene,
)

UP_A, KEY_A, SERVER_A = "*:production.hidden-up-a", "hidden-key-of-a", "*:production.hidden-server-key-of-a"
NEW: dict[str, Any] = {"client_keys": "hidden-new-key-of-a", "exp_server_side_sdk_config_tokens": None}


def tables(own: str, other: str, validation: str = "static", **of_a: Any) -> dict[str, Any]:
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
        async with token_proxy(upstream, **tables(upstream.url, other.url, validation)) as scene:
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
        await scene.renew(**tables(scene.upstream.url, other.url, **NEW))
        assert await try_everywhere(scene, UP_A, KEY_A, SERVER_A, KEY_A + "x") == [{401}] * 4
        assert scene.questions() == other.asked_tokens() == []
        assert await scene.status("/proxy", FRONT) == 200 and scene.questions() == [[FRONT]]
        assert "hidden-key" not in scene.log and "hidden-up" not in scene.log


@asynchronous
async def test_an_upstream_may_be_asked_about_its_own_token() -> None:
    """A service may use the token of the proxy. It opens the environment of that upstream, and the other one is not asked."""
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
