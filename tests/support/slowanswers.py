"""A proxy that is in the middle of an answer when the signal to end comes."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from pathlib import Path

from support.processes import Proxy

ENRICHER = """
import asyncio, pathlib
folder = pathlib.Path(__file__).parent
async def wait(context):
    (folder / 'seen').touch()
    while not (folder / 'go').exists():
        await asyncio.sleep(0.01)
    return context
enrichers = [wait]
"""


def slow_enricher(folder: Path) -> dict[str, str]:
    """Write an enricher that is not done before `ends_after_its_answer` says so; return the variables with which it is used."""
    path = folder / "slow.py"
    path.write_text(ENRICHER)
    return {"EXP_CUSTOM_ENRICHERS_FILE": str(path), "FLAGSVC_ENRICHER_TIMEOUT": "60000"}


def ends_after_its_answer(proxy: Proxy, folder: Path) -> None:
    """Fail unless a proxy with that enricher, told to end, refuses connections, gives the answer that it began, and ends."""
    got: list[int] = []
    asking = threading.Thread(target=lambda: got.append(proxy.get().status))
    asking.start()
    proxy.program.wait((folder / "seen").exists, "answering")
    proxy.program.process.send_signal(signal.SIGTERM)
    proxy.program.wait(lambda: refuses(proxy.port), "refusing connections")
    assert got == []
    (folder / "go").touch()
    asking.join(20)
    assert got == [200]
    assert proxy.program.process.wait(20) == 0


def refuses(port: int) -> bool:
    """Whether a port has no listener."""
    with contextlib.closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) != 0
