"""What a running process takes over of its configuration: keys and tokens, from files that change or when SIGHUP asks for it.

    files ─→ Reload: read, compare ─→ Overlap: which keys open for how long ─→ take(options)

Everything is read again and must be right as a whole; which options may change meanwhile, the field `reloads` of their rows says.
A new configuration that is wrong leaves everything as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

from flagsvc.core.background import SupervisedTask
from flagsvc.core.clock import Clock
from flagsvc.core.errors import ConfigurationError
from flagsvc.core.log import Logger
from flagsvc.settings.files import Files, look, special
from flagsvc.settings.load import Resolved, accepted
from flagsvc.settings.options import Option, ProxyOptions, differing

SETTLE_S = 0.2
"""Seconds between two looks at files that are being written, until two of them are alike."""
RINGS = ("client_keys", "exp_server_side_sdk_config_tokens")
"""The options whose former values open a while longer."""

Take = Callable[[ProxyOptions], Awaitable[None]]
"""Works with these options from then on, as far as their rows say that they may change."""


class ConfigurationFiles(NamedTuple):
    """How the configuration is read again, and the files that it was read from the first time."""

    read: Callable[[], Resolved]
    files: Files


class KeyOverlap:
    """The keys of one option that open although others took their place. Pure: moments are in seconds, of any clock.

    Where keys only go, somebody takes them away, and they open no longer. Where others come, somebody exchanges them, and callers
    need a while to follow.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}

    def change(self, old: Sequence[str], new: Sequence[str], now: float) -> None:
        """Take that keys are others from now on."""
        if set(new) - set(old):
            self._until |= dict.fromkeys(old, now + self._seconds)
        for key in new:
            self._until.pop(key, None)

    def open(self, keys: Sequence[str], now: float) -> tuple[str, ...]:
        """Return the keys that open now, those of the options first; forget the others."""
        self._until = {key: until for key, until in self._until.items() if until > now}
        return (*keys, *self._until)

    @property
    def end(self) -> float | None:
        """The moment at which the next key ends, None where none does."""
        return min(self._until.values(), default=None)


class Reloader:
    """Reads the configuration again while it is entered: when one of its files has changed, and when asked to.

    `options` are those to go on with at the moment, without the keys that open a while longer.
    """

    def __init__(
        self,
        options: ProxyOptions,
        again: ConfigurationFiles,
        take: Take,
        *,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
    ) -> None:
        """Take the options that the process began with, how to read them anew, and what gets those to go on with."""
        self.options = options
        self._again = again
        self._take = take
        self._clock = clock
        self._log = log
        self._read = options
        self._files = dict(again.files)
        self._overlaps = {name: KeyOverlap(options.key_overlap) for name in RINGS}
        self._asked = asyncio.Event()
        self._turn = asyncio.Lock()
        bodies = {"reloading": self._follow, "watching files": self._watch, "ending keys": self._end_keys}
        loops = {name: SupervisedTask(name, body, clock=clock, log=log, draw=draw) for name, body in bodies.items()}
        self._reloading, self._watching, self._ending = loops.values()

    async def __aenter__(self) -> Self:
        """Begin to watch, and to follow whoever asks."""
        self._reloading.start()
        if self.options.watch_interval and self._paths():
            self._watching.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        """End."""
        for loop in (self._reloading, self._watching, self._ending):
            await loop.stop()

    @property
    def restarts(self) -> int:
        """How many faults its loops have survived."""
        return sum(loop.restarts for loop in (self._reloading, self._watching, self._ending))

    def ask(self) -> None:
        """Have everything read again, soon."""
        self._asked.set()

    # ---- when

    async def _watch(self) -> None:
        """Look at the files now and then; read everything when they have changed, and nobody is writing them any more."""
        while True:
            await self._clock.sleep(self.options.watch_interval)
            before, now = None, await self._look()
            while now not in (before, self._files):
                await self._clock.sleep(SETTLE_S)
                before, now = now, await self._look()
            if now != self._files:
                await self._reload()

    async def _look(self) -> Files:
        """Return how the files are now."""
        return await asyncio.to_thread(lambda: self._files | {path: look(path) for path in self._paths()})

    def _paths(self) -> list[str]:
        """Return the files that can be looked at."""
        return [path for path, seen in self._files.items() if seen is not None]

    async def _follow(self) -> None:
        """Read everything whenever somebody asks, and say so where nothing has changed."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            if not await self._reload():
                self._log.info("the configuration was read again, nothing has changed")

    # ---- what

    async def _reload(self) -> bool:
        """Read everything, and go on with what may change; return whether anything was different."""
        async with self._turn:
            once = [path for path, seen in self._files.items() if seen is None or special(path)]
            if once:
                self._files = await self._look()
                return self._refuse([f"`{path}` is no file that can be read again" for path in once])
            resolved = await asyncio.to_thread(self._again.read)
            self._files = resolved.files if not resolved.problems else self._files | resolved.files
            try:
                read = accepted(resolved).options
            except ConfigurationError as error:
                return self._refuse(error.problems)
            known, self._read = self._read, read
            changed = differing(known, read)
            self._name([row for row in changed if not row.reloads], read)
            values: dict[str, Any] = {row.field: getattr(read, row.field) for row in changed if row.reloads}
            fresh = replace(self.options, **values)
            if fresh != self.options:
                await self._go_on(fresh)
            return bool(changed)

    def _refuse(self, problems: Sequence[str]) -> bool:
        self._log.error("the configuration cannot be read again, the old one stays", problems="; ".join(problems))
        return True

    def _name(self, rows: Sequence[Option], read: ProxyOptions) -> None:
        """Tell which options are others now than those in use, and do not change while the process runs."""
        names = [row.name for row in rows if getattr(read, row.field) != getattr(self.options, row.field)]
        if names:
            self._log.warn("these options have changed and need a restart", options=", ".join(names))

    async def _go_on(self, fresh: ProxyOptions) -> None:
        """Work with these keys and tokens, and for a while with those before."""
        now, old, self.options = self._clock.monotonic(), self.options, fresh
        for name, overlap in self._overlaps.items():
            overlap.change(getattr(old, name), getattr(fresh, name), now)
        await self._hand_over()
        self._ending.start()
        names = [row.name for row in differing(old, fresh)]
        self._log.info("keys and tokens have changed", options=", ".join(names))

    async def _hand_over(self) -> None:
        now = self._clock.monotonic()
        rings: dict[str, Any] = {
            name: overlap.open(getattr(self.options, name), now) for name, overlap in self._overlaps.items()
        }
        await self._take(replace(self.options, **rings))

    async def _end_keys(self) -> None:
        """Let go of former keys, each when its time is over."""
        while ends := [overlap.end for overlap in self._overlaps.values() if overlap.end is not None]:
            await self._clock.sleep(max(0.0, min(ends) - self._clock.monotonic()))
            async with self._turn:
                await self._hand_over()
