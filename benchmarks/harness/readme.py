"""The few figures of a run that README.md shows; `make docs` writes them there from the raw results."""

from __future__ import annotations

from harness import goals
from harness.prepared import IDENTITY
from harness.results import EDGE_ONE, OURS, REFERENCE, Cell, Results

NOT_KNOWN = "–"


def table(results: Results) -> str:
    """Return the costs of the list by size, what is to be said about Edge, and memory and start."""
    versions = results.about["versions"]
    servers = {
        "flagsvc": (OURS, 200),
        f"`@unleash/proxy` {versions.get('@unleash/proxy', NOT_KNOWN)}": (REFERENCE, 200),
        f"Unleash Edge {versions.get('Unleash Edge', NOT_KNOWN)}, one thread": (EDGE_ONE, 200),
        "flagsvc, 304 for an unchanged poller": (OURS, 304),
    }
    lines = [f"| Flags | {' | '.join(servers)} |", "|---|---|---|---|---|"]
    for flags in results.sizes():
        cells = (
            results.find("matrix", server, flags=flags, form="GET list", encoding=IDENTITY, status=status)
            for server, status in servers.values()
        )
        lines.append(f"| {flags:,} | {' | '.join(map(shown, cells))} |")
    return "\n".join([*lines, "", " ".join(sentences(results))])


def shown(cell: Cell | None) -> str:
    """Return a cell's cost in whole microseconds."""
    return f"{cell.us:,.0f} µs" if cell else NOT_KNOWN


def sentences(results: Results) -> list[str]:
    """Return what stands below the table."""
    newer = [goals.NEWER] if goals.edge_age(results) == "old" else []
    own = [verdict.figure for part in (goals.memory, goals.start) for verdict in part(results)]
    return [*newer, f"{own[0]} with 1,000 flags, ready {own[1]} after the start."] if all(own) else newer
