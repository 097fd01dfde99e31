"""Distributes a document to every worker, in two steps.

First, every worker gets the document, compiles it and answers. When all have answered, or the time is over, one short message makes
every worker serve the document. So all workers switch at nearly the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from flagsvc.core.log import Logger
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.slot import Child, Conditions, SlotDocuments, WorkerSlot


class RolloutDocument(NamedTuple):
    """A document that was sent to the workers. `key` is the object that the parent serves it as."""

    key: object
    number: int
    body: bytes


class DocumentDistribution:
    """The documents of one environment in all workers.

    `late_s` is how many seconds the other workers wait for the slowest one. After `stuck_s` more seconds that one is replaced.
    """

    def __init__(
        self,
        slots: Sequence[WorkerSlot],
        conditions: Conditions,
        log: Logger,
        *,
        late_s: float,
        stuck_s: float,
        environment: int = 0,
    ) -> None:
        self._environment = environment
        self._slots = slots
        self._conditions = conditions
        self._log = log
        self._late_s = late_s
        self._stuck_s = stuck_s
        self._last_number = 0
        self._documents: list[RolloutDocument] = []
        self._current: RolloutDocument | None = None
        self._checked: float | None = None
        self._has_failed = False
        self._is_over = False

    @property
    def has_configuration(self) -> bool:
        return self._current is not None

    async def prepare(self, key: object, body: bytes) -> None:
        """Have every worker compile a document. Returns when all have, or when the time for the slowest is over."""
        self._last_number += 1
        document = RolloutDocument(key, self._last_number, body)
        self._documents = [*self._documents[-messages.KEPT_DOCUMENTS + 1 :], document]
        for slot in self._slots:
            self._send_document(slot, document)
        if await self._wait_for_all(lambda slot: self._of(slot).prepared < document.number):
            return
        for slot in self._slots:
            if slot.channel is not None and self._of(slot).prepared < document.number:
                self._log.warn("a worker is late with a configuration, the others do not wait", worker=slot.number)
                loop = asyncio.get_running_loop()
                loop.call_later(self._stuck_s, self._replace_if_stuck, slot, slot.child, document.number)

    def switch(self, key: object) -> None:
        """Have every worker serve a prepared document. Does nothing if it was not prepared, or is no longer kept."""
        chosen = [document for document in self._documents if document.key is key]
        if chosen:
            self._current = chosen[-1]
            for slot in self._slots:
                self.send_current(slot)

    def confirm(self, moment: float) -> None:
        """Tell every worker when the served configuration was last current."""
        self._checked = moment
        for slot in self._slots:
            slot.send(messages.Checked(moment, self._environment))

    def report_failure(self) -> None:
        """Tell every worker that the first check has failed while there is no configuration."""
        self._has_failed = True
        for slot in self._slots:
            slot.send(messages.Failed(self._environment))

    def send_current(self, slot: WorkerSlot) -> None:
        """Have a worker serve the current document. If the worker does not have it, it is sent first."""
        if self._has_failed:
            slot.send(messages.Failed(self._environment))
        if self._checked is not None:
            slot.send(messages.Checked(self._checked, self._environment))
        if self._current is not None:
            if self._current.number not in self._of(slot).sent:
                self._send_document(slot, self._current)
            slot.send(messages.Switch(self._current.number, self._environment))

    def end(self) -> None:
        """Expect nothing of the workers any more: they do not serve the environment."""
        self._is_over = True

    async def wait_settled(self) -> None:
        """Wait until every worker serves the current document, but not longer than for the slowest allowed."""
        current = self._current
        if current is not None:
            await self._wait_for_all(lambda slot: self._of(slot).served < current.number)

    def _of(self, slot: WorkerSlot) -> SlotDocuments:
        return slot.documents(self._environment)

    def _send_document(self, slot: WorkerSlot, document: RolloutDocument) -> None:
        documents = self._of(slot)
        documents.sent = sorted([*documents.sent, document.number])[-messages.KEPT_DOCUMENTS :]
        slot.send(messages.Prepare(document.number, self._environment), document.body)

    async def _wait_for_all(self, is_pending: Callable[[WorkerSlot], bool]) -> bool:
        """Wait until no worker is pending, for at most `late_s` seconds; return whether none is."""
        checks = [slot.pending_check(is_pending) for slot in self._slots]
        return await self._conditions.wait_for(lambda: not any(check() for check in checks), self._late_s)

    def _replace_if_stuck(self, slot: WorkerSlot, child: Child | None, number: int) -> None:
        """Kill a worker that has still not prepared a document; the pool replaces it."""
        if self._is_over or slot.child is not child or slot.channel is None:
            return
        if self._of(slot).prepared < number:
            self._log.error("a worker does not get ready with a configuration and is replaced", worker=slot.number)
            slot.kill()
