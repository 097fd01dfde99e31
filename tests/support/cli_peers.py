"""Commands as processes, on the real flag server and on ours."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import flagservers, processes
from support.processes import Called as Called


@dataclass(frozen=True)
class Peer:
    """A running flag server of either kind: its address without `/api`, and secrets; `user` is that of an administrator."""

    url: str
    user: str
    admin_token: str
    backend: str

    def environment(self, folder: Path, token: str | None = None) -> dict[str, str]:
        """Return the environment of a call in `folder`, as the user unless another token is given."""
        named = {"FLAGSVC_URL": self.url, "FLAGSVC_ADMIN_TOKEN": self.user if token is None else token}
        return processes.clean_environment(folder) | named

    def run(self, folder: Path, command: str, *arguments: str, token: str | None = None) -> Called:
        """Call a command in `folder`, as the user unless another token is given, without a terminal."""
        return processes.call(command, *arguments, folder=folder, env=self.environment(folder, token))

    def admin(self, path: str, body: object = None, method: str = "") -> Any:
        """Call the admin API and return the answer. Other statuses than success fail."""
        url, method = f"{self.url}/api/admin{path}", method or ("GET" if body is None else "POST")
        answer = processes.ask(url, method=method, headers={"Authorization": self.user}, body=body, seconds=300)
        assert answer.status < 300, (method, path, answer.status, answer.body)
        return answer.json() if answer.body else None


@contextmanager
def real(row: str = "server") -> Iterator[Peer]:
    """Run the real server of a row of `peers.PACKAGES`, with a personal token of its first user."""
    with processes.postgresql() as database, processes.unleash_server(database, row) as server:
        root = server.url.removesuffix("/api")
        yield Peer(root, processes.personal_token(server), processes.ADMIN_TOKEN, processes.UPSTREAM_TOKEN)


@contextmanager
def ours(given: Mapping[str, Any] | None = None) -> Iterator[Peer]:
    with flagservers.our_flag_server(given=given) as server:
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
