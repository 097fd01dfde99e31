"""Programs that tests start on free loopback ports, wait for by a condition, and stop by their own id."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from flagsvc.core.version import VERSION
from support import forms, needs, peers
from support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
KEY = "some-client-key"
UPSTREAM_TOKEN = "*:development.some-upstream-token"
FRONTEND_TOKEN = "*:development.some-frontend-token"
SERVER_SIDE_TOKEN = "some-server-side-token"
EDGE_TOKEN = "*:development.some-edge-token"
FORM = "compiled" if all(forms.compiled_modules().values()) else "interpreted"
LISTENING = f"flagsvc {VERSION} ({FORM}) listening on"
"""How the line begins that a program of ours prints when it listens; a process runs compiled where it can."""
ADMIN_TOKEN = "*:*.some-admin-token"
ADMINISTRATOR = ("postgres", "nobody")  # the first that exists runs a database that root must not run
PROCESSES = 8
"""Processes of one test run that have ports of their own."""


def _own_ports() -> list[int]:
    """The ports of this process of the test run, of those that no system hands out to connections by itself, from anywhere on."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = list(range(20_000 + number % PROCESSES, 32_000, PROCESSES))
    # not from the generator that everybody seeds
    start = random.SystemRandom().randrange(len(ports))
    return ports[start:] + ports[:start]


_ports = itertools.cycle(_own_ports())


def free_port() -> int:
    """Return a port without a listener at any address, which no other process of this test run gets.

    It is not returned again before all others: its process may take a while before it listens, and may stop and start again.
    """
    while True:
        number = next(_ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", number))
            return number


@dataclass
class Program:
    """A running program: its process, its output so far, and a folder for its files."""

    name: str
    process: subprocess.Popen[bytes]
    output_file: Path

    def output(self) -> str:
        return self.output_file.read_text(errors="replace")

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the lines written so far that are JSON objects with this `event`."""
        lines = [json.loads(line) for line in self.output().splitlines() if line.startswith("{") and line.endswith("}")]
        return [line for line in lines if line["event"] == event]

    def wait(self, condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
        """Return when `condition` holds; fail with the program's output if it ends before or `seconds` pass."""

        def holds() -> bool:
            ended = self.process.poll()  # looked at first: the last thing that the program did may meet the condition
            if condition():
                return True
            assert ended is None, f"{self.name} ended with {ended} before it was {what}:\n{self.output()}"
            return False

        wait_until(holds, seconds, lambda: f"{self.name} was not {what} within {seconds} s:\n{self.output()}")

    def stop(self, number: int = signal.SIGTERM, seconds: float = 15.0) -> int:
        """Ask the program to end and return its exit status; it is killed, with its children, after `seconds`."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()


@contextmanager
def running(
    name: str,
    command: Sequence[object],
    *,
    env: Mapping[str, str],
    folder: Path,
    user: str | None = None,
    stop: int = signal.SIGTERM,
    cwd: Path | None = None,
) -> Iterator[Program]:
    """Run `command` until the block ends, with an environment that has only the search path.

    It runs in `folder`, or in `cwd`. Its output goes into `folder`. Remaining children of its process group are killed.
    Its standard input is empty and ends with the block, or with this process: a program that reads it does not outlive the test.
    """
    output = folder / f"{name}.log"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [str(part) for part in command],
            env={**clean_environment(folder), **env},
            cwd=cwd or folder,
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user,
            extra_groups=[] if user else None,
        )
    program = Program(name, process, output)
    try:
        yield program
    except BaseException:
        print(f"--- what {name} wrote ---\n{program.output()[-20_000:]}")
        raise
    finally:
        program.stop(stop)
        with contextlib.suppress(ProcessLookupError):  # of a leader that was killed there may be children, in its group
            os.killpg(process.pid, signal.SIGKILL)
        assert process.stdin
        process.stdin.close()


def clean_environment(folder: Path) -> dict[str, str]:
    """Return an environment without options, except no wait at the end, no outbound proxy and `folder` as home."""
    folders = {"HOME": str(folder), "TMPDIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    fixed = {"TZ": "UTC", "LANG": "C.UTF-8", "HOSTNAME": "Some-Host", "PYTHONDONTWRITEBYTECODE": "1"}
    fixed["UNLEASH_SHUTDOWN_GRACE"] = "0"
    return {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT / "src"), **folders, **fixed}


@contextmanager
def scratch(user: str | None = None) -> Iterator[Path]:
    """Give a temporary folder, owned by `user` if one is named, and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="flagsvc-"))
    if user:
        shutil.chown(folder, user)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Answer:
    """One HTTP answer. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: object = None, seconds: float = 30.0
) -> Answer:
    """Send one request and return its answer; a `body` that is not bytes is sent as JSON."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
    with contextlib.closing(connection):
        sent = {**({} if body is None else {"Content-Type": "application/json"}), **(headers or {})}
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), content, sent)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        cookies = response.headers.get_all("set-cookie") or []
        return Answer(response.status, found | ({"set-cookie": "\n".join(cookies)} if cookies else {}), response.read())


def answers(url: str, status: int = 200) -> bool:
    """Return whether a GET of `url` is answered with `status`."""
    try:
        return ask(url, seconds=5).status == status
    except OSError:
        return False


@dataclass(frozen=True)
class Proxy:
    """A running proxy: `url` ends in `/proxy`."""

    url: str
    port: int
    program: Program
    headers: dict[str, str] = field(default_factory=lambda: {"Authorization": KEY})

    def get(self, path: str = "", **headers: str) -> Answer:
        """Ask for `path` below the proxy's own address, query included, with the client key."""
        return ask(self.url + path, headers=self.headers | headers)

    def post(self, path: str, body: object, **headers: str) -> Answer:
        """Send `body` to `path` below the proxy's own address with the client key."""
        return ask(self.url + path, method="POST", body=body, headers=self.headers | headers)

    def toggles(self, path: str = "") -> dict[str, Any]:
        return {toggle["name"]: toggle for toggle in self.get(path).json()["toggles"]}


def proxy_environment(upstream_url: str, port: int, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that start either proxy: both read the reference's names."""
    return {
        "UNLEASH_URL": upstream_url,
        "UNLEASH_API_TOKEN": UPSTREAM_TOKEN,
        "UNLEASH_PROXY_CLIENT_KEYS": KEY,
        "UNLEASH_APP_NAME": "proxy-under-test",
        "UNLEASH_INSTANCE_ID": "one",
        "PORT": str(port),
        "ENABLE_ALL_ENDPOINT": "true",
        "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": SERVER_SIDE_TOKEN,
        **env,
    }


def reference_proxy(upstream_url: str, wait_ready: Any = True, **env: str) -> AbstractContextManager[Proxy]:
    """Run the npm reference proxy against an upstream until the block ends; the block begins when it is ready."""
    command = [peers.node(), peers.package("@unleash/proxy") / "dist" / "start.js"]
    return _proxy("reference proxy", command, upstream_url, env, wait_ready=wait_ready)


def our_proxy(upstream_url: str, *arguments: str, wait_ready: Any = True, **env: str) -> AbstractContextManager[Proxy]:
    """Run our proxy against an upstream until the block ends, at PORT or a free one; the block begins when it is ready."""
    return _proxy("our proxy", [*flagsvc(), "proxy", *arguments], upstream_url, env, wait_ready=wait_ready)


def flagsvc() -> list[object]:
    """Return the command of this package: the installed one, or what it would call."""
    script = Path(sys.executable).with_name("flagsvc")
    return [script] if script.exists() else [sys.executable, "-c", "import sys, flagsvc.cli as c; sys.exit(c.main())"]


class Called(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def call(*words: object, folder: Path, env: Mapping[str, str] | None = None, seconds: float = 60.0) -> Called:
    """Call `flagsvc` with these words in a folder and without a terminal; `env` has the only options in its environment."""
    done = subprocess.run(
        [str(word) for word in (*flagsvc(), *words)],
        env={**clean_environment(folder), **(env or {})},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Called(done.returncode, done.stdout, done.stderr)


@contextmanager
def _proxy(name: str, command: Sequence[object], upstream_url: str, env: Mapping[str, str], *, wait_ready: Any) -> Iterator[Proxy]:
    port = int(env.get("PORT", 0)) or free_port()
    variables = proxy_environment(upstream_url, port, env)
    with scratch() as folder, running(name.replace(" ", "-"), command, env=variables, folder=folder) as program:
        base = env.get("PROXY_BASE_PATH", "").strip("/")
        url = f"http://127.0.0.1:{port}{'/' if base else ''}{base}/proxy"
        if wait_ready:
            program.wait(lambda: answers(f"{url}/health"), "ready")
        yield Proxy(url, port, program)


@contextmanager
def node_script(name: str, text: str, package: str, *arguments: str) -> Iterator[Program]:
    """Run a script of our own in node until the block ends; its first argument is the folder of an npm package."""
    command = [peers.node(), "script.cjs", peers.package(package), *arguments]
    with scratch() as folder:
        (folder / "script.cjs").write_text(text)
        with running(name, command, env={}, folder=folder) as program:
            yield program


@contextmanager
def postgresql() -> Iterator[str]:
    """Run a PostgreSQL cluster of its own, on a temporary folder; give the URL of an empty database in it."""
    with scratch(database_user()) as folder:
        make_cluster(folder, "data")
        with cluster(folder, "data", port := free_port()):
            yield f"postgres://postgres@127.0.0.1:{port}/postgres"


def make_cluster(folder: Path, name: str) -> None:
    """Make the files of a PostgreSQL cluster in a folder below `folder`."""
    initdb = postgres_program("initdb")
    make = [initdb, "-D", folder / name, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"]
    with running("initdb", make, env={}, folder=folder, user=database_user()) as program:
        assert program.process.wait(120) == 0, program.output()


@contextmanager
def cluster(folder: Path, name: str, port: int, *settings: str) -> Iterator[Program]:
    """Run a PostgreSQL cluster until the block ends; `settings` are further ones, as `name=value`."""
    options = [f"--{each}" for each in ("fsync=off", "full_page_writes=off", "timezone=UTC", *settings)]
    serve = [postgres_program("postgres"), "-D", folder / name, "-h", "127.0.0.1", "-p", port, "-k", folder, *options]
    with running(f"postgres-{name}", serve, env={}, folder=folder, user=database_user(), stop=signal.SIGINT) as program:
        program.wait(lambda: _accepts(folder / name / "postmaster.pid"), "ready", 60)
        yield program


def database_user() -> str | None:
    """Return the user that runs a database which root must not run; None if this process is not root's."""
    return next(name for name in ADMINISTRATOR if _exists(name)) if os.geteuid() == 0 else None


def answers_tcp(port: int) -> bool:
    """Return whether a program accepts connections at a port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


def _exists(user: str) -> bool:
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwnam(user))
    return False


def _accepts(pid_file: Path) -> bool:
    """The last line of a running server's file of its process id says whether it takes connections."""
    return pid_file.exists() and pid_file.read_text().splitlines()[-1:] == ["ready   "]


def postgres_program(name: str) -> str:
    """Return a program of PostgreSQL: Debian keeps them away from the search path."""
    found = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)]
    return shutil.which(name) or (found[0] if found else needs.missing(f"PostgreSQL ({name}) is not installed"))


@dataclass(frozen=True)
class FlagServer:
    """A running npm unleash-server: `url` ends in `/api`."""

    url: str
    program: Program

    def admin(self, path: str, body: object = None, method: str = "") -> Any:
        """Call the admin API, with POST if there is a body, and return the answer. Other statuses than success fail."""
        headers = {"Authorization": ADMIN_TOKEN, "Content-Type": "application/json"}
        method = method or ("GET" if body is None else "POST")
        answer = ask(f"{self.url}/admin{path}", method=method, headers=headers, body=body)
        assert answer.status < 300, (path, answer.status, answer.body, self.program.output()[-2000:])
        return answer.json() if answer.body else None


FIRST_USER = {"username": "admin", "password": "unleash4all"}
"""Who a new npm unleash-server has."""


def personal_token(server: FlagServer) -> str:
    """Return the secret of a new personal token of the server's first user, an administrator. Importing needs such a token."""
    root = server.url.removesuffix("/api")
    cookie = ask(f"{root}/auth/simple/login", method="POST", body=FIRST_USER).headers["set-cookie"]
    body = {"description": "tests", "expiresAt": "2099-01-01T00:00:00Z"}
    headers = {"Cookie": cookie.partition(";")[0]}
    return str(ask(f"{server.url}/admin/user/tokens", method="POST", headers=headers, body=body).json()["secret"])


MIGRATE = "import(process.argv[1]).then(({ migrateDb }) => migrateDb({ db: JSON.parse(process.argv[2]) }))"


def make_tables(database_url: str, peer: str) -> None:
    """Make the tables of npm unleash-server in an empty database, in a fifth of the time of its migrations.

    They run once; what they made is kept beside the package. A database with tables stays as it is.
    """
    psql = [postgres_program("psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", database_url]
    if _output(*psql, "-c", "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") != "0\n":
        return
    migrator = peers.package("unleash-server", peer) / "dist" / "migrator.js"
    dump = postgres_program("pg_dump")
    kept = peers.FOLDER / peer / f"tables-{_output(dump, '--version').split()[2]}.sql"
    with peers.locked(peer):
        if not kept.exists():
            parts = urlsplit(database_url)
            place = {"driver": "pg", "host": parts.hostname, "port": parts.port, "user": parts.username}
            place |= {"password": parts.password, "database": parts.path[1:], "schema": "public"}
            _output(peers.node_of(peer), "-e", MIGRATE, str(migrator), json.dumps(place))
            kept.write_text(_output(dump, "--no-owner", database_url))
            return
    _output(*psql, "-f", str(kept))


def _output(*command: str) -> str:
    """Return what a command prints, which must succeed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, (command, done.stderr[-2000:])
    return done.stdout


@contextmanager
def unleash_server(database_url: str, peer: str = "server", **more: str) -> Iterator[FlagServer]:
    """Run npm unleash-server on a database; it has an admin token and a token for proxies, and calls no other host.

    `peer` is the row of `peers.PACKAGES` with its version, `more` are further variables.
    """
    make_tables(database_url, peer)
    port = free_port()
    env = {
        "DATABASE_URL": database_url,
        "DATABASE_SSL": "false",
        "HTTP_HOST": "127.0.0.1",
        "HTTP_PORT": str(port),
        "UNLEASH_URL": f"http://127.0.0.1:{port}",
        "INIT_ADMIN_API_TOKENS": ADMIN_TOKEN,
        "INIT_BACKEND_API_TOKENS": UPSTREAM_TOKEN,
        "INIT_FRONTEND_API_TOKENS": FRONTEND_TOKEN,
        "CHECK_VERSION": "false",
        "SEND_TELEMETRY": "false",
        "LOG_LEVEL": "warn",
        # it writes some things after its answer; when a test has removed the flag by then, it would end over that
        "NODE_OPTIONS": "--unhandled-rejections=warn",
        **more,
    }
    command = [peers.node_of(peer), peers.package("unleash-server", peer) / "dist" / "server.js"]
    with scratch() as folder, running("unleash-server", command, env=env, folder=folder) as program:
        program.wait(lambda: answers(f"http://127.0.0.1:{port}/health"), "ready", 120)
        yield FlagServer(f"http://127.0.0.1:{port}/api", program)
