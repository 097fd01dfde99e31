"""Proxies below the proxy, as clients of the table: ours, the npm reference, and Unleash Edge, also with a proxy of ours below it.

A thread asks each for its flags again and again, as a page would, and tells what changes.

Edge is no package of a registry that tests use, so these rows are only there if its program is: `unleash-edge` on the search path,
the program that the variable EDGE names, or the one that `make bench` built.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clients import BASE, BY_SDK, Client, Counts, Row, Use, service_row
from http_tap import HttpTap

from support import needs, peers, processes
from support.processes import EDGE_TOKEN, FRONTEND_TOKEN, KEY, Proxy, answers, ask, free_port, running, scratch
from support.waiting import setting, threads

BY_NAME = Use([True, False, True], {"asked": Counts(1, 0, {}), "off": Counts(0, 1, {}), "variant": Counts(1, 0, {})})
"""One look-up of three flags by their names. A proxy counts no variants."""
QUERY = "?userId=7&properties%5Bregion%5D=eu"
BELOW_ROWS = tuple(
    service_row(f"below-{kind}", package, "/api", f"below-{kind}", sees_errors=False, use=BY_NAME)
    for kind, package in (("reference", "@unleash/proxy 1.4.19"), ("ours", "flagsvc"))
)
STARTERS: dict[str, tuple[Callable[..., Any], str]] = {
    "@unleash/proxy 1.4.19": (processes.reference_proxy, "1000"),
    "flagsvc": (processes.our_proxy, "200"),
}
"""Package → what starts it, and its intervals in milliseconds."""
PAUSE_S = 0.05


class Watcher:
    """Asks a proxy for its flags until `over`; `events` as a client tells them."""

    def __init__(self, row: Row, address: str, key: str = KEY) -> None:
        self.row = row
        self.address = address
        self.key = key
        self.events: list[dict[str, Any]] = []
        self.over = threading.Event()

    def said(self, event: str) -> list[dict[str, Any]]:
        return [each for each in list(self.events) if each["event"] == event]

    def tell(self, event: str, **content: Any) -> None:
        self.events.append({"event": event, **content})

    def run(self) -> None:
        """Watch until told to stop. A proxy that does not answer, or not with flags, is not there yet, or has failed."""
        while not self.over.wait(PAUSE_S):
            try:
                self.look(self.ask("GET", QUERY))
            except (OSError, ValueError, KeyError) as error:
                if self.said("ready"):
                    self.tell("error", error=repr(error))

    def ask(self, method: str, query: str = "", body: object = None) -> list[dict[str, Any]]:
        """Return the toggles of an answer."""
        answer = processes.ask(self.address + query, method=method, headers={"Authorization": self.key}, body=body)
        toggles: list[dict[str, Any]] = json.loads(answer.body)["toggles"]
        return toggles

    def look(self, toggles: list[dict[str, Any]]) -> None:
        """Tell the flags if they changed, and use them once."""
        names = [toggle["name"] for toggle in toggles]
        flags = {name: name in names for name in BASE}
        if not self.said("ready"):
            self.tell("ready", toggles=names, **self.use(toggles))
        states = self.said("state")
        if not states or states[-1]["flags"] != flags:
            self.tell("state", flags=flags)

    def use(self, toggles: list[dict[str, Any]]) -> dict[str, Any]:
        """Return what a look-up by names gives; the proxy counts it."""
        asked = [f"{self.row.id}.{name}" for name in ("asked", "off", "variant")]
        found = self.ask("POST", body={"context": {"userId": "7"}, "toggles": asked})
        return {"asked": [each["enabled"] for each in found], "variant": found[2]["variant"]}


@contextmanager
def watching(watchers: list[Watcher]) -> Iterator[None]:
    """Have the watchers work until the block ends."""
    with threads(*(each.run for each in watchers), stop=setting(*(each.over for each in watchers))):
        yield


def start_proxy(row: Row, tap: HttpTap, stack: ExitStack) -> Proxy:
    """Start a proxy that has the row's key; it need not be ready."""
    starter, interval = STARTERS[row.package]
    options = {
        "UNLEASH_API_TOKEN": row.key,
        "UNLEASH_APP_NAME": row.reports_as,
        "UNLEASH_FETCH_INTERVAL": interval,
        "UNLEASH_UPSTREAM_MODE": "polling",
        "UNLEASH_METRICS_INTERVAL": interval,
    }
    proxy: Proxy = stack.enter_context(starter(tap.url + row.path, wait_ready=False, **options))
    return proxy


@contextmanager
def proxies_below(taps: list[tuple[Row, HttpTap]]) -> Iterator[list[Client]]:
    """Run the proxies, and watch them."""
    with ExitStack() as stack:
        watchers = [Watcher(row, start_proxy(row, tap, stack).url) for row, tap in taps]
        stack.enter_context(watching(watchers))
        yield [Client(row, tap, watcher.said) for (row, tap), watcher in zip(taps, watchers, strict=True)]


ABSENT = "There is no program `unleash-edge` on the search path, and the variable EDGE names none"
BELOW = service_row(
    *("below-edge", "Unleash Edge", "/api", "below-edge"),
    registers_as="unleash-edge",
    key=EDGE_TOKEN,
    sees_errors=False,
    keeps_order=False,
)
ABOVE = replace(BELOW, id="above-edge", package="flagsvc", reports_as="above-edge")
ABOVE = replace(ABOVE, registers_as="", use=BY_NAME, refusal=403)
EDGE_ROWS = (BELOW, ABOVE)


def find() -> Path | str:
    """Return the program, or the reason why there is none."""
    given = os.environ.get("EDGE") or shutil.which("unleash-edge") or str(peers.FOLDER / "edge" / "bin" / "unleash-edge")
    return Path(given) if os.access(given, os.X_OK) and Path(given).is_file() else ABSENT


def has_edge() -> bool:
    """Return whether there is a program."""
    return isinstance(find(), Path)


class EdgeWatcher(Watcher):
    """Asks Edge like a page, and reports like one: Edge counts only what is reported to it."""

    def use(self, toggles: list[dict[str, Any]]) -> dict[str, Any]:
        """Report what an SDK would. Returns the answers that it had, and the variant."""
        now = datetime.now(UTC).isoformat()
        counts = {f"{self.row.id}.{name}": each._asdict() for name, each in BY_SDK.counts.items()}
        report = {"appName": self.row.reports_as, "instanceId": "page", "bucket": {"start": now, "stop": now, "toggles": counts}}
        url = self.address + "/client/metrics"
        taken = ask(url, method="POST", headers={"Authorization": self.key}, body=report)
        assert taken.status == 202, taken
        found = {each["name"]: each["variant"] for each in toggles}
        return {"asked": BY_SDK.asked, "variant": found[f"{self.row.id}.variant"]}


def start_edge(program: Path, url: str, key: str, stack: ExitStack) -> tuple[str, processes.Program]:
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
            address, edge = start_edge(program, tap.url, row.key, stack)
            watchers.append(EdgeWatcher(row, f"{address}/api/frontend", FRONTEND_TOKEN))
            edge.wait(lambda url=address: answers(f"{url}/internal-backstage/health"), "up")  # type: ignore[misc]
        first = watchers[0].address
        edge.wait(lambda: ask(first, headers={"Authorization": FRONTEND_TOKEN}).status == 200, "ready")
        for row, tap in taps[len(edges) :]:
            tap.far = urlsplit(first).port or 0
            watchers.append(Watcher(row, start_proxy(row, tap, stack).url))
        stack.enter_context(watching(watchers))
        yield [Client(row, tap, watcher.said) for (row, tap), watcher in zip(taps, watchers, strict=True)]
