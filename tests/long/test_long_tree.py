"""A tree of proxies: a flag server, three proxies that poll it, and sixteen that poll these. Each change reaches every leaf.

`make test-long ARGS="-s tests/long/test_long_tree.py"` prints the measurements (how-to: scale out).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from support.flagservers import BACKEND_SECRET, OurFlagServer, our_flag_server
from support.processes import SERVER_SIDE_TOKEN, Proxy, answers, ask, our_proxy
from support.waiting import wait_until

pytestmark = pytest.mark.long

TOPS, LEAVES = 3, 16
REFRESH_MS = 1000
FLAGS = 300
CHANGES = 20
IDLE_S = 10.0
SWITCHED = "flag-0"
LEVELS_S = 2 * REFRESH_MS / 1000
"""A change waits for at most two polls."""
BUSY_S = 4.0
"""What twenty processes on a busy machine may take besides."""


@dataclass(frozen=True)
class Tree:
    """The processes of a tree. Each leaf polls one of `tops`, in turn."""

    server: OurFlagServer
    tops: list[Proxy]
    leaves: list[Proxy]

    def switch(self, on: bool) -> float:
        """Switch the flag, and return when the server has confirmed that."""
        path = f"/admin/projects/default/features/{SWITCHED}/environments/development/{'on' if on else 'off'}"
        assert self.server.ask("POST", path).status == 200
        return time.monotonic()

    def polls(self) -> float:
        page = ask(self.server.url.removesuffix("/api") + "/metrics").text.splitlines()
        rows = [line for line in page if line.startswith("flagsvc_http_requests_total") and "/api/client/features" in line]
        return sum(float(line.rpartition(" ")[2]) for line in rows)


@pytest.fixture(scope="module")
def tree() -> Iterator[Tree]:
    features = [{"name": f"flag-{at}", "enabled": ["development"]} for at in range(FLAGS)]
    pace = {"FLAGSVC_FETCH_INTERVAL": str(REFRESH_MS)}
    with ExitStack() as made:
        server = made.enter_context(our_flag_server(given={"features": features}))
        above = {**pace, "UNLEASH_API_TOKEN": BACKEND_SECRET}
        tops = [made.enter_context(our_proxy(server.url, **above)) for _ in range(TOPS)]
        below = {**pace, "UNLEASH_API_TOKEN": SERVER_SIDE_TOKEN}
        leaves = [made.enter_context(our_proxy(tops[at % TOPS].url, wait_ready=False, **below)) for at in range(LEAVES)]
        for leaf in leaves:
            leaf.program.wait(partial(answers, f"{leaf.url}/health"), "ready")
        yield Tree(server, tops, leaves)


def is_on(proxy: Proxy) -> bool:
    return SWITCHED in proxy.toggles()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def arrivals(tree: Tree, on: bool) -> list[float]:
    """Switch the flag, and return after how many seconds each leaf has it, in order."""
    began, waiting, delays = tree.switch(on), list(tree.leaves), []

    def arrived() -> bool:
        for leaf in list(waiting):
            if is_on(leaf) is on:
                delays.append(time.monotonic() - began)
                waiting.remove(leaf)
        return not waiting

    wait_until(arrived, LEVELS_S + BUSY_S, lambda: f"{len(waiting)} leaves have not got the change")
    return delays


def test_a_change_reaches_every_leaf(tree: Tree) -> None:
    """Within two polls, off and on again, twenty times."""
    rows = sorted(delay for number in range(CHANGES) for delay in arrivals(tree, number % 2 == 1))
    print(f"from commit to leaf: median {statistics.median(rows):.2f} s, worst {rows[-1]:.2f} s, {len(rows)} arrivals")


def test_the_server_sees_the_first_level_alone(tree: Tree) -> None:
    """It answers the polls of three proxies, not of nineteen."""
    pid, polls, began = tree.server.program.process.pid, tree.polls(), time.monotonic()
    before = cpu_s(pid)
    wait_until(lambda: time.monotonic() - began >= IDLE_S, IDLE_S + 5, lambda: "the clock stands still")
    answered, spent, seconds = tree.polls() - polls, cpu_s(pid) - before, time.monotonic() - began
    sizes = [int(Path(f"/proc/{each.program.process.pid}/statm").read_text().split()[1]) * 4 / 1024 for each in tree.leaves]
    print(f"the server: {answered / seconds:.1f} polls a second, {100 * spent / seconds:.1f} % of a core")
    print(f"a leaf: {statistics.median(sizes):.0f} MB")
    assert 0 < answered <= TOPS * (seconds * 1000 / REFRESH_MS + 2)


def test_a_level_that_is_gone(tree: Tree) -> None:
    """Leaves below a proxy that was killed go on answering; the others get the next change."""
    on = not is_on(tree.leaves[0])
    tree.tops[0].program.process.kill()
    tree.switch(on)
    reached = [leaf for at, leaf in enumerate(tree.leaves) if at % TOPS]
    wait_until(lambda: all(is_on(leaf) is on for leaf in reached), LEVELS_S + BUSY_S, lambda: "a leaf lacks the change")
    assert all(is_on(leaf) is not on for at, leaf in enumerate(tree.leaves) if at % TOPS == 0)
