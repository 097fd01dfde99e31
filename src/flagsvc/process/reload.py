"""Reloads keys and tokens of a running process, when their files change or at SIGHUP.

    files ─→ Reloader: read, compare ─→ KeyOverlap: which keys are accepted for how long ─→ apply_options(options)

The whole configuration is read again and must be valid. The field `reloads` of an option's row tells whether the option may change
in a running process. If the new configuration is invalid, the old one stays.
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
"""Seconds between two checks of files that are being written, until two checks find the same."""
KEY_OPTIONS = ("client_keys", "exp_server_side_sdk_config_tokens")
"""The options whose former keys are accepted for a while longer."""

ApplyOptions = Callable[[ProxyOptions], Awaitable[None]]
"""Makes the process use these options, as far as they may change while it runs."""


class ConfigurationFiles(NamedTuple):
    """The function that reads the configuration again, and the files that it was read from at the start."""

    read: Callable[[], Resolved]
    files: Files


class KeyOverlap:
    """The former keys of one option that are still accepted. Pure: moments are in seconds of any clock.

    If keys are only removed, they are revoked, and no longer accepted. If new keys are added, the old ones are being replaced, and
    callers need a while to change theirs.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}

    def record_change(self, old: Sequence[str], new: Sequence[str], now: float) -> None:
        """Record that the keys of the option have changed."""
        if set(new) - set(old):
            self._until |= dict.fromkeys(old, now + self._seconds)
        for key in new:
            self._until.pop(key, None)

    def accepted_keys(self, keys: Sequence[str], now: float) -> tuple[str, ...]:
        """Return the keys that are accepted now, those of the option first. Forgets expired ones."""
        self._until = {key: until for key, until in self._until.items() if until > now}
        return (*keys, *self._until)

    @property
    def next_expiry(self) -> float | None:
        """The moment at which the next former key expires, or None."""
        return min(self._until.values(), default=None)


class Reloader:
    """Reloads the configuration while its context is entered: when one of its files changes, and on request.

    `options` are the options in use, without former keys that are still accepted.
    """

    def __init__(
        self,
        options: ProxyOptions,
        source: ConfigurationFiles,
        apply_options: ApplyOptions,
        *,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
    ) -> None:
        """Take the options at the start, the source of new ones, and the function that applies them."""
        self.options = options
        self._source = source
        self._apply_options = apply_options
        self._clock = clock
        self._log = log
        self._read = options
        self._files = dict(source.files)
        self._overlaps = {name: KeyOverlap(options.key_overlap) for name in KEY_OPTIONS}
        self._requested = asyncio.Event()
        self._lock = asyncio.Lock()
        bodies = {"reloading": self._handle_requests, "watching files": self._watch, "ending keys": self._end_keys}
        loops = {name: SupervisedTask(name, body, clock=clock, log=log, draw=draw) for name, body in bodies.items()}
        self._reloading, self._watching, self._ending = loops.values()

    async def __aenter__(self) -> Self:
        """Start to watch the files and to handle requests."""
        self._reloading.start()
        if self.options.watch_interval and self._paths():
            self._watching.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Stop all loops."""
        for loop in (self._reloading, self._watching, self._ending):
            await loop.stop()

    @property
    def restarts(self) -> int:
        """How often its loops were restarted after a failure."""
        return sum(loop.restarts for loop in (self._reloading, self._watching, self._ending))

    def request_reload(self) -> None:
        """Request a reload, which happens soon."""
        self._requested.set()

    # ---- when

    async def _watch(self) -> None:
        """Check the files regularly. Reload when they have changed and are no longer being written."""
        while True:
            await self._clock.sleep(self.options.watch_interval)
            before, now = None, await self._look()
            while now not in (before, self._files):
                await self._clock.sleep(SETTLE_S)
                before, now = now, await self._look()
            if now != self._files:
                await self._reload()

    async def _look(self) -> Files:
        """Return the present state of the files."""
        return await asyncio.to_thread(lambda: self._files | {path: look(path) for path in self._paths()})

    def _paths(self) -> list[str]:
        """Return the paths of the files that can be checked for changes."""
        return [path for path, seen in self._files.items() if seen is not None]

    async def _handle_requests(self) -> None:
        """Reload on request. Logs if nothing has changed."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            if not await self._reload():
                self._log.info("the configuration was read again, nothing has changed")

    # ---- what

    async def _reload(self) -> bool:
        """Read the configuration and apply what may change. Returns whether anything was different, or wrong."""
        async with self._lock:
            once = [path for path, seen in self._files.items() if seen is None or special(path)]
            if once:
                self._files = await self._look()
                return self._log_refusal([f"`{path}` is no file that can be read again" for path in once])
            resolved = await asyncio.to_thread(self._source.read)
            self._files = resolved.files if not resolved.problems else self._files | resolved.files
            try:
                read = accepted(resolved).options
            except ConfigurationError as error:
                return self._log_refusal(error.problems)
            known, self._read = self._read, read
            changed = differing(known, read)
            self._warn_of_restart([row for row in changed if not row.reloads], read)
            values: dict[str, Any] = {row.field: getattr(read, row.field) for row in changed if row.reloads}
            fresh = replace(self.options, **values)
            if fresh != self.options:
                await self._apply(fresh)
            return bool(changed)

    def _log_refusal(self, problems: Sequence[str]) -> bool:
        self._log.error("the configuration cannot be read again, the old one stays", problems="; ".join(problems))
        return True

    def _warn_of_restart(self, rows: Sequence[Option], read: ProxyOptions) -> None:
        """Log which changed options differ from those in use and need a restart."""
        names = [row.name for row in rows if getattr(read, row.field) != getattr(self.options, row.field)]
        if names:
            self._log.warn("these options have changed and need a restart", options=", ".join(names))

    async def _apply(self, fresh: ProxyOptions) -> None:
        """Use these keys and tokens, and accept the former keys for a while."""
        now, old, self.options = self._clock.monotonic(), self.options, fresh
        for name, overlap in self._overlaps.items():
            overlap.record_change(getattr(old, name), getattr(fresh, name), now)
        await self._apply_current()
        self._ending.start()
        names = [row.name for row in differing(old, fresh)]
        self._log.info("keys and tokens have changed", options=", ".join(names))

    async def _apply_current(self) -> None:
        now = self._clock.monotonic()
        rings: dict[str, Any] = {
            name: overlap.accepted_keys(getattr(self.options, name), now) for name, overlap in self._overlaps.items()
        }
        await self._apply_options(replace(self.options, **rings))

    async def _end_keys(self) -> None:
        """Stop accepting former keys, each when it expires."""
        while ends := [overlap.next_expiry for overlap in self._overlaps.values() if overlap.next_expiry is not None]:
            await self._clock.sleep(max(0.0, min(ends) - self._clock.monotonic()))
            async with self._lock:
                await self._apply_current()
