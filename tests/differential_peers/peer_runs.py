"""Runs a peer, or ours in its place, and asks all rows of a scene."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peer_compare import Records, flat, want
from peer_meaning import Record, arrived
from peer_rows import Row
from peer_scenes import EDGE, Scene
from peer_written import FORMS, migrate, ours

from support import needs, peers, processes
from support.fake_upstream import FEATURES, FakeUpstream, fake_upstream
from support.waiting import wait_until

SECONDS = 10.0
UPSTREAM = ("counted", "registered", "measured")
"""Fields that are known upstream alone."""
POLLS = 3
"""After so many polls all counts have been sent: each second has a poll, and a post of counts."""


@contextmanager
def upstream_of(scene: Scene) -> Iterator[FakeUpstream]:
    """Run the flag server of a scene."""
    with fake_upstream({"version": 2, "features": []}) as upstream:
        scene.prepare(upstream)
        yield upstream


def ask_peer(scene: Scene) -> dict[str, Record]:
    """Run the peer of a scene, and return its records."""
    with upstream_of(scene) as upstream, processes.scratch() as folder:
        port = processes.free_port()
        variables = scene.variables_for(upstream, port, folder)
        with processes.running("peer", command_of(scene), env=variables, folder=folder, stop=signal.SIGKILL) as program:
            await_ready(scene, port, program)
            found = scene.asker(port).record_all(scene.rows)
            await_reports(upstream, len(scene.tokens))
            for row in scene.rows:
                found[row.title] |= arrived(upstream, row)
        return found


def ask_ours(scene: Scene, written: str, printed: str, theirs: Records) -> dict[str, Record]:
    """Migrate a peer's configuration, run ours from it, and return its records. What must arrive upstream is waited for."""
    with upstream_of(scene) as upstream, processes.scratch() as folder:
        port = processes.free_port()
        given = FORMS[written](scene, scene.variables_for(upstream, port, folder), folder)
        with ours(migrate(given, printed, folder), printed, folder) as program:
            await_ready(scene, port, program)
            found = scene.asker(port).record_all(scene.rows)
            add_arrived(scene, upstream, found, theirs)
        return found


def command_of(scene: Scene) -> list[object]:
    """Return the command that starts a peer. Skips the test if it is not here."""
    if scene.peer == EDGE:
        return [edge_program() or needs.missing("the variable EDGE names no program"), scene.subcommand]
    return [peers.node(), peers.package("@unleash/proxy") / "dist" / "start.js"]


def edge_program() -> str:
    """Return the program of Edge that the variable EDGE names; empty if it names none."""
    given = os.environ.get("EDGE", "")
    return str(Path(given).absolute()) if given and Path(given).is_file() and os.access(given, os.X_OK) else ""


def await_ready(scene: Scene, port: int, program: processes.Program) -> None:
    """Wait until a proxy has its flags."""
    program.wait(lambda: processes.answers(f"http://127.0.0.1:{port}{scene.base}{scene.ready}"), "ready")


def await_reports(upstream: FakeUpstream, proxies: int) -> None:
    """Wait until a peer has sent what was reported to it so far. `proxies` is how many of its tokens poll."""
    before = len(upstream.received(FEATURES))
    upstream.wait(lambda: len(upstream.received(FEATURES)) >= before + POLLS * proxies)


def add_arrived(scene: Scene, upstream: FakeUpstream, found: dict[str, Record], theirs: Records) -> None:
    """Add to our records what the upstream got: as soon as it is what it must be, or else what there is after some seconds."""
    reports = [row for row in scene.rows if row.reaches_upstream]
    wanted = {row.title: want(row, theirs, is_ordered=False)[0] for row in reports}

    def is_there(row: Row) -> bool:
        got = flat(arrived(upstream, row), is_ordered=False)
        return got == {name: each for name, each in wanted[row.title].items() if name.partition(".")[0] in UPSTREAM}

    with contextlib.suppress(AssertionError):
        wait_until(lambda: all(map(is_there, reports)), SECONDS)
    for row in reports:
        found[row.title] |= arrived(upstream, row)
