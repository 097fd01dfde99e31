"""Proxies below the proxy, as clients of the table: ours, the npm reference, and Unleash Edge.

A thread asks each for its flags again and again, as a page would, and tells what changes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from support import processes
from support.clients import BASE, Client, Counts, Row, Use, service_row
from support.http_tap import HttpTap
from support.processes import KEY, Proxy

BY_NAME = Use([True, False, True], {"asked": Counts(1, 0, {}), "off": Counts(0, 1, {}), "variant": Counts(1, 0, {})})
"""One look-up of three flags by their names. A proxy counts no variants."""
QUERY = "?userId=7&properties%5Bregion%5D=eu"
BELOW_ROWS = tuple(
    service_row(f"below-{kind}", package, "below ours", "/api", f"below-{kind}", sees_errors=False, use=BY_NAME)
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
        """Return the events of one kind so far."""
        return [each for each in list(self.events) if each["event"] == event]

    def tell(self, event: str, **content: Any) -> None:
        """Add an event."""
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
    threads = [threading.Thread(target=each.run) for each in watchers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for each in watchers:
            each.over.set()
        for thread in threads:
            thread.join()


def start(row: Row, tap: HttpTap, stack: ExitStack) -> Proxy:
    """Start a proxy that has the row's key; it need not be ready."""
    starter, interval = STARTERS[row.package]
    options = {
        "UNLEASH_API_TOKEN": row.key,
        "UNLEASH_APP_NAME": row.reports_as,
        "UNLEASH_FETCH_INTERVAL": interval,
        "UNLEASH_METRICS_INTERVAL": interval,
    }
    proxy: Proxy = stack.enter_context(starter(tap.url + row.path, wait_ready=False, **options))
    return proxy


@contextmanager
def proxies_below(taps: list[tuple[Row, HttpTap]]) -> Iterator[list[Client]]:
    """Run the proxies, and watch them."""
    with ExitStack() as stack:
        watchers = [Watcher(row, start(row, tap, stack).url) for row, tap in taps]
        stack.enter_context(watching(watchers))
        yield [Client(row, tap, watcher.said) for (row, tap), watcher in zip(taps, watchers, strict=True)]
