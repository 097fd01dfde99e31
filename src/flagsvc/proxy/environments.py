"""The environments of a process: started, renewed, replaced and removed while it runs (behaviour: Several environments)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from flagsvc.core.background import wait_for_first
from flagsvc.core.log import Logger, locate_error
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.setup import ProxySetup, renew_meanwhile


class RunningEnvironment(Protocol):
    """One environment in one event loop."""

    @property
    def setup(self) -> ProxySetup:
        """The setup that it runs with."""

    @property
    def holder(self) -> Holder:
        """The cell of its configuration."""

    def start(self) -> None:
        """Start, in the running loop."""

    async def stop(self) -> None:
        """Stop, and send the last usage metrics."""

    def renew(self, setup: ProxySetup) -> None:
        """Use the keys and tokens of this setup from now on."""

    def poll_now(self) -> None:
        """Poll the upstream now."""


E = TypeVar("E", bound=RunningEnvironment)


class Environments(Generic[E]):
    """The environments of one process by name; a process with a single environment has one without a name.

    `current` answer requests. An environment with other options than before is `coming` until it has a configuration: until then
    the former one answers. New keys open the former one only if it has the same flags. `on_change` is called when either has
    changed, `on_replace` with one that another one replaces, and `on_ready` when one of several has its first configuration.
    """

    def __init__(
        self,
        setup: ProxySetup,
        make: Callable[[ProxySetup], E],
        on_change: Callable[[], object],
        log: Logger,
        on_replace: Callable[[E], object] = lambda former: None,
        on_ready: Callable[[], object] = lambda: None,
    ) -> None:
        self.current: Mapping[str, E] = {part.name: make(part) for part in setup.parts}
        self.coming: Mapping[str, E] = {}
        self._make = make
        self._on_change = on_change
        self._on_replace = on_replace
        self._on_ready = on_ready
        self._log = log
        self._changed = asyncio.Event()
        self._replacing: dict[str, asyncio.Task[None]] = {}
        self._awaited: dict[E, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._is_running = False

    def __iter__(self) -> Iterator[E]:
        """Return those that answer requests."""
        return iter(self.current.values())

    @property
    def every(self) -> list[E]:
        """Those that answer requests, and those that are coming."""
        return [*self.current.values(), *self.coming.values()]

    @property
    def is_ready(self) -> bool:
        """Whether any environment has a configuration."""
        return any(each.holder.is_ready for each in self)

    async def wait_ready(self) -> None:
        """Wait until each environment has a configuration or has failed to get one, and at least one has it.

        Environments that come and go meanwhile count, too.
        """
        while not self.is_ready or not all(each.holder.is_tried for each in self.every):
            self._changed.clear()
            untried = [each.holder.wait_tried() for each in self.every if not each.holder.is_tried]
            await wait_for_first(self._changed.wait(), *(untried or [each.holder.wait_ready() for each in self]))

    def start(self) -> None:
        """Start all, in the running loop."""
        self._is_running = True
        for name, each in self.current.items():
            each.start()
            if name:
                self._await_ready(name, each)

    async def stop(self) -> None:
        """Stop all, beside each other."""
        self._is_running = False
        for task in self._replacing.values():
            task.cancel()
        every, self.coming, self._replacing = self.every, {}, {}
        await asyncio.gather(*self._stopping, *map(self._stop_now, every), return_exceptions=True)

    def renew(self, setup: ProxySetup) -> None:
        """Use this setup: add, renew, replace and remove environments. Raises what making one does, and changes nothing then."""
        wanted = {part.name: part for part in setup.parts}
        made = self._make_all([part for part in wanted.values() if self._needs_another(part)])
        for name in self.current.keys() - wanted.keys():
            self._remove(name)
        for name, part in wanted.items():
            if name in made:
                self._take(name, made[name])
            elif part is not self._newest(name).setup:
                self._newest(name).renew(part)
        self._renew_former()
        self._tell_change()

    def _needs_another(self, part: ProxySetup) -> bool:
        """Return whether there is no environment for this setup, also none with other keys and tokens."""
        return (
            part.name not in self.current or self._newest(part.name).setup.compile_options is not part.compile_options
        )

    def _make_all(self, parts: Iterable[ProxySetup]) -> dict[str, E]:
        """Make environments by name. If one cannot be made, the others are stopped, although they have not started."""
        made: dict[str, E] = {}
        try:
            for part in parts:
                made[part.name] = self._make(part)
        except BaseException:
            for each in made.values():
                self._stop_one(each)
            raise
        return made

    def _tell_change(self) -> None:
        """Tell that environments have come or gone, or have other keys."""
        self._changed.set()
        self._on_change()

    def _newest(self, name: str) -> E:
        """Return the environment of this name with the newest options."""
        return self.coming.get(name) or self.current[name]

    def _take(self, name: str, made: E) -> None:
        """Start an environment. One that has the place of another one answers when it is ready."""
        if name in self.current and self._is_running:
            self._drop_coming(name)
            self.coming = {**self.coming, name: made}
            made.start()
            self._replacing[name] = asyncio.get_running_loop().create_task(self._replace(name, made))
            return
        self.current = {**self.current, name: made}
        if self._is_running:
            made.start()
            self._await_ready(name, made, is_added=True)

    def _await_ready(self, name: str, made: E, *, is_added: bool = False) -> None:
        """Tell when an environment has its first configuration, in the background."""
        task = asyncio.get_running_loop().create_task(self._announce(name, made, is_added=is_added))
        self._awaited[made] = task

    async def _announce(self, name: str, made: E, *, is_added: bool) -> None:
        """Wait until an environment answers, and log that of one that was added."""
        await made.holder.wait_ready()
        del self._awaited[made]
        if is_added:
            self._log.info("flagsvc ready", environment=name)
        self._on_ready()

    def _renew_former(self) -> None:
        """Give each environment that is being replaced the keys that open it meanwhile.

        Those that end must open nothing, however long the other one takes.
        """
        for name, coming in self.coming.items():
            former = self.current[name]
            former.renew(renew_meanwhile(former.setup, coming.setup))

    async def _replace(self, name: str, made: E) -> None:
        """Let another environment answer once it has a configuration, and stop the former one."""
        await made.holder.wait_tried()
        if not made.holder.is_ready:
            self._log.warn(
                "an environment is not ready with its new options, the former one still answers", environment=name
            )
        await made.holder.wait_ready()
        former = self.current[name]
        self._on_replace(former)
        self.current = {**self.current, name: made}
        self.coming = without(self.coming, name)
        del self._replacing[name]
        self._log.info("an environment has other options now", environment=name)
        self._tell_change()
        self._stop_one(former)

    def _remove(self, name: str) -> None:
        former = self.current[name]
        self.current = without(self.current, name)
        self._drop_coming(name)
        self._stop_one(former)

    def _drop_coming(self, name: str) -> None:
        """Stop the environment that was to take the place of another one."""
        if name in self.coming:
            self._replacing.pop(name).cancel()
            self._stop_one(self.coming[name])
            self.coming = without(self.coming, name)

    def _stop_one(self, environment: E) -> None:
        """Stop an environment in the background."""
        if self._is_running:
            task = asyncio.get_running_loop().create_task(self._stop_now(environment))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def _stop_now(self, environment: E) -> None:
        """Stop an environment. A failure is logged, because no caller waits for it."""
        if environment in self._awaited:
            self._awaited.pop(environment).cancel()
        try:
            await environment.stop()
        except Exception as error:  # the others must stop as well
            self._log.error("stopping failed", error=locate_error(error))


def without(environments: Mapping[str, E], name: str) -> dict[str, E]:
    """Return the environments without the one of this name."""
    return {other: each for other, each in environments.items() if other != name}
