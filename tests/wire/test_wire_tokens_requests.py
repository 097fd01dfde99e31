"""Requests with unknown tokens: bodies, methods, keys in other forms, rates, secrets (behaviour: Tokens looked up upstream)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from flagsvc.http import contract
from flagsvc.proxy.api import service
from flagsvc.testing import turns
from support.aio import until
from support.fake_upstream import METRICS, fake_upstream
from support.token_scene import (
    BACK,
    BACK_B,
    DEV,
    FRONT,
    FRONT_A,
    LISTED,
    TOKENS,
    UNKNOWN,
    TokenScene,
    decoded,
    fail,
    named,
    token_proxy,
    token_scene,
)

JSON_TYPE = {"content-type": "application/json"}
LONG = b"{" + b" " * 200_000 + b"}"


class Body:
    """A body that comes in two pieces, the second of them when `rest` is set."""

    def __init__(self) -> None:
        self.rest = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"toggles":["of-a",'
        await self.rest.wait()
        yield b'"of-b"]}'


# ---- bodies


@pytest.mark.parametrize("path", ["/proxy", "/api/frontend"])
async def test_the_body_comes_first(path: str) -> None:
    """A token is looked up when the body is there, and the body is answered then."""
    async with token_scene() as scene:
        body = Body()
        asking = asyncio.ensure_future(scene.ask(path, FRONT_A, "POST", JSON_TYPE, content=body))
        await turns()
        assert scene.questions() == [] and not asking.done()
        body.rest.set()
        answer = await asking
        assert {each["name"]: each["enabled"] for each in decoded(answer)["toggles"]} == {"of-a": True, "of-b": False}
        assert scene.questions() == [[FRONT_A]]


@pytest.mark.parametrize("path", ["/proxy", "/api/frontend", "/proxy/client/metrics", "/api/client/metrics"])
async def test_a_body_that_is_refused_by_its_head(path: str) -> None:
    """What is too large or of another type is refused without a question, from any caller."""
    limits: dict[str, Any] = {"body_limit": "2 kB", "metrics_body_limit": "2 kB"}
    async with token_scene(**limits) as scene:
        for token in (UNKNOWN, FRONT, BACK):
            assert await scene.status(path, token, "POST", headers=JSON_TYPE, content=LONG) == 413
            assert await scene.status(path, token, "POST", headers={"content-type": "text/html"}, content=b"{}") == 415
        assert scene.questions() == []


async def test_a_body_that_grows_too_large() -> None:
    """Without a length the body is read up to the limit; an unknown caller is refused for its token, a known one for the body."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    async with token_scene(body_limit="2 kB") as scene:
        assert await scene.status("/proxy", UNKNOWN, "POST", headers=JSON_TYPE, content=pieces()) == 401
        for _ in range(2):
            assert await scene.status("/proxy", FRONT, "POST", headers=JSON_TYPE, content=pieces()) == 413


async def test_a_body_that_is_malformed() -> None:
    """A caller with a valid token is told; a caller without a valid token learns only that the token is wrong."""
    async with token_scene() as scene:
        for content in (b"{", b"[]", b"\xff", b"null"):
            assert await scene.status("/proxy", FRONT, "POST", headers=JSON_TYPE, content=content) == 400
            assert await scene.status("/proxy", UNKNOWN, "POST", headers=JSON_TYPE, content=content) == 401


async def test_a_caller_that_leaves_before_its_body_is_there() -> None:
    """Nothing is asked for it."""
    async with token_scene() as scene:
        asking = asyncio.ensure_future(scene.ask("/proxy", FRONT, "POST", JSON_TYPE, content=Body()))
        await turns()
        asking.cancel()
        await turns()
        assert scene.questions() == []


async def test_a_report() -> None:
    """What an SDK with a new token reports at its first request is counted; what an unknown caller reports is not."""
    moments = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z"}
    report = {"appName": "a", "instanceId": "b", "bucket": moments | {"toggles": {"of-a": {"yes": 3, "no": 0}}}}
    async with token_scene() as scene:
        assert await scene.status("/proxy/client/metrics", UNKNOWN, "POST", json=report) == 401
        assert await scene.status("/proxy/client/metrics", FRONT_A, "POST", json=report) == 200
        assert await scene.status("/proxy", FRONT_A, "POST", json=named("of-a", "of-b")) == 200
        upstream = scene.upstream
    [sent] = upstream.received(METRICS)
    counts = {name: (each["yes"], each["no"]) for name, each in sent.json()["bucket"]["toggles"].items()}
    assert counts == {"of-a": (4, 0), "of-b": (0, 1)}


# ---- methods and paths


@pytest.mark.parametrize(("path", "token"), [("/proxy", FRONT_A), ("/api/frontend", FRONT_A), ("/api/client/features", BACK_B)])
async def test_head(path: str, token: str) -> None:
    """It is answered like GET, without a body, also where the token is unknown or cannot be looked up."""
    async with token_scene() as scene:
        first = await scene.ask(path, token, "HEAD")
        got = await scene.ask(path, token)
        assert (first.status_code, first.content) == (200, b"") and first.headers == got.headers
        head, got = await scene.ask(path, UNKNOWN, "HEAD"), await scene.ask(path, "unknown")
        assert (head.status_code, head.content) == (401, b"") and head.headers == got.headers
        fail(scene.upstream, 500)
        assert (await scene.ask(path, f"{UNKNOWN}-2", "HEAD")).status_code == 503


async def test_what_needs_no_token() -> None:
    """Preflights, unknown paths, other methods, probes and the first page are answered as ever, and nothing is asked."""
    preflight = {"origin": "https://a.example", "access-control-request-method": "GET"}
    async with token_scene() as scene:
        for path, method, status in (
            ("/proxy", "OPTIONS", 204),
            ("/api/frontend", "OPTIONS", 204),
            ("/nowhere", "GET", 404),
            ("/api/nowhere", "GET", 404),
            ("/proxy", "DELETE", 405),
            ("/proxy/health", "GET", 200),
            ("/livez", "GET", 200),
            ("/proxy/internal-backstage/prometheus", "GET", 200),
        ):
            assert await scene.status(path, FRONT, method, headers=preflight) == status, path
            assert await scene.status(path, UNKNOWN, method, headers=preflight) == status, path
        assert scene.questions() == []


async def test_no_key_and_two_keys() -> None:
    """Without a key, or with an empty one, nothing is asked; nor with two header lines with keys, whichever is valid."""
    async with token_scene() as scene:
        for path in ("/proxy", "/api/frontend", "/api/client/features"):
            assert [await scene.status(path, token) for token in (None, "", "  ")] == [401] * 3
            for keys in ((FRONT, FRONT), (LISTED, FRONT), (UNKNOWN, LISTED)):
                assert await scene.status(path, None, headers=[("authorization", key) for key in keys]) == 400
        assert scene.questions() == []


@pytest.mark.parametrize("word", ["Bearer ", "bearer  ", "BEARER "])
async def test_a_token_behind_bearer(word: str) -> None:
    """Where a key may stand behind `Bearer`, the token alone is asked about; elsewhere this is a wrong key, and no token."""
    async with token_scene() as scene:
        assert await scene.status("/proxy", word + FRONT) == 401 and scene.questions() == []
        for path, token in (("/api/frontend", FRONT_A), ("/api/client/features", BACK_B)):
            for _ in range(2):
                assert await scene.status(path, word + token) == 200
            assert await scene.status(path, token) == 200
        assert scene.questions() == [[FRONT_A], [BACK_B]]
        assert await scene.status("/proxy", word + FRONT_A) == 401
        assert await scene.status("/proxy", FRONT_A) == 200


async def test_before_the_first_configuration() -> None:
    """Every caller gets 503, and nothing is asked."""
    with fake_upstream(b"no document") as upstream:
        upstream.tokens = dict(TOKENS)
        async with token_proxy(upstream, ready=False) as scene:
            await until(lambda: upstream.requests)
            assert [await scene.status("/proxy", token) for token in (FRONT, UNKNOWN, LISTED, None)] == [503] * 4
            assert scene.questions() == []


# ---- rates


async def test_the_rate_of_an_address() -> None:
    """Requests with unknown tokens count for their address like others, each once. Beyond the rate nothing is asked."""
    async with token_scene(rate_limit_address=3) as scene:
        assert [await scene.status("/proxy", f"{UNKNOWN}-{number}") for number in range(5)] == [401] * 3 + [429] * 2
        assert len(scene.questions()) == 3
        assert [await scene.status("/proxy", FRONT, peer="198.51.100.1") for _ in range(4)] == [200] * 3 + [429]
        assert len(scene.questions()) == 4
        await scene.clock.advance(1)
        assert await scene.status("/proxy", FRONT) == 200


async def test_the_rate_of_a_token() -> None:
    """Once it is known, a token has its own rate, which begins with its first request."""
    async with token_scene(rate_limit_key=3) as scene:
        assert [await scene.status("/proxy", FRONT) for _ in range(4)] == [200] * 3 + [429]
        assert [await scene.status("/proxy", FRONT_A) for _ in range(4)] == [200] * 3 + [429]
        assert [await scene.status("/proxy", UNKNOWN) for _ in range(5)] == [401] * 5


# ---- secrets


async def test_tokens_appear_nowhere() -> None:
    """No line of the log, no metric and no error has a part of a token, in any outcome."""
    pages: list[httpx.Response] = []
    async with token_scene(log_level="debug", access_log=True) as scene:
        for path in ("/proxy", "/api/frontend", "/api/client/features", "/proxy/client/features", "/nowhere"):
            for token in (*TOKENS, UNKNOWN, f"Bearer {FRONT}", f"{UNKNOWN} x"):
                pages.append(await scene.ask(path, token))
        fail(scene.upstream, 500, UNKNOWN.encode())
        pages += [await scene.ask("/proxy", f"{UNKNOWN}-{number}") for number in range(3)]
        pages.append(await scene.ask("/edge/validate", None, "POST", json={"tokens": [f"{UNKNOWN}-9"]}))
        assert scene.upstream.tokens is not None
        scene.upstream.tokens.clear()
        scene.upstream.replies.clear()
        await scene.clock.advance(2 * 3600)
        await until(lambda: len(scene.questions()) > 5)
        pages.append(await scene.ask("/proxy/internal-backstage/prometheus", None))
        assert "flagsvc_tokens_known" in pages[-1].text
        assert "request" in scene.log and "tokens could not be looked up" in scene.log
        assert "hidden" not in scene.log
    for page in pages:
        assert "hidden" not in page.text + str(page.headers), page.text


async def test_the_access_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that waited for its token has one line, with its status and the time that it took."""
    async with token_scene(access_log=True, use_json_logger=True, token_lookup_rate=1) as scene:
        for module in (contract, service):
            monkeypatch.setattr(module, "monotonic", scene.clock.monotonic)
        await scene.clock.advance(5)
        assert await scene.status("/proxy", UNKNOWN) == 401
        asking = asyncio.ensure_future(scene.status("/proxy", FRONT))
        await turns()
        await scene.clock.advance(2)
        assert await asking == 200
        first, second = [line for line in scene.log.splitlines() if '"message": "request"' in line]
        assert '"status": 401' in first and '"status": 200' in second
        assert 1000 <= json.loads(second)["milliseconds"] <= 2000


async def test_counts_of_requests() -> None:
    """A request that waits for its token is counted once, under the status that its caller gets."""
    async with token_scene() as scene:
        assert [await scene.status("/proxy", token) for token in (FRONT, FRONT_A, UNKNOWN, DEV)] == [200, 200, 401, 401]
        assert await scene.status("/api/client/features", FRONT) == 403
        assert await answered(scene) == {("/proxy", "200"): 2, ("/proxy", "401"): 2, ("/api/client/features", "403"): 1}


async def answered(scene: TokenScene) -> dict[tuple[str, str], int]:
    """Return how many requests the metrics have counted, by route and status."""
    page = (await scene.ask("/proxy/internal-backstage/prometheus", None)).text
    found = {}
    for line in page.splitlines():
        if line.startswith('flagsvc_http_requests_total{method="GET"') and "prometheus" not in line:
            route, status = (line.split(f'{name}="')[1].split('"')[0] for name in ("route", "status"))
            found[route, status] = int(float(line.split()[-1]))
    return found
