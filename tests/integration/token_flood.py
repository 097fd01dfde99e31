"""A flood of random tokens, as a program of its own: `python token_flood.py PORT SECONDS RATE SOURCE ROUTE`.

It sends RATE requests a second for so long, each with an unknown token; with ROUTE `validate` instead of `proxy` each asks
which of a hundred such tokens are valid. SOURCE is the address of loopback that they come
from; `many` for a new address in X-Forwarded-For with each. At its end it prints as JSON how many were sent, and the counts of
statuses.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
from collections import Counter

TICK_S = 0.01
IN_A_QUESTION = 100
LAST_S = 10.0
"""Seconds that the last answers have."""


def make_token() -> str:
    return f"*:production.{random.getrandbits(200):050x}"


def make_request(source: str, route: str) -> bytes:
    """Return a request with an unknown token, or a question about many."""
    lines, body = ["GET /proxy HTTP/1.1", "Host: flags", f"Authorization: {make_token()}"], ""
    if route == "validate":
        body = json.dumps({"tokens": [make_token() for _ in range(IN_A_QUESTION)]})
        lines = ["POST /edge/validate HTTP/1.1", "Host: flags", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    if source == "many":
        lines.append(f"X-Forwarded-For: 198.{random.randint(18, 19)}.{random.randint(0, 255)}.{random.randint(1, 254)}")
    return "\r\n".join([*lines, "", body]).encode()


async def main(port: int, seconds: float, rate: float, source: str, route: str) -> None:
    """Send for so long on connections that are idle, or on new ones; wait for the last answers, and print what came of it."""
    local = None if source == "many" else (source, 0)
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    every: list[asyncio.StreamWriter] = []
    statuses: Counter[str] = Counter()

    async def send() -> None:
        while idle and idle[-1][0].at_eof():  # the other side has closed it
            idle.pop()
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port, local_addr=local)
        every.append(writer)
        writer.write(make_request(source, route))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
        statuses[head[9:12].decode()] += 1
        if b"connection: close" not in head:
            idle.append((reader, writer))

    tasks: list[asyncio.Task[None]] = []
    began = asyncio.get_running_loop().time()
    while (passed := asyncio.get_running_loop().time() - began) < seconds:
        tasks += [asyncio.create_task(send()) for _ in range(int(passed * rate) - len(tasks))]
        await asyncio.sleep(TICK_S)  # the pace of the flood
    done, late = await asyncio.wait(tasks, timeout=LAST_S)
    failed = len(late) + sum(task.exception() is not None for task in done)
    for writer in every:
        writer.transport.abort()
    print(json.dumps({"sent": len(tasks), "failed": failed, "connections": len(set(every)), "statuses": statuses}))


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:6]))
