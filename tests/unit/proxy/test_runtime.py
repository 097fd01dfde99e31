"""The parts of a proxy, how they stop, and what a new event loop inherits."""

from __future__ import annotations

import asyncio
import json
import threading
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from flagsvc.http.metrics import measure
from flagsvc.proxy.api.metrics import KEPT, divided
from flagsvc.proxy.application import ProxyRuntime
from flagsvc.proxy.configuration import State
from flagsvc.proxy.configuration.stores import FileStore
from flagsvc.proxy.generations import feeds as module
from flagsvc.proxy.generations.setup import make_setup, next_setup
from flagsvc.testing import RecordingLog
from support.apps_options import options as usual
from support.environments import only

options = partial(usual, log_level="fatal")


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A document with one toggle, in a file."""
    path = tmp_path / "document.json"
    path.write_text(json.dumps({"features": [{"name": "first", "enabled": True, "strategies": [{"name": "default"}]}]}))
    return path


def warm(document: Path, **given: Any) -> ProxyRuntime:
    """A world that has read its file and stopped."""
    made = ProxyRuntime(make_setup(options(flagsvc_url=document.as_uri(), **given)))

    async def main() -> None:
        made.generations.start()
        async with asyncio.timeout(20):
            await only(made).holder.wait_ready()
        await made.generations.stop()

    asyncio.run(main())
    return made


def test_a_new_world_inherits(document: Path) -> None:
    """A world made after another world serves the same configuration, which is as fresh, and has the counts that were not sent."""
    old, same = warm(document), options(flagsvc_url=document.as_uri())
    only(old).counters.count("first", True)
    new = ProxyRuntime(make_setup(same), old)
    before, after = only(old).holder, only(new).holder
    assert after.is_ready and after.current is before.current
    assert before.checked_at is not None and after.is_confirmed
    assert (after.checked_at, after.last_fetch_ms) == (before.checked_at, before.last_fetch_ms)
    bucket = only(new).counters.drain()
    assert bucket is not None and bucket.toggles["first"].yes == 1
    assert only(ProxyRuntime(make_setup(same), new)).counters.drain() is None


def test_nothing_is_inherited_from_another_upstream(document: Path) -> None:
    """New keys would open its flags, and its counts would go to the wrong upstream."""
    old = warm(document)
    only(old).counters.count("first", True)
    new = ProxyRuntime(make_setup(options()), old)
    assert not only(new).holder.is_ready and only(new).counters.drain() is None


def test_every_loop_is_counted(document: Path) -> None:
    """What faces the upstream tells how often it failed, and the metrics have it; a file has no one to report to."""
    made = only(ProxyRuntime(make_setup(options())))
    assert made.restarts() == {"polling": 0, "streaming": 0, "usage": 0}
    setup = make_setup(options(flagsvc_url=document.as_uri()))
    setup.loops["reload"] = Mock(restarts=3)
    alone = ProxyRuntime(setup)
    assert only(alone).restarts() == {"polling": 0}
    restarts = next(row for row in KEPT if row.name == "flagsvc_loop_restarts")
    [measured] = measure(divided([restarts], alone.generations.sources), alone.generations.sources)
    assert measured.values == {("polling",): 0, ("reload",): 3}


@pytest.mark.parametrize("token", ["shop:production.new", "shop:production.old"])
def test_another_token_of_the_same_scope(token: str) -> None:
    """The upstream side uses it at once, also for usage metrics: the counts belong to its environment."""
    made = ProxyRuntime(make_setup(options(flagsvc_api_token="shop:production.old")))
    feed = only(made)
    assert feed.upstream is not None
    before = feed.upstream._headers
    made.generations.use(next_setup(made.generations.setup, options(flagsvc_api_token=token)))
    assert only(made) is feed and (feed.upstream._headers != before) is token.endswith("new")


WITHOUT_A_STREAM: dict[str, dict[str, Any]] = {
    "a file has no stream": {"flagsvc_url": "file:///flags.json"},
    "GitLab has no stream": {
        "flagsvc_url": "https://gitlab.example/api/v4/feature_flags/unleash/42",
        "flagsvc_instance_id": "x",
        "environment": "production",
    },
    "refreshInterval is 0": {"refresh_interval": 0, "upstream_mode": "streaming"},
    "upstreamMode is polling": {"upstream_mode": "polling"},
}


@pytest.mark.parametrize("why", WITHOUT_A_STREAM)
def test_who_is_never_asked_for_a_stream(why: str) -> None:
    """There is no follower, and the status page says why."""
    feed = only(ProxyRuntime(make_setup(options(**WITHOUT_A_STREAM[why]))))
    assert (feed.follower, feed.holder.stream.why, "streaming" in feed.restarts()) == (None, why, False)


def test_a_new_limit_of_staleness_is_kept_beside_a_stream() -> None:
    """It needs no other upstream side."""
    made = ProxyRuntime(make_setup(options(max_staleness=60)))
    feed = only(made)
    assert feed.follower is not None and feed.follower._calm_s == 30
    made.generations.use(next_setup(made.generations.setup, options(max_staleness=20)))
    assert only(made) is feed and feed.follower._calm_s == 10


def test_what_counts_as_known(document: Path) -> None:
    """Names are counted only once the configuration knows them."""
    made = only(ProxyRuntime(make_setup(options(flagsvc_url=document.as_uri()))))
    made.counters.count("first", True)
    assert made.counters.drain() is None
    made = only(warm(document))
    made.counters.count("first", True)
    made.counters.count("someone@example.com", True)
    bucket = made.counters.drain()
    assert bucket is not None and list(bucket.toggles) == ["first"]


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (State.FRESH, "1 toggle from {url}"),
        (State.STALE, "1 toggle from {url}"),
        (State.RESTORED, "1 toggle from storage, the upstream has not answered yet"),
        (State.BOOTSTRAPPED, "1 toggle from the bootstrap document, the upstream has not answered yet"),
    ],
)
def test_the_summary(document: Path, state: State, text: str) -> None:
    """The summary has the number of toggles and their origin."""
    made = only(warm(document))
    made.holder.set_state(state)
    assert made.summary() == text.format(url=document.as_uri())


def test_the_summary_repeats_no_secret(document: Path) -> None:
    """User and password of the upstream's address are not shown."""
    made = only(ProxyRuntime(make_setup(options(flagsvc_url="http://user:some-password@127.0.0.1:1/api"))))
    made.inherit(only(warm(document)))
    made.holder.set_state(State.FRESH)
    assert made.summary() == "1 toggle from http://127.0.0.1:1/api"


def test_early_refusals_in_the_access_log() -> None:
    """A refusal before there is a request has a line with the time since it was known, not since the machine started."""
    log = RecordingLog()
    ProxyRuntime(make_setup(options(logger=log, access_log=True))).service.early_refusal(400)
    [line] = [line for line in log.lines if line.event == "request"]
    assert (line.fields["method"], line.fields["route"], line.fields["status"]) == ("other", "unmatched", 400)
    milliseconds = line.fields["milliseconds"]
    assert isinstance(milliseconds, float) and 0 <= milliseconds < 1000


async def test_stopping_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that hangs or fails does not prevent the others from stopping. Connections are closed, and the failure is logged."""
    monkeypatch.setattr(module, "STOP_S", 0.05)
    log = RecordingLog()
    made = ProxyRuntime(make_setup(options(logger=log)))
    close = AsyncMock()
    monkeypatch.setattr(only(made).poller, "stop", asyncio.Event().wait)
    monkeypatch.setattr(only(made).reporter, "stop", AsyncMock(side_effect=RuntimeError("some-person")))
    monkeypatch.setattr(only(made).upstream, "aclose", close)

    await made.generations.stop()
    assert close.await_count == 1
    assert log.at("warn", "error") == ["stopping took too long and was cut short", "stopping failed"]
    assert "some-person" not in repr(log.lines)


async def test_a_disk_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at the folder holds up neither start nor stop."""
    hanging = threading.Event()
    monkeypatch.setattr(FileStore, "find_exposed_mode", lambda store: hanging.wait(20) and None)
    made = ProxyRuntime(make_setup(options(storage=tmp_path.as_uri())))
    made.generations.start()
    await made.generations.stop()
    assert not hanging.is_set()
    hanging.set()
