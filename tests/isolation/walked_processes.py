"""What a walk asks: a proxy in one process, or a parent with workers that are joined to it in the same loop."""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import threading
from bisect import bisect_right
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import pytest
from marked_upstreams import Table, options_of

from flagsvc.core.background import wait_for_first
from flagsvc.core.clock import Clock
from flagsvc.core.log import EventLogger, Secrets, build_logger
from flagsvc.engine.compile import Compiler
from flagsvc.engine.snapshot import Snapshot
from flagsvc.process.serve_workers import ParentProcess
from flagsvc.process.worker import ToldGenerations
from flagsvc.process.worker_start import read_portable
from flagsvc.proxy.api.metrics import exposition, readings
from flagsvc.proxy.application import ProxyRuntime
from flagsvc.proxy.configuration import Preparer
from flagsvc.proxy.configuration.prepare import PreparedDocument
from flagsvc.proxy.generations.feeds import make_feature_filter
from flagsvc.proxy.generations.setup import ProxySetup, make_setup, next_setup
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import connect_channel
from flagsvc.proxy.workers.link import ParentLink
from flagsvc.proxy.workers.messages import LENGTHS
from flagsvc.proxy.workers.pool import PoolTimeouts
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import MemoryStore, RecordingLog
from support.aio import until

WORKERS = 2
LATE_S = 0.01
"""Seconds that the parent waits for the slowest worker. It takes a few times as long now and then."""
Tables = Mapping[str, Table]


class View(NamedTuple):
    """The environments that a process may know, and the setups of those that answer in it."""

    tables: Tables
    served: Mapping[str, ProxySetup]


class Walked:
    """A proxy whose environments come and go. `log` and `store` have what leaves it, beside answers and metrics."""

    def __init__(self) -> None:
        self.log, self.store = RecordingLog(), MemoryStore()


class OneProcess(Walked):
    """A proxy in one process."""

    def __init__(self, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.tables = tables
        self.setup = make_setup(self.options())
        self.runtime = ProxyRuntime(self.setup)
        self.contract = self.runtime.service

    def options(self) -> ProxyOptions:
        return options_of(self.tables, self.store, logger=self.log)

    async def start(self) -> None:
        """Start, and wait until every environment was tried."""
        self.runtime.generations.start()
        await asyncio.wait_for(self.runtime.generations.wait_ready(), 20)

    async def stop(self) -> None:
        await self.runtime.generations.stop()

    async def draw(self, random: Random) -> OneProcess:
        """Return a process that answers."""
        return self

    def views(self) -> list[View]:
        """Return what the process may know now. There are several views until a reload has reached the process."""
        return [View(self.tables, {each.name: each.setup for each in self.runtime.generations})]

    async def reload(self, tables: Tables) -> None:
        """Use other environments."""
        self.tables = tables
        self.setup = next_setup(self.setup, self.options())
        self.runtime.generations.use(self.setup)

    def poll_now(self) -> None:
        self.runtime.generations.poll_now()

    def disturb(self, random: Random) -> None:
        """Do nothing."""

    async def metrics(self) -> str:
        """Return the metrics of all processes."""
        sources = self.runtime.generations.sources
        return exposition(sources, readings(sources), ()).decode()


class JoinedWorker(subprocess.Popen[bytes]):
    """A worker without a process and without sockets: its environments and its link, in the parent's loop."""

    numbers = itertools.count(10**8)

    def __init__(self, end: socket.socket) -> None:
        self.pid = next(self.numbers)
        self.environments: ToldGenerations | None = None
        self.error: Exception | None = None
        self.is_killed = False
        self._leaving = asyncio.Event()
        self._ended = threading.Event()
        own = end.dup()
        self._task = asyncio.get_running_loop().create_task(self._run(own))
        self._task.add_done_callback(lambda _: self._end(own))  # also of a task that is cancelled before its first step

    async def _run(self, end: socket.socket) -> None:
        try:
            await self._serve(end)
        except EOFError:
            pass  # the parent has closed its end before it has sent anything
        except Exception as error:
            self.error = error

    def _end(self, end: socket.socket) -> None:
        """Be over, as a process that has ended."""
        end.close()
        self._ended.set()

    async def _serve(self, end: socket.socket) -> None:
        welcome = await read_welcome(end)
        setup = make_setup(read_portable(welcome.options), is_worker=True)
        link: ParentLink = ParentLink(worker=welcome.worker, log=setup.log, clock=setup.clock)
        self.environments = ToldGenerations(setup, link, welcome)
        generations = self.environments.generations
        await connect_channel(end, link.channel)
        self.environments.start()
        link.start(generations.sources, self)
        try:
            configured = self.environments.wait_configured()
            await wait_for_first(configured, link.channel.closed.wait())
            link.report_serving()
            await self._leaving.wait()
        except asyncio.CancelledError:
            link.channel.close()  # one that is killed sends no counts
            raise
        finally:
            await link.stop()

    # ---- the parent's commands

    async def adopt(self, group: int) -> None:
        """Do nothing: there are no sockets."""

    def release(self, group: int) -> None:
        """Do nothing."""

    def reload(self, environments: list[messages.EnvironmentOptions]) -> None:
        assert self.environments is not None
        self.environments.use(environments)

    def drain(self) -> None:
        """Do nothing."""

    def leave(self) -> None:
        """Send the last counts, and end."""
        self._leaving.set()

    # ---- as a process

    def kill(self) -> None:
        self.is_killed = True
        self._task.cancel()

    def wait(self, timeout: float | None = None) -> int:
        """Return the status once it has ended."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("worker", timeout or 0)
        return 0


async def read_welcome(end: socket.socket) -> messages.Welcome:
    """Wait for the parent's first message. Raises EOFError."""
    end.setblocking(False)
    length, _ = LENGTHS.unpack(await receive(end, LENGTHS.size))
    message = messages.decode_parent_message(await receive(end, length))
    assert isinstance(message, messages.Welcome)
    return message


async def receive(end: socket.socket, size: int) -> bytes:
    """Return so many bytes. Raises EOFError."""
    data = b""
    while len(data) < size:
        part = await asyncio.get_running_loop().sock_recv(end, size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


class AskedWorker:
    """A worker that is asked."""

    def __init__(self, around: WithWorkers, number: int, environments: ToldGenerations) -> None:
        self._around = around
        self._number = number
        self._generations = environments.generations
        self.contract = self._generations.entrance

    def views(self) -> list[View]:
        """Return what the worker may know: the environments of its last acknowledged reload, and of each reload since then."""
        served = {each.name: each.setup for each in self._generations}
        return [View(tables, served) for tables in self._around.tables_since(self._number)]


class LatePreparer(Preparer):
    """Prepares the documents of a worker, which takes as long as `around` says."""

    def __init__(self, around: WithWorkers, setup: ProxySetup) -> None:
        super().__init__(Compiler(setup.compile_options), make_feature_filter(setup.options))
        self._around = around

    async def __call__(self, body: bytes, previous: Snapshot | None) -> PreparedDocument:
        """Wait, and prepare a document."""
        await asyncio.sleep(self._around.late_s)  # no wait for a condition: a worker that takes so long
        return await super().__call__(body, previous)


class WithWorkers(Walked):
    """A parent, and workers that are joined to it. They are killed now and then, and may prepare a document too late.

    `late_s` are the seconds that a worker takes to prepare one.
    """

    def __init__(self, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()

        def make_logger(options: ProxyOptions, clock: Clock, level: str, secrets: Secrets) -> EventLogger:
            return build_logger(self.log, level=level, as_json=False, clock=clock, secrets=secrets)

        # a log made in code cannot be given to workers
        monkeypatch.setattr("flagsvc.proxy.generations.setup.make_logger", make_logger)
        monkeypatch.setattr("flagsvc.process.serve_workers.start_worker", lambda sockets, end: self.spawn(end))
        # a killed worker is replaced without a pause
        monkeypatch.setattr("flagsvc.proxy.workers.pool.STEADY_S", 0.0)
        monkeypatch.setattr("flagsvc.proxy.workers.pool.PoolTimeouts", lambda: PoolTimeouts(late=LATE_S))
        monkeypatch.setattr("flagsvc.process.worker.make_preparer", self.make_preparer)
        self.late_s = 0.0
        self.made: list[JoinedWorker] = []
        self.told: list[Tables] = [tables]
        self.first_numbers = [0]
        self.parent = ParentProcess(make_setup(self.options(tables)), [], None)
        self.pool = self.parent.worker_pool
        self.applying: asyncio.Task[None] | None = None

    def options(self, tables: Tables) -> ProxyOptions:
        return options_of(tables, self.store, workers=WORKERS)

    def make_preparer(self, setup: ProxySetup) -> LatePreparer:
        return LatePreparer(self, setup)

    def spawn(self, end: socket.socket) -> JoinedWorker:
        self.made.append(JoinedWorker(end))
        return self.made[-1]

    async def start(self) -> None:
        self.pool.start()
        self.parent.generations.start()
        await asyncio.wait_for(self.pool.wait_started(), 20)
        await asyncio.wait_for(self.parent.generations.wait_ready(), 20)

    async def stop(self) -> None:
        await self._wait_applied()
        await self.pool.stop()
        await self.parent.generations.stop()
        assert [each.error for each in self.made if each.error is not None] == []
        assert "a worker gives up" not in self.log.at("error")

    async def draw(self, random: Random) -> AskedWorker:
        await until(lambda: self.list_answering() != [])
        return random.choice(self.list_answering())

    def list_answering(self) -> list[AskedWorker]:
        """Return the workers that answer. A killed worker does not answer, also before the parent has noted its end."""
        return [
            AskedWorker(self, slot.number, slot.child.environments)
            for slot in self.pool._slots
            if slot.is_serving and isinstance(slot.child, JoinedWorker) and not slot.child.is_killed
            if slot.child.environments is not None
        ]

    def tables_since(self, worker: int) -> list[Tables]:
        """Return the environments of the last reload that a worker acknowledged, and of each reload since then."""
        return self.told[bisect_right(self.first_numbers, self.pool._slots[worker].last_reload) - 1 :]

    async def reload(self, tables: Tables) -> None:
        """Use other environments. The workers are told, and callers go on asking meanwhile."""
        await self._wait_applied()
        self.first_numbers.append(self.pool._last_reload + 1)
        self.told.append(tables)
        self.applying = asyncio.create_task(self.parent.apply_options(self.options(tables)))
        await asyncio.sleep(0)  # the task tells the workers in its first step

    async def _wait_applied(self) -> None:
        """Wait for the last reload, as the process does before the next one."""
        if self.applying is not None:
            await self.applying

    def poll_now(self) -> None:
        self.parent.generations.poll_now()

    async def metrics(self) -> str:
        return (await self.parent.gather_metrics()).decode()

    def disturb(self, random: Random) -> None:
        """Kill a worker now and then, and change how long one takes to prepare a document."""
        self.late_s = random.choice((0.0, 0.0, 4 * LATE_S))
        if random.random() < 0.2:
            random.choice(self.pool._slots).kill()
