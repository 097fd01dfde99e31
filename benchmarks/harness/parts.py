"""The parts of the benchmark, in the order in which they are measured."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field

import engine
from harness import prepared, servers
from harness.load import BenchError, DisagreementError
from harness.measuring import Measuring, Scale, Task
from harness.prepared import GZIP, IDENTITY
from harness.results import (
    EDGE_ONE,
    EMPTY,
    EMPTY_ASGI,
    EQUAL,
    FRONTEND_API,
    MOUNTED,
    NGINX,
    NO_CLASSES,
    ONE_ENVIRONMENT,
    ONE_WORKER,
    OURS,
    PROXY_API,
    REPEATED,
    TEN_ENVIRONMENTS,
    TWO_PROCESSES,
    TWO_WORKERS,
)
from harness.servers import Server, Start

FAST_POLL = {"FLAGSVC_FETCH_INTERVAL": "1000"}
FEATURE_STATE = {"FLAGSVC_VARIANT_FEATURE_STATE": "true"}


@dataclass
class Kinds:
    """How to start what is compared, by name, ours first; and the address of the upstream."""

    upstream: str
    starts: dict[str, Start] = field(default_factory=dict)

    def only(self, *names: str) -> dict[str, Start]:
        """Return some of them."""
        return {name: start for name, start in self.starts.items() if name in names}

    def shaped(self) -> dict[str, Start]:
        """Return all of them, and behind ours the same in the shape that the others answer in."""
        ours, *others = self.starts.items()
        return dict([ours, (EQUAL, servers.ours(EQUAL, **FEATURE_STATE)), *others])


def run(stack: ExitStack, starts: dict[str, Start], url: str) -> list[Server]:
    """Start servers on an upstream until the stack ends."""
    return [stack.enter_context(start(url)) for start in starts.values()]


def tasks_of(scale: Scale) -> list[Task]:
    """Return the tasks of the matrix; a quick run has the list as it is, compressed and unchanged."""
    lists = [Task("matrix", prepared.LIST, encoding) for encoding in (IDENTITY, GZIP)]
    if not scale.whole:
        return [*lists, Task("matrix", prepared.LIST, unchanged=True)]
    forms = (prepared.POST_LIST, prepared.POST_NAMED, prepared.ALL, prepared.BROWSERS)
    others = [Task("matrix", form, encoding) for form in forms for encoding in (IDENTITY, GZIP)]
    # a 304 has no body to compress: what asks for gzip is measured on the list alone
    kept = ((prepared.LIST, IDENTITY), (prepared.LIST, GZIP), (prepared.ALL, IDENTITY))
    return lists + others + [Task("matrix", form, encoding, unchanged=True) for form, encoding in kept]


def mixture_of(scale: Scale, flags: int) -> list[Task]:
    """Return the tasks of mixed traffic at a size, the list first; a quick run has them at one size."""
    return [Task("mixed", form) for form in MIXTURE] if scale.whole or flags == scale.sizes[0] else []


MIXTURE = (prepared.LIST, prepared.METRICS_ONLY, prepared.HEALTH_ONLY, prepared.MIXED)


def pairs_of(running: list[Server], tasks: list[Task]) -> list[tuple[Server, Task]]:
    """Return which server does which task. Ours in the peers' shape answers the list alone: a 304 has no shape."""
    return [(server, task) for server in running for task in tasks if server.name != EQUAL or of_equal_shape(task)]


def of_equal_shape(task: Task) -> bool:
    """Return whether answers of equal shape are compared in a task."""
    return task.part == "matrix" and task.form is prepared.LIST and not task.unchanged


def matrix(stand: Measuring, kinds: Kinds) -> None:
    """Measure every form at every size, 200 and 304, and memory before and after; nothing where the servers disagree."""
    tasks = tasks_of(stand.scale)
    for flags in stand.scale.sizes:
        mixture = mixture_of(stand.scale, flags)
        with ExitStack() as stack:
            running = run(stack, kinds.shaped(), f"{kinds.upstream}/{flags}")
            agree(flags, running)
            stand.footprint(flags, running, "ready")
            plain = [task for task in tasks if task.encoding == IDENTITY and not task.unchanged]
            for server in running:
                stand.warm(flags, [server], [task for _, task in pairs_of([server], plain + mixture[1:])])
            empty = stack.enter_context(servers.ours(EMPTY)(f"{kinds.upstream}/0"))
            groups = [pairs_of(running, [task]) for task in tasks]
            for task, group in zip(tasks, groups, strict=True):
                if task.unchanged and task.form is prepared.LIST and task.encoding == IDENTITY:
                    group.append((empty, Task("floor", prepared.LIST)))
            stand.groups(flags, groups)
            # a server's four tasks are neighbours in each round, because they are compared
            stand.cells(flags, pairs_of(running, mixture), stand.scale.paired)
            stand.footprint(flags, running, "after the matrix")
            stand.forget()


def agree(flags: int, running: list[Server]) -> None:
    """Refuse to go on where the servers do not say the same of the same users."""
    found = servers.differences(running, range(0, 8000, 1000))
    if found:
        raise DisagreementError(f"at {flags} flags the servers do not agree, so nothing is measured:\n" + "\n".join(found[:10]))


def users(stand: Measuring, kinds: Kinds) -> None:
    """Measure the cost against the number of different users that take turns."""
    flags = 100
    with ExitStack() as stack:
        running = run(stack, kinds.starts, f"{kinds.upstream}/{flags}")
        stand.warm(flags, running, [Task("users", prepared.LIST)])
        for number in stand.scale.curve:
            stand.cell(flags, running, Task("users", prepared.LIST, users=number))


def latency(stand: Measuring, kinds: Kinds) -> None:
    """Measure latencies under rates that are the same for all; a server that cannot sustain one is left out of it."""
    for flags, rates in stand.scale.rates:
        with ExitStack() as stack:
            for server in run(stack, kinds.starts, f"{kinds.upstream}/{flags}"):
                capacity = sustained(stand, flags, server)
                for rate in rates:
                    stand.rated("latency", flags, server, rate, capacity)


def sustained(stand: Measuring, flags: int, server: Server) -> float:
    """Return how many requests a second a warm server answers."""
    stand.warm(flags, [server], [Task("latency", prepared.LIST)])
    stand.cell(flags, [server], Task("capacity", prepared.LIST), stand.scale.rounds)
    found = stand.results.cells.pop()
    return found.rate


def start(stand: Measuring, kinds: Kinds) -> None:
    """Measure the time from a start to the first answer, with the upstream answering at once."""
    for name, begin in kinds.shaped().items():
        seconds = []
        for _ in range(stand.scale.starts):
            with begin(f"{kinds.upstream}/1000") as server:
                seconds.append(server.start_s)
        stand.results.starts[name] = seconds
        stand.say(f" 1000 flags, start to ready: {name} {sorted(seconds)[len(seconds) // 2]:.3f} s")


def workers(stand: Measuring, kinds: Kinds) -> None:
    """Compare one worker with two, and with two processes that share nothing: what those cost more, the machine costs."""
    if not servers.has_option("--workers"):
        stand.results.left_out.append("two workers: this version has no `--workers`")
        return
    ways = {
        "one": servers.ours_here(ONE_WORKER),
        "two": servers.ours_here(TWO_WORKERS, "--workers", "2"),
        "apart": servers.ours_twice(TWO_PROCESSES),
    }
    beside(stand, kinds, ways, "workers", (100, 1_000))


FEW = 0.01
"""What share of the answers may come from elsewhere than they should."""


def limit(stand: Measuring, kinds: Kinds) -> None:
    """Compare an evaluated answer with the same bytes from the answer cache, without classes, and from a file by nginx."""
    ways = {OURS: servers.ours(OURS), NO_CLASSES: servers.ours(NO_CLASSES, FLAGSVC_CLASS_CACHE_BYTES="0")}
    evaluated, cached = Task("limit", prepared.LIST), Task("limit", prepared.LIST, users=REPEATED)
    for flags in stand.scale.sizes:
        with ExitStack() as stack:
            ours, plain = run(stack, ways, f"{kinds.upstream}/{flags}")
            pairs = [(ours, evaluated), (ours, cached), (plain, evaluated)]
            if not servers.nginx_missing():
                sends = servers.file_server(NGINX, ours.ask(1).body)
                pairs.append((stack.enter_context(sends(kinds.upstream)), evaluated))
            stand.warm(flags, [ours, plain], [evaluated])
            stand.cells(flags, pairs, stand.scale.paired)
        told_apart(stand, flags)


def told_apart(stand: Measuring, flags: int) -> None:
    """Fail where the answer cache gave more or fewer answers than it should."""
    for cell in stand.results.all("limit", server=OURS, flags=flags):
        if cell.cached is not None and abs(cell.cached - (cell.users > 0)) > FEW:
            wanted = "all" if cell.users else "none"
            stand.fail(f"limit, {flags} flags: the answer cache was to give {wanted} and gave {100 * cell.cached:.0f} %")


def mounted(stand: Measuring, kinds: Kinds) -> None:
    """Compare the proxy mounted in another application with an empty one that writes as much: both pay for uvicorn's protocol."""
    sizes = (10, 100, 1_000)
    for flags in sizes if stand.scale.whole else sizes[:1]:
        with ExitStack() as stack:
            ours = stack.enter_context(servers.under_uvicorn(MOUNTED, "proxy")(f"{kinds.upstream}/{flags}"))
            empty = stack.enter_context(servers.empty_like(EMPTY_ASGI, ours.ask(1))(kinds.upstream))
            stand.warm(flags, [empty, ours], [Task("mounted", prepared.LIST)])
            stand.cell(flags, [empty, ours], Task("mounted", prepared.LIST), stand.scale.paired)


def frontend(stand: Measuring, kinds: Kinds) -> None:
    """Compare the frontend API with `/proxy` in the same shape, and with Edge."""
    ways = {
        PROXY_API: servers.ours(PROXY_API, **FEATURE_STATE),
        FRONTEND_API: servers.ours_frontend(FRONTEND_API),
    }
    others = kinds.only(EDGE_ONE) if stand.scale.whole else {}
    sizes = (10, 100, 900)  # both answers are below 64 KiB; Linux sends a longer one as two segments, which costs more
    beside(stand, kinds, ways | others, "frontend", sizes)


def environments(stand: Measuring, kinds: Kinds) -> None:
    """Compare a process of one environment and a process of ten: cost of a request, and memory before and after."""
    if not stand.scale.whole:
        return
    flags = 100
    ways = {
        ONE_ENVIRONMENT: servers.ours(ONE_ENVIRONMENT),
        TEN_ENVIRONMENTS: servers.ours_divided(TEN_ENVIRONMENTS, 10),
    }
    with ExitStack() as stack:
        running = run(stack, ways, f"{kinds.upstream}/{flags}")
        stand.footprint(flags, running, "ready")
        stand.warm(flags, running, [Task("environments", prepared.LIST)])
        stand.cell(flags, running, Task("environments", prepared.LIST), stand.scale.paired)
        stand.footprint(flags, running, "after requests")


def beside(stand: Measuring, kinds: Kinds, ways: dict[str, Start], part: str, sizes: tuple[int, ...]) -> None:
    """Measure ways of running ours beside each other."""
    for flags in sizes if stand.scale.whole else sizes[:1]:
        with ExitStack() as stack:
            running = run(stack, ways, f"{kinds.upstream}/{flags}")
            stand.warm(flags, running, [Task(part, prepared.LIST)])
            stand.cell(flags, running, Task(part, prepared.LIST), stand.scale.paired)


REFRESHES = {"at rest": "", "one flag a second": "-one", "every flag a second": "-all"}


def refresh(stand: Measuring, kinds: Kinds) -> None:
    """Measure latencies while the document changes every second, beside the same rate at rest."""
    flags, capacity = stand.scale.refresh_flags, 0.0
    for title, suffix in REFRESHES.items():
        with servers.ours(OURS, **FAST_POLL)(f"{kinds.upstream}/{flags}{suffix}") as server:
            capacity = capacity or sustained(stand, flags, server)
            stand.warm(flags, [server], [Task("refresh", prepared.LIST)])
            before = server.ask(1).headers.get("etag")
            stand.rated(f"refresh, {title}", flags, server, round(0.3 * capacity), capacity)
            if bool(suffix) == (server.ask(1).headers.get("etag") == before):
                stand.fail(f"refresh, {title}: the document {'did not change' if suffix else 'changed'}")


def engine_alone(stand: Measuring, kinds: Kinds) -> None:
    """Measure the engine apart from HTTP, compiled and interpreted."""
    try:
        stand.results.engine = engine.both(stand.scale.sizes, stand.scale.engine_s)
    except subprocess.CalledProcessError as error:
        raise BenchError(str(error)) from error
    stand.say("       the engine alone, compiled and interpreted")


PARTS = {
    "limit": limit,
    "matrix": matrix,
    "users": users,
    "latency": latency,
    "start": start,
    "workers": workers,
    "mounted": mounted,
    "frontend": frontend,
    "environments": environments,
    "refresh": refresh,
    "engine": engine_alone,
}
