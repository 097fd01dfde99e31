"""The application's life by hand, and the parts of a proxy: how they start and stop, and what a new event loop inherits.

With several environments on files: what they share, and how they change.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

import flagsvc
from flagsvc import ConfigurationError, ExtensionError, ProxyApp, ProxyOptions, create_app
from flagsvc.http.metrics import measure
from flagsvc.proxy.api.metrics import KEPT, divided
from flagsvc.proxy.application import ProxyRuntime
from flagsvc.proxy.configuration import State
from flagsvc.proxy.configuration.stores import FileStore
from flagsvc.proxy.generations import feeds as module
from flagsvc.proxy.generations.feeds import UpstreamSync, make_storage_key, make_usage_key
from flagsvc.proxy.generations.setup import make_setup, next_setup
from flagsvc.testing import RecordingLog
from support.aio import until
from support.apps_options import options as usual
from support.environments import feeds, only
from support.polling import document as document_of


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A document with one toggle, in a file."""
    path = tmp_path / "document.json"
    path.write_bytes(document_of("first"))
    return path


@pytest.fixture
def app(document: Path) -> ProxyApp:
    """A proxy of a file with one toggle."""
    return create_app(ProxyOptions(flagsvc_url=document.as_uri(), client_keys="key", log_level="fatal"))


async def test_one_life(app: ProxyApp) -> None:
    """Starting twice is starting once; after the end nothing is left; it can be started again."""
    before = asyncio.all_tasks()
    await app.aclose()
    assert asyncio.all_tasks() == before
    await app.start()
    started = asyncio.all_tasks()
    await app.start()
    assert asyncio.all_tasks() == started > before
    await app.ready(20)
    await app.aclose()
    await app.aclose()
    assert asyncio.all_tasks() == before
    async with app:
        await app.ready(20)
        assert asyncio.all_tasks() > before
    assert asyncio.all_tasks() == before
    [notice] = app.greeting()
    assert notice.event.startswith("flagsvc ready: 1 toggle from file:")


async def test_ready_has_a_time_limit(tmp_path: Path) -> None:
    """Without a configuration `ready` raises after the given seconds."""
    missing = create_app(ProxyOptions(flagsvc_url=(tmp_path / "none").as_uri(), client_keys="key", log_level="fatal"))
    async with missing:
        with pytest.raises(TimeoutError):
            await missing.ready(0.05)


def test_other_keys(app: ProxyApp) -> None:
    """They are used at once, before the start also with other flags. What holds for the whole process stays."""

    def opened(**given: str) -> str:
        app.renew(dataclasses.replace(app.options, **given))  # type: ignore[arg-type]
        [environment] = app._runtime.generations
        keys = environment.service.keys.client
        return " ".join(key for key in ("key", "new", "newer") if keys.contains(key.encode()))

    assert opened(client_keys="key,new") == "key new"
    assert opened(client_keys="newer,new", name_prefix="x") == "new newer" and app.options.name_prefix == "x"
    assert opened(client_keys="key,newer", port="1") == "key newer" and app.options.port == 3000


def test_closing_in_another_loop(app: ProxyApp) -> None:
    """What another loop runs is not this loop's to stop."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.ready(20))
    asyncio.run(app.aclose())
    assert len(asyncio.all_tasks(loop)) > 0
    loop.run_until_complete(app.aclose())
    assert len(asyncio.all_tasks(loop)) == 0
    loop.close()


def test_moving_to_another_loop_ends_it_in_the_one_before(app: ProxyApp) -> None:
    """However often two loops take turns, it works in at most one loop; one that is closed is no obstacle."""
    loops = [asyncio.new_event_loop() for _ in range(2)]
    for loop in loops * 3:
        loop.run_until_complete(app.ready(20))
    loops[0].run_until_complete(asyncio.wait(asyncio.all_tasks(loops[0]), timeout=20))
    assert len(asyncio.all_tasks(loops[0])) == 0
    assert len(asyncio.all_tasks(loops[1])) > 0
    loops[1].run_until_complete(app.aclose())
    for loop in loops:
        loop.close()
    asyncio.run(app.ready(20))


def test_extensions_are_checked_when_it_is_made() -> None:
    """`create_app` reports a file of strategies that cannot be used, before any request."""
    with pytest.raises(ExtensionError, match="does not exist"):
        create_app(ProxyOptions(flagsvc_url="file:///none", client_keys="key", custom_strategies="none.py"))


def test_exports() -> None:
    """Each name that the package promises can be had, and is in its home's table once.

    A name that is not exported is an AttributeError as of any module.
    """
    listed = sorted(name for names in flagsvc.HOMES.values() for name in names)
    assert sorted([*listed, "__version__"]) == sorted(flagsvc.__all__)
    for name in listed:
        assert getattr(flagsvc, name) is not None
    assert set(flagsvc.__all__) <= set(dir(flagsvc))
    with pytest.raises(AttributeError, match="module `flagsvc` has no attribute `Proxy`"):
        flagsvc.Proxy  # noqa: B018


options = partial(usual, log_level="fatal")


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


def write(folder: Path, name: str, *toggles: str) -> str:
    """Write a document with these toggles, and return its URL."""
    path = folder / f"{name}.json"
    path.write_bytes(document_of(*toggles))
    return path.as_uri()


def options_of(folder: Path, given: Mapping[str, Mapping[str, object]], **more: Any) -> ProxyOptions:
    """Return options of environments; each has a file with a toggle of its name, and a key, unless it is given others."""
    environments = {
        name: {"flagsvc_url": write(folder, name, f"toggle-{name}"), "client_keys": f"key-{name}", **each}
        for name, each in given.items()
    }
    return ProxyOptions(**{"log_level": "fatal", "environments": environments, **more})


def runtime(options: ProxyOptions, previous: ProxyRuntime | None = None) -> ProxyRuntime:
    return ProxyRuntime(make_setup(options), previous)


def renew(made: ProxyRuntime, options: ProxyOptions) -> None:
    made.generations.use(next_setup(made.generations.setup, options))


def accepts(made: ProxyRuntime, name: str, key: str) -> bool:
    return made.generations.current.environments[name].service.keys.client.contains(key.encode())


def toggles(environment: UpstreamSync) -> list[str]:
    return [] if environment.holder.current is None else list(environment.holder.current.names)


async def test_each_has_an_upstream_of_its_own(tmp_path: Path) -> None:
    """Each serves its toggles. The notices name them. An environment without a configuration has no notice."""
    given = {"a": {}, "b": {}, "none": {"flagsvc_url": (tmp_path / "missing.json").as_uri()}}
    made = runtime(options_of(tmp_path, given))
    made.generations.start()
    await made.generations.wait_ready()
    await until(lambda: feeds(made)["b"].is_ready and feeds(made)["a"].is_ready)
    assert [toggles(each) for each in feeds(made).values()] == [["toggle-a"], ["toggle-b"], []]
    assert [notice.event for notice in made.generations.greeting()] == [
        f"flagsvc ready: {name}: 1 toggle from {(tmp_path / name).as_uri()}.json" for name in "ab"
    ]
    assert made.generations.readiness.find_objection() == ""
    write(tmp_path, "b", "newer")
    made.generations.poll_now()
    await until(lambda: [toggles(each) for each in feeds(made).values()] == [["toggle-a"], ["newer"], []])
    await made.generations.stop()


def test_what_is_stored_is_stored_apart(tmp_path: Path) -> None:
    """Two environments with the same upstream and token have different keys; one without a name keeps its key."""
    upstream = {"flagsvc_url": "http://127.0.0.1:1/api", "flagsvc_api_token": "t"}
    made = runtime(options_of(tmp_path, {"a": upstream, "b": upstream}, storage=tmp_path.as_uri()))
    alone = only(runtime(options_of(tmp_path, {}, client_keys="k", storage=tmp_path.as_uri(), **upstream)))
    every = [alone, *feeds(made).values()]
    keys = [each.storage_key for each in every]
    assert len(set(keys)) == 3 and keys[0] == make_storage_key(alone.setup.options)
    usage = [make_usage_key(each.setup.options, each.setup.name) for each in every]
    assert len(set(usage)) == 3 and usage[0] == make_usage_key(alone.setup.options)


async def test_a_new_loop_inherits_by_name(tmp_path: Path) -> None:
    """Each environment has the configuration and the unsent counts of the former one of its name."""
    former = runtime(options_of(tmp_path, {"a": {}, "b": {}}))
    former.generations.start()
    await former.generations.wait_ready()
    await former.generations.stop()
    for name, feed in feeds(former).items():
        feed.counters.count(f"toggle-{name}", True)
    made = runtime(options_of(tmp_path, {"b": {}, "c": {}}), former)
    second, third = feeds(made).values()
    assert (toggles(second), toggles(third)) == (["toggle-b"], [])
    bucket = second.counters.drain()
    assert bucket is not None and list(bucket.toggles) == ["toggle-b"]
    assert third.counters.drain() is None
    assert made.generations.current.environments["b"].service.readiness.age_s is not None


@pytest.mark.parametrize(("mode", "said"), [(0o700, False), (0o777, True), (0o755, True)])
async def test_a_storage_folder_that_is_open_to_all(tmp_path: Path, mode: int, said: bool) -> None:
    """The warning names the problem and the remedy, once at the start: all environments share the folder."""
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(mode)
    log = RecordingLog()
    given = {name: {"flagsvc_url": "http://127.0.0.1:1/api", "flagsvc_api_token": "t"} for name in "abc"}
    made = runtime(options_of(tmp_path, given, storage=folder.as_uri(), logger=log, log_level="warn"))
    made.generations.start()
    await asyncio.gather(*(each.folder_check for each in feeds(made).values() if each.folder_check is not None))
    await made.generations.stop()
    lines = [line for line in log.lines if "open to others" in line.event]
    told = {"environment": "a", "folder": str(folder), "mode": f"{mode:04o}", "remedy": f"chmod 0700 {folder}"}
    assert [(line.level, line.fields) for line in lines] == [("warn", told)] * said


async def test_options_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application refuses wrong custom code and an environment that cannot be made, and goes on with its keys and options."""
    app = create_app(options_of(tmp_path, {"a": {}}))
    async with app:
        await app.ready(20)
        before = app.options
        given: dict[str, dict[str, object]] = {"a": {"client_keys": "new"}, "b": {}}
        with pytest.raises(ExtensionError, match="does not exist"):
            app.renew(options_of(tmp_path, given | {"b": {"custom_strategies": "none.py"}}))
        monkeypatch.setattr("flagsvc.proxy.generations.feeds.make_storage", Mock(side_effect=ConfigurationError(["no storage"])))
        with pytest.raises(ConfigurationError, match="no storage"):
            app.renew(options_of(tmp_path, given))
        assert list(feeds(app)) == ["a"] and app.options is before is app._runtime.generations.setup.options
        assert [accepts(app._runtime, "a", key) for key in ("key-a", "new")] == [True, False]
        monkeypatch.undo()
        app.renew(options_of(tmp_path, given))
        assert list(feeds(app)) == ["a", "b"] and accepts(app._runtime, "a", "new")
