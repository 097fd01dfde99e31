"""Redis (or Valkey) servers for tests: each on a free loopback port, nothing written to a disk, ended with the block."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from support import needs
from support.pki import Authority
from support.processes import Program, free_port, running, scratch

SECONDS = 5.0


@dataclass(frozen=True)
class RedisServer:
    """A running server: its address, the path of its Unix socket, and its password."""

    port: int
    path: Path
    program: Program
    password: str | None = None

    @property
    def url(self) -> str:
        """Its address as the option storage has it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def ask(self, *words: Any) -> Any:
        path = str(self.path)
        with closing(redis.Redis(unix_socket_path=path, password=self.password, socket_timeout=SECONDS)) as client:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]

    def names(self) -> list[str]:
        return sorted(name.decode() for name in self.ask("KEYS", "*"))

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self.program.process.kill()
        self.program.process.wait(SECONDS)


@contextmanager
def redis_server(
    *arguments: object, port: int | None = None, password: str | None = None, tls: Authority | None = None, clients: str = "no"
) -> Iterator[RedisServer]:
    """Run a server until the block ends; when it begins, both its port and its Unix socket take connections.

    With `tls` the port speaks TLS with a certificate of that authority; `clients` says whether it wants one of its clients.
    """
    program, number = needs.program("redis-server", "valkey-server"), port or free_port()
    with scratch() as folder:
        ports = ["--port", number] if tls is None else ["--port", 0, *tls_arguments(tls, folder, number, clients)]
        place = ["--bind", "127.0.0.1", "--unixsocket", folder / "redis.sock", "--dir", folder]
        secret = [] if password is None else ["--requirepass", password]
        kept = ["--save", "", "--appendonly", "no"]
        with running("redis", [program, *ports, *place, *secret, *kept, *arguments], env={}, folder=folder) as started:
            server = RedisServer(number, folder / "redis.sock", started, password)
            started.wait(lambda: listens(server), "listening")
            yield server


def listens(server: RedisServer) -> bool:
    """Return whether a server takes connections in both places: it opens the port first, the socket a moment later."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), SECONDS):
        with socket.socket(socket.AF_UNIX) as local:
            local.connect(str(server.path))
        return True
    return False


def tls_arguments(authority: Authority, folder: Path, port: int, clients: str) -> list[object]:
    """Write the files for TLS, and return the server's arguments for them."""
    pair = authority.issue()
    given: dict[str, object] = {"tls-port": port, "tls-auth-clients": clients}
    for name, text in {"tls-ca-cert-file": authority.pem, "tls-cert-file": pair.cert, "tls-key-file": pair.key}.items():
        given[name] = folder / f"{name}.pem"
        (folder / f"{name}.pem").write_text(text)
    return [word for name, value in given.items() for word in (f"--{name}", value)]
