"""The socket of a service manager, and what programs tell there."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator
from pathlib import Path


class NotifySocket:
    """What was told so far, message by message. `address` is the value of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        self._seen: list[dict[str, str]] = []

    def messages(self) -> list[dict[str, str]]:
        """Return every message so far, as pairs of name and value."""
        while select.select([self.sock], [], [], 0)[0]:
            lines = self.sock.recv(4096).decode().split("\n")
            self._seen.append({name: value for name, _, value in (line.partition("=") for line in lines)})
        return self._seen

    def said(self) -> list[str]:
        """Return the names of the first variable of each message so far, without the signs of life."""
        return [name for each in self.messages() if (name := next(iter(each))) != "WATCHDOG"]

    @property
    def status(self) -> str:
        return next((each["STATUS"] for each in reversed(self.messages()) if "STATUS" in each), "")


@contextlib.contextmanager
def notify_socket(folder: Path) -> Iterator[NotifySocket]:
    """Give a socket in a folder, as long as the block runs."""
    made = NotifySocket(str(folder / "notify"))
    with made.sock:
        yield made
