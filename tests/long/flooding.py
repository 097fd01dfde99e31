"""A flood of requests that never end, as a program of its own: `python flooding.py PORT SECONDS NUMBER NETWORKS FILE`.

It keeps NUMBER connections open, from NETWORKS networks of loopback, and sends the content of FILE on each. When a connection is
closed, it opens a new connection. At its end it prints how many it opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sys
from pathlib import Path

PAUSE_S = 0.05
READS = len(sys.argv) < 7
"""Whether answers are taken; with a sixth argument they are not."""


async def hold(port: int, source: str, begun: bytes) -> int:
    """Open connections, one after the other, until cancelled; return how many."""
    opened = 0
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
                opened += 1
                try:
                    writer.write(begun)
                    if READS:
                        while await reader.read(65_536):
                            pass
                    else:
                        assert isinstance(writer.transport, asyncio.Transport)
                        writer.transport.pause_reading()
                        await asyncio.sleep(5)  # each connection is held for so long
                finally:
                    writer.transport.abort()
            await asyncio.sleep(PAUSE_S)  # the pace of the flood
    return opened


async def flood(port: int, seconds: float, number: int, networks: int, begun: bytes) -> int:
    """Hold so many connections for so long; return how many were opened."""
    sources = [f"127.0.{1 + each % networks // 250}.{2 + each % networks % 250}" for each in range(number)]
    tasks = [asyncio.create_task(hold(port, source, begun)) for source in sources]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    return sum(await asyncio.gather(*tasks))


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port, seconds, number, networks = (int(each) for each in sys.argv[1:5])
    print(asyncio.run(flood(port, seconds, number, networks, Path(sys.argv[5]).read_bytes())))
