"""What makes the parent's holder and preparer those of all workers: what they do here, the workers do as well."""

from __future__ import annotations

from flagsvc.core.clock import Clock
from flagsvc.proxy.configuration import Holder, Preparer
from flagsvc.proxy.configuration.holder import ConfigurationDocument
from flagsvc.proxy.configuration.ports import Compile, S
from flagsvc.proxy.configuration.prepare import PreparedDocument, Wanted
from flagsvc.proxy.workers.rollout import DocumentRollout


class SharedHolder(Holder[S]):
    """A holder whose every replacement is one in all workers, and their freshness its own, once there is a `rollout`."""

    def __init__(self) -> None:
        super().__init__()
        self.rollout: DocumentRollout | None = None

    def replace(self, snapshot: S, document: ConfigurationDocument, problems: int) -> None:
        """Serve another configuration from now on, here and in all workers."""
        super().replace(snapshot, document, problems)
        if self.rollout is not None:
            self.rollout.switch(document)

    def confirm(self, clock: Clock, age_s: float = 0.0) -> None:
        """Note that a check went well, here and in all workers."""
        super().confirm(clock, age_s)
        if self.rollout is not None and self.checked is not None:
            self.rollout.confirm(self.checked)


class SharedPreparer(Preparer[S]):
    """A preparer that returns when the workers have prepared the document as well."""

    def __init__(self, compile: Compile[S], wanted: Wanted | None, rollout: DocumentRollout) -> None:
        super().__init__(compile, wanted)
        self._rollout = rollout

    async def __call__(self, body: bytes, previous: S | None) -> PreparedDocument[S]:
        """Return what can replace `previous`. Raises DocumentError; then no worker gets to see the document."""
        prepared = await super().__call__(body, previous)
        await self._rollout.prepare(prepared.document, prepared.raw)
        return prepared
