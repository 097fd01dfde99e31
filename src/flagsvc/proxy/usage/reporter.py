"""Tells the upstream that this proxy exists and what was used.

What could not be sent is kept: in memory, and while sending fails in storage as well, so that a later life of this process, or
another process, sends it. docs/decisions/0013-usage-metrics-failures.md and 0030-usage-is-never-lost.md say what may happen to it.

Implements specification: What the service does (3, 4), Configuration (metricsInterval, metricsJitter); behaviour: Towards the
upstream server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from flagsvc.core.background import SupervisedTask
from flagsvc.core.backoff import delay_after_failure, delay_while_refused
from flagsvc.core.clock import Clock
from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import Logger
from flagsvc.core.outages import OutageLog
from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage.counters import UsageBucket, UsageCounters
from flagsvc.proxy.usage.payload import registration
from flagsvc.proxy.usage.sender import MOST_BATCH, Sink, UsageSender
from flagsvc.proxy.usage.unsent import UnsentUsage

REGISTRATION_S = 5.0
"""The back-off of a registration starts from this many seconds."""
REGISTRATION_CEILING_S = 300.0
LAST_SEND_S = 3.0
"""Seconds that the shutdown waits for the last counts to leave."""
SHORTEST = 0.1
"""However large the jitter, no interval is shorter than this part of metricsInterval."""


class Reporter:
    """Registers once the configuration is synchronised and sends what was counted, from `start` to `stop`.

    With metricsInterval 0 it does neither.
    """

    def __init__(
        self,
        counters: UsageCounters,
        sink: Sink,
        identity: Identity,
        *,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
        interval_ms: int,
        jitter_ms: int = 0,
        batch: int = MOST_BATCH,
        unsent_usage: UnsentUsage | None = None,
        custom_strategies: Sequence[str] = (),
        synchronised: Callable[[], Awaitable[None]],
    ) -> None:
        """Take the parts; `draw` gives random numbers of [0, 1), `synchronised` returns after the first synchronisation.

        `batch` is the most entries of one post; without a `unsent_usage` nothing is kept in storage.
        """
        self._counters = counters
        self._sink = sink
        self._spool = unsent_usage
        self._clock = clock
        self._log = log
        self._draw = draw
        self._interval_s = interval_ms / 1000
        self._jitter_s = jitter_ms / 1000
        self._synchronised = synchronised
        self._registration = registration(
            identity, custom_strategies=custom_strategies, started=clock.now(), interval_ms=interval_ms
        )
        self._sender = UsageSender(sink, identity, batch=batch, refuse=counters.refuse, answered=self._answered)
        self._unsent: list[UsageBucket] = []
        self._failures = 0
        self._error: UpstreamError | None = None
        self._ending = False
        self._sending: asyncio.Task[None] | None = None
        self._unregistered = OutageLog(log, "the registration was not taken", "the registration was taken")
        self._trouble = OutageLog(log, "usage metrics could not be sent", "usage metrics are sent again")
        self._loops = [
            SupervisedTask("registering", self._register, clock=clock, log=log, draw=draw),
            SupervisedTask("sending usage metrics", self._send_for_ever, clock=clock, log=log, draw=draw),
        ]

    @property
    def restarts(self) -> int:
        """How often a loop failed for a reason nobody thought of and was started again."""
        return sum(loop.restarts for loop in self._loops)

    def start(self) -> None:
        """Start registering and sending."""
        if self._interval_s:
            for loop in self._loops:
                loop.start()

    async def stop(self) -> None:
        """End both, send what is left once more, for a few seconds at most, and have what is left then stored."""
        for loop in self._loops:
            await loop.stop()
        if not self._interval_s:
            return
        self._ending = True
        last = asyncio.create_task(self._last_send(self._sending))
        await asyncio.wait([last], timeout=LAST_SEND_S)
        unfinished = [task for task in (self._sending, last) if task is not None and task.cancel()]
        if unfinished:
            await asyncio.wait(unfinished)
            self._trouble.log_failure(UpstreamError("network", f"not done within {LAST_SEND_S:g} s at the shutdown"))
        await self._leave()

    async def _last_send(self, current: asyncio.Task[None] | None) -> None:
        """Wait for the request that is on its way, if one is, and send what came after it."""
        try:
            if current is not None:
                await asyncio.wait([current])  # it may have been cancelled, by a loop that ends
            await self._send()
        except Exception as error:  # whatever a bug raises must not stand in the way of the shutdown
            self._trouble.log_failure(error)

    async def _leave(self) -> None:
        """Leave in storage what is left, for whoever comes."""
        waiting = self._waiting()
        stored = self._spool is not None and await self._spool.keep(waiting, left=True)
        if waiting and not stored:
            entries = sum(bucket.entries() for bucket in waiting)
            self._log.warn("usage metrics are lost: they could be neither sent nor stored", entries=entries)

    async def _register(self) -> None:
        await self._synchronised()
        failures = 0
        while True:
            try:
                await self._sink.register(self._registration)
            except UpstreamError as error:
                failures += 1
                self._unregistered.log_failure(error)
                wish, most = error.retry_after, REGISTRATION_CEILING_S
                pause = delay_after_failure(failures, self._draw(), REGISTRATION_S, retry_after=wish, ceiling=most)
                await self._clock.sleep(pause)
            else:
                return self._unregistered.log_recovery()

    async def _send_for_ever(self) -> None:
        while True:
            await self._pause()
            self._sending = asyncio.create_task(self._send())
            await asyncio.shield(self._sending)  # stopping the loop does not tear a request in two

    async def _pause(self) -> None:
        """Wait until it is time to send; meanwhile what waits is stored once in an interval, also where that is long after."""
        left = self._delay()
        while self._spool is not None and self._error is not None and left > self._interval_s:
            await self._clock.sleep(self._interval_s)
            left -= self._interval_s
            await self._store()
        await self._clock.sleep(left)

    async def _send(self) -> None:
        """Send what was counted, and what others have left behind; keep what may still be taken later."""
        counted = self._counters.drain()
        self._unsent += [] if counted is None else [counted]
        try:
            while await self._next():
                self._note(await self._sender.send(self._unsent[0]))
                if self._unsent[0].toggles:
                    break
                del self._unsent[0]
        finally:
            self._take_back(counted)
        await self._store()

    async def _next(self) -> bool:
        """Return whether there is something to send; where nothing is, look for what others have left behind."""
        if not self._unsent and self._spool is not None and not self._ending:
            self._unsent = await self._spool.find()
            await self._store()  # it is ours now, and nowhere else
        return len(self._unsent) > 0

    def _take_back(self, counted: UsageBucket | None) -> None:
        """Count what was not sent with what comes. What others have left stays by itself: it is of another time."""
        self._unsent = [each for each in self._unsent if each is not counted and each.toggles]
        if counted is not None and counted.toggles:
            self._counters.merge(counted)

    def _note(self, error: UpstreamError | None) -> None:
        """Note how sending went."""
        self._error = error
        if error is None:
            self._failures = 0
            self._trouble.log_recovery()
        else:
            self._failures += 1
            self._trouble.log_failure(error)

    async def _answered(self) -> None:
        """Take out of storage what the upstream has answered for, before anything else happens: it must not be sent again."""
        if self._spool is not None and self._spool.held:
            await self._spool.keep([bucket for bucket in self._unsent if bucket.toggles])

    async def _store(self) -> None:
        """Have in storage what waits, while it does not wait for its time alone."""
        if self._spool is not None:
            waits = self._error is not None or len(self._unsent) > 0
            await self._spool.keep(self._waiting() if waits else [])

    def _waiting(self) -> list[UsageBucket]:
        """Return everything that is still to be sent."""
        return [bucket for bucket in (*self._unsent, self._counters.peek()) if bucket.toggles]

    def _delay(self) -> float:
        """Return the seconds until the next sending."""
        error, interval = self._error, self._interval_s
        if error is None:
            spread = (2 * self._draw() - 1) * self._jitter_s
            return max(SHORTEST * interval, interval + spread)
        if error.kind == "unauthorized":
            return delay_while_refused(self._draw(), interval, retry_after=error.retry_after)
        return delay_after_failure(self._failures, self._draw(), interval, retry_after=error.retry_after)
