"""What makes the parent's holder and preparer those of all workers: what they do here, the workers do as well."""

from __future__ import annotations

from flagsvc.repository import Holder, Preparer
from flagsvc.repository.holder import ConfigurationDocument
from flagsvc.repository.ports import Compile, S
from flagsvc.repository.prepare import Prepared, Wanted
from flagsvc.workers.rollout import Rollout


class SharedHolder(Holder[S]):
    """A holder whose every replacement is one in all workers, once there is a `rollout`."""

    def __init__(self) -> None:
        super().__init__()
        self.rollout: Rollout | None = None

    def replace(self, snapshot: S, document: ConfigurationDocument, problems: int) -> None:
        """Serve another configuration from now on, here and in all workers."""
        super().replace(snapshot, document, problems)
        if self.rollout is not None:
            self.rollout.switch(document)


class SharedPreparer(Preparer[S]):
    """A preparer that returns when the workers have prepared the document as well."""

    def __init__(self, compile: Compile[S], wanted: Wanted | None, rollout: Rollout) -> None:
        super().__init__(compile, wanted)
        self._rollout = rollout

    async def __call__(self, body: bytes, previous: S | None) -> Prepared[S]:
        """Return what can replace `previous`. Raises DocumentError; then no worker gets to see the document."""
        prepared = await super().__call__(body, previous)
        await self._rollout.prepare(prepared.document, prepared.raw)
        return prepared
