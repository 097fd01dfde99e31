"""The whole harness: a small run of our proxy alone, what is left out and why, and servers that disagree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import proxy
from harness import load, parts, prepared, procs, servers
from harness.load import BenchError
from harness.measuring import Measuring, Scale, Task
from harness.results import (
    EMPTY,
    EMPTY_ASGI,
    EQUAL,
    MOUNTED,
    NO_CLASSES,
    ONE_WORKER,
    OURS,
    REPEATED,
    TWO_PROCESSES,
    TWO_WORKERS,
    Cell,
)
from support.bench_scene import PLAIN, generator, loopback

TINY = Scale(
    sizes=(10,), rounds=1, extra=0, paired=1, seconds=0.05, whole=False,
    warm_s=0.05, warm_ups=1, learn_s=0.05, connections=4, engine_s=0.01,
)  # fmt: skip


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Give what measures some parts of ours alone, which must work, and returns the raw results."""
    generator()
    monkeypatch.setattr(proxy, "scale_of", lambda options: TINY)

    def run(parts: str) -> Any:
        assert proxy.main(["--only-ours", "--parts", parts, "--output", str(tmp_path)]) == 0
        return json.loads((tmp_path / "proxy.json").read_text())

    return run


@pytest.mark.long
def test_a_small_run_of_ours_alone(tmp_path: Path, measured: Callable[[str], Any]) -> None:
    """Every cell is measured, pages and raw results are written, left-out parts are named, and the exit code is 0."""
    raw = measured("matrix")
    cells = [Cell(**each) for each in raw["cells"]]
    matrix = {(each.form, each.encoding, each.status) for each in cells if each.part == "matrix"}
    assert {("GET list", "identity", 200), ("GET list", "gzip", 200), ("GET list", "identity", 304)} <= matrix
    assert {each.part for each in cells if each.server == EMPTY} == {"floor"}
    assert all(each.cpu and each.cpu[0] > 0 and each.rate > 0 for each in cells)
    assert raw["left_out"] == ["the reference and Edge: not asked for"]
    assert raw["failed"] == []
    assert raw["memory"][0]["pss"] > 1
    assert {each.cached is not None for each in cells if each.server == OURS and each.status == 200} == {True}
    lists = [each for each in cells if (each.part, each.form, each.status) == ("matrix", "GET list", 200)]
    plain, equal = ({each.encoding: each for each in lists if each.server == server} for server in (OURS, EQUAL))
    assert all(equal[encoding].answer > plain[encoding].answer for encoding in ("identity", "gzip"))
    assert "## Goals" in (tmp_path / "proxy.md").read_text()


@pytest.mark.long
def test_the_limit_and_what_is_mounted(tmp_path: Path, measured: Callable[[str], Any]) -> None:
    """The cache gives all answers of the repeated users and none of the others. An empty application stands beside ours."""
    cells = [Cell(**each) for each in measured("limit,mounted")["cells"]]
    assert {(each.server, each.users) for each in cells if each.part == "limit"} == {(OURS, 0), (OURS, REPEATED), (NO_CLASSES, 0)}
    assert {each.server for each in cells if each.part == "mounted"} == {EMPTY_ASGI, MOUNTED}
    assert "| mounted (ASGI), 10 flags | at most 10 µs" in (tmp_path / "proxy.md").read_text()


@pytest.mark.long
def test_workers_beside_two_processes_and_the_engine(tmp_path: Path, measured: Callable[[str], Any]) -> None:
    """One worker, two, and two processes that know nothing of each other are measured; the engine has files of its own."""
    raw = measured("workers,engine")
    assert {each["server"] for each in raw["cells"]} == {ONE_WORKER, TWO_WORKERS, TWO_PROCESSES}
    assert "engine" not in raw
    alone = json.loads((tmp_path / "engine.json").read_text())
    assert alone["about"] == raw["about"]
    assert set(alone["microseconds"]["interpreted"]) == {"10"}


@pytest.mark.long
def test_what_is_compared_with_workers_is_in_one_session() -> None:
    """Each process has a group of its own, to be ended by, and the session of the load generator; nothing of it stays."""
    with servers.upstream() as url, servers.ours_twice("two")(f"{url}/10") as first:
        assert first.second
        pids = [first.pid, first.second.pid]
        assert [os.getsid(pid) for pid in pids] == [os.getsid(0)] * 2
        assert [os.getpgid(pid) for pid in pids] == pids
        assert first.port != first.second.port
    assert [Path(f"/proc/{pid}").exists() for pid in pids] == [False, False]


def test_parts_of_it_do_not_overwrite_the_published_pages() -> None:
    """Only a whole run writes to docs/benchmarks."""
    assert proxy.arguments([]).output.parts[-2:] == ("docs", "benchmarks")
    for given in (["--quick"], ["--only-ours"], ["--sizes", "10"], ["--parts", "matrix"]):
        assert proxy.arguments(given).output.parts[-2:] == (".cache", "bench")


def silent(line: str) -> None:
    """Say nothing."""


def test_servers_that_disagree_are_not_measured() -> None:
    """A flag that is missing, or whose variant or payload is another, is found; order and extra fields do not matter."""
    same = {"a": (True, "blue", True, None, None), "b": (False, "disabled", False, None, None)}
    assert servers.unlike({"ours": same, "other": dict(reversed(same.items()))}, "user 1") == []
    found = servers.unlike({"ours": same, "other": {"a": (True, "red", True, None, None)}}, "user 1")
    assert found == [
        "user 1: ours and other differ in 2 flags, `a` is (True, 'blue', True, None, None) and (True, 'red', True, None, None)"
    ]


def test_a_part_that_breaks_does_not_take_the_others_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What breaks is kept as failed. Servers that disagree end the run, and the error says in what."""
    stand, kinds = Measuring(tmp_path, tmp_path, TINY, silent), parts.Kinds("")
    monkeypatch.setattr(servers, "differences", lambda running, users: ["user 1: something"])
    monkeypatch.setattr(parts.engine, "both", Mock(side_effect=subprocess.CalledProcessError(1, "engine.py")))  # type: ignore[attr-defined]
    monkeypatch.setitem(parts.PARTS, "users", Mock(side_effect=BenchError("something")))
    monkeypatch.setitem(parts.PARTS, "matrix", lambda stand, kinds: parts.agree(10, []))
    for part in ("users", "engine"):
        proxy.attempt(part, stand, kinds)
    assert stand.results.failed[0] == "users: something" and "engine: " in stand.results.failed[1]
    with pytest.raises(load.DisagreementError, match="user 1: something"):
        proxy.attempt("matrix", stand, kinds)


def test_cpu_of_a_process_tree_is_counted() -> None:
    """The CPU time of a grandchild counts for the tree, and a sleeping process uses none."""
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdin
        process.stdout.readline()
        assert len(procs.tree(process.pid)) == 2
        assert procs.cpu_seconds(process.pid) >= 0.3
        assert procs.memory(process.pid).rss >= procs.memory(process.pid).pss > 1
        process.stdin.write(b"\n")
        process.stdin.flush()


def test_what_a_server_cannot_sustain_is_left_out(tmp_path: Path) -> None:
    """A rate over six tenths of the server's maximum is left out, and the reason is kept."""
    stand = Measuring(tmp_path, tmp_path, TINY, silent)
    with loopback(lambda request: b"") as server:
        subject = servers.Server(OURS, servers.FAMILY, server.port, None, 0.0)  # type: ignore[arg-type]
        assert stand.rated("latency", 10, subject, 100, 150) is None
    assert server.requests == []
    assert "over six tenths" in stand.results.left_out[0]


def test_a_cell_that_fails_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Wrong answers give no figure, but a line in the list of failures."""
    stand = Measuring(generator(), tmp_path, TINY, silent)
    with loopback(lambda request: b"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n") as server:
        program = type("Running", (), {"process": type("Process", (), {"pid": os.getpid()})})
        subject = servers.Server(OURS, servers.FAMILY, server.port, program, 0.0)  # type: ignore[arg-type]
        stand.cell(10, [subject], Task("matrix", prepared.LIST))
    assert stand.results.cells == []
    assert "another status" in stand.results.failed[0]


def test_no_user_comes_again(tmp_path: Path) -> None:
    """Every request on a server is for another user. A task with its own users repeats only these."""
    stand = Measuring(generator(), tmp_path, TINY, silent)
    with loopback(lambda request: PLAIN) as server:
        program = type("Running", (), {"process": type("Process", (), {"pid": os.getpid()})})
        subject = servers.Server("other", servers.FAMILY, server.port, program, 0.0)  # type: ignore[arg-type]
        for _ in range(3):
            stand.shoot(subject, Task("matrix", prepared.LIST), 10, load.Plan(count=40, connections=4, warm=0.0))
        fresh = {user(request) for request in server.requests}
        stand.shoot(subject, Task("users", prepared.LIST, users=2), 10, load.Plan(count=40, connections=4, warm=0.0))
        every = {user(request) for request in server.requests}
    assert len(fresh) == 120
    assert every - fresh == {b"1000000", b"1000001"} - fresh


def user(request: bytes) -> bytes:
    """Return the number of the user that a request is for."""
    return request.partition(b"userId=")[2].partition(b"&")[0]
