"""PgBouncer in front of a PostgreSQL cluster, with its defaults but for the mode."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from support.needs import program
from support.processes import Program, answers_tcp, database_user, free_port, running, scratch

SETTINGS = """
[databases]
* = host=127.0.0.1 port={postgresql}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
admin_users = postgres
pool_mode = {mode}
max_client_conn = 1000
{more}
"""
TRANSACTION, SESSION = "transaction", "session"


@dataclass(frozen=True)
class Pooler:
    """A running PgBouncer; `url` is that of the cluster's maintenance database behind it."""

    url: str
    program: Program

    def database(self, url: str) -> str:
        """Return the URL behind the pooler of a database of the cluster."""
        return f"{self.url.rpartition('/')[0]}/{url.rpartition('/')[2]}"


@contextmanager
def pgbouncer(cluster: str, mode: str = TRANSACTION, more: str = "") -> Iterator[Pooler]:
    """Run PgBouncer in front of a cluster; `more` are lines of its settings."""
    command, port, user = program("pgbouncer", "/usr/sbin/pgbouncer"), free_port(), database_user()
    with scratch(user) as folder:
        (folder / "users").write_text('"postgres" ""\n"flags" ""\n')
        text = SETTINGS.format(postgresql=urlsplit(cluster).port, port=port, folder=folder, mode=mode, more=more)
        (folder / "pgbouncer.ini").write_text(text)
        for name in ("users", "pgbouncer.ini"):
            if user:
                shutil.chown(folder / name, user)
        line = [command, folder / "pgbouncer.ini"]
        with running("pgbouncer", line, env={}, folder=folder, user=user, stop=signal.SIGINT) as found:
            found.wait(lambda: answers_tcp(port), "ready", 30)
            yield Pooler(f"postgres://postgres@127.0.0.1:{port}/postgres", found)
