"""The whole proxy and an upstream that fails, over sockets (behaviour: Failures; Documents that are not accepted).

What a single session makes of every kind of answer is in `tests/integration/test_upstream_wire*.py`.

The age of the configuration, as callers see it (decision 0013).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flagsvc import ProxyOptions
from support.loopback import Answer, reply, then_close
from support.scene import Scene, document, scene, toggle
from support.wirekit import TOKEN, Opener

FULL = document(toggle("on"), toggle("off", enabled=False))
INTERVAL_S = 5.0


def polling(around: Scene, **more: str) -> ProxyOptions:
    """Return options with which a proxy only polls."""
    return around.options(metrics_interval=0, **more)


def told(around: Scene) -> list[str]:
    """Return the lines about the outage: that it began, and that it ended."""
    return [line for line in around.log if "be fetched" in line or "is fetched" in line]


def etags(around: Scene) -> list[str | None]:
    """Return the ETag that each poll was sent with."""
    return [request.headers.get("if-none-match") for request in around.received("features")]


CUT_OFF = json.dumps(document(toggle("worse"))).encode()
FAILURES: dict[str, Answer] = {
    "500": reply(500, etag='"bad"'),
    "not JSON": reply(200, b'{"version": 2, "features": [', etag='"bad"'),
    "cut off": then_close(reply(200, CUT_OFF, content_length=str(len(CUT_OFF) + 10), etag='"bad"')),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_a_failure_backs_off_and_changes_nothing(failure: Answer, tmp_path: Path) -> None:
    """The last good configuration is served and its ETag sent; the pauses grow up to a maximum, until the first success."""
    async with scene(tmp_path) as around:
        around.served = FULL
        async with around.proxy(polling(around, log_level="info")) as proxy:
            assert await around.next_poll() == INTERVAL_S
            good = etags(around)[-1]
            around.replies["features"] = failure
            pauses = [await around.next_poll() for _ in range(7)]
            assert await proxy.names() == ["on"]
            assert all(INTERVAL_S <= pause <= INTERVAL_S * 2**n for n, pause in enumerate(pauses, 1))
            assert all(25 <= pause <= 50 for pause in pauses[4:])
            assert len(set(pauses[4:])) == 3, "pauses are jittered"
            assert len(told(around)) == 1
            around.replies.clear()
            assert await around.next_poll() == INTERVAL_S
            assert await proxy.names() == ["on"]
            assert len(told(around)) == 2 and "warn  the configuration is fetched again" in told(around)[1]
    assert set(etags(around)[1:]) == {good}


async def test_a_refused_token_is_told_once_per_change_and_tried_for_ever(tmp_path: Path) -> None:
    """The polls are slow from the first refusal on."""
    async with scene(tmp_path) as around, around.proxy(polling(around)) as proxy:
        for status in (401, 401, 403, 403, 403, 401, *(401,) * 20):
            around.replies["features"] = reply(status)
            assert 25 <= await around.next_poll() <= 50
        assert [line.split()[1] for line in around.log] == ["error"] * 3
        assert await proxy.names() == ["on"]
        around.replies.clear()
        around.served = document(toggle("new"))
        assert await around.next_poll() == INTERVAL_S
        assert await proxy.names() == ["new"]
        assert [line.split()[1] for line in around.log[3:]] == ["warn"]


# ---- documents


AGE = "x-config-age"


def test_the_age_of_the_configuration(opened: Opener) -> None:
    """Every answer has it in whole seconds: a list, a 304, a refusal, a document."""
    wire = opened(age_header=AGE)
    assert wire.get("/proxy").header(AGE) is None
    wire.holder.confirm(wire.clock)
    assert wire.get("/proxy").header(AGE) == "0"
    wire.pass_s(65.7)
    first = wire.get("/proxy")
    assert first.header(AGE) == "65"
    assert wire.get("/proxy", {"if-none-match": first.header("etag") or ""}).fields.count((AGE, "65")) == 1
    assert wire.get("/proxy", key="wrong").header(AGE) == "65"
    assert wire.post("/proxy", {"toggles": ["on"]}).header(AGE) == "65"
    assert wire.get("/proxy/client/features", key=TOKEN).header(AGE) == "65"
    wire.pass_s(1)
    assert wire.ask("HEAD", "/proxy").header(AGE) == "66"
    wire.holder.confirm(wire.clock)
    assert wire.get("/proxy").header(AGE) == "0"


def test_an_answer_from_the_cache_has_the_age_of_now(opened: Opener) -> None:
    """A cached answer is sent with its present age."""
    wire = opened(age_header=AGE)
    wire.holder.confirm(wire.clock)
    for _ in range(4):
        assert wire.get("/proxy").header(AGE) is not None
        wire.pass_s(1)
    assert wire.service.sources.cache.hits > 0
    assert wire.get("/proxy").header(AGE) == "4"
