"""`flagsvc proxy` as a process: its output, its start and end, and its reaction to errors.

The memory of a serving proxy: modules that it does not need, and the size of the process.
"""

from __future__ import annotations

import contextlib
import json
import re
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from flagsvc.core.version import INTERPRETED_WARNING
from support import needs
from support.fake_upstream import FEATURES, METRICS, FakeUpstream, fake_upstream
from support.processes import (
    LISTENING,
    ROOT,
    Proxy,
    answers,
    call,
    clean_environment,
    flagsvc,
    free_port,
    our_proxy,
    proxy_environment,
)
from support.waiting import wait_until
from support.worker_pools import document, worker_pool
from support.worker_pools import workers as workers_of

QUICK = {"FLAGSVC_FETCH_INTERVAL": "1000"}
one_or_two_workers = pytest.mark.parametrize("workers", ["1", "2"])
EACH_WORKER = 8
"""Requests, each on a connection of its own: they come to different workers."""


def lines(proxy: Proxy) -> list[str]:
    """Return the output of the proxy, without the warning about the interpreted form."""
    return [line for line in proxy.program.output().splitlines() if INTERPRETED_WARNING not in line]


def listening(port: int) -> str:
    """The line a proxy prints when it listens on all addresses."""
    return f"{LISTENING} http://localhost:{port}/proxy (all addresses, IPv6 and IPv4)"


STOPPING = "flagsvc stopping: waits up to 10 s for answers under way"


@one_or_two_workers
def test_what_it_prints(upstream: FakeUpstream, workers: str) -> None:
    """There is a line when it listens, a line when every worker is ready, and a line when it stops. The exit code is 0."""
    with worker_pool(upstream, workers, **QUICK) as proxy:
        assert lines(proxy) == [listening(proxy.port), f"flagsvc ready: 2 toggles from {upstream.url}"]
        assert "server" not in proxy.get().headers, "nothing tells which server software it is"
        assert [list(proxy.toggles()) for _ in range(EACH_WORKER)] == [["first", "second"]] * EACH_WORKER
        assert proxy.program.stop() == 0
        assert lines(proxy)[2:] == [STOPPING]


@one_or_two_workers
def test_every_line_is_json(upstream: FakeUpstream, workers: str) -> None:
    """With JSON_LOGGER all lines are JSON: those of start and stop, of both processes, and warnings about the configuration."""
    env = {"JSON_LOGGER": "true", "LOG_LEVEL": "info", "FLAGSVC_WORKERS": workers, "FLAGSVC_NO_SUCH_OPTION": "1"}
    with our_proxy(upstream.url, FLAGSVC_ADMIN_ADDRESS="127.0.0.1:0", **env) as proxy:
        proxy.program.wait(lambda: "flagsvc ready" in proxy.program.output(), "telling that it is ready")
        assert proxy.program.stop() == 0
        said = [json.loads(line) for line in lines(proxy)]
    assert all({"time", "level", "message"} <= set(line) for line in said)
    texts = [line["message"] for line in said]
    assert [text for text in texts if text.startswith("flagsvc ")] == [
        listening(proxy.port),
        next(text for text in texts if text.startswith("flagsvc admin on http://127.0.0.1:")),
        f"flagsvc ready: 2 toggles from {upstream.url}",
        STOPPING,
    ]
    assert any("FLAGSVC_NO_SUCH_OPTION" in text for text in texts)


MISTAKES = {
    "no configuration": ({"UNLEASH_PROXY_CLIENT_KEYS": " ", "FLAGSVC_FETCH_INTERVAL": "x"}, 2, 2),
    "an address that is not there": ({"FLAGSVC_HOST": "192.0.2.1"}, 1, 1),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_json_too(name: str, tmp_path: Path) -> None:
    """What stops the start is one line of JSON for each problem; the exit code is the same as without."""
    env, code, count = MISTAKES[name]
    known = proxy_environment("http://127.0.0.1:9/api", free_port(), {"JSON_LOGGER": "true", **env})
    done = call("proxy", folder=tmp_path, env=known)
    said = [line for line in map(json.loads, done.err.splitlines()) if line["level"] == "fatal"]
    assert (done.code, len(said), done.out) == (code, count, "")
    assert all(line["message"].startswith("flagsvc proxy: ") for line in said)


def test_the_last_metrics_leave(upstream: FakeUpstream) -> None:
    """After a signal the last usage metrics are sent once, and the exit code is 0, also with idle connections open."""
    with our_proxy(upstream.url) as proxy:
        assert proxy.post("", {"toggles": ["first", "second", "unknown"]}).status == 200
        with socket.create_connection(("127.0.0.1", proxy.port)) as idle:
            idle.sendall(b"GET /proxy/health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert idle.recv(65536).startswith(b"HTTP/1.1 200")
            started = time.monotonic()
            assert proxy.program.stop() == 0
            assert time.monotonic() - started < 8, "an idle connection is not waited for: that would take ten"
    [post] = upstream.received(METRICS)
    counted = {"yes": 1, "no": 0, "variants": {}}
    assert post.json()["bucket"]["toggles"] == {"first": counted, "second": counted}


SLOW_ENRICHER = """
import asyncio, pathlib
folder = pathlib.Path(__file__).parent
async def wait(context):
    (folder / 'seen').touch()
    while not (folder / 'go').exists():
        await asyncio.sleep(0.01)
    return context
enrichers = [wait]
"""
"""An enricher that says that it is asked, and that is done when it is told so: by files."""


def refuses(port: int) -> bool:
    """Return whether a port has no listener."""
    with contextlib.closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


@one_or_two_workers
def test_answers_on_their_way_are_finished(upstream: FakeUpstream, tmp_path: Path, workers: str) -> None:
    """A request that is being answered when the signal comes gets its answer; new connections are refused."""
    enrichers = tmp_path / "slow.py"
    enrichers.write_text(SLOW_ENRICHER)
    env = {"EXP_CUSTOM_ENRICHERS_FILE": str(enrichers), "FLAGSVC_ENRICHER_TIMEOUT": "60000"}
    with worker_pool(upstream, workers, **env) as proxy:
        got: list[int] = []
        asking = threading.Thread(target=lambda: got.append(proxy.get().status))
        asking.start()
        proxy.program.wait((tmp_path / "seen").exists, "answering")
        proxy.program.process.send_signal(signal.SIGTERM)
        proxy.program.wait(lambda: refuses(proxy.port), "refusing connections")
        assert got == []
        (tmp_path / "go").touch()
        asking.join(20)
        assert got == [200]
        assert proxy.program.process.wait(20) == 0


def test_the_upstream_comes_later() -> None:
    """Without the upstream every request except liveness gets 503. When it comes, each process becomes ready by itself."""
    port = free_port()
    with our_proxy(f"http://127.0.0.1:{port}/api", wait_ready=False, FLAGSVC_WORKERS="2", **QUICK) as proxy:
        proxy.program.wait(lambda: "listening" in proxy.program.output(), "listening")
        for _ in range(EACH_WORKER):
            first = proxy.get()
            assert (first.status, first.body, first.headers["retry-after"]) == (503, b"Not Ready", "1")
            assert (proxy.get("/live").status, proxy.get("/health").status) == (200, 503)
        assert "flagsvc ready" not in proxy.program.output()
        with fake_upstream(document("first"), port):
            proxy.program.wait(lambda: lines(proxy)[-1].startswith("flagsvc ready: 1 toggle from"), "saying so")
            assert [list(proxy.toggles()) for _ in range(EACH_WORKER)] == [["first"]] * EACH_WORKER


def test_a_restart_while_the_upstream_is_down(upstream: FakeUpstream, tmp_path: Path) -> None:
    """With storage a restart is ready at once and names the origin of its flags; another upstream's flags are not used."""
    kept = {"FLAGSVC_STORAGE": tmp_path.as_uri(), "FLAGSVC_WORKERS": "2", **QUICK}
    with our_proxy(upstream.url, **kept) as proxy:
        proxy.program.wait(lambda: list(tmp_path.glob("*.flags")), "storing the configuration")
    assert len(list(tmp_path.glob("*.flags"))) == 1
    upstream.replies[FEATURES] = upstream.answer("GET", "/nowhere", {}, b"")
    with our_proxy(upstream.url, **kept) as proxy:
        storage = "flagsvc ready: 2 toggles from storage, the upstream has not answered yet"
        proxy.program.wait(lambda: storage in lines(proxy), "saying where its flags are from")
        assert [list(proxy.toggles()) for _ in range(EACH_WORKER)] == [["first", "second"]] * EACH_WORKER
    gone = f"http://127.0.0.1:{free_port()}/api"
    with our_proxy(gone, wait_ready=False, **kept) as proxy:
        proxy.program.wait(lambda: answers(f"{proxy.url}/live"), "listening")
        assert proxy.get().status == 503, "another upstream's flags are not used"


def test_the_access_log(upstream: FakeUpstream) -> None:
    """With the option each request is one line at any log level, as JSON if requested, without the user's data.

    Neither the lines nor the arguments of processes have a secret.
    """
    env = {"FLAGSVC_ACCESS_LOG": "true", "JSON_LOGGER": "true", "LOG_LEVEL": "error"}
    with worker_pool(upstream, **env) as proxy:
        assert [proxy.get("?userId=some-person").status for _ in range(EACH_WORKER)] == [200] * EACH_WORKER
        proxy.program.wait(lambda: proxy.program.output().count('"route": "/proxy",') == EACH_WORKER, "logging")
        for line in [json.loads(line) for line in lines(proxy) if '"route": "/proxy",' in line]:
            assert (line["level"], line["message"], line["method"], line["status"]) == ("info", "request", "GET", 200)
        assert "some-person" not in proxy.program.output()
        pids = [proxy.program.process.pid, *workers_of(proxy)]
        assert not any(b"some-" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)


def test_nobody_reads_the_output(upstream: FakeUpstream, tmp_path: Path) -> None:
    """If the reader of standard output has gone, the proxy continues and ends with exit code 0."""
    port = free_port()
    env = clean_environment(tmp_path) | proxy_environment(upstream.url, port, QUICK)
    command = [str(part) for part in (*flagsvc(), "proxy")]
    process = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    try:
        wait_until(lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/proxy/health"))
        assert process.poll() is None
    finally:
        process.terminate()
        assert process.wait(20) == 0


SERVE = """
import asyncio, os, sys
import flagsvc.cli.programs, flagsvc.process.serve
from flagsvc import create_app
from flagsvc.settings.load import load

async def live():
    async with create_app(load(os.environ, None, {}).options) as app:
        await app.ready(20)
        assert "1 toggle" in str(app.greeting()), app.greeting()

asyncio.run(live())
print(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""
NEEDLESS = {
    *("httpx", "httpcore", "h11", "anyio", "idna"),  # the upstream is spoken to over httptools
    *("sqlalchemy", "alembic", "psycopg", "rich", "yaml", "tomllib"),  # the flag server, other commands, files
    *("re2", "offapi", "certifi", "prometheus_client"),  # a pattern, the page with the documentation, https, a scrape
    "redis",  # a storage on a server
}
MOST_MB = 50


def test_what_a_proxy_does_not_import(tmp_path: Path) -> None:
    """Synchronised with an upstream over http, it has loaded nothing that only other jobs need."""
    with fake_upstream({"version": 2, "features": [{"name": "first", "enabled": True}]}) as upstream:
        env = clean_environment(tmp_path) | proxy_environment(upstream.url, 0, {})
        done = subprocess.run([sys.executable, "-c", SERVE], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "httptools" in loaded and not loaded & NEEDLESS


def test_the_memory_of_a_proxy_with_a_thousand_flags() -> None:
    """Under 50 MB resident, after answers to many different users."""
    if sys.platform != "linux":
        needs.missing("/proc tells how much memory a process has")
    documents = runpy.run_path(str(ROOT / "benchmarks" / "documents.py"))
    with fake_upstream(documents["document"](1000)) as upstream, our_proxy(upstream.url) as proxy:
        for user in range(200):
            assert len(proxy.toggles(f"?userId={user}&properties[region]=eu-west")) > 300
        status = Path(f"/proc/{proxy.program.process.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        assert found is not None and int(found[1]) / 1024 < MOST_MB
