"""The servers that are measured, each with its own production settings and without logs, on the same upstream."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import documents
from harness import mounted
from harness.load import BenchError
from harness.prepared import Routes
from support import peers
from support.processes import (
    KEY,
    Answer,
    Program,
    answers,
    ask,
    clean_environment,
    flagsvc,
    free_port,
    our_proxy,
    proxy_environment,
    reference_proxy,
    running,
    scratch,
)

HERE = Path(__file__).resolve().parent
QUIET = {"LOG_LEVEL": "error", "NODE_ENV": "production"}
READY_S = 60.0
FAMILY = Routes("/proxy", "/proxy/all", "/proxy/client/metrics", "/proxy/health", KEY)
FRONTEND = replace(FAMILY, enabled="/api/frontend", all="/api/frontend/all", metrics="/api/frontend/client/metrics")
MOUNTED = replace(
    FAMILY,
    enabled=mounted.PREFIX + FAMILY.enabled,
    all=f"{mounted.PREFIX}{FAMILY.all}",
    metrics=mounted.PREFIX + FAMILY.metrics,
    health=mounted.PREFIX + FAMILY.health,
)
EDGE_TOKEN = "*:development.frontend"
EDGE = Routes(
    "/api/frontend",
    "/api/frontend/all",
    "/api/frontend/client/metrics",
    "/internal-backstage/health",
    EDGE_TOKEN,
    names=False,
)


@dataclass(frozen=True)
class Server:
    """A running server: what it is called in tables, where it answers, its process, and seconds from its start to ready."""

    name: str
    routes: Routes
    port: int
    program: Program
    start_s: float
    second: Server | None = None
    """Another process beside it that takes every other connection."""

    @property
    def pid(self) -> int:
        """The process whose tree is measured."""
        return self.program.process.pid

    def ask(self, at: int, path: str = "", encoding: str = "identity") -> Answer:
        """Ask for the flags of the at-th user."""
        target = f"http://127.0.0.1:{self.port}{path or self.routes.enabled}?{urlencode(documents.context(at))}"
        return ask(target, headers={"Authorization": self.routes.key, "Accept-Encoding": encoding})

    def cache_hits(self) -> float:
        """Return how many answers of ours came from its cache so far, 0 where there is none."""
        base = self.routes.health.removesuffix("/health")
        url = f"http://127.0.0.1:{self.port}{base}/internal-backstage/prometheus"
        found = re.search(r"^flagsvc_answer_cache_hits_total (\S+)", ask(url).body.decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0


Start = Callable[[str], AbstractContextManager[Server]]
"""Takes the upstream's address, without `/api`, and runs a server on it; ready when the block begins."""


def await_ready(name: str, routes: Routes, port: int, program: Program, begun: float) -> Server:
    """Return the server once it answers an evaluation."""
    server = Server(name, routes, port, program, 0.0)
    end = time.monotonic() + READY_S
    while True:
        with contextlib.suppress(OSError):
            if server.ask(1).status == 200:
                return Server(name, routes, port, program, time.monotonic() - begun)
        if time.monotonic() > end or program.process.poll() is not None:
            raise BenchError(f"{name} did not become ready:\n{program.output()[-2000:]}")
        time.sleep(0.002)


def ours(name: str = "ours", *arguments: str, **env: str) -> Start:
    """Return what runs our proxy."""

    @contextmanager
    def start(upstream: str) -> Iterator[Server]:
        begun = time.monotonic()
        with our_proxy(f"{upstream}/api", *arguments, wait_ready=False, **QUIET, **env) as proxy:
            yield await_ready(name, FAMILY, proxy.port, proxy.program, begun)

    return start


def ours_frontend(name: str) -> Start:
    """Return what runs our proxy, to be asked at its frontend API."""

    @contextmanager
    def start(upstream: str) -> Iterator[Server]:
        with ours(name)(upstream) as server:
            yield replace(server, routes=FRONTEND)

    return start


def ours_divided(name: str, number: int, *arguments: str) -> Start:
    """Return what runs our proxy with so many environments, and asks it for the first of them."""
    names = [f"e{at}" for at in range(number)]
    keys = {f"FLAGSVC_{each.upper()}_PROXY_CLIENT_KEYS": f"{KEY}-{each}" for each in names[1:]}
    tokens = {f"FLAGSVC_{each.upper()}_API_TOKEN": f"*:{each}.secret" for each in names}
    nothing = ("UNLEASH_API_TOKEN", "UNLEASH_PROXY_CLIENT_KEYS", "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS")
    own = {"FLAGSVC_ENVIRONMENTS": ",".join(names), "FLAGSVC_E0_PROXY_CLIENT_KEYS": KEY}
    return ours(name, *arguments, **dict.fromkeys(nothing, ""), **own, **keys, **tokens)


def ours_here(name: str, *arguments: str) -> Start:
    """Return what runs our proxy in the session of the load generator.

    Linux divides the processor between sessions first (`sched_autogroup_enabled`). Processes that share one would be interrupted
    more often than processes that have one each, which looks like a higher cost; here all are in one.
    """

    @contextmanager
    def start(upstream: str) -> Iterator[Server]:
        port, begun = free_port(), time.monotonic()
        with scratch() as folder, (folder / "ours.log").open("wb") as sink:
            process = subprocess.Popen(
                [*map(str, flagsvc()), "proxy", *arguments],
                env={**clean_environment(folder), **proxy_environment(f"{upstream}/api", port, QUIET)},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            program = Program(name, process, folder / "ours.log")
            try:
                yield await_ready(name, FAMILY, port, program, begun)
            finally:
                program.stop()

    return start


def ours_twice(name: str) -> Start:
    """Return what runs our proxy two times, in processes that know nothing of each other."""
    one = ours_here(name)

    @contextmanager
    def start(upstream: str) -> Iterator[Server]:
        with one(upstream) as first, one(upstream) as second:
            yield replace(first, second=second)

    return start


def reference(name: str) -> Start:
    """Return what runs the reference proxy."""

    @contextmanager
    def start(upstream: str) -> Iterator[Server]:
        begun = time.monotonic()
        with reference_proxy(f"{upstream}/api", **QUIET) as proxy:
            yield await_ready(name, FAMILY, proxy.port, proxy.program, begun)

    return start


def edge(name: str, binary: Path, **env: str) -> Start:
    """Return what runs Unleash Edge."""

    @contextmanager
    def start(upstream: str) -> Iterator[Server]:
        port, begun = free_port(), time.monotonic()
        command = [binary, "--port", port, "--interface", "127.0.0.1", "edge", "--upstream-url", upstream]
        command += ["--tokens", "*:development.backend"]
        with scratch() as folder, running("edge", command, env={"RUST_LOG": "off", **env}, folder=folder) as program:
            yield await_ready(name, EDGE, port, program, begun)

    return start


def empty_like(name: str, answer: Answer) -> Start:
    """Return what runs an application that answers everything with the same header fields, and as many bytes, as an answer."""
    own = {"date", "server"}
    fields = [(name, value) for name, value in answer.headers.items() if name not in own]
    return under_uvicorn(name, "empty", json.dumps([fields, len(answer.body)]))


SENDS_A_FILE = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/client;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ default_type application/json; root {folder}; try_files /answer =404; }}
  }}
}}
"""
"""The configuration of an nginx of one process that answers every request with the file `answer`."""


def nginx_missing() -> str:
    """Return the reason why there is no nginx, empty where there is one."""
    return "" if nginx_program() else "it is not installed"


def nginx_program() -> str:
    """Return the program nginx, empty where there is none."""
    return shutil.which("nginx") or shutil.which("/usr/sbin/nginx") or ""


def nginx_version() -> str:
    """Return the version of nginx."""
    told = subprocess.run([nginx_program(), "-v"], capture_output=True, text=True, check=False).stderr
    return told.strip().rpartition("/")[2]


def file_server(name: str, body: bytes) -> Start:
    """Return what runs nginx, which sends a file with these bytes."""

    @contextmanager
    def start(upstream: str) -> Iterator[Server]:
        port, begun = free_port(), time.monotonic()
        with scratch() as folder:
            (folder / "answer").write_bytes(body)
            (folder / "nginx.conf").write_text(SENDS_A_FILE.format(port=port, folder=folder))
            command = [nginx_program(), "-e", "stderr", "-c", folder / "nginx.conf"]
            with running("nginx", command, env={}, folder=folder) as program:
                yield await_ready(name, FAMILY, port, program, begun)

    return start


def under_uvicorn(name: str, application: str, *arguments: str) -> Start:
    """Return what runs an application of mounted.py: `proxy`, which has ours below a prefix, or `empty`."""

    @contextmanager
    def start(upstream: str) -> Iterator[Server]:
        port, begun = free_port(), time.monotonic()
        env = proxy_environment(f"{upstream}/api", port, QUIET)
        command = [sys.executable, HERE / "mounted.py", port, application, *arguments]
        with scratch() as folder, running("mounted", command, env=env, folder=folder) as program:
            yield await_ready(name, MOUNTED, port, program, begun)

    return start


@contextmanager
def upstream() -> Iterator[str]:
    """Run the upstream of all; give its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (
        scratch() as folder,
        running("upstream", [sys.executable, HERE / "upstream.py", port], env={}, folder=folder) as program,
    ):
        program.wait(lambda: answers(f"{url}/0/api/client/features"), "ready")
        yield url


class Flapping:
    """The flag server that works and fails by turns."""

    def __init__(self, url: str) -> None:
        self.url = url

    def flap(self, seconds: float) -> None:
        """Fail and work by turns of so many seconds; 0: work."""
        assert ask(f"{self.url}/flap/{seconds:g}", method="POST", body=b"").status == 200

    def seen(self) -> dict[str, Any]:
        """Return what it saw."""
        told: dict[str, Any] = ask(f"{self.url}/seen").json()
        return told

    def settled(self, at_least: int, seconds: float) -> int:
        """Return the usage that the server accepted, as soon as it is enough, or after so many seconds."""
        end = time.monotonic() + seconds
        while (taken := int(self.seen()["usage"])) < at_least and time.monotonic() < end:
            time.sleep(0.5)
        return taken


@contextmanager
def flapping(flags: int) -> Iterator[Flapping]:
    """Run the flag server, calm at first."""
    port = free_port()
    command = [sys.executable, HERE / "flapping.py", port, flags]
    with scratch() as folder, running("upstream", command, env={}, folder=folder) as program:
        program.wait(lambda: answers(f"http://127.0.0.1:{port}/seen"), "ready")
        yield Flapping(f"http://127.0.0.1:{port}")


def reference_missing() -> str:
    """Return the reason why there is no reference proxy, empty where there is one."""
    found = peers.find("@unleash/proxy")
    return found if isinstance(found, str) else ""


def has_option(flag: str) -> bool:
    """Return whether our proxy knows a flag of the command line."""
    command = [*map(str, flagsvc()), "proxy", "--help"]
    with scratch() as folder:
        env = clean_environment(folder)
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env).stdout
    return re.search(rf"{flag}\b", shown) is not None


def edge_version(server: Server) -> str:
    """Return the version that a running Edge reports."""
    told = ask(f"http://127.0.0.1:{server.port}/internal-backstage/instancedata").body.decode()
    found = re.search(r'"edgeVersion":\s*"([^"]+)"', told)
    return found[1] if found else "unknown"


def node_version() -> str:
    """Return the version of node."""
    node = shutil.which("node")
    return subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip() if node else ""


def package_version(name: str) -> str:
    """Return the version of an npm package that was fetched."""
    folder = peers.find(name)
    return "" if isinstance(folder, str) else str(json.loads((folder / "package.json").read_text())["version"])


def toggles(answer: Answer) -> dict[str, Any]:
    """Return what an answer says of each flag, in one form for all servers."""
    content = gzip.decompress(answer.body) if answer.headers.get("content-encoding") == "gzip" else answer.body
    return {each["name"]: verdict(each) for each in json.loads(content)["toggles"]}


def verdict(toggle: dict[str, Any]) -> tuple[Any, ...]:
    """Return whether a flag is on, its variant and its payload."""
    variant = toggle.get("variant") or {}
    payload = variant.get("payload") or {}
    return (toggle["enabled"], variant.get("name"), variant.get("enabled"), payload.get("type"), payload.get("value"))


def differences(servers: list[Server], users: range) -> list[str]:
    """Return what the servers do not agree on; nothing is measured unless that is nothing."""
    found = []
    for at in users:
        for path in ("enabled", "all"):
            for encoding in ("identity", "gzip"):
                answers_ = {s.name: toggles(s.ask(at, getattr(s.routes, path), encoding)) for s in servers}
                found += unlike(answers_, f"user {at}, {path}, {encoding}")
    return found


def unlike(answers_: dict[str, dict[str, Any]], where: str) -> list[str]:
    """Return in what the answers of some servers differ from those of the first."""
    (first, expected), *others = answers_.items()
    lines = []
    for name, given in others:
        names = sorted(key for key in expected.keys() | given.keys() if expected.get(key) != given.get(key))
        if names:
            what = f"{len(names)} flags, `{names[0]}` is {expected.get(names[0])} and {given.get(names[0])}"
            lines.append(f"{where}: {first} and {name} differ in {what}")
    return lines
