"""Sends buckets in posts that the upstream accepts, and decides from its answers what must be sent again.

Some of it is sent again, some is given up (behaviour: Usage metrics; decision 0013; 0030). The bodies are those of the contract and
contain no data about end users (behaviour: Registration; Usage metrics; Privacy).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from flagsvc.core.errors import UpstreamError
from flagsvc.engine.strategies import STRATEGIES
from flagsvc.http.reports import HISTOGRAM, MAX_COUNT
from flagsvc.proxy.upstream import SDK, Identity, Upstream
from flagsvc.proxy.usage.counters import ToggleCounts, UsageBucket
from flagsvc.proxy.usage.impact import ImpactKey, ImpactSeries

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
    """Return what of a refused batch is given up: its impact metrics if it has any, so that its toggles are sent without them."""
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
    """Remove the toggles and impact metrics of a batch from its bucket."""
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
    """Return the counts of one toggle."""
    variants = {name: min(times, MAX_COUNT) for name, times in counts.variants.items()}
    return {"yes": min(counts.yes, MAX_COUNT), "no": min(counts.no, MAX_COUNT), "variants": variants}


def impact_body(key: ImpactKey, series: ImpactSeries) -> dict[str, object]:
    """Return an impact metric (dialects: Impact metrics)."""
    samples = [{"labels": dict(labels), **sample_body(key, values)} for labels, values in series.samples.items()]
    return {"name": key.name, "help": series.help, "type": key.kind, "samples": samples}


def sample_body(key: ImpactKey, values: list[float]) -> dict[str, object]:
    """Return the numbers of a sample."""
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
