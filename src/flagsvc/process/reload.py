"""Reloads keys, tokens and environments of a running process, when their files change or at SIGHUP (behaviour: Changes without
a restart; Several environments).

    files ─→ Reloader: read, compare ─→ KeyOverlap: which keys are accepted for how long ─→ apply_options(options)

The whole configuration is read again and must be valid. Everything that an environment has of its own may change, and environments
come and go. What holds for the whole process needs a restart. If the new configuration is invalid, the old one stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple, Self

from flagsvc.core.background import SupervisedTask
from flagsvc.core.clock import Clock
from flagsvc.core.errors import ConfigurationError, FlagsvcError
from flagsvc.core.log import Logger
from flagsvc.proxy.generations.setup import what_decides_flags, what_decides_the_side
from flagsvc.settings.load import accepted
from flagsvc.settings.option import Scope
from flagsvc.settings.options import KEY_OPTIONS, Environment, Option, ProxyOptions, differing, reloaded, with_values
from flagsvc.settings.places import Files, Resolved, look, special

SETTLE_S = 0.2
"""Seconds between two checks of files that are being written, until two checks find the same."""

ApplyOptions = Callable[[ProxyOptions], Awaitable[None]]
"""Makes the process use these options, as far as they may change while it runs. Raises FlagsvcError, and changes nothing then."""


class ConfigurationFiles(NamedTuple):
    """The function that reads the configuration again, the files that it was read from at the start, and what was read then."""

    read: Callable[[], Resolved]
    files: Files
    resolved: Resolved | None = None


class KeyOverlap:
    """The former keys of one option, as long as they are accepted. Pure: moments are in seconds of any clock.

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

    def end(self, keys: Collection[str]) -> None:
        """Accept these keys no longer: they are present keys, here or elsewhere."""
        for key in keys:
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
        self._overlaps: dict[tuple[str, str], KeyOverlap] = {}
        self._has_failed = False
        self._requested: asyncio.Future[None] | None = None
        self._has_request = asyncio.Event()
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

    def request_reload(self) -> asyncio.Future[None]:
        """Request a reload, which happens soon, in the running loop. Returns a future that is done when the reload has ended."""
        if self._requested is None:
            self._requested = asyncio.get_running_loop().create_future()
        self._has_request.set()
        return self._requested

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
            await self._has_request.wait()
            self._has_request.clear()
            requested, self._requested = self._requested, None
            try:
                if not await self._reload():
                    self._log.info("the configuration was read again, nothing has changed")
            finally:
                if requested is not None and not requested.done():
                    requested.set_result(None)

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
                read = accepted(resolved, ProxyOptions).options
            except ConfigurationError as error:
                return self._log_refusal(error.problems)
            known, self._read = self._read, read
            changed = [row for row in differing(known, read) if row.scope is Scope.PROCESS]
            self._warn_of_restart(changed, read)
            fresh = reloaded(self.options, read)
            is_other, had_failed = fresh != self.options, self._has_failed
            if not is_other or await self._apply(fresh):
                self._log_recovery()
            return bool(changed) or is_other or had_failed or known != read

    def _log_refusal(self, problems: Sequence[str]) -> bool:
        self._has_failed = True
        self._log.error("the configuration cannot be read again, the old one stays", problems="; ".join(problems))
        return True

    def _log_recovery(self) -> None:
        """Log that the configuration can be read again, if that was refused last."""
        if self._has_failed:
            self._log.warn("the configuration is read again")
        self._has_failed = False

    def _warn_of_restart(self, rows: Sequence[Option], read: ProxyOptions) -> None:
        """Log which changed options differ from those in use and need a restart."""
        if bool(read.environments) != bool(self.options.environments):
            self._log.warn("one environment or several: that has changed and needs a restart")
        names = [row.name for row in rows if getattr(read, row.field) != getattr(self.options, row.field)]
        if names:
            self._log.warn("these options have changed and need a restart", options=", ".join(names))

    async def _apply(self, fresh: ProxyOptions) -> bool:
        """Use these keys, tokens and environments, and accept the former keys for a while. Returns whether they can be used."""
        old, overlaps = self.options, self._make_overlaps(self.options, fresh)
        try:
            await self._apply_options(self._with_accepted(fresh, overlaps))
        except FlagsvcError as error:
            self._log_refusal([str(error)])
            return False
        self.options, self._overlaps = fresh, overlaps
        self._ending.start()
        self._log_change(old, fresh)
        return True

    def _make_overlaps(self, old: ProxyOptions, fresh: ProxyOptions) -> dict[tuple[str, str], KeyOverlap]:
        """Return the former keys of each environment after a change. A key that has moved opens only where it is now.

        Former keys do not open other flags: an environment that gets other ones has none.
        """
        now, former, present = self._clock.monotonic(), keys_of(old), keys_of(fresh)
        every = {key for keys in present.values() for key in keys}
        moved = find_moved(old, fresh)
        made: dict[tuple[str, str], KeyOverlap] = {}
        for place, keys in present.items():
            overlap = made[place] = KeyOverlap(fresh.key_overlap)
            if place[0] in moved:
                continue
            if place in self._overlaps:
                overlap = made[place] = deepcopy(self._overlaps[place])
            overlap.record_change(former.get(place, ()), keys, now)
            overlap.end(every)
        return made

    def _log_change(self, old: ProxyOptions, fresh: ProxyOptions) -> None:
        if fresh.environments:
            self._log.info("environments have changed", **describe_changes(dict(old.environments), dict(fresh.environments)))
            return
        rows = differing(old, fresh)
        what = "keys and tokens have changed" if all(row.reloads for row in rows) else "options have changed"
        self._log.info(what, options=", ".join(row.name for row in rows))

    def _with_accepted(self, options: ProxyOptions, overlaps: Mapping[tuple[str, str], KeyOverlap]) -> ProxyOptions:
        """Return these options with the former keys that still open."""
        now = self._clock.monotonic()
        return with_keys(options, {place: overlaps[place].accepted_keys(keys, now) for place, keys in keys_of(options).items()})

    async def _end_keys(self) -> None:
        """Stop accepting former keys, each when it expires."""
        while ends := [each.next_expiry for each in self._overlaps.values() if each.next_expiry is not None]:
            await self._clock.sleep(max(0.0, min(ends) - self._clock.monotonic()))
            async with self._lock:
                await self._apply_options(self._with_accepted(self.options, self._overlaps))


def keys_of(options: ProxyOptions) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the keys and tokens of callers by environment and option."""
    return {(part.name, field): getattr(part.options, field) for part in options.parts for field in KEY_OPTIONS}


def find_moved(old: ProxyOptions, fresh: ProxyOptions) -> set[str]:
    """Return the names of the environments that get other flags by a change of options."""
    before = dict(old.parts)
    return {name for name, part in fresh.parts if name in before and what_decides_flags(before[name]) != what_decides_flags(part)}


def describe_changes(before: Mapping[str, ProxyOptions], after: Mapping[str, ProxyOptions]) -> dict[str, str]:
    """Return the names of the environments that were added, were removed, are being replaced, or have other keys and tokens."""
    both = [name for name in after if name in before and after[name] != before[name]]
    replacing = [name for name in both if what_decides_the_side(before[name]) != what_decides_the_side(after[name])]
    found = {
        "added": [name for name in after if name not in before],
        "removed": [name for name in before if name not in after],
        "replacing": replacing,
        "changed": [name for name in both if name not in replacing],
    }
    return {what: ", ".join(names) for what, names in found.items() if names}


def with_keys(options: ProxyOptions, keys: Mapping[tuple[str, str], tuple[str, ...]]) -> ProxyOptions:
    """Return the options with other keys and tokens of callers."""
    parts = [
        Environment(part.name, with_values(part.options, {field: keys[part.name, field] for field in KEY_OPTIONS}))
        for part in options.parts
    ]
    return replace(options, environments=tuple(parts)) if options.environments else parts[0].options
