"""Tells the upstream that this proxy exists and what was used. What happens to counts that could not be sent is decided in
docs/decisions/0013-usage-metrics-failures.md.

Implements specification: What the service does (3, 4), Configuration (metricsInterval, metricsJitter); behaviour: Towards the
upstream server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from flagsvc.clock import Clock
from flagsvc.errors import UpstreamError
from flagsvc.log import Logger
from flagsvc.upstream import Identity
from flagsvc.upstream.pace import delay_after_failure, delay_while_refused
from flagsvc.upstream.supervised import Supervised
from flagsvc.upstream.trouble import Trouble
from flagsvc.usage.counters import Bucket, UsageCounters
from flagsvc.usage.payload import metrics, registration

REGISTRATION_S = 5.0
"""The back-off of a registration starts from this many seconds."""
REGISTRATION_CEILING_S = 300.0
LAST_SEND_S = 3.0
"""Seconds that the shutdown waits for the last counts to leave."""
SHORTEST = 0.1
"""However large the jitter, no interval is shorter than this part of metricsInterval."""
RETRIED = (401, 403, 404, 408, 429)
"""The client errors that may pass; any other says that these counts will never be taken."""


class Sink(Protocol):
    """The part of an upstream session that takes payloads (`flagsvc.upstream.Upstream`)."""

    async def register(self, payload: Mapping[str, object]) -> None:
        """Send a registration. Raises UpstreamError."""

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        """Send usage metrics. Raises UpstreamError."""


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
        custom_strategies: Sequence[str] = (),
        synchronised: Callable[[], Awaitable[None]],
    ) -> None:
        """Take the parts; `draw` gives random numbers of [0, 1), `synchronised` returns after the first synchronisation."""
        self._counters = counters
        self._sink = sink
        self._identity = identity
        self._clock = clock
        self._draw = draw
        self._interval_s = interval_ms / 1000
        self._jitter_s = jitter_ms / 1000
        self._synchronised = synchronised
        self._registration = registration(
            identity, custom_strategies=custom_strategies, started=clock.now(), interval_ms=interval_ms
        )
        self._failures = 0
        self._error: UpstreamError | None = None
        self._sending: asyncio.Task[None] | None = None
        self._unregistered = Trouble(log, "the registration was not taken", "the registration was taken")
        self._unsent = Trouble(log, "usage metrics could not be sent", "usage metrics are sent again")
        self._loops = [
            Supervised("registering", self._register, clock=clock, log=log, draw=draw),
            Supervised("sending usage metrics", self._send_for_ever, clock=clock, log=log, draw=draw),
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
        """End both, and send what is left once more, for a few seconds at most."""
        for loop in self._loops:
            await loop.stop()
        if not self._interval_s:
            return
        last = asyncio.create_task(self._last_send(self._sending))
        await asyncio.wait([last], timeout=LAST_SEND_S)
        unfinished = [task for task in (self._sending, last) if task is not None and task.cancel()]
        if unfinished:
            await asyncio.wait(unfinished)
            self._unsent.report(UpstreamError("network", f"not done within {LAST_SEND_S:g} s at the shutdown"))

    async def _last_send(self, current: asyncio.Task[None] | None) -> None:
        """Wait for the request that is on its way, if one is, and send what came after it."""
        try:
            if current is not None:
                await asyncio.wait([current])  # it may have been cancelled, by a loop that ends
            await self._send()
        except Exception as error:  # whatever a bug raises must not stand in the way of the shutdown
            self._unsent.report(error)

    async def _register(self) -> None:
        await self._synchronised()
        failures = 0
        while True:
            try:
                await self._sink.register(self._registration)
            except UpstreamError as error:
                failures += 1
                self._unregistered.report(error)
                wish, most = error.retry_after, REGISTRATION_CEILING_S
                pause = delay_after_failure(failures, self._draw(), REGISTRATION_S, retry_after=wish, most=most)
                await self._clock.sleep(pause)
            else:
                return self._unregistered.over()

    async def _send_for_ever(self) -> None:
        while True:
            await self._clock.sleep(self._delay())
            self._sending = asyncio.create_task(self._send())
            await asyncio.shield(self._sending)  # stopping the loop does not tear a request in two

    async def _send(self) -> None:
        """Send what was counted, if anything was; keep what may still be taken later."""
        bucket = self._counters.drain()
        if bucket is None:
            return
        try:
            await self._sink.send_metrics(metrics(self._identity, bucket))
        except UpstreamError as error:
            self._failed(bucket, error)
        except BaseException:
            self._counters.merge(bucket)
            raise
        else:
            self._failures, self._error = 0, None
            self._unsent.over()

    def _failed(self, bucket: Bucket, error: UpstreamError) -> None:
        self._failures += 1
        self._error = error
        self._unsent.report(error)
        if error.status is not None and 400 <= error.status < 500 and error.status not in RETRIED:
            self._counters.drop(bucket)
        else:
            self._counters.merge(bucket)

    def _delay(self) -> float:
        """Return the seconds until the next sending."""
        error, interval = self._error, self._interval_s
        if error is None:
            spread = (2 * self._draw() - 1) * self._jitter_s
            return max(SHORTEST * interval, interval + spread)
        if error.kind == "unauthorized":
            return delay_while_refused(self._draw(), interval, retry_after=error.retry_after)
        return delay_after_failure(self._failures, self._draw(), interval, retry_after=error.retry_after)
