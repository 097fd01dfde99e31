"""One cell after the other: each round asks every server in turn, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import documents
from harness import load, prepared, procs
from harness.prepared import Form
from harness.results import EQUAL, OURS, Cell, Footprint, Latency, Results
from harness.servers import Server

CHEAP = frozenset({200, 202})
UNCHANGED = frozenset({304})
LEARNT_USERS = 2_000
VARIETY = 6_000
"""Different requests in a file, a multiple of what mixture and contexts repeat after; users are numbered when they are sent."""
NAMING = (prepared.POST_NAMED, prepared.METRICS_ONLY, prepared.MIXED)
"""What names flags, and has files of its own for each size."""
STEADY = 0.93
"""A run that costs less than this share of the cheapest before shows that a server was not warm yet."""
FEW_FLAGS = 100
"""Up to here a runtime sees so little work in a request that it takes many of them to compile what is hot."""
WARM_UP_TO = 1_000
"""At more flags than these a request takes so long that a warm-up of each round would take most of the time."""


@dataclass(frozen=True)
class Scale:
    """How much is measured: the whole, or quickly."""

    sizes: tuple[int, ...] = (10, 100, 350, 1_000, 5_000)
    rounds: int = 3
    extra: int = 3
    """How often a group of cells is measured again while the two cheapest rounds of one of them are not close."""
    share: float = 0.4
    """How much of the time of the first rounds the further ones may take, over all groups so far: it bounds the whole run."""
    paired: int = 5
    """How many rounds there are of what is compared within each round, or with itself in another arrangement."""
    seconds: float = 0.4
    whole: bool = True
    curve: tuple[int, ...] = (1, 10, 100, 1_000, 10_000, 100_000)
    rates: tuple[tuple[int, tuple[float, ...]], ...] = ((100, (200, 1_000, 10_000)), (1_000, (30, 150, 3_000)))
    rated_s: float = 6.0
    starts: int = 5
    refresh_flags: int = 5_000
    connections: int = 32
    warm_s: float = 0.25
    warm_ups: int = 12
    learn_s: float = 0.6
    engine_s: float = 0.5


FULL = Scale()
QUICK = Scale(
    sizes=(10, 1_000), rounds=2, extra=1, share=0.1, paired=3, seconds=0.2, whole=False, curve=(1, 10_000),
    rates=((100, (200,)),), rated_s=1.0, starts=2, refresh_flags=1_000,
    warm_s=0.15, warm_ups=6, learn_s=0.2, engine_s=0.2,
)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """What is asked in a cell."""

    part: str
    form: Form
    encoding: str = prepared.IDENTITY
    unchanged: bool = False
    users: int = 0
    """How many users take turns, 0 where every request is for another one."""

    @property
    def requests(self) -> int:
        """How many requests are prepared."""
        return self.users or (LEARNT_USERS if self.unchanged else VARIETY)

    @property
    def title(self) -> str:
        """What progress calls it."""
        turns = f", {self.users:,} users in turn" if self.users else ""
        return f"{self.form.title}, {self.encoding}{', 304' if self.unchanged else ''}{turns}"


Group = list[tuple[Server, Task, Cell]]
"""Measurements of the same round, in this order."""


@dataclass
class Measuring:
    """Everything that measurements share: the load generator, a folder for its files, and the results so far."""

    binary: Path
    folder: Path
    scale: Scale
    say: Callable[[str], None]
    results: Results = field(default_factory=Results)
    files: dict[tuple[object, ...], Path] = field(default_factory=dict)
    walked: dict[str, int] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    clock: Callable[[], float] = time.monotonic
    first_s: float = 0.0
    again_s: float = 0.0

    def cell(self, flags: int, servers: list[Server], task: Task, rounds: int = 0) -> None:
        """Measure one task on each server that can do it."""
        self.cells(flags, [(server, task) for server in servers], rounds)

    def cells(self, flags: int, pairs: list[tuple[Server, Task]], rounds: int = 0) -> None:
        """Measure tasks on servers, in turn in each round. A server that cannot do its task is left out.

        With `rounds` there are so many; else as many as the scale has, and further ones while a cell is not steady.
        """
        self.groups(flags, [pairs], rounds)

    def groups(self, flags: int, groups: list[list[tuple[Server, Task]]], rounds: int = 0) -> None:
        """Measure several such groups, each once before any of them is measured again.

        What disturbs a machine lasts for seconds or minutes: rounds that follow each other at once would all be disturbed.
        """
        measured = [self._group(flags, pairs) for pairs in groups]
        for number in range(rounds or self.scale.rounds):
            if len(groups) > 1:
                self.say(f"{flags:>5} flags, round {number + 1} of {len(groups)} groups")
            spent = sum(self._all(group) for group in measured)
            self.first_s += 0.0 if rounds else spent
        for _ in range(0 if rounds else self.scale.extra):
            for group in measured:
                if not all(cell.steady for _, _, cell in group if cell.cpu) and self._may_repeat():
                    self.again_s += self._all(group)
        for group in measured:
            self._keep(flags, group)

    def _group(self, flags: int, pairs: list[tuple[Server, Task]]) -> Group:
        able = [(server, task) for server, task in pairs if task.form.needs(server.routes)]
        return [(server, task, self._cell(server, flags, task)) for server, task in able]

    def _may_repeat(self) -> bool:
        return self.again_s < self.scale.share * self.first_s

    def _keep(self, flags: int, group: Group) -> None:
        """Keep the cells of a group, and print them."""
        self.results.cells += [cell for _, _, cell in group if cell.cpu]
        for task in dict.fromkeys(task for _, task, _ in group):
            mine = [cell for _, its, cell in group if its is task and cell.cpu]
            figures = ", ".join(f"{cell.server} {cell.us:,.1f}" for cell in mine)
            self.say(f"{flags:>5} flags, {task.part}: {task.title}: {figures}")

    def _all(self, group: Group) -> float:
        """Measure every cell of a group once, and return the seconds that it took."""
        begun = self.clock()
        for server, task, cell in group:
            self._round(server, task, cell)
        return self.clock() - begun

    def _cell(self, server: Server, flags: int, task: Task) -> Cell:
        status = 304 if task.unchanged else 202 if task.form is prepared.METRICS_ONLY else 200
        users = task.users or (task.requests if task.unchanged else 0)
        return Cell(task.part, server.name, flags, task.form.title, task.encoding, status, users)

    def _round(self, server: Server, task: Task, cell: Cell) -> None:
        own = server.name in (OURS, EQUAL)
        try:
            before = server.cache_hits() if own else 0.0
            shot = self.shoot(server, task, cell.flags, self._plan(task, cell))
        except load.BenchError as error:
            self.fail(f"{server.name}, {cell.flags} flags, {task.title}: {error}")
            return
        cell.cpu.append(shot.cpu_us)
        cell.rates.append(shot.rate)
        cell.answer, cell.encoded = shot.bytes / shot.requests, shot.encoded / shot.requests
        cell.users = shot.prepared if cell.users else 0  # some users may not have had the time to learn
        cell.cached = min((server.cache_hits() - before) / shot.requests, 1.0) if own and not task.unchanged else None

    def _plan(self, task: Task, cell: Cell) -> load.Plan:
        warm = 0.1 if cell.flags <= WARM_UP_TO else 0.0
        learn = self.scale.learn_s if task.unchanged else None
        return load.Plan(self.scale.seconds, self.scale.connections, warm=warm, learn=learn)

    def fail(self, what: str) -> None:
        """Keep and tell what went wrong; the rest is measured."""
        if what not in self.results.failed:
            self.results.failed.append(what)
            self.say(f"failed: {what}")

    def shoot(self, server: Server, task: Task, flags: int, plan: load.Plan) -> load.LoadResult:
        """Run the load generator against a server; unless the task has users of its own, each request is for another user."""
        begin = self.walked.get(server.name, 0)
        fresh = None if task.unchanged or task.users else begin
        expected = UNCHANGED if task.unchanged else CHEAP
        file = self.file(server, flags, task)
        second = (server.second.port, server.second.pid) if server.second else None
        planned = replace(plan, fresh=fresh, offset=begin)
        shot = load.run_load(self.binary, server.port, server.pid, file, planned, expected, second)
        self.walked[server.name] = begin + math.ceil(shot.rate * (shot.seconds + 2 * plan.warm)) + plan.connections
        return shot

    def file(self, server: Server, flags: int, task: Task) -> Path:
        """Return the file of a task's requests; it is written once."""
        names = [feature["name"] for feature in documents.document(flags)["features"]] if task.form in NAMING else []
        key = (task.form.title, server.routes, task.encoding, task.requests, tuple(names))
        if key not in self.files:
            path = self.folder / f"requests-{next(self.numbers)}"
            self.files[key] = prepared.write(path, task.form, server.routes, task.encoding, task.requests, names)
        return self.files[key]

    def forget(self) -> None:
        """Remove the files that name flags: another size has others."""
        for key, path in list(self.files.items()):
            if key[-1]:
                path.unlink()
                del self.files[key]

    def warm(self, flags: int, servers: list[Server], tasks: list[Task]) -> None:
        """Have every server answer until it no longer gets quicker: runtimes compile what runs often."""
        for server in servers:
            for task in tasks:
                if task.form.needs(server.routes):
                    self._until_steady(server, task, flags)

    def _until_steady(self, server: Server, task: Task, flags: int) -> None:
        patience = 3 if flags <= FEW_FLAGS else 1
        best, waited = float("inf"), 0
        for _ in range(self.scale.warm_ups):
            plan = load.Plan(self.scale.warm_s, self.scale.connections, warm=0.0)
            cost = self.shoot(server, task, flags, plan).cpu_us
            waited = 0 if cost < STEADY * best else waited + 1
            best = min(best, cost)
            if waited == patience:
                return

    def rated(self, part: str, flags: int, server: Server, rate: float, capacity: float) -> Latency | None:
        """Measure latencies at a rate; leave out and say so what a server cannot sustain."""
        if rate > 0.6 * capacity:
            why = f"{rate:,.0f} requests a second are over six tenths of what it can answer ({capacity:,.0f})"
            self.results.left_out.append(f"{part}: {server.name} at {flags:,} flags: {why}")
            return None
        plan = load.Plan(self.scale.rated_s, 2 * self.scale.connections, warm=0.3, rate=rate)
        shot = self.shoot(server, Task(part, prepared.LIST), flags, plan)
        found = Latency(part, server.name, flags, rate, shot.latency[str(prepared.EVALUATION)])
        self.results.latencies.append(found)
        p50, p99 = (found.percentiles[name] for name in ("50", "99"))
        self.say(f"{flags:>5} flags, {part}: {server.name} at {rate:,.0f}/s: p50 {p50:,.0f}, p99 {p99:,.0f} us")
        return found

    def footprint(self, flags: int, servers: list[Server], when: str) -> None:
        """Keep what each server's memory is."""
        for server in servers:
            memory = procs.memory(server.pid)
            self.results.memory.append(Footprint(server.name, flags, when, memory.rss, memory.pss))
