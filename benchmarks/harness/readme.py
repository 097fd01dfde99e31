"""The few figures of a run that README.md shows; `make docs` writes them there from the raw results."""

from __future__ import annotations

import statistics

from harness import goals
from harness.prepared import IDENTITY
from harness.results import EDGE_ONE, EQUAL, NGINX, OURS, REFERENCE, Cell, Results

NOT_KNOWN = "–"
SHOWN_FLAGS = 1000
"""The size of the document for memory and start."""


def caption(results: Results) -> str:
    """Return the line below the picture of the costs: what it shows, of which programs and of which day."""
    date = str(results.about["date"]).split(" ")[0]
    reference, edge = peers(results)
    programs = f"`ours` is flagsvc, `reference` is {reference}, `Edge` is {edge}"
    return f"*CPU time of one request by the number of flags, both logarithmic. {programs}: one machine, one run on {date}.*"


def peers(results: Results) -> tuple[str, str]:
    """Return the two programs that stand beside ours, with their versions."""
    versions = results.about["versions"]
    npm, edge = (versions.get(name, NOT_KNOWN) for name in ("@unleash/proxy", "Unleash Edge"))
    return f"`@unleash/proxy` {npm}", f"Unleash Edge {edge}"


def table(results: Results) -> str:
    """Return the costs of the list by size, then memory and start, where peers win; and notes about Edge below it.

    Ours in the peers' shape is the first, and how many times its cost a peer needs stands behind the peer's; ours as it comes
    is behind the peers. The last column has nginx with a file of the same bytes, if the run has it.
    """
    reference, edge = peers(results)
    servers = {
        "flagsvc, the peers' shape": (EQUAL, 200),
        reference: (REFERENCE, 200),
        f"{edge}, one thread": (EDGE_ONE, 200),
        "flagsvc as it comes": (OURS, 200),
        "flagsvc, 304 if unchanged": (OURS, 304),
    }
    sent = {cell.flags: cell for cell in results.all("limit", server=NGINX)}
    heads = [*servers, *([NGINX] if sent else [])]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for flags in results.sizes():
        like = {"flags": flags, "form": "GET list", "encoding": IDENTITY}
        equal = results.find("matrix", EQUAL, status=200, **like)
        cells = [results.find("matrix", server, status=status, **like) for server, status in servers.values()]
        cells += [sent.get(flags)] if sent else []
        lines.append(f"| CPU, {flags:,} flags | {' | '.join(shown(cell, equal) for cell in cells)} |")
    names = [server for server, _ in servers.values()]
    end = " | |" if sent else " |"
    lines.append(f"| memory, {SHOWN_FLAGS:,} flags | {' | '.join(memory(results, name) for name in names)}{end}")
    lines.append(f"| start to ready | {' | '.join(start(results, name) for name in names)}{end}")
    notes = [f"{NOT_KNOWN} is a figure that this run did not measure."] if f" {NOT_KNOWN} " in "".join(lines[2:]) else []
    notes += [goals.NEWER] if goals.edge_age(results) == "old" else []
    return "\n\n".join(["\n".join(lines), *notes])


def shown(cell: Cell | None, equal: Cell | None) -> str:
    """Return a cell's cost in whole microseconds, and how many times the cost of ours in equal shape a peer's is."""
    if cell is None:
        return NOT_KNOWN
    times = f", {cell.us / equal.us:,.1f}×" if equal and cell.server in (REFERENCE, EDGE_ONE) else ""
    return f"{cell.us:,.0f} µs{times}"


def memory(results: Results, server: str) -> str:
    """Return the most resident memory of a server in whole megabytes."""
    found = [each.rss for each in results.memory if each.server == server and each.flags == SHOWN_FLAGS]
    return f"{max(found):.0f} MB" if found else NOT_KNOWN


def start(results: Results, server: str) -> str:
    """Return the median of the starts of a server."""
    found = results.starts.get(server)
    return f"{statistics.median(found):.2f} s" if found else NOT_KNOWN
