"""The environment of a real server in front of `flagsvc server`: ours does with it what the real one does (decision 0003)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from support import peers, processes
from support.databases import fresh_database
from support.processes import ask

pytestmark = pytest.mark.programs

ADMIN, CLIENT, FRONTEND = "*:*.first-admin", "default:development.first-client", "*:development.first-frontend"
LATER = "*:development.later-client"
TOKENS = {"INIT_ADMIN_API_TOKENS": ADMIN, "INIT_CLIENT_API_TOKENS": CLIENT, "INIT_FRONTEND_API_TOKENS": FRONTEND}
QUIET = {"CHECK_VERSION": "false", "SEND_TELEMETRY": "false", "LOG_LEVEL": "warn"}
ASKED = (
    ("/api/admin/projects", ADMIN),
    ("/api/client/features", CLIENT),
    ("/api/frontend", FRONTEND),
    ("/api/client/features", LATER),
    ("/api/admin/projects", CLIENT),
)
"""What is asked: a path, and a token for it."""


def pieces(url: str) -> dict[str, str]:
    """Return the variables of a database, piece by piece."""
    parts = urlsplit(url)
    found = {"HOST": parts.hostname, "PORT": str(parts.port), "NAME": parts.path[1:], "USERNAME": parts.username}
    return {f"DATABASE_{name}": value or "" for name, value in found.items()} | {"DATABASE_SSL": "false"}


def real() -> Sequence[object]:
    """Return the command of the real server."""
    return [peers.node_of("server"), peers.package("unleash-server", "server") / "dist" / "server.js"]


def ours() -> Sequence[object]:
    """Return the command of our server."""
    return [*processes.flagsvc(), "server"]


@contextmanager
def started(command: Sequence[object], environment: Mapping[str, str], folder: Path) -> Iterator[tuple[str, processes.Program]]:
    """Run a server with nothing but variables of a real one; give its address and the program."""
    port = processes.free_port()
    env = {**QUIET, "HTTP_HOST": "127.0.0.1", "HTTP_PORT": str(port), "BASE_URI_PATH": "/flags", **environment}
    with processes.running("server", command, env=env, folder=folder) as program:
        url = f"http://127.0.0.1:{port}/flags"
        program.wait(lambda: processes.answers(f"{url}/health"), "ready", 120)
        yield url, program


def statuses(url: str) -> list[int]:
    """Return the status of each answer."""
    return [ask(url + path, headers={"Authorization": token}).status for path, token in ASKED]


@pytest.mark.parametrize("command", [real, ours])
def test_the_same_environment_gives_the_same_server(
    command: Callable[[], Sequence[object]], postgresql_cluster: str, tmp_path: Path
) -> None:
    """Address, base path, database and tokens are those of the variables. The next start creates no other token."""
    found: list[list[int]] = []
    with fresh_database(postgresql_cluster) as database:
        for more in (TOKENS, TOKENS | {"INIT_CLIENT_API_TOKENS": LATER}):
            with started(command(), pieces(database) | more, tmp_path) as (url, _):
                found.append(statuses(url))
        with psycopg.connect(database) as db:
            assert db.execute("SELECT count(*) FROM features").fetchone() == (0,)
    assert found == [[200, 200, 200, 401, 403]] * 2


def test_a_schema_of_its_own(postgresql_cluster: str, tmp_path: Path) -> None:
    """With DATABASE_SCHEMA our tables are in that schema. The start says what it takes, and what it does not."""
    with fresh_database(postgresql_cluster) as database:
        with psycopg.connect(database, autocommit=True) as db:
            db.execute("CREATE SCHEMA flags")
        others = {"DATABASE_SCHEMA": "flags", "UNLEASH_DEFAULT_ADMIN_PASSWORD": "hunter2", "AUTH_TYPE": "none"}
        with started(ours(), pieces(database) | others, tmp_path) as (_, program):
            program.wait(lambda: "flagsvc ready" in program.output(), "ready")
            output = program.output()
        with psycopg.connect(database) as db:
            assert db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall() == []
            assert db.execute("SELECT count(*) FROM flags.features").fetchone() == (0,)
    assert (
        "flagsvc takes variables of a real server: port from HTTP_PORT, host from HTTP_HOST, database from DATABASE_HOST + "
        in output
    )
    assert "environment UNLEASH_DEFAULT_ADMIN_PASSWORD: not taken: there are no passwords" in output
    assert "environment AUTH_TYPE: not taken: " in output and "hunter2" not in output


def test_the_database_of_a_real_server_stays_as_it_is(postgresql_cluster: str, tmp_path: Path) -> None:
    """Where the variables name the database of a real server, ours refuses to start and changes nothing."""
    with fresh_database(postgresql_cluster) as database:
        with started(real(), pieces(database) | TOKENS, tmp_path):
            pass
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        with psycopg.connect(database) as db:
            before = db.execute(tables).fetchone()
        env = {**QUIET, **pieces(database), **TOKENS, "PORT": "0"}
        with processes.running("server", ours(), env=env, folder=tmp_path) as program:
            assert program.process.wait(60) == 1
            assert "the database holds tables that flagsvc did not make" in program.output()
        with psycopg.connect(database) as db:
            assert db.execute(tables).fetchone() == before
