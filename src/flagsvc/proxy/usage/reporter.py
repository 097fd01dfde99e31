"""Registers this proxy with the upstream, and sends usage metrics.

Counts that could not be sent are kept in memory. While sending fails they are also stored, so that a later run of this process, or
another process, sends them (decision 0017).

A post is no larger than the upstream accepts, and its answer decides what is sent again. It registers once, and sends every
`metricsInterval` with `metricsJitter` (specification: What the service does, points 3 and 4; Options; behaviour: Registration;
Usage metrics).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from flagsvc.core.background import SupervisedTask, delay_after_failure, delay_while_refused
from flagsvc.core.clock import Clock
from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.engine.strategies import STRATEGIES
from flagsvc.http.reports import HISTOGRAM, MAX_COUNT
from flagsvc.proxy.upstream import SDK, Identity, Upstream
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket, UsageCounters
from flagsvc.proxy.usage.impact import ImpactKey, ImpactSeries
from flagsvc.proxy.usage.unsent import UnsentUsage

MAX_BATCH = 10_000
"""The most toggles, variants and samples of impact metrics in one post, unless the upstream accepts only smaller ones."""
MAX_POSTS = 200
"""The most posts in a row; the rest waits for the next time."""
TOO_LARGE = 413
RETRIED_STATUSES = (401, 403, 404, 408, 429)
"""Client errors that may be temporary. Any other one means that the upstream will never accept these counts."""


class UsageSender:
    """Sends usage metrics to one upstream. `batch_size` is the present number of entries in a post."""

    def __init__(
        self,
        upstream: Upstream,
        identity: Identity,
        *,
        batch: int,
        refuse: Callable[[UsageBucket], None],
    ) -> None:
        """Take the upstream, this proxy's identity, and the most entries of a post.

        `refuse` gets the batches that the upstream will never accept.
        """
        self.batch_size = batch
        self._upstream = upstream
        self._identity = identity
        self._batch = batch
        self._refuse = refuse

    async def send(self, bucket: UsageBucket, after_answer: Callable[[], Awaitable[None]]) -> UpstreamError | None:
        """Send the counts of a bucket, post by post. Returns the last error, or None.

        `after_answer` is awaited after each final answer, before the next post.

        Batches with a final answer are removed from the bucket. The counts that remain in it, also after an exception, must be sent
        again.
        """
        refusal: UpstreamError | None = None
        for _ in range(MAX_POSTS):
            if not bucket.parts():
                break
            batch = first_batch(bucket, self.batch_size)
            error = await self._post(batch)
            if error is not None and not is_final(error):
                return error
            if error is not None and error.status == TOO_LARGE and batch.parts() > 1:
                self.batch_size = max(1, batch.entries() // 2)
                continue
            if error is not None:
                refusal = error
                batch = suspect_part(batch)
                self._refuse(batch)
            remove_batch(bucket, batch)
            await after_answer()
        if refusal is None:  # slowly back to larger posts: the limit may have been temporary
            self.batch_size = min(self._batch, self.batch_size + self.batch_size // 10 + 1)
        return refusal

    async def _post(self, batch: UsageBucket) -> UpstreamError | None:
        try:
            await self._upstream.send_metrics(metrics_body(self._identity, batch))
        except UpstreamError as error:
            return error
        return None


def is_final(error: UpstreamError) -> bool:
    """Return whether an error means that the upstream will never accept these counts."""
    return error.status is not None and 400 <= error.status < 500 and error.status not in RETRIED_STATUSES


def suspect_part(batch: UsageBucket) -> UsageBucket:
    """Return the part of a refused batch to give up: the impact metrics, so that the toggles are sent alone. Without impact
    metrics, it is the whole batch."""
    return UsageBucket(batch.start, batch.stop, {} if batch.impact else batch.toggles, batch.source, batch.impact)


def first_batch(bucket: UsageBucket, most: int) -> UsageBucket:
    """Return the first toggles and impact metrics of a bucket: at most `most` entries together, but at least one of them.

    A toggle is never split: some flag servers ignore a toggle that was neither on nor off, including its variants. Nor is an impact
    metric: the real server forgets its values when samples with other labels come alone.
    """
    chosen = UsageBucket(bucket.start, bucket.stop, {}, bucket.source)
    entries = 0
    for name, counts in bucket.toggles.items():
        entries += 1 + len(counts.variants)
        if chosen.toggles and entries > most:
            break
        chosen.toggles[name] = counts
    for key, series in bucket.impact.items():
        entries += len(series.samples)
        if chosen.parts() and entries > most:
            break
        chosen.impact[key] = series
    return chosen


def remove_batch(bucket: UsageBucket, batch: UsageBucket) -> None:
    for name in batch.toggles:
        del bucket.toggles[name]
    for key in batch.impact:
        del bucket.impact[key]


def registration_body(
    identity: Identity, *, custom_strategies: Sequence[str], started: float, interval_ms: int
) -> dict[str, object]:
    """Return the body of a registration; `started` is in seconds since the epoch, `interval_ms` is metricsInterval."""
    names = dict.fromkeys((*STRATEGIES, *custom_strategies))
    fields = {"sdkVersion": SDK, "strategies": list(names), "started": format_time(started), "interval": interval_ms}
    return identity.fields() | fields


def metrics_body(identity: Identity, bucket: UsageBucket) -> dict[str, object]:
    """Return the body of a metrics post, under the name of the application that counted. Impact metrics are there if it has any."""
    toggles = {name: toggle_body(counts) for name, counts in bucket.toggles.items()}
    source = bucket.source
    names = identity.fields() if source is None else {"appName": source.app_name, "instanceId": source.instance_id}
    counted = {"start": format_time(bucket.start), "stop": format_time(bucket.stop), "toggles": toggles}
    impact = [impact_body(key, series) for key, series in bucket.impact.items()]
    return {**names, "bucket": counted, **({"impactMetrics": impact} if impact else {})}


def toggle_body(counts: ToggleCounts) -> dict[str, object]:
    variants = {name: min(times, MAX_COUNT) for name, times in counts.variants.items()}
    return {"yes": min(counts.yes, MAX_COUNT), "no": min(counts.no, MAX_COUNT), "variants": variants}


def impact_body(key: ImpactKey, series: ImpactSeries) -> dict[str, object]:
    """Return an impact metric (dialects: Impact metrics)."""
    samples = [{"labels": dict(labels), **sample_body(key, values)} for labels, values in series.samples.items()]
    return {"name": key.name, "help": series.help, "type": key.kind, "samples": samples}


def sample_body(key: ImpactKey, values: list[float]) -> dict[str, object]:
    numbers = [plain(value) for value in values]
    if key.kind != HISTOGRAM:
        return {"value": numbers[0]}
    total, count, *counts = numbers
    buckets = [{"le": plain(bound), "count": each} for bound, each in zip(key.bounds, counts, strict=True)]
    return {"count": count, "sum": total, "buckets": [*buckets, {"le": "+Inf", "count": count}]}


def plain(value: float) -> int | float:
    """Return a number as JavaScript writes it: a whole one without a point."""
    return int(value) if value.is_integer() else value


def format_time(seconds: float) -> str:
    """Return seconds since the epoch as an ISO 8601 date-time in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
        return sum(loop.restarts for loop in self._loops)

    def start(self) -> None:
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
        """Send the counts, and the counts that other processes have left. Keep the counts that the upstream may accept later."""
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
        """Send the registrations of server-side applications. Registrations that the upstream may accept later are kept."""
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
        return [bucket for bucket in (*self._unsent, self._counters.peek(), *self._counters.peek_sources()) if bucket.parts()]

    def _delay(self) -> float:
        error, interval = self._error, self._interval_s
        if error is None:
            spread = (2 * self._draw() - 1) * self._jitter_s
            return max(MIN_INTERVAL_SHARE * interval, interval + spread)
        if error.kind == "unauthorized":
            return delay_while_refused(self._draw(), interval, retry_after=error.retry_after)
        return delay_after_failure(self._failures, self._draw(), interval, retry_after=error.retry_after)
