"""Writes the generated pages: the options of both programs, the metrics, and the lines of the log. It also writes parts of
pages: what a request costs in README.md, the most used options, the limits in SECURITY.md, what differs from other programs and
their variables, and in every page what a command installs.

`make docs` runs it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Protocol, TypeVar

from flagsvc.core.extras import PACKAGE, WHERE
from flagsvc.core.version import VERSION
from flagsvc.http.counts import BOUNDS
from flagsvc.http.metrics import MetricRow
from flagsvc.proxy.api.metrics import ENVIRONMENT, KEPT, PROCESS, SERVED, SPECIFIED, Sources
from flagsvc.server.api.operations import OWN
from flagsvc.settings.edge import ROWS, EdgeVariable, Fate
from flagsvc.settings.option import Option
from flagsvc.settings.options import OPTIONS
from flagsvc.settings.real_server import ROWS as REAL_ROWS
from flagsvc.settings.real_server import RealVariable
from flagsvc.settings.render import default_text, reference, with_unit
from flagsvc.settings.server import server_reference
from flagsvc.settings.table import BY_NAME, MOST_USED, SERVER_OPTIONS

S = TypeVar("S")

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
PEERS = [
    TESTS / "differential",
    TESTS / "differential_edge",
    TESTS / "differential_frontend",
    TESTS / "differential_peers",
]
"""The folders of the tests that compare with other proxies: the pages show their rows of differences."""
sys.path[:0] = map(str, [ROOT / "docs", ROOT / "benchmarks", TESTS, *PEERS])

import diff_exclusions  # noqa: E402
import edge_exclusions  # noqa: E402
import edge_malformed  # noqa: E402
import peer_rows_edge  # noqa: E402
import peer_rows_edge_more  # noqa: E402
import peer_rows_reference  # noqa: E402
from peer_rows import Row  # noqa: E402

import log_lines  # noqa: E402
import observe  # noqa: E402
from harness import readme as costs  # noqa: E402
from harness import results  # noqa: E402

OPTION_LIST = "<!-- options: written by `make docs` -->", "<!-- /options -->"
LIMITS = "<!-- limits: written by `make docs` -->", "<!-- /limits -->"
CAPTION = "<!-- caption: written by `make docs` from docs/benchmarks/proxy.json -->", "<!-- /caption -->"
COSTS = "<!-- costs: written by `make docs` from docs/benchmarks/proxy.json -->", "<!-- /costs -->"
EDGE = "<!-- edge: written by `make docs` -->", "<!-- /edge -->"
REAL = "<!-- real server: written by `make docs` -->", "<!-- /real server -->"
INSTALLING = ROOT / "docs" / "reference" / "installing.md"
REAL_PAGE = ROOT / "docs" / "how-to" / "move-over-from-a-real-server.md"
EDGE_PAGE = ROOT / "docs" / "how-to" / "move-over-from-edge.md"
INSTALLED = re.compile(r"((?:pip|pipx) install (?:--upgrade )?'?)(?:flagsvc|\.)(?=[\[ \n])")
"""A command that installs flagsvc, up to the extras."""
RUN_ONCE = re.compile(r"uvx (?:--from \. )?flagsvc")
OF_THE_SOURCE = (
    (re.compile(r"No package index has flagsvc yet\. "), ""),
    (re.compile(r"No package index has flagsvc yet: unpack [^,]+,\nand type in its folder:"), "Type:"),
    (re.compile(r" *# in the folder of the source$", re.MULTILINE), ""),
    (re.compile(r"# in the folder of the source; "), "# "),
    (re.compile(r",? in the folder of the source,?"), ""),
)
"""Words that hold until the first release, and what takes their place then."""
DIFFERENCES = "<!-- differences: written by `make docs` from the tests that compare -->", "<!-- /differences -->"
REFERENCE_PAGE = ROOT / "docs" / "how-to" / "move-over-from-the-reference.md"
COMMON_REASONS = ("as at `/proxy` and at the real server", "as at `/proxy`", "as at the real server")
"""What many reasons begin with, the longest first; each gets a table."""
SETTING = re.compile(r"\b(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|PORT)\b(?:=[^\s,;:]*(?:://[^\s,;]*)?)?")
"""A variable in a text, alone or with its value."""


class Difference(Protocol):
    """A row of a difference that is on purpose."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def reason(self) -> str:
        """Why it is there."""


def option_list() -> str:
    """Return the options that most deployments look at: name, variables, default, and the first sentence of what it means."""
    rows = ["| Option | Variable | Default | Meaning |", "|---|---|---|---|"]
    for option in (BY_NAME[name] for name in MOST_USED):
        reads = ", ".join(f"`{name}`" for name in option.reads)
        meaning = option.help.split("; ")[0].replace("|", "\\|")
        rows.append(f"| `{option.name}` | {reads} | {bound(option)} | {meaning} |")
    return "\n".join(rows)


def bound(option: Option) -> str:
    """Return the default of a limit with its unit."""
    text = default_text(option)
    return "no limit" if text == "0" else with_unit(option, text)


def limit_table() -> str:
    """Return the options that bound what callers can do: what each stops, and its default in both programs."""
    rows = ["| What callers cannot do | Option | Proxy | Flag server |", "|---|---|---|---|"]
    servers = {option.name: option for option in SERVER_OPTIONS if option.stops}
    proxys = {option.name: option for option in OPTIONS if option.stops}
    for name, option in (proxys | servers).items():
        defaults = (bound(each[name]) if name in each else "–" for each in (proxys, servers))
        rows.append(f"| {option.stops} | `{name}` | {' | '.join(defaults)} |")
    return "\n".join(rows)


def security(text: str) -> str:
    """Return SECURITY.md with the limits as the tables of options have them now."""
    return between(text, LIMITS, limit_table())


def edge_cell(row: EdgeVariable | RealVariable) -> str:
    """Return what becomes of a variable of Edge or of a real server, with variables as code."""
    text = SETTING.sub(lambda found: f"`{found[0]}`", row.here)
    return {Fate.ABSENT: f"no equivalent: {text}", Fate.NEEDLESS: f"nothing to set: {text}"}.get(row.fate, text)


def edge_table() -> str:
    """Return the table of Edge's variables with their defaults. Neighbours with the same answer share a line."""
    lines = ["| Edge | flagsvc |", "|---|---|"]
    for cell, rows in groupby(ROWS, edge_cell):
        lines.append(f"| {', '.join(map(edge_name, rows))} | {cell} |")
    return "\n".join(lines)


def edge_name(row: EdgeVariable) -> str:
    """Return a variable of Edge with its default behind it."""
    default = row.default if row.default.isdecimal() or not row.default else f"`{row.default}`"
    return f"`{row.name}` {default}".rstrip()


def edge_page(text: str) -> str:
    """Return the page about Edge with the tables as the rows have them now."""
    more = peer_rows_edge_more
    rows = (*peer_rows_edge.PAGE_ROWS, *more.SERVICE_ROWS, *more.BEHIND_ROWS, *more.OFFLINE_ROWS)
    known = [*named(edge_exclusions.EXCLUSIONS), *named(edge_malformed.ODD), *excluded(rows)]
    known += [(f"in a document: {'; '.join(names)}", reason) for reason, names in refused_documents().items()]
    return between(between(text, EDGE, edge_table()), DIFFERENCES, difference_table(known))


def refused_documents() -> dict[str, list[str]]:
    """Return the documents that Edge does not take, by what both answer."""
    found: dict[str, list[str]] = {}
    for row in edge_malformed.REFUSED:
        found.setdefault(refused(row), []).append(row.name)
    return found


def refused(row: edge_malformed.Refused) -> str:
    """Return what both answer about the flag of a document that Edge does not take."""
    theirs = {edge_malformed.FORMER: "Edge keeps the former document", edge_malformed.NO_ANSWER: "Edge does not answer"}
    return f"the flag is {row.ours}; {theirs.get(row.edge, f'in Edge it is {row.edge}')}"


def reference_page(text: str) -> str:
    """Return the page about the reference with the table as the rows have it now."""
    rows = (*peer_rows_reference.PLAIN_ROWS, *peer_rows_reference.BEHIND_ROWS)
    return between(text, DIFFERENCES, difference_table([*named(diff_exclusions.EXCLUSIONS), *excluded(rows)]))


def named(rows: Iterable[Difference]) -> Iterator[tuple[str, str]]:
    """Yield names and reasons. What stands in parentheses behind a name tells cases of one difference apart."""
    return ((row.name.partition(" (")[0], row.reason) for row in rows)


def excluded(rows: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Yield names and reasons of the differences in answers to rows of requests."""
    return named(each for row in rows for each in row.but)


def difference_table(known: Iterable[tuple[str, str]]) -> str:
    """Return the tables of differences, each once, with the reason that it has first: a table for each reason that many have."""
    reasons: dict[str, str] = {}
    for name, reason in known:
        reasons.setdefault(name, reason)
    found = {prefix: difference_rows(reasons, prefix) for prefix in (*COMMON_REASONS, "")}
    blocks = [f"{prefix[:1].upper()}{prefix[1:]}:\n\n{table}" if prefix else table for prefix, table in found.items() if table]
    return "\n\n".join(blocks)


def difference_rows(reasons: dict[str, str], prefix: str) -> str:
    """Return the table of the differences whose reason begins with this prefix, without it; they leave `reasons`."""
    mine = [name for name, reason in reasons.items() if reason.startswith(prefix)]
    cells = [
        f"| {name[:1].upper()}{name[1:]} | {reasons.pop(name)[len(prefix) :].lstrip(':;, ').removeprefix('and ')} |"
        for name in mine
    ]
    head = "What the other does" if prefix else "Why, and what the other does"
    return "\n".join([f"| What flagsvc does | {head} |", "|---|---|", *cells]) if cells else ""


def real_table() -> str:
    """Return the table of the variables of a real server. Neighbours with the same answer share a line."""
    lines = ["| Unleash server | flagsvc |", "|---|---|"]
    for cell, rows in groupby(REAL_ROWS, edge_cell):
        lines.append(f"| {', '.join(f'`{row.name}`' for row in rows)} | {cell} |")
    return "\n".join(lines)


def real_page(text: str) -> str:
    """Return the page about a real server with the table as the rows have it now."""
    return between(text, REAL, real_table())


def metric(row: MetricRow[S]) -> str:
    """Return the line of a metric; a counter has the name that it is written with."""
    name = f"{row.name}_total" if row.kind == "counter" and not row.bare else row.name
    labels = ", ".join(f"`{label}`" for label in row.labels)
    private = " Only at `adminAddress`, for it would tell callers which toggles there are." if row.private else ""
    return f"| `{name}` | {row.kind} | {labels} | {row.help}{private} |"


def proxy_metric(row: MetricRow[Sources]) -> str:
    """Return the line of a metric of the proxy: most of them have a label for the environment, if there are several."""
    return metric(row if row.place == PROCESS else row._replace(labels=(f"{ENVIRONMENT}¹", *row.labels)))


def metrics() -> str:
    """Return the page of the metrics."""
    head = ["| Metric | Kind | Labels | Meaning |", "|---|---|---|---|"]
    return "\n".join(
        [
            "# Metrics",
            "",
            "What `GET /proxy/internal-backstage/prometheus` has, and `/metrics` at `adminAddress`, in Prometheus text format,",
            "or as OpenMetrics if `Accept` asks for it.",
            "With `adminAddress` the callers' port answers 404; before the first configuration only `adminAddress` answers.",
            "`make docs` writes this page. No label comes from a caller: routes are templates, no toggle, context or key is named.",
            "",
            "¹ Only with [several environments](../how-to/serve-several-environments.md): the name of the environment; empty for",
            "what belongs to none, such as requests with a key that opens nothing.",
            "",
            f"The buckets of every histogram end at {', '.join(f'{bound:g}' for bound in BOUNDS)} seconds. A text has the",
            "samples `_bucket`, `_sum` and `_count` of each. [Dashboards and alerts](../../deploy/observe/README.md) use these",
            "names.",
            "",
            *(*head, *map(proxy_metric, SPECIFIED)),
            "",
            "## The configuration, the upstream, the storage and the workers",
            "",
            *(*head, *map(proxy_metric, KEPT)),
            "",
            "## Requests and usage",
            "",
            "With several workers these are sums over all workers, also workers that have ended.",
            "",
            *(*head, *map(proxy_metric, SERVED)),
            "",
            "Beside them `process_cpu_seconds_total`, `process_resident_memory_bytes` and the others of Prometheus's client",
            "libraries, of all processes together.",
            "",
            "## The flag server",
            "",
            "What `GET /internal-backstage/prometheus` of `flagsvc server` has, beside those of Prometheus's client libraries.",
            "Without its database those are left out that only the database knows.",
            "",
            *(*head, *map(metric, OWN)),
            "",
        ]
    )


def between(text: str, marks: tuple[str, str], written: str) -> str:
    """Return the text with what is written between two marks."""
    begin, end = marks
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"the page has no `{begin}` with `{end}` behind it")
    return f"{before}{begin}\n{written}\n{end}{after}"


def with_package(text: str) -> str:
    """Return a page whose commands install the package from where it is."""
    text = INSTALLED.sub(lambda found: f"{found[1]}{PACKAGE}", text)
    text = RUN_ONCE.sub("uvx --from . flagsvc" if WHERE else "uvx flagsvc", text)
    for words, after in () if WHERE else OF_THE_SOURCE:
        text = words.sub(after, text)
    return text


def chart(text: str) -> str:
    """Return the description of the Helm chart with the version of the program, which is also the chart's own version."""
    return re.sub(r'^(version: |appVersion: ")[\d.]+', rf"\g<1>{VERSION}", text, flags=re.MULTILINE)


def readme(text: str) -> str:
    """Return README.md with the costs of the last run that was kept: the caption of the picture, and the table."""
    measured = results.read(ROOT / "docs" / "benchmarks" / "proxy.json")
    return between(between(text, CAPTION, costs.caption(measured)), COSTS, costs.table(measured))


def installing(text: str) -> str:
    """Return the page on installing with the options as the table has them now."""
    return between(text, OPTION_LIST, option_list())


def main() -> None:
    """Write the pages."""
    folder = ROOT / "docs" / "reference"
    (folder / "options.md").write_text(reference())
    (folder / "server-options.md").write_text(server_reference())
    (folder / "metrics.md").write_text(metrics())
    (folder / "log.md").write_text(log_lines.page(log_lines.find_lines()))
    observe.write(ROOT)
    pages = {
        ROOT / "README.md": readme,
        INSTALLING: installing,
        ROOT / "deploy" / "helm" / "flagsvc" / "Chart.yaml": chart,
        ROOT / "SECURITY.md": security,
        EDGE_PAGE: edge_page,
        REAL_PAGE: real_page,
        REFERENCE_PAGE: reference_page,
    }
    for page, write in pages.items():
        page.write_text(write(page.read_text()))
    for page in (ROOT / "README.md", INSTALLING, *(ROOT / "docs" / "how-to").glob("*.md")):
        page.write_text(with_package(page.read_text()))


if __name__ == "__main__":
    main()
