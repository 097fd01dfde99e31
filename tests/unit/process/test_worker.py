"""The environments of a worker: as the parent tells them, with their keys and configurations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from flagsvc.core.errors import ExtensionError
from flagsvc.engine.compile import compile_document
from flagsvc.http.messages import Response
from flagsvc.process.worker import ToldGenerations
from flagsvc.process.worker_start import portable_options
from flagsvc.proxy.configuration import ConfigurationDocument
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.proxy.workers.link import ParentLink
from flagsvc.proxy.workers.messages import EnvironmentOptions, Welcome
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import RecordingLog, turns
from support.evaluating import feature
from unit.proxy.generation_scene import ask


def told(number: int, name: str, *, ready: bool = False, **given: Any) -> EnvironmentOptions:
    """Return what the parent tells of an environment."""
    made = ProxyOptions(**{"flagsvc_url": "file:///f.json", "client_keys": f"key-{name}", "log_level": "fatal", **given})
    return EnvironmentOptions(number, name, portable_options(made), ready)


class Beginning:
    """The environments of a worker that has got its first message."""

    def __init__(self, *first: EnvironmentOptions, former: Sequence[EnvironmentOptions] = ()) -> None:
        self.log = RecordingLog()
        setup = make_setup(ProxyOptions(**first[0].options), is_worker=True)
        self.link: ParentLink = ParentLink(worker=0, log=self.log, clock=setup.clock)
        self.told = ToldGenerations(setup, self.link, Welcome(0, list(first), list(former)))
        self.generations = self.told.generations

    def use(self, *environments: EnvironmentOptions) -> None:
        """Serve these environments."""
        self.told.use(environments)

    def serve(self, number: int, *toggles: str) -> None:
        feed = next(each for each in self.generations.feeds if each.number == number)
        compiled = compile_document({"features": [feature(name) for name in toggles]}, feed.setup.compile_options)
        feed.holder.replace(compiled.snapshot, ConfigurationDocument(b"{}", '"t"'), 0)
        feed.holder.note_check(1.0)

    def ask(self, key: str) -> tuple[int, list[str]]:
        """Return the status for a key, and the toggles that it sees."""
        return outcome(ask(self.generations.entrance, key=key))


def outcome(answer: Response) -> tuple[int, list[str]]:
    """Return the status of an answer, and its toggles."""
    found = json.loads(answer.body)["toggles"] if answer.status == 200 else []
    return answer.status, [each["name"] for each in found]


def numbers(worker: Beginning) -> list[int]:
    """Return the numbers of the feeds that there are."""
    return sorted(each.number for each in worker.generations.feeds)


def test_a_single_environment() -> None:
    """It has no name, and no router; new keys replace its keys."""
    worker = Beginning(told(0, ""))
    assert worker.generations.current.router is None
    worker.serve(0, "one")
    assert worker.ask("key-") == (200, ["one"])
    worker.use(told(0, "", client_keys="new"))
    assert [worker.ask(key) for key in ("key-", "new")] == [(401, []), (200, ["one"])]


def test_environments_that_come_and_go() -> None:
    """What is not told any more is forgotten, with its keys."""
    worker = Beginning(told(0, "a"), told(1, "b"))
    worker.use(told(1, "b"), told(2, "c"))
    worker.serve(1, "of-b")
    worker.serve(2, "of-c")
    assert [worker.ask(key) for key in ("key-a", "key-b", "key-c")] == [(401, []), (200, ["of-b"]), (200, ["of-c"])]
    assert numbers(worker) == [1, 2]


async def late() -> Beginning:
    """Return a running worker that is told other options of an environment, and has no configuration with them yet."""
    worker = Beginning(told(0, "a", client_keys="both,ended"), told(1, "b"))
    worker.told.start()
    worker.serve(0, "former")
    worker.serve(1, "of-b")
    await turns()
    worker.use(told(2, "a", client_keys="both,new", name_prefix="x."), told(1, "b"))
    return worker


async def test_an_environment_that_takes_the_place_of_another() -> None:
    """It answers when its configuration has come, and not before. Until then only keys of both open the environment before."""
    worker = await late()
    assert [worker.ask(key) for key in ("both", "new", "ended")] == [(200, ["former"]), (503, []), (401, [])]
    await turns()
    assert worker.ask("both") == (200, ["former"]) and numbers(worker) == [0, 1, 2]
    worker.serve(2, "x.present")
    await turns()
    assert [worker.ask(key) for key in ("both", "new", "ended")] == [*[(200, ["x.present"])] * 2, (401, [])]
    assert worker.ask("key-b") == (200, ["of-b"]) and numbers(worker) == [1, 2]
    assert worker.generations.current.environments["a"].setup.compile_options.name_prefix == "x."
    assert worker.log.lines == [], "the parent logs that"


async def test_a_worker_that_starts_while_an_environment_waits() -> None:
    """It serves what the parent serves meanwhile: the environment before, with the keys that open it now."""
    wanted = told(2, "a", client_keys="both,new", name_prefix="x.")
    worker = Beginning(wanted, told(1, "b"), former=[told(0, "a", client_keys="both", ready=True)])
    worker.told.start()
    waiting = asyncio.ensure_future(worker.told.wait_configured())
    await turns()
    assert not waiting.done()
    worker.serve(0, "former")
    await waiting
    assert [worker.ask(key) for key in ("both", "new")] == [(200, ["former"]), (503, [])]
    worker.serve(2, "x.present")
    await turns()
    assert [worker.ask(key) for key in ("both", "new")] == [(200, ["x.present"])] * 2 and numbers(worker) == [1, 2]


def test_a_new_environment_does_not_change_the_readiness() -> None:
    """Also if no probe has asked for it before: each environment was tried once by then."""
    worker = Beginning(told(0, "a"), told(1, "b"))
    worker.serve(0, "one")
    assert worker.generations.readiness.find_objection() == "cold"
    worker.serve(1, "two")
    worker.use(told(0, "a"), told(1, "b"), told(2, "c"))
    assert worker.generations.readiness.find_objection() == ""


def test_code_that_cannot_be_used_any_more() -> None:
    """The link ends the worker then."""
    worker = Beginning(told(0, "a"))
    with pytest.raises(ExtensionError, match="does not exist"):
        worker.use(told(0, "a"), told(1, "b", custom_strategies="none.py"))


async def test_a_start_waits_for_configurations_that_follow() -> None:
    """It waits for all configurations of the parent, and for no other."""
    first = [told(0, "a", ready=True), told(1, "b"), told(2, "c", ready=True)]
    worker = Beginning(*first)
    worker.told.start()
    waiting = asyncio.ensure_future(worker.told.wait_configured())
    await turns()
    worker.serve(0, "of-a")
    await turns()
    assert not waiting.done()
    worker.serve(2, "of-c")
    await waiting


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("gone", [0, 1])
async def test_an_environment_that_goes_during_the_start(gone: int, early: bool) -> None:
    """The start does not wait for its configuration, which never comes. It waits for the others."""
    first = [told(0, "a", ready=True), told(1, "b", ready=True)]
    worker = Beginning(*first)
    worker.told.start()
    waiting = asyncio.ensure_future(worker.told.wait_configured())
    if not early:
        await turns()
    worker.use(first[1 - gone])
    await turns()
    assert not waiting.done()
    worker.serve(1 - gone, "left")
    await waiting
