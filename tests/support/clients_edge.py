"""Unleash Edge as a client of the table: below our proxy, and with a proxy of ours below it.

Edge is no package of a registry that tests use, so these rows are only there if its program is: `unleash-edge` on the search path,
the program that the variable EDGE names, or the one that `make bench` built.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support import needs, peers, processes
from support.clients import BY_SDK, Client, Row, service_row
from support.clients_below import BY_NAME, Watcher, watching
from support.clients_below import start as start_proxy
from support.http_tap import HttpTap
from support.processes import EDGE_TOKEN, FRONTEND_TOKEN, answers, ask, free_port, running, scratch

ABSENT = "There is no program `unleash-edge` on the search path, and the variable EDGE names none"
BELOW = service_row(
    *("below-edge", "Unleash Edge", "below ours", "/api", "below-edge"),
    registers_as="unleash-edge",
    key=EDGE_TOKEN,
    sees_errors=False,
    keeps_order=False,
)
ABOVE = replace(BELOW, id="above-edge", package="flagsvc", how="below Edge, that below ours", reports_as="above-edge")
ABOVE = replace(ABOVE, registers_as="", use=BY_NAME, refusal=403)
EDGE_ROWS = (BELOW, ABOVE)


def find() -> Path | str:
    """Return the program, or the reason why there is none."""
    given = (
        os.environ.get("EDGE") or shutil.which("unleash-edge") or str(peers.FOLDER / "edge" / "bin" / "unleash-edge")
    )
    return Path(given) if os.access(given, os.X_OK) and Path(given).is_file() else ABSENT


def has_edge() -> bool:
    """Return whether there is a program."""
    return isinstance(find(), Path)


def about() -> str:
    """Return the sentence about Edge below the table: how often it asks, or why its rows are not there."""
    if isinstance(program := find(), str):
        return f"Not in this run: Unleash Edge below ours, and ours below Edge. {program}."
    return "Unleash Edge asks every five seconds."


class EdgeWatcher(Watcher):
    """Asks Edge like a page, and reports like one: Edge counts only what is reported to it."""

    def use(self, toggles: list[dict[str, Any]]) -> dict[str, Any]:
        """Report what an SDK would. Returns the answers that it had, and the variant."""
        now = datetime.now(UTC).isoformat()
        counts = {f"{self.row.id}.{name}": each._asdict() for name, each in BY_SDK.counts.items()}
        report = {
            "appName": self.row.reports_as,
            "instanceId": "page",
            "bucket": {"start": now, "stop": now, "toggles": counts},
        }
        url = self.address + "/client/metrics"
        taken = ask(url, method="POST", headers={"Authorization": self.key}, body=report)
        assert taken.status == 202, taken
        found = {each["name"]: each["variant"] for each in toggles}
        return {"asked": BY_SDK.asked, "variant": found[f"{self.row.id}.variant"]}


def start(program: Path, url: str, key: str, stack: ExitStack) -> tuple[str, processes.Program]:
    """Start Edge below a proxy; returns its address, too. It need not be ready."""
    port, folder = free_port(), stack.enter_context(scratch())
    intervals = {"FEATURES_REFRESH_INTERVAL_SECONDS": "1", "METRICS_INTERVAL_SECONDS": "1"}
    command = [program, "--port", port, "--interface", "127.0.0.1", "edge", "--upstream-url", url, "--tokens", key]
    running_edge = stack.enter_context(running("edge", command, env=intervals, folder=folder))
    return f"http://127.0.0.1:{port}", running_edge


@contextmanager
def edge_and_below(taps: list[tuple[Row, HttpTap]]) -> Iterator[list[Client]]:
    """Run each Edge below our proxy, and each proxy of ours below the first Edge. Those of Edge come first."""
    program = find()
    if isinstance(program, str):
        needs.missing(program)
    with ExitStack() as stack:
        watchers: list[Watcher] = []
        edges = [(row, tap) for row, tap in taps if row.package == BELOW.package]
        for row, tap in edges:
            address, edge = start(program, tap.url, row.key, stack)
            watchers.append(EdgeWatcher(row, f"{address}/api/frontend", FRONTEND_TOKEN))
            edge.wait(lambda url=address: answers(f"{url}/internal-backstage/health"), "up")  # type: ignore[misc]
        first = watchers[0].address
        edge.wait(lambda: ask(first, headers={"Authorization": FRONTEND_TOKEN}).status == 200, "ready")
        for row, tap in taps[len(edges) :]:
            tap.far = urlsplit(first).port or 0
            watchers.append(Watcher(row, start_proxy(row, tap, stack).url))
        stack.enter_context(watching(watchers))
        yield [Client(row, tap, watcher.said) for (row, tap), watcher in zip(taps, watchers, strict=True)]
