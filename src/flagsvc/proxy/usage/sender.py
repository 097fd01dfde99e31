"""Sends buckets in posts that the upstream takes, and knows what each of its answers means for what was counted.

Some of it is sent again, some is given up (behaviour: Usage metrics; decision 0013; 0030).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage.counters import UsageBucket
from flagsvc.proxy.usage.payload import metrics

MOST_BATCH = 10_000
"""Toggles and variants in one post, unless the upstream wants smaller ones."""
MOST_POSTS = 200
"""Posts in a row; what is left then waits for the next time."""
TOO_LARGE = 413
RETRIED = (401, 403, 404, 408, 429)
"""The client errors that may pass; any other says that these counts will never be taken."""


class Sink(Protocol):
    """The part of an upstream session that takes payloads (`flagsvc.proxy.upstream.Upstream`)."""

    async def register(self, payload: Mapping[str, object]) -> None:
        """Send a registration. Raises UpstreamError."""

    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        """Send usage metrics. Raises UpstreamError."""


class UsageSender:
    """Sends to one upstream. `most` is how many entries a post has at the moment."""

    def __init__(
        self,
        sink: Sink,
        identity: Identity,
        *,
        batch: int,
        refuse: Callable[[UsageBucket], None],
        answered: Callable[[], Awaitable[None]],
    ) -> None:
        """Take where to and as whom, and the most entries of a post.

        `refuse` gets what will never be taken, `answered` is awaited after each known answer, before anything else is sent.
        """
        self.most = batch
        self._sink = sink
        self._identity = identity
        self._batch = batch
        self._refuse = refuse
        self._answered = answered

    async def send(self, bucket: UsageBucket) -> UpstreamError | None:
        """Send what is in a bucket, post by post, and return what went wrong last, None when nothing did.

        What the upstream has answered for is taken out of the bucket. What is left in it, also where something is raised, is to
        be sent again.
        """
        refusal: UpstreamError | None = None
        for _ in range(MOST_POSTS):
            if not bucket.toggles:
                break
            batch = first(bucket, self.most)
            error = await self._post(batch)
            if error is not None and not is_final(error):
                return error
            if error is not None and error.status == TOO_LARGE and len(batch.toggles) > 1:
                self.most = max(1, batch.entries() // 2)
                continue
            if error is not None:
                refusal = error
                self._refuse(batch)
            take_out(bucket, batch)
            await self._answered()
        if refusal is None:  # back to larger posts, little by little: the limit may have been another's, and is gone
            self.most = min(self._batch, self.most + self.most // 10 + 1)
        return refusal

    async def _post(self, batch: UsageBucket) -> UpstreamError | None:
        try:
            await self._sink.send_metrics(metrics(self._identity, batch))
        except UpstreamError as error:
            return error
        return None


def is_final(error: UpstreamError) -> bool:
    """Return whether the upstream has said that it will never take these counts."""
    return error.status is not None and 400 <= error.status < 500 and error.status not in RETRIED


def first(bucket: UsageBucket, most: int) -> UsageBucket:
    """Return the first toggles of a bucket, with at most `most` entries together, but at least one toggle.

    A toggle is never cut: some flag servers pass over one that was neither on nor off, its variants included.
    """
    chosen = UsageBucket(bucket.start, bucket.stop, {})
    entries = 0
    for name, tally in bucket.toggles.items():
        entries += 1 + len(tally.variants)
        if chosen.toggles and entries > most:
            break
        chosen.toggles[name] = tally
    return chosen


def take_out(bucket: UsageBucket, batch: UsageBucket) -> None:
    """Take a batch out of the bucket it was cut from."""
    for name in batch.toggles:
        del bucket.toggles[name]
