"""Commands as processes, on the real flag server and on ours."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import flagservers, processes
from support.processes import Called as Called


@dataclass(frozen=True)
class Peer:
    """A running flag server with the secrets that the commands are called with."""

    url: str
    user: str
    admin: str
    backend: str

    def environment(self, folder: Path, token: str | None = None) -> dict[str, str]:
        """Return the environment of a call in `folder`, as the user unless another token is given."""
        named = {"FLAGSVC_URL": self.url, "FLAGSVC_ADMIN_TOKEN": self.user if token is None else token}
        return processes.clean_environment(folder) | named

    def run(self, folder: Path, command: str, *arguments: str, token: str | None = None) -> Called:
        """Call a command in `folder`, as the user unless another token is given, without a terminal."""
        return processes.call(command, *arguments, folder=folder, env=self.environment(folder, token))

    def post(self, path: str, body: object) -> None:
        """Create something by the admin API."""
        answer = processes.ask(self.url + path, method="POST", headers={"Authorization": self.user}, body=body)
        assert answer.status < 300, answer.body


@contextmanager
def real() -> Iterator[Peer]:
    """Run the real server, with a personal token of its first user."""
    with processes.postgresql() as database, processes.unleash_server(database) as server:
        root = server.url.removesuffix("/api")
        yield Peer(root, processes.personal_token(server), processes.ADMIN_TOKEN, processes.UPSTREAM_TOKEN)


@contextmanager
def ours() -> Iterator[Peer]:
    with flagservers.our_flag_server() as server:
        yield Peer(server.root, flagservers.USER_SECRET, flagservers.ADMIN_SECRET, flagservers.BACKEND_SECRET)


SERVERS: dict[str, Callable[[], Any]] = {"real": real, "ours": ours}


def typed(words: list[str], answer: bytes, **given: Any) -> tuple[int, str]:
    """Run a command on a terminal, type `answer` at its question, and return its exit code and output."""
    screen, side = pty.openpty()
    with subprocess.Popen(words, stdin=side, stdout=side, stderr=side, start_new_session=True, **given) as process:
        os.close(side)
        shown = b""
        asked = False
        while select.select([screen], [], [], 60)[0]:
            try:
                shown += os.read(screen, 65_536)
            except OSError:  # the other end of the terminal is closed
                break
            if not asked and b"[y/N] " in shown:
                asked = bool(os.write(screen, answer))
        try:
            process.wait(30)
        finally:
            process.kill()  # nothing, where it has ended as it should
    os.close(screen)
    return process.returncode, shown.decode()
