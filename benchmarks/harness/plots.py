"""The plots of a run: which lines of which figures."""

from __future__ import annotations

from harness import svg
from harness.results import EDGE, EDGE_ONE, EQUAL, OURS, REFERENCE, Cell, Latency, Results
from harness.svg import Axis, Line

COSTS = ("cost.svg", "cost-gzip.svg", "cost-304.svg")
LATENCIES = ("latency-100.svg", "latency-1000.svg")
FLAGS = Axis("flags")
MICROSECONDS = Axis("CPU a request, µs")
COLOURS = {OURS: 0, REFERENCE: 1, EDGE_ONE: 2, EDGE: 3, EQUAL: 4}
SHARES = {"50": 2.0, "75": 4.0, "90": 10.0, "95": 20.0, "99": 100.0, "99.5": 200.0, "99.9": 1000.0}
"""Percentile → one in how many requests is slower: what a logarithmic axis spreads evenly."""


def all_of(results: Results) -> dict[str, str]:
    """Return every plot that there are figures for, by the name of its file."""
    drawings = {
        "cost.svg": cost(results, "GET list: CPU per request", {"": ("identity", 200)}),
        "cost-gzip.svg": cost(results, "GET list: identity and gzip", {"": ("identity", 200), ", gzip": ("gzip", 200)}),
        "cost-304.svg": cost(results, "GET list: 200 and 304", {"": ("identity", 200), ", 304": ("identity", 304)}),
        "users.svg": users(results),
        "memory.svg": memory(results),
        "refresh.svg": percentiles(results, "GET list while the document changes", "refresh", 0),
    }
    for flags in sorted({each.flags for each in results.latencies if each.part == "latency"}):
        drawings[f"latency-{flags}.svg"] = percentiles(results, f"GET list at {flags:,} flags, at fixed rates", "latency", flags)
    return {name: drawing for name, drawing in drawings.items() if drawing}


def drawn(title: str, lines: list[Line], x: Axis, y: Axis) -> str:
    """Return a chart, empty where there is nothing to draw."""
    found = [line for line in lines if line.points]
    return svg.chart(title, found, x, y) if found else ""


def by_size(cells: list[Cell]) -> list[tuple[float, float]]:
    """Return the cost of each size."""
    return sorted((cell.flags, cell.us) for cell in cells)


def cost(results: Results, title: str, kinds: dict[str, tuple[str, int]]) -> str:
    """Return the cost of the list against the number of flags, in some encodings and statuses."""
    lines = []
    for server in results.servers():
        for suffix, (encoding, status) in kinds.items():
            cells = results.all("matrix", server=server, form="GET list", encoding=encoding, status=status)
            lines.append(Line(server + suffix, by_size(cells), COLOURS.get(server, 4), dashed=bool(suffix)))
    return drawn(title, lines, FLAGS, MICROSECONDS)


def users(results: Results) -> str:
    """Return the cost against the number of users."""
    names = list(dict.fromkeys(cell.server for cell in results.all("users")))
    points = {name: sorted((cell.users, cell.us) for cell in results.all("users", server=name)) for name in names}
    lines = [Line(name, found, COLOURS.get(name, 4)) for name, found in points.items()]
    return drawn("GET list at 100 flags: CPU per request", lines, Axis("different users"), MICROSECONDS)


def memory(results: Results) -> str:
    """Return the resident memory against the number of flags."""
    lines = []
    for name in dict.fromkeys(each.server for each in results.memory):
        last = {each.flags: each.rss for each in results.memory if each.server == name}
        lines.append(Line(name, sorted(last.items()), COLOURS.get(name, 4)))
    return drawn("Resident memory after the matrix", lines, FLAGS, Axis("MB", logarithmic=False))


def percentiles(results: Results, title: str, part: str, flags: int) -> str:
    """Return latencies by percentile, with a line for each server and rate, or for each condition."""
    found = [each for each in results.latencies if each.part.startswith(part) and flags in (0, each.flags)]
    lines = [Line(*named(each, part, at)) for at, each in enumerate(found)]
    ticks = [(place, f"p{name}") for name, place in SHARES.items() if name not in ("75", "99.5")]
    return drawn(title, lines, Axis("percentile", ticks=ticks), Axis("latency, µs"))


def named(each: Latency, part: str, at: int) -> tuple[str, list[tuple[float, float]], int]:
    """Return the name, points and colour of a line."""
    points = [(place, max(each.percentiles[name], 1.0)) for name, place in SHARES.items()]
    if each.part != part:
        return each.part.removeprefix(f"{part}, "), points, at
    return f"{each.server}, {each.rate:,.0f}/s", points, at
