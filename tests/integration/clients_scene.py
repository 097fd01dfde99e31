"""All clients of the table beside each other: one upstream, one proxy, a relay for each client, and what the upstream counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

import pytest
from clients import NODE_ROWS, PAGE_ROWS, PYTHON_ROWS, REACT_ROWS, Client, Counts, Row, document
from clients_browser import node_services, pages, python_services, react_page
from clients_proxies import BELOW_ROWS, EDGE_ROWS, edge_and_below, has_edge, proxies_below
from http_tap import HttpTap, http_tap

from support import needs, processes
from support.fake_upstream import METRICS, REGISTER, FakeUpstream, fake_upstream
from support.processes import EDGE_TOKEN, FRONTEND_TOKEN, KEY, SERVER_SIDE_TOKEN
from support.waiting import wait_until
from support.wiretap import Wiretap, wiretap

Family: TypeAlias = Callable[[list[tuple[Row, HttpTap]]], AbstractContextManager[list[Client]]]
FAMILIES: tuple[tuple[tuple[Row, ...], Family], ...] = (
    (BELOW_ROWS, proxies_below),
    (PAGE_ROWS, pages),
    (NODE_ROWS, node_services),
    (PYTHON_ROWS, python_services),
    (REACT_ROWS, react_page),
    *(((EDGE_ROWS, edge_and_below),) if has_edge() or not needs.everything() else ()),
)
"""The rows that are started together, and what starts them: those that take long first. No run requires Edge."""
ROWS = [
    row
    for row in (*PAGE_ROWS, *REACT_ROWS, *NODE_ROWS, *PYTHON_ROWS, *BELOW_ROWS, *EDGE_ROWS)
    if any(row in rows for rows, _ in FAMILIES)
]
"""The rows of a run, in the order of the table."""
OPTIONS = {
    "UNLEASH_FETCH_INTERVAL": "50",
    "UNLEASH_METRICS_INTERVAL": "200",
    "UNLEASH_PROXY_CLIENT_KEYS": f"{KEY},{FRONTEND_TOKEN}",
    "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": f"{SERVER_SIDE_TOKEN},{EDGE_TOKEN}",
    "FLAGSVC_TOKEN_VALIDATION": "upstream",
    "FLAGSVC_TOKEN_REVALIDATION_INTERVAL": "1",
}
"""Edge takes only keys of the form `project:environment.secret`."""
SECONDS = 30.0


@dataclass
class Cell:
    """What a client did in a column. `wrong` says what failed, `missing` which program or package is not here."""

    wrong: str = ""
    missing: str = ""


Cells: TypeAlias = dict[str, Cell]
"""The cells of a column, by row."""


@dataclass
class Scene:
    """The proxy at `port` between the upstream and the clients, which all run. `cut` of `line` takes the upstream away from it.

    `refusal_s` is how long the upstream refuses the proxy's token at least.
    """

    rows: list[Row]
    upstream: FakeUpstream
    line: Wiretap
    port: int
    clients: list[Client]
    strangers: dict[str, Client]
    refusal_s: float = 0.0

    def change(self, *new: str) -> None:
        """Have the upstream serve these flags as well from now on."""
        self.upstream.replace(document(self.rows, *new))

    def wait(self, holds: Callable[[Client], object], seconds: float = SECONDS) -> dict[str, float]:
        """Return after how many seconds a condition held for each client. A client for which it never held is left out."""
        begun = time.monotonic()
        took: dict[str, float] = {}

        def is_over() -> bool:
            for client in self.clients:
                if client.row.id not in took and holds(client):
                    took[client.row.id] = time.monotonic() - begun
            return len(took) == len(self.clients) or time.monotonic() >= begun + seconds

        wait_until(is_over, 2 * seconds)
        return took

    def cells(self, look: Callable[[Client], None]) -> Cells:
        """Return the cell of each client: what fails in `look`, if anything does."""
        found: Cells = {}
        for client in self.clients:
            found[client.row.id] = Cell()
            try:
                look(client)
            except AssertionError as error:
                found[client.row.id].wrong = str(error)
        return found

    def counted(self, row: Row) -> dict[str, dict[str, Counts]]:
        """Return what the upstream counted of a row's flags: application → flag, without the row's prefix → counts."""
        found: dict[str, dict[str, Counts]] = {}
        for sent in self.upstream.received(METRICS):
            report = sent.json()
            mine = {
                name.removeprefix(f"{row.id}."): counts
                for name, counts in report["bucket"]["toggles"].items()
                if name.startswith(f"{row.id}.")
            }
            for name, counts in mine.items():
                total = found.setdefault(report["appName"], {})
                total[name] = added(total.get(name, Counts(0, 0, {})), counts)
        return found

    @contextmanager
    def newcomers(self) -> Iterator[dict[str, Client]]:
        """Start another instance of each client, with a token that the proxy does not list. Gives them by the row of the first."""
        running = {client.row.id for client in self.clients}
        with ExitStack() as stack:
            found: dict[str, Client] = {}
            for rows, family in FAMILIES:
                mine = [row for row in rows if row.id in running]
                taps = [(row.newcomer, stack.enter_context(http_tap(self.port))) for row in mine]
                started = stack.enter_context(family(taps)) if taps else []
                found |= {row.id: client for row, client in zip(mine, started, strict=True)}
            yield found

    def registered(self) -> set[str]:
        """Return the names of the applications that registered upstream."""
        return {sent.json()["appName"] for sent in self.upstream.received(REGISTER)}


def added(total: Counts, more: Mapping[str, object]) -> Counts:
    """Return counts with those of a report added."""
    variants = dict(total.variants)
    for name, number in dict(more.get("variants") or {}).items():  # type: ignore[call-overload]
        variants[name] = variants.get(name, 0) + number
    return Counts(total.yes + int(str(more["yes"])), total.no + int(str(more["no"])), variants)


@contextmanager
def clients_scene(refusal_s: float = 0.0) -> Iterator[tuple[Scene, Cells]]:
    """Run everything until the block ends. Also gives a cell for each row that cannot run here."""
    with ExitStack() as stack:
        upstream = stack.enter_context(fake_upstream(document(ROWS)))
        line = stack.enter_context(wiretap(urlsplit(upstream.url).port or 0))
        proxy = stack.enter_context(processes.our_proxy(f"http://127.0.0.1:{line.port}/api", **OPTIONS))
        upstream.tokens = {}
        scene = Scene(ROWS, upstream, line, proxy.port, [], {}, refusal_s)
        left_out: Cells = {}
        for rows, family in FAMILIES:
            left_out |= join(scene, rows, family, stack)
        yield scene, left_out


def join(scene: Scene, rows: tuple[Row, ...], family: Family, stack: ExitStack) -> Cells:
    """Start the clients of a family, and a stranger for each. Returns a cell for each row if its programs are missing."""
    taps = [(each, stack.enter_context(http_tap(scene.port))) for row in rows for each in (row, row.stranger)]
    try:
        started = stack.enter_context(family(taps))
    except (pytest.skip.Exception, pytest.fail.Exception) as error:
        return {row.id: Cell(missing=str(error)) for row in rows}
    scene.clients += started[::2]
    scene.strangers |= {row.id: stranger for row, stranger in zip(rows, started[1::2], strict=True)}
    return {}
