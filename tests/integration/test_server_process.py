"""`flagsvc server` as a process: first start, second start, signals, and mistakes that are told in a line."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import socket
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from flagsvc.cli import main
from flagsvc.core.version import INTERPRETED_WARNING
from support import needs, processes
from support.flagservers import USER_SECRET, our_flag_server
from support.guides import run as run_commands
from support.processes import LISTENING, ask

TOKEN = re.compile(r"FLAGSVC_ADMIN_TOKEN=(user:[0-9a-f]{20,})")
Run = Callable[..., tuple[int, str]]


OF_THE_MACHINE = (INTERPRETED_WARNING, "flagsvc made a new database: ")
"""What only some machines make a server say: one without a compiler, and a container."""


def without_warning(program: processes.Program) -> str:
    """Return a program's output without the lines that only some machines have."""
    lines = program.output().splitlines(keepends=True)
    return "".join(line for line in lines if not any(text in line for text in OF_THE_MACHINE))


def read_terminal(folder: Path, port: int) -> str:
    """Return what a first start prints on a terminal. The server has ended then."""
    options = ["--host", "127.0.0.1", "--port", port, "--database", folder / "flags.db"]
    command = [str(word) for word in (*processes.flagsvc(), "server", *options)]
    env = processes.clean_environment(folder)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 400))
    text = b""
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.STDOUT, env=env) as program:
        os.close(theirs)
        try:
            while b"docs/openapi" not in text and (more := os.read(ours, 65536)):
                text += more
        finally:
            program.terminate()
            program.wait(timeout=60)
            os.close(ours)
    return text.decode().replace("\r\n", "\n")


def test_a_terminal_gets_the_token_of_a_first_start_once(tmp_path: Path) -> None:
    """The token is one of an administrator; a terminal shows it once, it is not stored, and works after a restart."""
    port = processes.free_port()
    text = read_terminal(tmp_path, port)
    (secret,) = TOKEN.findall(text)
    assert f"http://127.0.0.1:{port}/ui/sign-in#" in text and f"http://127.0.0.1:{port}/api/admin/api-tokens" in text
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("flags.db*"))
    assert secret.removeprefix("user:").encode() not in kept
    with our_flag_server(seeded=False, folder=tmp_path) as server:
        server.program.wait(lambda: "ready" in server.program.output(), "ready")
        assert "irst start" not in server.program.output()
        assert server.ask("GET", "/admin/maintenance", token=secret).status == 200


@pytest.mark.parametrize("as_json", ["false", "true"])
def test_a_log_gets_no_secret_at_a_first_start(as_json: str, tmp_path: Path) -> None:
    """Where no person reads, as text and as JSON: no secret, but the commands that print a link and a token; they work."""
    with our_flag_server(seeded=False, folder=tmp_path, JSON_LOGGER=as_json) as server:
        server.program.wait(lambda: "irst start" in server.program.output(), "greeting")
        text = without_warning(server.program)
        assert "user:" not in text and "#" not in text
        secrets = server.first_secrets(tmp_path / "flags.db")
        assert re.fullmatch(re.escape(server.root) + r"/ui/sign-in#\S+", secrets.link)
        assert server.ask("GET", "/admin/maintenance", token=secrets.token).status == 200


def test_a_start_and_an_end(tmp_path: Path) -> None:
    """A server says where it listens, that it is ready, and that it stops. SIGTERM ends with 0."""
    with our_flag_server(seeded=False, folder=tmp_path) as server:
        server.program.wait(lambda: "docs/openapi" in server.program.output(), "greeting")
        text = without_warning(server.program)
        assert text.startswith(f"{LISTENING} {server.root}\nflagsvc ready: 0 feature flags in {tmp_path}/flags.db\n")
        assert processes.ask(server.root + "/health").json() == {"health": "GOOD"}
        assert server.program.stop() == 0
        assert without_warning(server.program) == f"{text}flagsvc stopping: waits up to 10 s for answers under way\n"


def test_every_line_is_json(tmp_path: Path) -> None:
    """With JSON_LOGGER all lines are JSON, and the commands of a first start have fields of their own."""
    env = {"JSON_LOGGER": "true", "FLAGSVC_NO_SUCH_OPTION": "1"}
    with our_flag_server(seeded=False, folder=tmp_path, **env) as server:  # type: ignore[arg-type]
        server.program.wait(lambda: "first start" in server.program.output(), "greeting")
        assert server.program.stop() == 0
        said = [json.loads(line) for line in without_warning(server.program).splitlines()]
    listening, ready, first, stopping = (line for line in said if line["level"] == "info")
    assert listening["message"] == f"{LISTENING} {server.root}"
    assert ready["message"] == f"flagsvc ready: 0 feature flags in {tmp_path}/flags.db"
    assert first["message"] == "flagsvc first start: two commands print a link that signs an administrator in, and a token"
    assert first["linkCommand"] == f"flagsvc server sign-in-link admin --url {server.root}"
    assert first["tokenCommand"] == "flagsvc server token create first --user admin"
    assert first["documentation"] == f"{server.root}/docs/openapi"
    assert stopping["message"] == "flagsvc stopping: waits up to 10 s for answers under way"
    assert any("FLAGSVC_NO_SUCH_OPTION" in line["message"] for line in said if line["level"] == "warn")


def test_an_address_for_operators(tmp_path: Path) -> None:
    """It has probes and metrics. Callers then get no metrics, and the health check asks it, since it needs no certificate."""
    port = processes.free_port()
    address = f"127.0.0.1:{port}"
    with our_flag_server(folder=tmp_path, base="/base", FLAGSVC_SERVER_ADMIN_ADDRESS=address) as server:
        server.program.wait(lambda: f"flagsvc admin on http://127.0.0.1:{port}\n" in server.program.output(), "ready")
        root, operators = server.root.removesuffix("/base"), f"http://127.0.0.1:{port}"
        for path in ("/livez", "/readyz", "/base/health", "/base/ready"):
            assert [ask(place + path).status for place in (root, operators)] == [200, 200], path
        for path in ("/metrics", "/base/internal-backstage/prometheus"):
            assert [ask(place + path).status for place in (root, operators)] == [404, 200], path
        assert "prometheus" not in ask(f"{server.root}/docs/openapi.json").body.decode()
        assert "prometheus" not in ask(f"{server.root}/", headers={"Accept": "application/json"}).body.decode()
        assert ask(f"{operators}/base/api/admin/projects", headers={"Authorization": USER_SECRET}).status == 404
        variables = {"FLAGSVC_SERVER_ADMIN_ADDRESS": address, "FLAGSVC_SERVER_BASE_PATH": "base"}
        done = processes.call("health", "--server", "--port", "1", folder=tmp_path, env=variables)
        assert done == processes.Called(0, f"ready: {operators}/base/ready\n", "")


def test_the_lines_to_go_on_with_work(tmp_path: Path) -> None:
    """Pasted into a shell as they are printed, they make a flag, switch it on and make a token; a proxy's document then has it."""
    shutil.which("curl") or needs.missing("curl is not installed")
    with our_flag_server(seeded=False, folder=tmp_path) as server:
        server.program.wait(lambda: "docs/openapi" in server.program.output(), "greeting")
        before = server.program.output().partition("Start a proxy")[0]
        script = "\n".join(line for line in before.splitlines() if line.startswith("  "))
        variables = {"FLAGSVC_DATABASE_URL": str(tmp_path / "flags.db")}
        said = run_commands(script.replace("curl ", "curl --silent --fail "), tmp_path, variables)
        (secret,) = re.findall(r'"secret":"([^"]+)"', said)
        document = server.ask("GET", "/client/features", token=secret).json()
        assert [(each["name"], each["enabled"]) for each in document["features"]] == [("first-flag", True)]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Give what runs a flag server that ends by itself, in this process, and returns its exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLAGSVC_DATABASE_URL", str(tmp_path / "flags.db"))

    def call(*arguments: str) -> tuple[int, str]:
        code = main(["server", "--host", "127.0.0.1", "--port", "0", *arguments])
        return code, "".join(capsys.readouterr())

    return call


MISTAKES: dict[str, tuple[list[str], int, str]] = {
    "no such folder, and none can be made": (["--database", "/proc/none/flags.db"], 1, "the folder `/proc/none`"),
    "a folder for a file": (["--database", "."], 1, "the database failed"),
    "no database": (["--database", "nosuch.txt"], 1, "the database"),
    "no server": (["--database", "postgresql://me:hunter2@127.0.0.1:1/flags"], 1, "the database failed"),
    "no seed": (["--seed", "none.json"], 2, "the seed file `none.json` cannot be read"),
    "a seed that is none": (["--seed", "nosuch.txt"], 2, "nosuch.txt"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_a_line(run: Run, tmp_path: Path, mistake: str) -> None:
    """The exit code is 1 for an obstacle and 2 for a wrong input. There is no traceback and no password."""
    arguments, code, text = MISTAKES[mistake]
    (tmp_path / "nosuch.txt").write_text("{ this is neither\n: JSON nor YAML" * 100)
    found, output = run(*arguments)
    assert (found, text in output) == (code, True), output
    assert "Traceback" not in output and "hunter2" not in output
    assert len(output.splitlines()) <= 3
    assert "listening" not in output


def test_a_port_in_use_is_told(run: Run, tmp_path: Path) -> None:
    """The error comes before anything is opened: no database is created."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, output = run("--port", str(taken.getsockname()[1]))
    assert code == 1
    assert "another program is listening there" in output
    assert not (tmp_path / "flags.db").exists()


def test_a_public_url(tmp_path: Path) -> None:
    """Behind a proxy that ends TLS, notices have the public address, and cookies are for TLS only; OpenAPI stays relative."""
    address = "https://flags.example/base"
    with our_flag_server("--public-url", f"{address}/", base="/base", folder=tmp_path, seeded=False) as server:
        output = server.program.output()
        code = server.first_secrets(tmp_path / "flags.db").link.removeprefix(f"{address}/ui/sign-in#")
        assert f"{address}/ui/tokens" in output and "listening on http://127.0.0.1:" in output
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        answer = ask(f"{server.root}/ui/sign-in", method="POST", headers=sent, body=f"token={code}".encode())
        assert answer.status == 303 and answer.headers["set-cookie"].startswith("__Host-flagsvc=")
        assert ask(f"{server.root}/docs/openapi.json").json()["servers"] == [{"url": "/base"}]


def test_the_default_address_and_database(tmp_path: Path) -> None:
    """A server listens on all addresses, and says how to listen on this machine alone.

    The database is $XDG_STATE_HOME/flagsvc/flags.db, from any working directory.
    """
    port = processes.free_port()
    command = [*processes.flagsvc(), "server", "--port", str(port)]
    with processes.running("plain", command, env={}, folder=tmp_path) as program:
        program.wait(lambda: "flagsvc ready" in program.output(), "ready")
        assert without_warning(program).splitlines()[0] == (
            f"{LISTENING} http://localhost:{port} (all addresses, IPv6 and IPv4; --host 127.0.0.1 limits it to this machine)"
        )
        assert f"in {tmp_path}/state/flagsvc/flags.db" in program.output()
    assert (tmp_path / "state" / "flagsvc" / "flags.db").exists()
