"""Environments that come and go while the process runs, and the wait for them."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.environments import Environments
from flagsvc.proxy.setup import make_setup
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import RecordingLog, turns
from support.aio import asynchronous
from support.changing_environments import Around, FakeEnvironment, left_over, running

# ---- start and end


def test_made_without_a_loop() -> None:
    """One is made for each setup, and nothing starts. A process with a single environment has one without a name."""
    around = Around({"a": {}, "b": {}})
    assert around.names == {"a": 0, "b": 1} and [each.calls for each in around.made] == [[], []]
    assert list(around.environments) == around.environments.every == around.made
    single = make_setup(ProxyOptions(flagsvc_url="file:///f.json", client_keys="k"))
    assert list(Environments(single, FakeEnvironment, list, RecordingLog()).current) == [""]


@asynchronous
async def test_all_start_and_stop() -> None:
    """All stop beside each other; one that fails to stop is logged without its text, and the others stop."""
    around = await running({"a": {}, "b": {}, "c": {}})
    around.made[0].error = RuntimeError("some-person")
    around.made[2].gate.clear()
    stopping = asyncio.ensure_future(around.environments.stop())
    await turns()
    assert [each.calls for each in around.made] == [["start", "stop", "stopped"]] * 2 + [["start", "stop"]]
    assert not stopping.done()
    around.made[2].gate.set()
    await stopping
    assert around.log.at("error") == ["stopping failed"] and "some-person" not in repr(around.log.lines)
    assert around.seen == []


# ---- adding and removing


@asynchronous
async def test_adding_and_removing() -> None:
    """A new environment starts and is current immediately, a removed one stops in the background. The others are not touched."""
    around = await running({"a": {}, "b": {}})
    around.renew({"a": {}, "c": {}})
    assert around.names == {"a": 0, "c": 2}
    assert around.seen == [{"a": around.made[0], "c": around.made[2]}]
    await turns()
    assert [each.calls for each in around.made] == [["start"], ["start", "stop", "stopped"], ["start"]]


@asynchronous
async def test_the_same_options() -> None:
    """Nothing is renewed or replaced, and the change is told all the same."""
    around = await running({"a": {}, "b": {}})
    around.renew({"a": {}, "b": {}})
    await turns()
    assert [each.calls for each in around.made] == [["start"]] * 2 and len(around.seen) == 1


def test_changes_before_the_start() -> None:
    """Environments come, go and change without a loop, and nothing starts or stops."""
    around = Around({"a": {}, "b": {}, "c": {}})
    around.renew({"a": {"name_prefix": "x"}, "b": {"client_keys": "other"}, "d": {}})
    assert around.names == {"a": 3, "b": 1, "d": 4} and around.environments.coming == {}
    assert [each.calls for each in around.made] == [[], ["renew"], [], [], []]
    assert around.made[3].setup.options.name_prefix == "x"


@asynchronous
async def test_the_end_waits_for_a_removed_one() -> None:
    """Its last usage metrics are sent before the process ends."""
    around = await running({"a": {}, "b": {}})
    around.made[1].gate.clear()
    around.renew({"a": {}})
    stopping = asyncio.ensure_future(around.environments.stop())
    await turns()
    assert around.made[1].calls == ["start", "stop"] and not stopping.done()
    around.made[1].gate.set()
    await stopping
    assert around.made[1].calls == ["start", "stop", "stopped"]


@asynchronous
async def test_a_removed_one_that_fails_to_stop() -> None:
    """That is logged, and nothing else happens."""
    around = await running({"a": {}, "b": {}})
    around.made[1].error = RuntimeError("some-person")
    around.renew({"a": {}})
    await turns()
    assert around.log.at("error") == ["stopping failed"] and "some-person" not in repr(around.log.lines)


@asynchronous
async def test_an_added_one_is_announced() -> None:
    """When it is ready; those of the start are not, and neither is one that is removed before."""
    around = await running({"a": {}})
    around.renew({"a": {}, "b": {}, "c": {}})
    await turns()
    assert around.log.lines == []
    around.made[1].get_ready()
    await turns()
    assert [(line.level, line.event, line.fields) for line in around.log.lines] == [
        ("info", "flagsvc ready", {"environment": "b"})
    ]
    around.renew({"a": {}, "b": {}})
    await turns()
    around.made[2].get_ready()
    await turns()
    assert len(around.log.lines) == 1 and left_over() == []


@asynchronous
async def test_first_configurations_are_told() -> None:
    """Of those of the start, and of those that are added: tokens may open them now. A further configuration is not told."""
    around = Around({"a": {}, "b": {}})
    around.environments.start()
    for number in (0, 1):
        around.made[number].get_ready()
        await turns()
        assert around.readied == number + 1
    around.renew({"a": {}, "b": {}, "c": {}})
    await turns()
    assert around.readied == 2
    around.made[2].get_ready()
    around.made[0].get_ready()
    await turns()
    assert around.readied == 3 and left_over() == []


# ---- waiting


@asynchronous
async def test_waiting_for_all() -> None:
    """Each must have a configuration or have failed to get one, and at least one must have it."""
    around = Around({"a": {}, "b": {}})
    around.environments.start()
    waiting = asyncio.ensure_future(around.environments.wait_ready())
    await turns()
    around.made[0].get_ready()
    await turns()
    assert around.environments.is_ready and not waiting.done(), "b has not been tried"
    around.made[1].fail()
    await waiting
    await around.environments.stop()
    assert left_over() == []


@asynchronous
async def test_waiting_for_one_at_least() -> None:
    """While all have failed, the first one that gets a configuration ends the wait."""
    around = Around({"a": {}, "b": {}})
    waiting = asyncio.ensure_future(around.environments.wait_ready())
    for each in around.made:
        each.fail()
    await turns()
    assert not waiting.done() and not around.environments.is_ready
    around.made[1].get_ready()
    await waiting


@pytest.mark.parametrize("change", ["remove", "replace", "add"])
@asynchronous
async def test_changes_during_the_wait(change: str) -> None:
    """What is removed is not waited for, and what is added is; a replacement that gets ready counts."""
    around = Around({"a": {}, "b": {}})
    around.environments.start()
    around.made[1].fail()
    waiting = asyncio.ensure_future(around.environments.wait_ready())
    await turns()
    if change == "remove":
        around.made[1].get_ready()
        around.renew({"b": {}})
    elif change == "replace":
        around.made[0].fail()
        around.renew({"a": {"refresh_interval": 1}, "b": {}})
        await turns()
        assert not waiting.done()
        around.made[2].get_ready()
    else:
        around.made[0].get_ready()
        around.renew({"a": {}, "b": {}, "c": {}})
        await turns()
        assert not waiting.done()
        around.made[2].fail()
    await waiting


@asynchronous
async def test_a_wait_that_is_given_up() -> None:
    """It leaves no task behind."""
    around = Around({"a": {}})
    waiting = asyncio.ensure_future(around.environments.wait_ready())
    await turns()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert left_over() == []
