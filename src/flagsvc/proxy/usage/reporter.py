"""Registers this proxy with the upstream, and sends usage metrics.

Counts that could not be sent are kept in memory. While sending fails they are also stored, so that a later run of this process, or
another process, sends them (decision 0013; decision 0030).

It registers once, and sends every `metricsInterval` with `metricsJitter` (specification: What the service does, points 3 and 4;
Options; behaviour: Registration; Usage metrics).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from flagsvc.core.background import SupervisedTask, delay_after_failure, delay_while_refused
from flagsvc.core.clock import Clock
from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.proxy.upstream import Identity, Upstream
from flagsvc.proxy.usage.counters import UsageBucket, UsageCounters
from flagsvc.proxy.usage.sender import MAX_BATCH, UsageSender, is_final, registration_body
from flagsvc.proxy.usage.unsent import UnsentUsage

REGISTRATION_S = 5.0
"""The back-off of a registration starts from this many seconds."""
REGISTRATION_CEILING_S = 300.0
LAST_SEND_S = 3.0
"""Seconds that the shutdown waits for the last counts to be sent."""
MIN_INTERVAL_SHARE = 0.1
"""No interval is shorter than this share of metricsInterval, even with a large jitter."""


class Reporter:
    """Registers when the configuration is synchronised, and sends usage metrics, from `start` to `stop`.

    With metricsInterval 0 it does neither.
    """

    def __init__(
        self,
        counters: UsageCounters,
        upstream: Upstream,
        identity: Identity,
        *,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
        interval_ms: int,
        jitter_ms: int = 0,
        batch: int = MAX_BATCH,
        unsent_usage: UnsentUsage | None = None,
        custom_strategies: Sequence[str] = (),
        synchronised: Callable[[], Awaitable[None]],
    ) -> None:
        """Take the parts. `draw` returns random numbers in [0, 1), and `synchronised` waits for the first synchronisation.

        `batch` is the most entries of one post. Without `unsent_usage` no counts are stored.
        """
        self._counters = counters
        self._upstream = upstream
        self._unsent_usage = unsent_usage
        self._clock = clock
        self._log = log
        self._draw = draw
        self._interval_s = interval_ms / 1000
        self._jitter_s = jitter_ms / 1000
        self._synchronised = synchronised
        self._registration = registration_body(
            identity, custom_strategies=custom_strategies, started=clock.now(), interval_ms=interval_ms
        )
        self._sender = UsageSender(upstream, identity, batch=batch, refuse=counters.refuse)
        self._unsent: list[UsageBucket] = []
        self._failures = 0
        self._error: UpstreamError | None = None
        self._is_ending = False
        self._sending: asyncio.Task[None] | None = None
        self._unregistered = OutageLog(log, "the registration was not taken", "the registration was taken")
        self._outage = OutageLog(log, "usage metrics could not be sent", "usage metrics are sent again")
        self._loops = [
            SupervisedTask("registering", self._register, clock=clock, log=log, draw=draw),
            SupervisedTask("sending usage metrics", self._send_for_ever, clock=clock, log=log, draw=draw),
        ]

    @property
    def restarts(self) -> int:
        """How often a loop was restarted after an unexpected failure."""
        return sum(loop.restarts for loop in self._loops)

    def start(self) -> None:
        """Start to register and to send."""
        if self._interval_s:
            for loop in self._loops:
                loop.start()

    async def stop(self) -> None:
        """Stop both loops, send the remaining counts within a few seconds, and store those that could not be sent."""
        for loop in self._loops:
            await loop.stop()
        if not self._interval_s:
            return
        self._is_ending = True
        last = asyncio.create_task(self._last_send(self._sending))
        await asyncio.wait([last], timeout=LAST_SEND_S)
        unfinished = [task for task in (self._sending, last) if task is not None and task.cancel()]
        if unfinished:
            await asyncio.wait(unfinished)
            self._outage.log_failure(UpstreamError("network", f"not done within {LAST_SEND_S:g} s at the shutdown"))
        await self._store_rest()

    async def _last_send(self, current: asyncio.Task[None] | None) -> None:
        """Wait for the current request, if there is one, and send the remaining counts."""
        try:
            if current is not None:
                await asyncio.wait([current])  # an event loop that shuts down may have cancelled it
            await self._send()
        except Exception as error:  # a bug must not prevent the shutdown
            self._outage.log_failure(error)

    async def _store_rest(self) -> None:
        """Store the remaining counts for another process."""
        pending = self._pending_buckets()
        is_stored = self._unsent_usage is not None and await self._unsent_usage.save(pending, left=True)
        if pending and not is_stored:
            entries = sum(bucket.entries() for bucket in pending)
            self._log.warn("usage metrics are lost: they could be neither sent nor stored", entries=entries)

    async def _register(self) -> None:
        await self._synchronised()
        failures = 0
        while True:
            try:
                await self._upstream.register(self._registration)
            except UpstreamError as error:
                failures += 1
                self._unregistered.log_failure(error)
                wish, ceiling = error.retry_after, REGISTRATION_CEILING_S
                pause = delay_after_failure(failures, self._draw(), REGISTRATION_S, retry_after=wish, ceiling=ceiling)
                await self._clock.sleep(pause)
            else:
                return self._unregistered.log_recovery()

    async def _send_for_ever(self) -> None:
        while True:
            await self._pause()
            self._sending = asyncio.create_task(self._send())
            await asyncio.shield(self._sending)  # a stop of the loop must not cancel a request

    async def _pause(self) -> None:
        """Wait until the next send. During a long wait after a failure, the pending counts are stored once in an interval."""
        left = self._delay()
        while self._unsent_usage is not None and self._error is not None and left > self._interval_s:
            await self._clock.sleep(self._interval_s)
            left -= self._interval_s
            await self._store()
        await self._clock.sleep(left)

    async def _send(self) -> None:
        """Send the counts, and those that other processes have left. Keep the counts that the upstream may accept later."""
        own = self._counters.drain()
        drained = [*([] if own is None else [own]), *self._counters.drain_sources()]
        self._unsent += drained
        try:
            await self._forward_registrations()
            while await self._has_next():
                self._record_result(await self._sender.send(self._unsent[0], self._update_record))
                if self._unsent[0].parts():
                    break
                del self._unsent[0]
        finally:
            self._merge_unsent(drained)
        await self._store()

    async def _forward_registrations(self) -> None:
        """Send the registrations of server-side applications. Those that the upstream may accept later are kept."""
        waiting = self._counters.take_registrations()
        for source in list(waiting):
            try:
                await self._upstream.register(waiting[source])
            except UpstreamError as error:
                if not is_final(error):
                    for left, registration in waiting.items():
                        self._counters.register(left, registration)
                    return
            del waiting[source]

    async def _has_next(self) -> bool:
        """Return whether there are counts to send. If not, try to take over a record of another process."""
        if not self._unsent and self._unsent_usage is not None and not self._is_ending:
            self._unsent = await self._unsent_usage.take_over()
            await self._store()  # the record was removed, so its counts are stored only here
        return len(self._unsent) > 0

    def _merge_unsent(self, drained: Sequence[UsageBucket]) -> None:
        """Merge the unsent counts into the counters. Counts of other processes stay separate: they are of another time."""
        own = {id(bucket) for bucket in drained}
        self._unsent = [each for each in self._unsent if id(each) not in own and each.parts()]
        for bucket in drained:
            if bucket.parts():
                self._counters.take_back(bucket)

    def _record_result(self, error: UpstreamError | None) -> None:
        """Record the result of sending."""
        self._error = error
        if error is None:
            self._failures = 0
            self._outage.log_recovery()
        else:
            self._failures += 1
            self._outage.log_failure(error)

    async def _update_record(self) -> None:
        """Remove counts with a final answer from storage immediately, so that they are never sent again."""
        if self._unsent_usage is not None and self._unsent_usage.has_record:
            await self._unsent_usage.save([bucket for bucket in self._unsent if bucket.parts()])

    async def _store(self) -> None:
        """Store the pending counts while sending fails, or while counts that were taken over wait; otherwise remove the record."""
        if self._unsent_usage is not None:
            is_delayed = self._error is not None or len(self._unsent) > 0
            await self._unsent_usage.save(self._pending_buckets() if is_delayed else [])

    def _pending_buckets(self) -> list[UsageBucket]:
        """Return all counts that are still to be sent."""
        return [
            bucket
            for bucket in (*self._unsent, self._counters.peek(), *self._counters.peek_sources())
            if bucket.parts()
        ]

    def _delay(self) -> float:
        """Return the seconds until the next send."""
        error, interval = self._error, self._interval_s
        if error is None:
            spread = (2 * self._draw() - 1) * self._jitter_s
            return max(MIN_INTERVAL_SHARE * interval, interval + spread)
        if error.kind == "unauthorized":
            return delay_while_refused(self._draw(), interval, retry_after=error.retry_after)
        return delay_after_failure(self._failures, self._draw(), interval, retry_after=error.retry_after)
