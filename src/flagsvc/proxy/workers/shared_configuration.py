"""The parent's holder and preparer of one environment, which pass each step on to all workers."""

from __future__ import annotations

from flagsvc.core.clock import Clock
from flagsvc.engine.compile import Compiler
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.configuration import Holder, Preparer
from flagsvc.proxy.configuration.holder import ConfigurationDocument
from flagsvc.proxy.configuration.lifecycle import Event
from flagsvc.proxy.configuration.prepare import FeatureFilter, PreparedDocument
from flagsvc.proxy.workers.distribution import DocumentDistribution


class SharedHolder(Holder):
    """A holder that passes replacements and confirmations on to all workers once it has a `distribution`."""

    def __init__(self) -> None:
        super().__init__()
        self.distribution: DocumentDistribution | None = None

    def replace(self, snapshot: Snapshot, document: ConfigurationDocument, problems: int, odd: int = 0) -> None:
        """Replace the served configuration, here and in all workers."""
        super().replace(snapshot, document, problems, odd)
        if self.distribution is not None:
            self.distribution.switch(document)

    def record_check(self, event: Event, failures: int) -> None:
        """Record the result of a check. Workers are told that the first one has failed, so that their readiness knows it."""
        super().record_check(event, failures)
        if self.distribution is not None and self.current is None and failures == 1:
            self.distribution.report_failure()

    def confirm(self, clock: Clock) -> None:
        """Record that the configuration is current, here and in all workers."""
        super().confirm(clock)
        if self.distribution is not None and self.checked_at is not None:
            self.distribution.confirm(self.checked_at)


class SharedPreparer(Preparer):
    """A preparer that waits until the workers have prepared the document as well."""

    def __init__(self, compiler: Compiler, wanted: FeatureFilter | None, distribution: DocumentDistribution) -> None:
        super().__init__(compiler, wanted)
        self._rollout = distribution

    async def __call__(self, body: bytes, previous: Snapshot | None) -> PreparedDocument:
        """Return the configuration that can replace `previous`. Raises DocumentError, and sends the document to no worker then."""
        prepared = await super().__call__(body, previous)
        await self._rollout.prepare(prepared.document, prepared.raw)
        return prepared
