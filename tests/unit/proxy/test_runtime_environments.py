"""A running proxy with several environments on files: what they share, what a new event loop inherits, and how they change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from flagsvc import ConfigurationError, ExtensionError, create_app
from flagsvc.proxy.application import ProxyRuntime
from flagsvc.proxy.generations.feeds import UpstreamSync, make_storage_key, make_usage_key
from flagsvc.proxy.generations.setup import make_setup, next_setup
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import RecordingLog
from support.aio import until
from support.environments import feeds, only
from support.polling import document


def write(folder: Path, name: str, *toggles: str) -> str:
    """Write a document with these toggles, and return its URL."""
    path = folder / f"{name}.json"
    path.write_bytes(document(*toggles))
    return path.as_uri()


def options(folder: Path, given: Mapping[str, Mapping[str, object]], **more: Any) -> ProxyOptions:
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
    made = runtime(options(tmp_path, given))
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
    made = runtime(options(tmp_path, {"a": upstream, "b": upstream}, storage=tmp_path.as_uri()))
    alone = only(runtime(options(tmp_path, {}, client_keys="k", storage=tmp_path.as_uri(), **upstream)))
    every = [alone, *feeds(made).values()]
    keys = [each.storage_key for each in every]
    assert len(set(keys)) == 3 and keys[0] == make_storage_key(alone.setup.options)
    usage = [make_usage_key(each.setup.options, each.setup.name) for each in every]
    assert len(set(usage)) == 3 and usage[0] == make_usage_key(alone.setup.options)


async def test_a_new_loop_inherits_by_name(tmp_path: Path) -> None:
    """Each environment has the configuration and the unsent counts of the former one of its name."""
    former = runtime(options(tmp_path, {"a": {}, "b": {}}))
    former.generations.start()
    await former.generations.wait_ready()
    await former.generations.stop()
    for name, feed in feeds(former).items():
        feed.counters.count(f"toggle-{name}", True)
    made = runtime(options(tmp_path, {"b": {}, "c": {}}), former)
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
    made = runtime(options(tmp_path, given, storage=folder.as_uri(), logger=log, log_level="warn"))
    made.generations.start()
    await asyncio.gather(*(each.folder_check for each in feeds(made).values() if each.folder_check is not None))
    await made.generations.stop()
    lines = [line for line in log.lines if "open to others" in line.event]
    told = {"environment": "a", "folder": str(folder), "mode": f"{mode:04o}", "remedy": f"chmod 0700 {folder}"}
    assert [(line.level, line.fields) for line in lines] == [("warn", told)] * said


async def test_options_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application refuses wrong custom code and an environment that cannot be made, and goes on with its keys and options."""
    app = create_app(options(tmp_path, {"a": {}}))
    async with app:
        await app.ready(20)
        before = app.options
        given: dict[str, dict[str, object]] = {"a": {"client_keys": "new"}, "b": {}}
        with pytest.raises(ExtensionError, match="does not exist"):
            app.renew(options(tmp_path, given | {"b": {"custom_strategies": "none.py"}}))
        monkeypatch.setattr("flagsvc.proxy.generations.feeds.make_storage", Mock(side_effect=ConfigurationError(["no storage"])))
        with pytest.raises(ConfigurationError, match="no storage"):
            app.renew(options(tmp_path, given))
        assert list(feeds(app)) == ["a"] and app.options is before is app._runtime.generations.setup.options
        assert [accepts(app._runtime, "a", key) for key in ("key-a", "new")] == [True, False]
        monkeypatch.undo()
        app.renew(options(tmp_path, given))
        assert list(feeds(app)) == ["a", "b"] and accepts(app._runtime, "a", "new")
