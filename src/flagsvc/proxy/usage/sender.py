"""Sends buckets in posts that the upstream accepts, and decides from its answers what must be sent again.

Some of it is sent again, some is given up (behaviour: Usage metrics; decision 0013; 0030).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import Identity, Upstream
from flagsvc.proxy.usage.counters import UsageBucket
from flagsvc.proxy.usage.payload import metrics_body

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
        after_answer: Callable[[], Awaitable[None]],
    ) -> None:
        """Take the upstream, this proxy's identity, and the most entries of a post.

        `refuse` gets the batches that the upstream will never accept. `after_answer` is awaited after each final answer, before the
        next post.
        """
        self.batch_size = batch
        self._upstream = upstream
        self._identity = identity
        self._batch = batch
        self._refuse = refuse
        self._after_answer = after_answer

    async def send(self, bucket: UsageBucket) -> UpstreamError | None:
        """Send the counts of a bucket, post by post. Returns the last error, or None.

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
            await self._after_answer()
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
