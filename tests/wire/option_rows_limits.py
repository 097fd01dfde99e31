"""The effects of options that limit callers: one row for each tried value."""

from __future__ import annotations

import asyncio
from typing import Any

from option_looks import ask, listening, statuses
from option_ways import Observe, Row

from flagsvc import ProxyOptions
from flagsvc.process.max_connections import default_request_memory, make_connection_limits
from flagsvc.testing import RecordingLog
from support.frontkit import KEYED, dial, get, head, serving
from support.scene import Scene

LONG = 1000
"""More seconds than anything here waits for."""
HALF_A_HEAD = b"GET /proxy HTTP/1.1\r\nHost: a"
HALF_A_BODY = head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 9") + b"{"


LATE = """
import asyncio
async def late(context):
    await asyncio.sleep(0.15)
    return context
enrichers = [late]
"""
BROKEN = """
def broken(context):
    raise KeyError("nothing there")
enrichers = [broken]
"""


def nested(levels: int) -> object:
    """Return a body in which lists are nested in so many levels, the object round them included."""
    value: list[Any] = []
    for _ in range(levels - 2):
        value = [value]
    return {"x": value}


def seconds_until_the_end(begun: bytes, takes: int | None = None) -> Observe:
    """See after how many seconds a connection ends on which no more than this comes, and of whose answers so much is taken."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        line = dial(serving(), make_connection_limits(options, RecordingLog()), takes=takes).send(begun)
        ticks = 0
        while not line.transport.over and ticks < LONG:
            line.tick()
            ticks += 1
        return ticks

    return look


async def third_connection(scene: Scene, options: ProxyOptions) -> object:
    """See the answer to the third of three connections."""
    async with listening(options):
        found = b""
        writers = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", options.port)
            writers.append(writer)
            writer.write(get("/proxy/live"))
            found = await reader.readline()
        for writer in writers:
            writer.close()
        return found.split()[1].decode()


async def bytes_of_requests(scene: Scene, options: ProxyOptions) -> object:
    """See how many bytes of requests may be under way; what that does is the front's (test_front_memory_budget)."""
    return make_connection_limits(options, RecordingLog()).memory


LISTENING = (
    Row("maxConnections", "2", third_connection, "503", "200", beside={"port": "{port}"}),
    Row(
        "requestMemory",
        "5 MB",
        bytes_of_requests,
        5 * 1024 * 1024,
        default_request_memory(1024 * 1024 + 16 * 1024, 1),
        native=5 * 1024 * 1024,
    ),
    Row("headerTimeout", "3", seconds_until_the_end(HALF_A_HEAD), 4, 21),
    Row("bodyTimeout", "3", seconds_until_the_end(HALF_A_BODY), 4, 61),
    Row("writeTimeout", "3", seconds_until_the_end(get(), takes=10), 5, 62),
)

REQUESTS = (
    Row(
        "jsonDepthLimit",
        "10",
        statuses(*(ask("/proxy", method="POST", body=nested(levels)) for levels in (10, 11, 32, 33))),
        [200, 400, 400, 400],
        [200, 200, 200, 400],
    ),
    Row(
        "contextPropertiesLimit",
        "2",
        statuses(
            ask("/proxy?a=1&properties[b]=2&userId=7"),
            ask("/proxy?a=1&properties[b]=2&c=3"),
            ask("/proxy?" + "&".join(f"p{number}=1" for number in range(251))),
        ),
        [200, 400, 400],
        [200, 200, 400],
    ),
    Row(
        "contextValueLimit",
        "10",
        statuses(*(ask(f"/proxy?userId={'x' * size}") for size in (10, 11, 4096, 4097))),
        [200, 400, 400, 400],
        [200, 200, 200, 400],
    ),
    Row(
        "toggleLimit",
        "2",
        statuses(*(ask("/proxy", method="POST", body={"toggles": ["on"] * size}) for size in (2, 3, 5000, 5001))),
        [200, 400, 400, 400],
        [200, 200, 200, 400],
    ),
    Row(
        "rateLimitKey",
        "2",
        statuses(*[ask("/proxy")] * 3, ask("/proxy", {"authorization": "unknown"})),
        [200, 200, 429, 401],
        [200, 200, 200, 401],
    ),
    Row(
        "rateLimitAddress",
        "2",
        statuses(*[ask("/proxy")] * 3, ask("/proxy", {"authorization": "unknown"})),
        [200, 200, 429, 429],
        [200, 200, 200, 401],
    ),
    Row(
        "rateLimitBurst",
        "3",
        statuses(*[ask("/proxy")] * 5),
        [200, 200, 200, 429, 429],
        [200, 429, 429, 429, 429],
        beside={"rateLimitKey": "1"},
    ),
    Row(
        "enricherTimeout",
        "50",
        statuses(ask("/proxy")),
        [500],
        [200],
        beside={"expCustomEnrichers": "{folder}/late.py"},
        files={"late.py": LATE},
    ),
    Row(
        "enricherFailure",
        "context",
        statuses(ask("/proxy")),
        [200],
        [500],
        beside={"expCustomEnrichers": "{folder}/broken.py"},
        files={"broken.py": BROKEN},
    ),
)
