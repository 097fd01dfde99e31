"""Environments that come, change and go as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.configuration.lifecycle import Event
from flagsvc.proxy.environments import Environments
from flagsvc.proxy.setup import ProxySetup, make_setup, renew_setup
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import RecordingLog, turns
from support.polling import snapshot_of

Given = Mapping[str, Mapping[str, object]]
"""Options by name of environment."""


class FakeEnvironment:
    """An environment that does what the test says. `calls` are the calls of its methods; a stop waits for `gate`."""

    def __init__(self, setup: ProxySetup) -> None:
        self.setup = setup
        self.holder = Holder()
        self.calls: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    def start(self) -> None:
        """Note it."""
        self.calls.append("start")

    async def stop(self) -> None:
        """Note it, wait, and fail if the test says so."""
        self.calls.append("stop")
        await self.gate.wait()
        self.calls.append("stopped")
        if self.error is not None:
            raise self.error

    def renew(self, setup: ProxySetup) -> None:
        """Note it."""
        self.setup = setup
        self.calls.append("renew")

    def poll_now(self) -> None:
        """Note it."""
        self.calls.append("poll")

    def get_ready(self) -> None:
        """Have a configuration."""
        self.holder.replace(snapshot_of(), ConfigurationDocument(b"{}", '"tag"'), 0)

    def fail(self) -> None:
        """Fail to get a configuration."""
        self.holder.record_check(Event.FAILED, 1)

    @property
    def keys(self) -> tuple[str, ...]:
        """Its client keys."""
        return self.setup.service_settings.client_keys

    @property
    def token(self) -> str:
        """The token for its upstream."""
        return self.setup.options.flagsvc_api_token


class Around:
    """Environments with everything around them. `made` has each that was made, `seen` what was current at each change, and
    `replaced` those whose place another one took. `readied` counts those that were told to have a first configuration.

    Those named in `failing` cannot be made, for this reason.
    """

    def __init__(self, given: Given) -> None:
        self.log = RecordingLog()
        self.made: list[FakeEnvironment] = []
        self.failing: dict[str, Exception] = {}
        self.seen: list[dict[str, FakeEnvironment]] = []
        self.replaced: list[FakeEnvironment] = []
        self.readied = 0
        self.setup = make_setup(options(given, logger=self.log))
        self.environments: Environments[FakeEnvironment] = Environments(
            self.setup, self.make, self.note, self.log, self.replaced.append, self.note_ready
        )

    def make(self, setup: ProxySetup) -> FakeEnvironment:
        """Make an environment, or fail."""
        if setup.name in self.failing:
            raise self.failing[setup.name]
        self.made.append(FakeEnvironment(setup))
        return self.made[-1]

    def note(self) -> None:
        """Note what is current."""
        self.seen.append(dict(self.environments.current))

    def note_ready(self) -> None:
        """Count it."""
        self.readied += 1

    def renew(self, given: Given) -> None:
        """Use other options."""
        setup = renew_setup(self.setup, options(given, logger=self.log))
        self.environments.renew(setup)
        self.setup = setup

    @property
    def names(self) -> dict[str, int]:
        """Which of those that were made is current, by name."""
        return {name: self.made.index(each) for name, each in self.environments.current.items()}


def options(given: Given, **more: object) -> ProxyOptions:
    """Return options with these environments, each with a key and a token of its own unless it is given others."""
    environments = {
        name: {"client_keys": f"key-{name}", "flagsvc_api_token": f"token-{name}", **each}
        for name, each in given.items()
    }
    return ProxyOptions(flagsvc_url="http://127.0.0.1:1/api", environments=environments, **more)  # type: ignore[arg-type]


async def running(given: Given) -> Around:
    """Return environments that have started and have a configuration each."""
    around = Around(given)
    around.environments.start()
    for each in around.made:
        each.get_ready()
    await turns()
    return around


def left_over() -> list[str]:
    """Return what the tasks of this loop run that are not of the test itself."""
    names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]  # type: ignore[union-attr]
    return [name for name in names if name != "wait_for" and not name.startswith("test_")]
