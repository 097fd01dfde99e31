"""Floods of unfinished requests, on a proxy and a flag server with 256 MB: no process is killed, and callers are answered. And a
flood of callers for whom there is no room.

`make test-long`; FLOOD_SECONDS=60 is the length of each flood. The measurements are printed with `-s`.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support import processes
from support.event_streams import count, listening
from support.flagservers import BACKEND_SECRET, GIVEN
from support.processes import ROOT, Program, Proxy, answers, flagsvc, free_port, proxy_environment, running
from support.waiting import wait_until
from support.worker_pools import samples

SECONDS = float(os.environ.get("FLOOD_SECONDS", "60"))
MEMORY = 256 * 1024 * 1024
GROUPS = Path("/sys/fs/cgroup")
KEY = "client-key"
SLOWEST_S = 10.0


@contextmanager
def small_group() -> Iterator[str]:
    """Give a line of shell that puts a process where it may take 256 MB: a control group, or a limit of address space."""
    version_1 = (GROUPS / "memory").is_dir()
    folder = GROUPS / ("memory" if version_1 else "") / f"flagsvc-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / ("memory.limit_in_bytes" if version_1 else "memory.max")).write_text(str(MEMORY))
    except OSError:
        yield f"ulimit -v {MEMORY // 1024}"
        return
    try:
        yield f"echo $$ > {folder}/cgroup.procs"
    finally:
        wait_until(lambda: is_removed(folder))


def is_removed(folder: Path) -> bool:
    """Remove the group; return whether it had no process any more."""
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


@contextmanager
def small_program(name: str, folder: Path, port: int, env: Mapping[str, str]) -> Iterator[Program]:
    """Run one of our programs where it may take 256 MB."""
    with small_group() as enter:
        command = ["sh", "-c", f'{enter}; exec "$@"', "sh", *flagsvc(), name]
        with running(f"small-{name}", command, env=env, folder=folder) as program:
            program.wait(lambda: answers(f"http://127.0.0.1:{port}/{'proxy/' if name == 'proxy' else ''}health"), "ready")
            yield program


@contextmanager
def small_proxy(folder: Path, **more: str) -> Iterator[tuple[int, Program]]:
    """Run a proxy with a hundred toggles."""
    features = [{"name": f"flag-{n}", "enabled": True, "strategies": [{"name": "default"}]} for n in range(100)]
    document, port = folder / "flags.json", free_port()
    document.write_text(json.dumps({"version": 2, "features": features}))
    env = proxy_environment(document.as_uri(), port, {"UNLEASH_PROXY_CLIENT_KEYS": KEY, **more})
    with small_program("proxy", folder, port, env) as program:
        yield port, program


@contextmanager
def small_server(folder: Path) -> Iterator[tuple[int, Program]]:
    seed, port = folder / "seed.json", free_port()
    seed.write_text(json.dumps(GIVEN))
    env = {
        "FLAGSVC_SERVER_PORT": str(port),
        "FLAGSVC_SERVER_HOST": "127.0.0.1",
        "FLAGSVC_SEED": str(seed),
        "FLAGSVC_DATABASE_URL": str(folder / "flags.db"),
    }
    with small_program("server", folder, port, env) as program:
        yield port, program


def post(path: str, key: str, *fields: str, body: bytes = b"") -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: flags", f"Authorization: {key}", "Content-Type: application/json", *fields]
    return "\r\n".join([*head, "", ""]).encode() + body


HALF_A_HEAD = b"GET /proxy HTTP/1.1\r\nHost: flags\r\nX-Forwarded-For: " + b"1" * 84_000
LESS_OF_A_HEAD = HALF_A_HEAD[:30_000]
NOT_TAKEN = "proxy, answers not taken"
FLOODS = {
    "proxy, heads": (small_proxy, LESS_OF_A_HEAD, 3_000),
    "proxy, heads beyond the limit": (small_proxy, HALF_A_HEAD, 3_000),
    "proxy, metrics": (small_proxy, post("/proxy/client/metrics", KEY, "Content-Length: 1000001", body=b" " * 1_000_000), 300),
    NOT_TAKEN: (small_proxy, f"GET /proxy HTTP/1.1\r\nHost: flags\r\nAuthorization: {KEY}\r\n\r\n".encode() * 100, 1_000),
    "flag server, heads": (small_server, LESS_OF_A_HEAD, 3_000),
    "flag server, metrics": (
        small_server,
        post("/api/client/metrics", BACKEND_SECRET, "Content-Length: 500001", body=b" " * 500_000),
        1_000,
    ),
}


def ask(connection: http.client.HTTPConnection, path: str) -> int:
    """Ask once on a connection, which opens itself again; return the status."""
    connection.request("GET", path, headers={"Authorization": KEY})
    response = connection.getresponse()
    response.read()
    return response.status


def memory(program: Program, row: str = "VmHWM") -> int:
    """Return the most memory that a program has had, in MB; with the row `VmRSS` what it has now."""
    for line in Path(f"/proc/{program.process.pid}/status").read_text().splitlines():
        if line.startswith(row):
            return int(line.split()[1]) // 1024
    return 0


@pytest.mark.long
@pytest.mark.parametrize("networks", [1, 200], ids=["one network", "200 networks"])
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood(name: str, networks: int, tmp_path: Path) -> None:
    """The process lives; every caller beside the flood gets its answer."""
    run, begun, number = FLOODS[name]
    with run(tmp_path) as (port, program):
        path = "/proxy" if run is small_proxy else "/health"
        opened, times = ask_beside(tmp_path, port, path, SECONDS, number, networks, begun, *([1] if name == NOT_TAKEN else []))
        assert program.process.poll() is None, "the process was killed"
        print(f"\n{name}, {networks} network(s): {opened} connections in {SECONDS:.0f} s, {tell(program, times)}")


def ask_beside(
    folder: Path, port: int, path: str, seconds: float, number: int, networks: int, begun: bytes, *more: int
) -> tuple[int, list[float]]:
    """Ask beside a flood; return how many connections the flood has opened, and the seconds that each answer took."""
    stream = folder / "stream"
    stream.write_bytes(begun)
    told = [sys.executable, ROOT / "tests" / "long" / "flooding.py", port, int(seconds), number, networks, stream, *more]
    with subprocess.Popen([str(each) for each in told], stdout=subprocess.PIPE, text=True) as flood:
        times: list[float] = []
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SLOWEST_S)) as kept:
            while flood.poll() is None:
                for connection in (kept, http.client.HTTPConnection("127.0.0.1", port, timeout=SLOWEST_S)):
                    started = time.perf_counter()
                    assert ask(connection, path) == 200
                    times.append(time.perf_counter() - started)
                    if connection is not kept:
                        connection.close()
                time.sleep(0.005)  # the pace of the caller
        return int(flood.stdout.read() if flood.stdout else 0), times


def tell(program: Program, times: list[float]) -> str:
    p99 = statistics.quantiles(times, n=100)[98] * 1000
    answers = f"{len(times)} callers' answers, p99 {p99:.1f} ms, slowest {max(times) * 1000:.0f} ms"
    return f"{memory(program)} MB at most; {answers}"


OPEN, TRIES = 100, 50_000
ROUND_S, AT_A_TIME = 5, 100
GROWTH_MB = 4


@pytest.mark.long
def test_callers_without_room(tmp_path: Path) -> None:
    """While 100 streams are open, which is the limit, 50,000 other callers try to open one, with a key and with a ticket. All are
    refused, the memory stays, callers beside them are answered, and each open stream hears of the next change."""
    with small_proxy(tmp_path, FLAGSVC_MAX_STREAMS=str(OPEN), FLAGSVC_OFREP="true") as (port, program), ExitStack() as stack:
        proxy = Proxy(f"http://127.0.0.1:{port}/proxy", port, program, {"Authorization": KEY})
        bulk = processes.ask(
            f"http://127.0.0.1:{port}/ofrep/v1/evaluate/flags", method="POST", headers=proxy.headers, body={"context": {}}
        )
        url = bulk.json()["eventStreams"][0]["endpoint"]["requestUri"]
        paths = itertools.cycle(["/proxy/stream", url])
        listeners = [stack.enter_context(listening(f"{proxy.url}/stream", KEY)) for _ in range(OPEN)]
        assert {each.version() for each in listeners} == {url.partition("at=")[2]}
        tries, sizes, times = 0, list[int](), list[float]()
        while tries < TRIES:
            begun = f"GET {next(paths)} HTTP/1.1\r\nHost: flags\r\nAuthorization: {KEY}\r\nConnection: close\r\n\r\n".encode()
            opened, took = ask_beside(tmp_path, port, "/proxy", ROUND_S, AT_A_TIME, 200, begun)
            tries, times = tries + opened, times + took
            sizes.append(memory(program, "VmRSS"))
        print(f"\n{tries} callers without room, {tell(program, times)}, MB after each {ROUND_S} s: {sizes}")
        assert sizes[-1] - sizes[1] <= GROWTH_MB
        refused = samples(proxy)['flagsvc_limits_reached_total{limit="streams"}']
        assert tries - len(sizes) * AT_A_TIME <= refused <= tries
        assert (count(proxy), count(proxy, "opened_total"), count(proxy, "dropped_total")) == (OPEN, OPEN, 0)
        (tmp_path / "flags.json").write_text(json.dumps({"version": 2, "features": []}))
        assert len({each.version() for each in listeners} - {None}) == 1
