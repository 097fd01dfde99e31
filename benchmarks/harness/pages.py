"""The page with the tables and goals, and the plots beside it, from raw results; and the engine's where that was measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import engine
from harness import goals, machine, plots
from harness.goals import Limit, Verdict
from harness.results import EDGE_ONE, EQUAL, NGINX, OURS, REFERENCE, REPEATED, Cell, Results

INTRODUCTION = """\
Written by `make bench`; [proxy.json](proxy.json) has every round, and further forms of requests: a browser's headers, POST,
look-ups by name, `/proxy/all`, and memory at the start. All servers run on one machine, on the same document
([documents.py](../../benchmarks/documents.py): 30 % static flags, the rest rollouts, constraints, segments, user lists and
variants), in their production settings, with logs off. The benchmark first checks that their answers hold the same flags,
variants and payloads for the same users. CPU is user and system time of a server's whole process tree. 32 kept-alive
connections ask, each request for another user. The load generator shares the machine, and requests a second depend on that.

A figure is the cheapest of several rounds, for every server alike: neighbours of a virtual machine make work dearer, never
cheaper. The + behind it says how much dearer the second cheapest round was. ~ marks a figure that no second round confirmed
within 10 %. Requests a second are the median of the rounds."""

MATRIX = (("GET list", "identity", 200), ("GET list", "gzip", 200), ("GET list", "identity", 304))
"""The forms that the page shows, which have goals: the raw results have more."""
SHOWN = ("50", "99", "99.9", "100")


def write(results: Results, folder: Path) -> str:
    """Write the page and the plots; return what is printed at the end."""
    for name, drawing in plots.all_of(results).items():
        (folder / name).write_text(drawing)
    (folder / "proxy.md").write_text(page(results))
    if results.engine:
        engine.write(results.about, results.engine, folder)
    return "\n\n".join([*goal_tables(results), *matrix(results)[:2]])


def page(results: Results) -> str:
    """Return the whole page."""
    blocks = [
        "# The proxy beside the reference and Edge",
        INTRODUCTION,
        *about(results),
        "## Goals",
        *goal_tables(results),
    ]
    blocks += ["## CPU per request", *pictures(results, plots.COSTS), *matrix(results), *sizes_of_answers(results)]
    blocks += [
        "## Mixed traffic",
        *mixed(results),
        "## Number of users",
        *pictures(results, ("users.svg",)),
        *users(results),
    ]
    blocks += [
        "## Latency under a fixed rate",
        LATENCY,
        *pictures(results, plots.LATENCIES),
        *latency(results, "latency"),
    ]
    blocks += ["## Refresh", REFRESH, *pictures(results, ("refresh.svg",)), *latency(results, "refresh")]
    blocks += ["## Workers, and mounted in an application", *beside(results)]
    blocks += ["## Memory and start", *pictures(results, ("memory.svg",)), *memory(results), *starts(results)]
    return "\n\n".join(blocks) + "\n"


LATENCY = """\
Microseconds. Requests are due at fixed times, independent of the server, and latency counts from then: a stall is charged to all
requests that were due during it."""
REFRESH = """\
Microseconds. Ours alone, at three tenths of the rate that it could answer, asks the upstream every second. Each second the document
stays as it is, changes one flag, or changes every flag."""
MIXTURE = """\
Ours. On every connection one request of 20 is a metrics post and one of 100 a health check. `times` is what a GET costs among
them, compared with its cost alone: the median of the rounds, and their range."""
LIMIT = f"""\
The limit is the same answer from the answer cache of the same process: {REPEATED} users take turns, and nothing is evaluated.
Evaluated means another user in each request, with classes of contexts, as by default; a second process has none. The ratio
is the median of the rounds, with the least and the most behind it."""
SENT = """nginx sends a file as long as an answer, from one process without a log, over as many connections."""
SHAPE = f"""\
The others repeat the state of a flag inside its variant. `{EQUAL}` does so too (`FLAGSVC_VARIANT_FEATURE_STATE=true`), so the
ratios of 200s of the GET list compare with it. All other ratios compare with `{OURS}`, as it comes."""
MOUNTED = """\
Ours mounted stands beside an empty ASGI application under the same server, with the same header fields and as many bytes. The
empty application shows the cost of uvicorn's protocol; the goal is for what ours adds."""
MEMORY = f"""\
The most that a server held, after all requests. `{EQUAL}` has answered the GET list alone."""
WORKERS = """\
Two separate processes of one worker each, on two ports, share nothing but the machine. Their cost over one process is what the
machine takes for two busy processes; what two workers cost beyond that is theirs."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table: a column of text, and columns of figures."""
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def about(results: Results) -> list[str]:
    """Return date, machine and versions, and what is missing."""
    known = results.about
    lines = machine.facts(known) + steadiness(results) + cached(results)
    lines += [f"- Left out: {what}" for what in results.left_out] + [f"- **Failed**: {what}" for what in results.failed]
    quick = ["**A quick run: few cells, short rounds. Its figures are rough.**"] if known.get("quick") else []
    return [*quick, "\n".join(lines), *warning(results)]


def steadiness(results: Results) -> list[str]:
    """Return how noisy the machine was: cells that a second round confirms, and how far apart all rounds were."""
    if not results.cells:
        return []
    steady = sum(cell.steady for cell in results.cells)
    apart = 100 * statistics.median(cell.range for cell in results.cells)
    rounds = sorted({len(cell.cpu) for cell in results.cells})
    return [
        f"- Rounds of a cell: {'–'.join(map(str, dict.fromkeys((rounds[0], rounds[-1]))))}; "
        f"{steady} of {len(results.cells)} cells steady; "
        f"half of the cells had a round that cost over {apart:.0f} % more than their cheapest"
    ]


def cached(results: Results) -> list[str]:
    """Return how much of the matrix our cache of answers gave, which is on as it is by default."""
    cells = [cell for server in (OURS, EQUAL) for cell in results.all("matrix", server=server, status=200)]
    shares = [cell.cached for cell in cells if cell.cached is not None]
    return [f"- Answers that our cache gave, in the 200s of the matrix: at most {100 * max(shares):.1f} %"] if shares else []


def warning(results: Results) -> list[str]:
    """Return the sentence that ratios against an old Edge carry."""
    return [goals.NEWER] if goals.edge_age(results) == "old" else []


def goal_tables(results: Results) -> list[str]:
    """Return the verdicts on all goals, and how many there are of each."""
    limits, against, rest = goals.limits(results), goals.ratios(results), goals.rest(results)
    states = [each.state for each in limits] + [each.state for each in [*against, *rest]]
    counts = ", ".join(f"{states.count(state)} {state}" for state in (goals.MET, goals.MUST, goals.MISSED, goals.UNKNOWN))
    against_others = [SHAPE, verdicts("CPU per request than", against), *warning(results)]
    introduction = [LIMIT, *([SENT] if any(each.sent for each in limits) else [])]
    return [counts + ".", *introduction, limit_table(limits), *against_others, verdicts("else", rest)]


def limit_table(limits: list[Limit]) -> str:
    """Return how near an evaluated answer is to a cached one, at each size; and to a file that nginx sends, if it ran."""
    columns = {
        "from the answer cache, µs": [each.cached for each in limits],
        "evaluated, µs": [each.evaluated for each in limits],
        "without classes, µs": [each.plain for each in limits],
        f"{NGINX}, µs": [each.sent for each in limits],
    }
    if not any(columns[f"{NGINX}, µs"]):
        del columns[f"{NGINX}, µs"]
    rows = []
    for each, *cells in zip(limits, *columns.values(), strict=True):
        apart = f" ({min(each.rounds):.2f}–{max(each.rounds):.2f})" if each.rounds else ""
        wanted = [f"{number:g}" for number in goals.LIMITS.get(each.flags, ())] or ["–", "–"]
        ratio = "–" if each.ratio is None else f"{each.ratio:.2f}{apart}"
        rows.append([f"{each.flags:,}", *map(figure, cells), ratio, *wanted, each.state])
    return table(("flags", *columns, "ratio", "must", "goal", "state"), rows)


def verdicts(title: str, found: list[Verdict]) -> str:
    """Return verdicts as a table."""
    return table(
        (title, "wanted", "measured", ""),
        [(each.what, each.wanted, each.figure, "; ".join(filter(None, (each.state, each.note)))) for each in found],
    )


def figure(cell: Cell | None) -> str:
    """Return a cell's microseconds, how much dearer its second cheapest round was, and a mark where that is not close."""
    if cell is None:
        return "–"
    more = f" +{100 * cell.spread:.0f} %" if math.isfinite(cell.spread) else ""
    return f"{'' if cell.steady else '~'}{micro(cell.us)}{more}"


def micro(value: float) -> str:
    """Return microseconds with three digits or so."""
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def times(other: Cell | None, ours: Cell | None) -> str:
    """Return how many times as much another needs."""
    return f"{other.us / ours.us:.1f}" if other and ours else "–"


def matrix(results: Results) -> list[str]:
    """Return a table for every form, encoding and status that was measured."""
    blocks = []
    for form, encoding, status in MATRIX:
        if results.all("matrix", form=form, encoding=encoding, status=status):
            blocks += [f"### {form}, {encoding}, {status}", of_form(results, form, encoding, status)]
            blocks += warning(results)
    return blocks


def of_form(results: Results, form: str, encoding: str, status: int) -> str:
    """Return one table of the matrix: microseconds by server and size, ratios, requests a second and bytes of ours."""
    like = {"form": form, "encoding": encoding, "status": status}
    servers = [name for name in results.servers() if name != EQUAL or results.all("matrix", server=EQUAL, **like)]
    others = [name for name in (REFERENCE, EDGE_ONE) if name in servers]
    beside = EQUAL if EQUAL in servers else OURS
    rows = []
    for flags in results.sizes():
        found = {name: results.find("matrix", name, flags=flags, **like) for name in servers}
        own = found[OURS]
        last = [f"{own.rate:,.0f}", f"{own.answer:,.0f}"] if own else ["–", "–"]
        ratios = [times(found[name], found[beside]) for name in others]
        rows.append([f"{flags:,}", *map(figure, found.values()), *ratios, *last])
    heads = ["flags", *(f"{name}, µs" for name in servers), *(f"{name} / {beside}" for name in others)]
    return table([*heads, "ours/s", "bytes"], rows)


def sizes_of_answers(results: Results) -> list[str]:
    """Return the bytes of a list by server, which tell whether answers of equal shape are compared."""
    servers = results.servers()
    rows = []
    for encoding in ("identity", "gzip"):
        like = {"form": "GET list", "encoding": encoding, "status": 200}
        for flags in results.sizes():
            cells = [results.find("matrix", name, flags=flags, **like) for name in servers]
            rows.append([encoding, f"{flags:,}", *map(weight, cells)])
    return ["### GET list, bytes of an answer with its head", table(("", "flags", *servers), rows)] if rows else []


def weight(cell: Cell | None) -> str:
    """Return the bytes of a cell's answers, with a mark where gzip was asked for and most answers are as they were."""
    if cell is None:
        return "–"
    return f"{cell.answer:,.0f}{', not packed' if cell.encoding == 'gzip' and cell.encoded < 0.5 else ''}"


def mixed(results: Results) -> list[str]:
    """Return what each kind of request costs ours alone and all of them mixed, and what the mixture does to a GET."""
    forms = ("GET list", "metrics post", "health check", "mixed")
    rows = []
    for flags in results.sizes():
        rounds = goals.mixture_of(results, OURS, flags)
        cells = [results.find("mixed", OURS, flags=flags, form=form) for form in forms]
        if rounds:
            last = [f"{statistics.median(rounds):.2f}", f"{min(rounds):.2f}–{max(rounds):.2f}"]
            rows.append([f"{flags:,}", *map(figure, cells), *last])
    return [MIXTURE, table(("flags", *(f"{form}, µs" for form in forms), "times", "rounds"), rows)]


def users(results: Results) -> list[str]:
    """Return the cost by number of users."""
    cells = results.all("users")
    servers = list(dict.fromkeys(cell.server for cell in cells))
    rows = []
    for number in sorted({cell.users for cell in cells}):
        rows.append([f"{number:,}", *(figure(results.find("users", server, users=number)) for server in servers)])
    return [
        "GET list at 100 flags; so many different users take turns.",
        table(["users", *(f"{name}, µs" for name in servers)], rows),
    ]


def latency(results: Results, part: str) -> list[str]:
    """Return the percentiles of a part."""
    rows = []
    for each in results.latencies:
        if each.part.startswith(part):
            first = each.server if each.part == part else each.part.removeprefix(f"{part}, ")
            shown = [micro(each.percentiles[name]) for name in SHOWN]
            rows.append([first, f"{each.flags:,}", f"{each.rate:,.0f}", *shown])
    heads = ("", "flags", "requests/s", *(f"p{name}" if name != "100" else "most" for name in SHOWN))
    return [table(heads, rows)] if rows else ["Not measured."]


def beside(results: Results) -> list[str]:
    """Return ways of running ours beside each other."""
    rows = []
    for part in ("workers", "mounted", "frontend", "environments"):
        for cell in results.all(part):
            rows.append([cell.server, f"{cell.flags:,}", figure(cell), f"{cell.rate:,.0f}"])
    return [WORKERS, MOUNTED, table(("", "flags", "GET list, µs", "requests/s"), rows)] if rows else ["Not measured."]


def memory(results: Results) -> list[str]:
    """Return the most resident megabytes by server and size."""
    sizes = sorted({each.flags for each in results.memory})
    rows = []
    for server in dict.fromkeys(each.server for each in results.memory):
        most = {each.flags: each.rss for each in sorted(results.memory, key=lambda each: each.rss) if each.server == server}
        rows.append([server, *(f"{most[flags]:.0f}" if flags in most else "–" for flags in sizes)])
    heads = ("resident, MB", *(f"{flags:,} flags" for flags in sizes))
    return [MEMORY, table(heads, rows)] if rows else ["Not measured."]


def starts(results: Results) -> list[str]:
    """Return the seconds from start to the first answer."""
    rows = [[name, f"{sorted(each)[len(each) // 2]:.2f}", f"{max(each):.2f}"] for name, each in results.starts.items()]
    return (
        ["From the start of the process to its first answer at 1,000 flags.", table(("server", "s", "most"), rows)] if rows else []
    )


def pictures(results: Results, names: Iterable[str]) -> list[str]:
    """Return the plots among these that there are."""
    drawn = plots.all_of(results)
    return [f"![{name.removesuffix('.svg')}]({name})" for name in names if name in drawn]
