"""The goals, as a table, and what a run says about each: met, only what must be, or not."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness import edge
from harness.prepared import GZIP, HEALTH_EVERY, IDENTITY, POSTS_EVERY
from harness.results import (
    EDGE_ONE,
    EMPTY,
    EMPTY_ASGI,
    EQUAL,
    FRONTEND_API,
    MOUNTED,
    NGINX,
    NO_CLASSES,
    ONE_WORKER,
    OURS,
    PROXY_API,
    REFERENCE,
    REPEATED,
    TWO_PROCESSES,
    TWO_WORKERS,
    Cell,
    Results,
)

MET, MUST, MISSED, UNKNOWN = "met", "must met", "**not met**", "not measured"
NEWER = "Newer versions of Edge are faster: 20.4.1 needs about half as much at 350 flags and above."
NOT_BY_CARGO = (
    f"{edge.VERSION} is the newest that `cargo install` gave when this was written; "
    "`make bench EDGE=BINARY` measures a newer one if you have its binary"
)
OLD, NEW = "Edge 20.1.0, one worker thread", "Edge 20.4, one worker thread"


@dataclass(frozen=True)
class Verdict:
    """The demand of a goal, the measured figure, whether it is enough, and what it is compared with."""

    what: str
    wanted: str
    figure: str
    state: str
    note: str = ""


@dataclass(frozen=True)
class Ratio:
    """How many times less CPU than another server in answers of equal shape, at each size: what must be and what is the goal."""

    title: str
    server: str
    encoding: str
    status: int
    wanted: dict[int, tuple[float, float]]
    versions: str = ""

    @property
    def ours(self) -> str:
        """Which of ours is compared: the one in the peers' shape, and as it comes where an answer has no body."""
        return OURS if self.status == 304 else EQUAL


RATIOS = (
    Ratio(
        "the reference",
        REFERENCE,
        IDENTITY,
        200,
        {10: (16, 21), 100: (45, 60), 350: (75, 100), 1000: (85, 115), 5000: (80, 100)},
    ),
    Ratio(
        "the reference, gzip",
        REFERENCE,
        GZIP,
        200,
        {10: (16, 20), 100: (36, 48), 350: (55, 72), 1000: (70, 92), 5000: (72, 92)},
    ),
    Ratio(
        NEW,
        EDGE_ONE,
        IDENTITY,
        200,
        {10: (3.5, 4.8), 100: (6.5, 8.5), 350: (12, 16), 1000: (22, 26), 5000: (30, 38)},
        "new",
    ),
    Ratio(
        f"{NEW}, gzip",
        EDGE_ONE,
        GZIP,
        200,
        {10: (10, 12), 100: (8.5, 10), 350: (13, 16), 1000: (20, 26), 5000: (25, 38)},
        "new",
    ),
    Ratio(OLD, EDGE_ONE, IDENTITY, 200, {10: (4.5, 6), 100: (12, 15), 350: (24, 32), 1000: (30, 40)}, "old"),
    Ratio("Edge, 304 for an unchanged poller", EDGE_ONE, IDENTITY, 304, {10: (4.5, 6), 1000: (85, 150), 5000: (600, 900)}),
)


def edge_age(results: Results) -> str:
    """Return which table of goals the measured Edge belongs to: `new` from 20.4 on, `old` before."""
    found = re.match(r"(\d+)\.(\d+)", results.about.get("versions", {}).get("Unleash Edge", ""))
    return "" if not found else "new" if (int(found[1]), int(found[2])) >= (20, 4) else "old"


def ratio(results: Results, server: str, own: str, **like: object) -> float | None:
    """Return how many times the CPU of one of ours another server needs in a cell of the matrix."""
    ours, other = results.find("matrix", own, **like), results.find("matrix", server, **like)
    return other.us / ours.us if ours and other else None


def judge(figure: float, must: float, goal: float) -> str:
    """Return whether a figure that should be large is large enough."""
    return MET if figure >= goal else MUST if figure >= must else MISSED


def ratios(results: Results) -> list[Verdict]:
    """Return a verdict for every ratio at every size."""
    found = []
    for row in RATIOS:
        if row.versions and row.versions != edge_age(results):
            found.append(Verdict(row.title, "", unmeasured(results, row.versions), UNKNOWN))
            continue
        for flags, (must, goal) in row.wanted.items():
            like = {"flags": flags, "form": "GET list", "encoding": row.encoding, "status": row.status}
            value = ratio(results, row.server, row.ours, **like)
            what, wanted = f"{row.title}, {flags:,} flags", f"{must:g} / {goal:g} times less"
            state = UNKNOWN if value is None else judge(value, must, goal)
            found.append(Verdict(what, wanted, "" if value is None else f"{value:.1f}", state))
    return found


def unmeasured(results: Results, versions: str) -> str:
    """Return why there is no figure against some versions of Edge."""
    if versions == "new":
        return NOT_BY_CARGO
    found = results.about.get("versions", {}).get("Unleash Edge")
    return f"Edge {found} was measured instead" if found else "no Edge was measured"


def below(what: str, wanted: str, unit: str, limit: float, figure: float | None) -> Verdict:
    """Return the verdict on a figure that should be small."""
    if figure is None:
        return Verdict(what, wanted, "", UNKNOWN)
    return Verdict(
        what,
        wanted,
        f"{figure:.2f}{unit}" if figure < 10 else f"{figure:.1f}{unit}",
        MET if figure <= limit else MISSED,
    )


LIMITS = {10: (1.33, 1.25), 100: (1.5, 1.4), 350: (2.0, 1.7), 1000: (2.8, 2.2), 5000: (6.5, 4.5)}
"""Flags → how many times the cached answer an evaluated one may cost: what must be and what is the goal."""


@dataclass(frozen=True)
class Limit:
    """An evaluated answer beside the same from the answer cache, at one size: the cells, and the ratio of each round.

    The two figures of a round are of the same process and the same seconds, so that what disturbs both leaves their ratio.
    """

    flags: int
    cached: Cell | None
    evaluated: Cell | None
    plain: Cell | None
    """Evaluated by a process without classes of contexts."""
    sent: Cell | None = None
    """A file as long as the answer, from nginx; None where there was no nginx."""

    @property
    def rounds(self) -> list[float]:
        """The ratio of each round; empty if a round is incomplete."""
        cached, evaluated = (cell.cpu if cell else [] for cell in (self.cached, self.evaluated))
        return [b / a for a, b in zip(cached, evaluated, strict=True)] if len(cached) == len(evaluated) else []

    @property
    def ratio(self) -> float | None:
        """The median of the rounds."""
        return statistics.median(self.rounds) if self.rounds else None

    @property
    def state(self) -> str:
        """Whether the ratio is small enough; empty at a size without a goal."""
        if self.flags not in LIMITS:
            return ""
        must, goal = LIMITS[self.flags]
        return UNKNOWN if self.ratio is None else judge(-self.ratio, -must, -goal)


def limits(results: Results) -> list[Limit]:
    """Return how near to the cached answer ours is, at every size that has a goal or was measured."""
    found = []
    for flags in sorted(LIMITS.keys() | {cell.flags for cell in results.all("limit")}):
        cached, evaluated = (results.find("limit", OURS, flags=flags, users=users) for users in (REPEATED, 0))
        others = (results.find("limit", name, flags=flags) for name in (NO_CLASSES, NGINX))
        found.append(Limit(flags, cached, evaluated, *others))
    return found


def unchanged(results: Results) -> list[Verdict]:
    """A 304 for an unchanged poller, beside an empty answer in the same rounds."""
    found = []
    for flags in results.sizes():
        empty = results.find("floor", EMPTY, flags=flags)
        cell = results.find("matrix", OURS, flags=flags, form="GET list", encoding=IDENTITY, status=304)
        value = cell.us / empty.us if cell and empty else None
        found.append(below(f"a 304, {flags:,} flags", "at most 1.2 times an empty answer", " times", 1.2, value))
    return found


def gets_within(mixed: float, metrics: float, health: float) -> float:
    """Return the microseconds of a GET in mixed traffic: what is left when the posts and checks are paid as they cost alone."""
    posts, checks = 1 / POSTS_EVERY, 1 / HEALTH_EVERY
    return (mixed - posts * metrics - checks * health) / (1 - posts - checks)


def mixture_of(results: Results, server: str, flags: int) -> list[float]:
    """Return each round's cost of a GET in mixed traffic as a multiple of its cost alone; empty if a round is incomplete.

    The four figures of a round are of the same few seconds, so that what disturbs them all leaves their ratio as it is.
    """
    forms = ("GET list", "mixed", "metrics post", "health check")
    cells = [results.find("mixed", server, flags=flags, form=form) for form in forms]
    rounds = [cell.cpu if cell else [] for cell in cells]
    if len({len(each) for each in rounds}) > 1:
        return []
    return [gets_within(*others) / alone for alone, *others in zip(*rounds, strict=True)]


def mixture(results: Results) -> list[Verdict]:
    """Mixed traffic on every connection: the median of the rounds, for a ratio is disturbed both ways."""
    found = []
    for flags in results.sizes():
        rounds = mixture_of(results, OURS, flags)
        value = statistics.median(rounds) if rounds else None
        what = f"the GETs of mixed traffic, {flags:,} flags"
        found.append(below(what, "at most 1.15 times their cost alone", " times", 1.15, value))
    return found


def pairs(results: Results, part: str, second: str, first: str) -> list[tuple[Cell, Cell]]:
    """Return the cells of two ways of running ours, by size."""
    found = []
    for cell in results.all(part, server=first):
        other = results.find(part, second, flags=cell.flags)
        if other:
            found.append((cell, other))
    return found


def workers(results: Results) -> list[Verdict]:
    """Two workers beside one, and what two processes that share nothing cost."""
    wanted = "at most 1.1 times the CPU of one"
    found = []
    for one, two in pairs(results, "workers", TWO_WORKERS, ONE_WORKER):
        verdict = below(f"two workers, {one.flags:,} flags", wanted, " times", 1.1, two.us / one.us)
        apart = results.find("workers", TWO_PROCESSES, flags=one.flags)
        note = f"two separate processes: {apart.us / one.us:.2f} times" if apart else ""
        found.append(replace(verdict, note=note))
    return found or [below("two workers", wanted, "", 1.1, None)]


def mounted(results: Results) -> list[Verdict]:
    """Ours mounted beside an empty ASGI application: what uvicorn's protocol costs is in both."""
    wanted = "at most 10 µs over an empty ASGI application"
    found = []
    for empty, ours in pairs(results, "mounted", MOUNTED, EMPTY_ASGI):
        verdict = below(f"mounted (ASGI), {ours.flags:,} flags", wanted, " µs", 10, ours.us - empty.us)
        found.append(replace(verdict, note=f"the empty application: {empty.us:.1f} µs"))
    return found or [below("mounted (ASGI)", wanted, "", 10, None)]


def frontend(results: Results) -> list[Verdict]:
    """The frontend API beside `/proxy` with the same shape of toggles."""
    wanted = "at most 1.05 times /proxy with the same shape"
    both = pairs(results, "frontend", FRONTEND_API, PROXY_API)
    found = [below(f"the frontend API, {a.flags:,} flags", wanted, " times", 1.05, b.us / a.us) for a, b in both]
    return found or [below("the frontend API", wanted, "", 1.05, None)]


def memory(results: Results) -> list[Verdict]:
    """The memory of a worker, after it has answered the whole matrix."""
    found = [each.rss for each in results.memory if each.server == OURS and each.flags == 1000]
    return [below("memory of a worker, 1,000 flags", "under 50 MB resident", " MB", 50, max(found, default=None))]


def start(results: Results) -> list[Verdict]:
    """Start to ready."""
    seconds = sorted(results.starts.get(OURS, []))
    value = seconds[len(seconds) // 2] if seconds else None
    return [below("start to ready, 1,000 flags", "under 0.5 s", " s", 0.5, value)]


def refresh(results: Results) -> list[Verdict]:
    """Latencies while the document changes, beside those at rest."""
    p99 = {each.part: each.percentiles["99"] for each in results.latencies if each.part.startswith("refresh, ")}
    rest = p99.pop("refresh, at rest", None)
    wanted = "p99 under 3 times p99 at rest"
    found = [below(part, wanted, " times", 3, value / rest) for part, value in p99.items() if rest]
    return found or [below("refresh", wanted, "", 3, None)]


REST: tuple[Callable[[Results], list[Verdict]], ...] = (
    unchanged,
    mixture,
    workers,
    mounted,
    frontend,
    memory,
    start,
    refresh,
)


def rest(results: Results) -> list[Verdict]:
    """Return the verdicts on everything that is no ratio to another server."""
    return [verdict for row in REST for verdict in row(results)]
