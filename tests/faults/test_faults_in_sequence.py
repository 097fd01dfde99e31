"""Random lives of a proxy whose upstream, storage and clock fail in any order: every request has a valid answer.

The faults are those of `upstream_faults`, over sockets; the whole application runs, on a clock that stands still, and polls.
Lives with streams have a walk of their own (test_property_follow).
"""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import tracemalloc
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.testing import MemoryStore
from support.aio import until
from support.scene import Proxy, Scene, document, scene, toggle
from support.upstream_faults import FAULTS, QUICK, Fault

Names = tuple[str, ...]
DOCUMENTS: tuple[Names, ...] = (("one",), ("two",), ("one", "two"), ("three", "two", "one"), ("four",))
TOKEN = "server-side-token"
UPSTREAM_MS = 400
TRIES = 20
FEW = 5
"""The allowed number of extra tasks after a start, such as those that the storage blocks; most lives have one at most."""
EXAMPLES, LONG_EXAMPLES = 15, 1500
HOURS = (-20.0, -1.0, 0.5, 30.0)
"""Hours by which the machine's clock may be changed."""
ODD: tuple[tuple[str, str, object], ...] = (
    ("GET", "/proxy?userId=7&properties[plan]=team", None),
    ("POST", "/proxy", {"toggles": ["one", "nowhere"], "context": {"userId": 7}}),
    ("POST", "/proxy", {"toggles": 7}),
    ("POST", "/proxy/client/metrics", {"appName": "a", "instanceId": "i", "bucket": {"toggles": {"one": {"yes": -1}}}}),
    ("GET", "/proxy/client/features", None),
    ("GET", "/proxy/internal-backstage/prometheus", None),
    ("GET", "/nowhere", None),
    ("DELETE", "/proxy", None),
    ("GET", "/proxy?a=" + "b" * 20_000, None),
)
"""The requests that callers send meanwhile."""


class FaultyStore(MemoryStore):
    """A storage provider that behaves as `mode` says: works, raises, hangs, forgets or damages its data."""

    def __init__(self) -> None:
        super().__init__()
        self._mode = "works"
        self._goes_on = asyncio.Event()

    def turn(self, mode: str) -> None:
        """Set the behaviour; a call that hangs continues."""
        self._mode = mode
        self._goes_on.set()
        self._goes_on = asyncio.Event()

    @property
    def names(self) -> Names | None:
        """The toggles of the configuration that a start would find, None where it finds none."""
        if self._mode in ("raises", "forgets", "rots") or not self.data:
            return None
        [record] = self.data.values()
        return next(names for names in (*DOCUMENTS, ()) if body_of(names) == StoredDocument.unpack(record).body)

    async def get(self, key: str) -> bytes | None:
        """Return what is stored, unless something is wrong."""
        if self._mode == "raises":
            raise OSError(errno.EIO, "the disk is broken")
        data = await super().get(key)
        return None if data is None or self._mode == "forgets" else data[: -len(data) // 3] if self._mode == "rots" else data

    async def set(self, key: str, data: bytes) -> None:
        """Store, unless something is wrong."""
        if self._mode == "raises":
            raise OSError(errno.ENOSPC, "the disk is full")
        if self._mode == "hangs":
            await self._goes_on.wait()
        await super().set(key, data)


def body_of(names: Names) -> bytes:
    """Return the document of these toggles as the scene's upstream serves it."""
    return json.dumps(document(*map(toggle, names))).encode()


class ProxyLifecycle(RuleBasedStateMachine):
    """A proxy from start to stop and start again. `current` is the model: the toggles of what is served, None before the first."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.outside, self.life = AsyncExitStack(), AsyncExitStack()
        self.current: Names | None = None
        self.doubt = False
        self.tags: dict[Names, str] = {}

    # ---- the world

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Let something happen, within a bound."""
        return self.runner.run(asyncio.wait_for(coroutine, 60))

    async def _open(self) -> None:
        self.around: Scene = await self.outside.enter_async_context(scene(Path()))
        self.store = FaultyStore()

    async def _start(self, fault: Fault) -> None:
        """Start the proxy while the upstream has a fault."""
        self.current = self.store.names
        self.doubt = False
        self.around.replies["features"] = fault.answer
        options = self.around.options(
            metrics_interval=0,
            upstream_timeout=UPSTREAM_MS,
            upstream_mode="polling",
            storage_provider=self.store,
            exp_server_side_sdk_config_tokens=TOKEN,
        )
        self.proxy: Proxy = await self.life.enter_async_context(self.around.proxy(options, ready=False))
        await self.around.waits(1)
        self.running = len(asyncio.all_tasks())

    async def _stop(self) -> None:
        self.store.turn("works")
        await self.life.aclose()

    async def _served(self) -> Names | None:
        """Return the toggles that are served, None where that is not ready."""
        answer = await self.proxy.ask("GET", "/proxy?userId=7")
        if answer.status_code == 503:
            return None
        assert answer.status_code == 200, (answer.status_code, answer.text)
        names = tuple(each["name"] for each in answer.json()["toggles"])
        assert self.tags.setdefault(names, answer.headers["etag"]) == answer.headers["etag"], "one revision, one tag"
        return names

    async def _offer(self, names: Names) -> None:
        """Let the upstream serve a document: the first answer in time replaces the configuration, and nothing does before."""
        before = self.current
        self.around.replies.clear()
        self.around.served = document(*map(toggle, names))
        for _ in range(TRIES):
            await self.around.next_poll()
            found = await self._served()
            if found == names:
                # what was served already may be so because the poll took too long
                self.current, self.doubt = names, self.doubt and names == before
                return
            if self.current is None and found is not None:  # a poll took too long
                self._looks_again()
            assert found == self.current
        raise AssertionError(f"the proxy does not recover: {self.around.log[-10:]}")

    async def _empty(self) -> None:
        """Let the upstream lose its toggles for one poll: this counts only without a configuration, or at the second time."""
        self.around.replies.clear()
        self.around.served = document()
        await self.around.next_poll()
        found = await self._served()
        allowed = {self.current} | ({()} if self.doubt or not self.current else set())
        if self.current is None:  # the poll may have taken too long
            allowed.add(self.store.names)
        assert found in allowed
        self.doubt = bool(found)
        self.current = found

    def _looks_again(self) -> None:
        """A proxy without a configuration reads the storage again after each failed poll."""
        if self.current is None:
            self.current = self.store.names

    async def _gone(self, times: int) -> None:
        """Let so many polls fail."""
        self.around.upstream.leave()
        for _ in range(times):
            await self.around.next_try()
        await self.around.upstream.listen()
        self._looks_again()

    # ---- what happens

    @initialize(fault=st.sampled_from(FAULTS), names=st.none() | st.sampled_from(DOCUMENTS))
    def begins(self, fault: Fault, names: Names | None) -> None:
        """The first start, nothing stored; in most lives the upstream answers before long."""
        self.run(self._open())
        self.run(self._start(fault))
        if names is not None:
            self.run(self._offer(names))

    @rule(fault=st.sampled_from(FAULTS), times=st.integers(1, 2))
    def the_upstream_fails(self, fault: Fault, times: int) -> None:
        """The upstream fails in one of the ways."""
        self.around.replies["features"] = fault.answer
        for _ in range(times):
            self.run(self.around.next_poll())
            self._looks_again()

    @rule(times=st.integers(1, 2))
    def the_upstream_is_gone(self, times: int) -> None:
        """For some time the upstream's address has no listener."""
        self.run(self._gone(times))

    @rule(names=st.sampled_from(DOCUMENTS))
    def the_upstream_answers(self, names: Names) -> None:
        """The upstream answers with a document that it may have served before."""
        self.run(self._offer(names))

    @rule()
    def the_upstream_is_empty(self) -> None:
        """The upstream has lost its database, or all flags were deleted."""
        self.run(self._empty())

    @rule(mode=st.sampled_from(("works", "raises", "hangs", "forgets", "rots")))
    def the_storage_changes(self, mode: str) -> None:
        """The storage fails, or works again."""
        self.store.turn(mode)

    @rule(hours=st.sampled_from(HOURS))
    def the_clock_is_set(self, hours: float) -> None:
        """The machine's clock is corrected by a lot."""
        self.around.clock._began += hours * 3600

    @rule(mode=st.sampled_from(("works", "raises", "forgets", "rots")), fault=st.sampled_from(FAULTS))
    def the_proxy_restarts(self, mode: str, fault: Fault) -> None:
        """The proxy restarts while the upstream is away. It serves a complete stored document, if there is one."""
        self.run(self._stop())
        self.store.turn(mode)
        self.run(self._start(fault))

    @rule(asked=st.sampled_from(ODD))
    def somebody_asks(self, asked: tuple[str, str, object]) -> None:
        """A caller asks anything; no fault behind the proxy is the caller's error."""
        method, target, body = asked
        answer = self.run(self.proxy.ask(method, target, body=body))
        status = answer.status_code
        assert status < 500 or (status == 503 and self.current is None), (asked, status)

    # ---- the laws

    @invariant()
    def what_is_served_changes_only_by_a_document_that_counts(self) -> None:
        """Before the first document every answer is a 503, after it never."""
        if hasattr(self, "proxy"):
            assert self.run(self._served()) == self.current

    @invariant()
    def nothing_is_left_running(self) -> None:
        """Faults leave no tasks or connections behind: soon there are no more than after the start, apart from a few."""
        if hasattr(self, "proxy"):
            self.run(until(lambda: len(asyncio.all_tasks()) <= self.running + FEW))

    def teardown(self) -> None:
        """Stop everything, and check that the log shows no hidden error."""
        if hasattr(self, "around"):
            self.run(self._stop())
            told = self.around.stderr.getvalue()
            self.run(self.outside.aclose())
            assert "Traceback" not in told, told
        self.runner.close()


@pytest.mark.parametrize("examples", [EXAMPLES, pytest.param(LONG_EXAMPLES, marks=pytest.mark.long)])
def test_any_sequence_of_faults(examples: int) -> None:
    """Only a valid revision changes answers, and after the first configuration no caller gets a 5xx."""
    run_state_machine_as_test(
        ProxyLifecycle, settings=settings(max_examples=examples, stateful_step_count=25, deadline=None, database=None)
    )


ROUNDS, LONG_ROUNDS = 400, 40_000
QUARTERS = 4
GROWTH_KB = 128


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(LONG_ROUNDS, marks=pytest.mark.long)])
def test_memory_stays_bounded(rounds: int, record_property: Callable[[str, object], None]) -> None:
    """After the first quarter of the faults, memory does not grow from quarter to quarter."""
    grown = asyncio.run(grows(rounds))
    record_property("summary", f"{rounds} faults in a row: memory grows by {grown / 1024:.0f} kB in a quarter of them")
    assert grown < GROWTH_KB * 1024


async def grows(rounds: int) -> int:
    """Return by how many bytes memory grows in the middle one of the last three quarters of so many faults, by size.

    A leak is in each of them. One alone may have a table of the interpreter's own that gets its next size.
    """
    random = Random(rounds)
    async with scene(Path()) as around:
        around.replies["features"] = QUICK[0].answer
        async with around.proxy(around.options(metrics_interval=0, storage_provider=MemoryStore()), ready=False) as proxy:
            await around.waits(1)
            marks = []
            tracemalloc.start()
            try:
                for at in range(rounds):
                    await one_round(around, proxy, random, at)
                    if (at + 1) % (rounds // QUARTERS) == 0:
                        marks.append(traced())
            finally:
                tracemalloc.stop()
    return sorted(after - before for before, after in pairwise(marks))[1]


async def one_round(around: Scene, proxy: Proxy, random: Random, at: int) -> None:
    """Let the upstream fail once, and every tenth time serve another document; drop what the test itself recorded."""
    if at % 10:
        around.replies["features"] = random.choice(QUICK).answer
    else:
        around.replies.clear()
        around.served = document(toggle(f"toggle-{at % 7}"))
    await around.next_poll()
    assert (await proxy.ask("GET", "/proxy?userId=7")).status_code == 200
    around.upstream.requests.clear()
    around.upstream._writers.clear()
    around.stderr.truncate(0)
    around.stderr.seek(0)
    while not around.clock._asked.empty():
        around.clock._asked.get_nowait()


def traced() -> int:
    """Return the bytes that Python objects take, after a garbage collection."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
