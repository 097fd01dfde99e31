"""Random histories of a proxy, with upstream failures, restarts and bootstrapping. The invariants hold in each state."""

from __future__ import annotations

import asyncio
import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from flagsvc.core.background import COLD_CEILING_S, longest_delay
from flagsvc.core.errors import UpstreamError
from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.testing import FakeClock, FakeSource, MemoryStore, etag_of, turns
from support.polling import PollerScene, document
from support.same_inputs import examples

INTERVAL_S = 5.0
DOCUMENTS = [document("one"), document("two"), document("one", "two"), document("three", more=True)]
EMPTIES = [document(), document(more=True)]
BAD = [b"", b"{", b"[]", b"<html>", b'{"features":7}', document("one")[:-3]]
FAULTS = [
    UpstreamError(kind, "x", status=status)
    for kind, status in (
        ("network", None),
        ("unauthorized", 401),
        ("unauthorized", 403),
        ("not-found", 404),
        ("throttled", 429),
        ("server", 503),
        ("document", 200),
        ("unexpected", 302),
    )
]


class Outages(RuleBasedStateMachine):
    """A proxy from start to stop and start again. `accepted` is the model: the upstream's last document that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = MemoryStore()
        self.clock = FakeClock()
        self.accepted: bytes | None = None
        self.stored: bytes | None = None
        self.doubt = False
        self.polls = 0
        self.delay = 0.0

    # ---- the world

    async def _start(self, boot: bytes | UpstreamError | None, first: bytes | UpstreamError) -> None:
        self.source = FakeSource(first)
        self.gate = asyncio.Event()
        bootstrap = None if boot is None else FakeSource(boot)
        if bootstrap is not None:
            bootstrap.gate = self.gate
        self.boot = boot if isinstance(boot, bytes) else None
        self.booted = False
        world = PollerScene(self.source, bootstrap, self.store, self.clock, refresh_ms=int(INTERVAL_S * 1000))
        self.holder, self.poller = world.holder, world.poller
        self.accepted, self.doubt, self.synchronised = self.stored, False, False
        self.poller.start()
        self.delay = await self.clock.next_sleep()
        self._apply_poll(first)

    async def _poll(self, answer: bytes | UpstreamError) -> None:
        self.source.then([answer])
        await self.clock.advance(self.delay)
        self.delay = await self.clock.next_sleep()
        self._apply_poll(answer)

    # ---- the model

    def _apply_poll(self, answer: bytes | UpstreamError) -> None:
        """Check what must follow from the answer to a poll."""
        served = self.accepted is not None or self.booted
        upstreams = None if self.accepted is None or self.booted else etag_of(self.accepted)
        assert self.source.etags[-1] == upstreams
        if answer in DOCUMENTS:
            self._accept(answer)
        elif answer in EMPTIES:
            if self.doubt or not served or self.accepted in EMPTIES:
                self._accept(answer)
            else:
                self.doubt = True
        if answer in DOCUMENTS or answer in EMPTIES:
            assert self.delay == INTERVAL_S
        elif served:
            assert INTERVAL_S <= self.delay <= longest_delay(INTERVAL_S)
        else:
            assert 0.5 <= self.delay <= COLD_CEILING_S

    def _accept(self, answer: bytes) -> None:
        self.accepted = self.stored = answer
        self.doubt = self.booted = False
        self.synchronised = True

    # ---- what happens

    @initialize(first=st.sampled_from([*DOCUMENTS, *EMPTIES, *BAD, *FAULTS]))
    def begin(self, first: bytes | UpstreamError) -> None:
        """A first start, nothing stored."""
        self.runner.run(self._start(None, first))

    @rule(answer=st.sampled_from(DOCUMENTS))
    def a_document(self, answer: bytes) -> None:
        self.runner.run(self._poll(answer))

    @rule(answer=st.sampled_from(EMPTIES))
    def an_empty_document(self, answer: bytes) -> None:
        """The upstream has lost its toggles, or says so."""
        self.runner.run(self._poll(answer))

    @rule(answer=st.sampled_from([*BAD, *FAULTS]))
    def a_fault(self, answer: bytes | UpstreamError) -> None:
        self.runner.run(self._poll(answer))

    @rule()
    def the_bootstrap_arrives(self) -> None:
        """Sooner or later than the upstream's answer."""
        self.gate.set()
        self.runner.run(turns())
        empty_over_something = self.boot in EMPTIES and self.accepted is not None and self.accepted not in EMPTIES
        if self.boot is not None and not self.synchronised and not self.booted and not empty_over_something:
            self.booted = True
            self.accepted = self.boot
            self.boot = None

    @rule(
        boot=st.none() | st.sampled_from([*DOCUMENTS, *EMPTIES, FAULTS[0]]),
        first=st.sampled_from([*DOCUMENTS, *EMPTIES, *BAD, *FAULTS]),
    )
    def the_proxy_restarts(self, boot: bytes | UpstreamError | None, first: bytes | UpstreamError) -> None:
        """After a restart, the stored configuration is served."""
        self.runner.run(self.poller.stop())
        self.runner.run(self._start(boot, first))

    # ---- the laws

    @invariant()
    def what_is_served_is_what_was_accepted(self) -> None:
        """A snapshot changes only by a document that counts; it is never lost, never half, never from elsewhere."""
        current = self.holder.current
        assert (current is None) == (self.accepted is None)
        if current is not None and self.accepted is not None:
            assert current.revision == compile_document(json.loads(self.accepted), CompileOptions()).snapshot.revision
            assert self.holder.document is not None and self.holder.document.body == self.accepted

    @invariant()
    def what_is_stored_is_what_the_upstream_gave(self) -> None:
        """Never a bootstrap document, never a bad one."""
        data = self.store.data.get("key")
        assert (StoredDocument.unpack(data).body if data is not None else None) == self.stored

    @invariant()
    def the_loop_lives(self) -> None:
        """No answer of an upstream is a fault of the loop."""
        assert self.poller.is_running and self.poller.restarts == 0

    def teardown(self) -> None:
        if hasattr(self, "poller"):
            self.runner.run(self.poller.stop())
        self.runner.close()


TestOutages = Outages.TestCase
TestOutages.settings = settings(max_examples=examples(80), stateful_step_count=25, deadline=None)
