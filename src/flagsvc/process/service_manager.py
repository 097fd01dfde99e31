"""Tells systemd, or another service manager, what the process does: datagrams to the Unix socket that `NOTIFY_SOCKET` names.

Without that variable nothing is sent. The process is ready when it listens, not when it has a configuration (decision 0019).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterable, MutableMapping
from typing import Self

LISTENING = "Listening, waits for a configuration"
SERVING = "Serving"
RELOADING = "Reloading"
STOPPING = "Stopping"


class ServiceManager:
    """The service manager that has started this process. While the context is entered, its watchdog hears that the loop turns."""

    def __init__(self, variables: MutableMapping[str, str]) -> None:
        """Take the variables of the service manager, and remove them: child processes must not see them."""
        address, period, process = (variables.pop(name, "") for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"))
        self._address = address.replace("@", "\0", 1) if address.startswith("@") else address
        watches = period.isdecimal() and process in ("", str(os.getpid()))
        self._ping_s = int(period) / 2_000_000 if watches else 0.0
        self._status = ""
        self._pinging: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start to send signs of life, if the service manager waits for them."""
        if self._ping_s:
            self._pinging = asyncio.create_task(self._ping())
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Send no more signs of life."""
        if self._pinging is not None:
            self._pinging.cancel()
            await asyncio.wait([self._pinging])

    async def _ping(self) -> None:
        """Send signs of life twice in the time that the watchdog waits. It waits from the moment at which the process listens."""
        while True:
            await asyncio.sleep(self._ping_s)
            if self._status:
                self._send("WATCHDOG=1")

    def tell_listening(self) -> None:
        """Tell that the process takes connections."""
        self._status = LISTENING
        self._send("READY=1", f"STATUS={LISTENING}")

    def tell_serving(self) -> None:
        """Tell that the process has what it serves."""
        if self._status == LISTENING:
            self._status = SERVING
            self._send(f"STATUS={SERVING}")

    def tell_stopping(self) -> None:
        """Tell that the process has begun to stop."""
        self._status = STOPPING
        self._send("STOPPING=1", f"STATUS={STOPPING}")

    def reload(self, calls: Iterable[Callable[[], object]]) -> None:
        """Make these calls, in the running loop. The reload has ended when each future that they return is done."""
        tells = self._status in (LISTENING, SERVING)
        if tells:
            self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", f"STATUS={RELOADING}")
        waited = [made for call in calls if isinstance(made := call(), asyncio.Future)]
        if tells:
            asyncio.gather(*waited, return_exceptions=True).add_done_callback(self._tell_reloaded)

    def _tell_reloaded(self, _: object) -> None:
        if self._status != STOPPING:
            self._send("READY=1", f"STATUS={self._status}")

    def _send(self, *lines: str) -> None:
        """Send one message. A service manager that takes none is not waited for."""
        if self._address:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.setblocking(False)
                sock.sendto("\n".join(lines).encode(), self._address)
