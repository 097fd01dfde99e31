"""The effects of options that limit callers: one row for each tried value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from option_looks import Ask, ask, header, listening, statuses
from option_ways import Observe, Row

from flagsvc import ProxyOptions
from flagsvc.process.max_connections import default_request_memory, make_connection_limits
from flagsvc.proxy.generations.environment import make_streams
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


def enriching(name: str) -> dict[str, str]:
    """Return the option for a file of enrichers."""
    return {"expCustomEnrichers": f"{{folder}}/{name}.py"}


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


async def second_stream(scene: Scene, options: ProxyOptions) -> object:
    """See the answer to the second of two event streams."""
    async with listening(options):
        opened: list[str] = []
        writers = []
        while len(opened) < 2:
            reader, writer = await asyncio.open_connection("127.0.0.1", options.port)
            writers.append(writer)
            writer.write(head("GET /proxy/stream HTTP/1.1", KEYED))
            status = (await reader.readline()).split()[1].decode()
            if status == "200":
                await reader.readuntil(b"retry: ")
            opened += [status] if status != "503" else []  # not ready yet
        for writer in writers:
            writer.close()
        return opened[1]


OFFERED = header("fetch-mode", ask("/api/client/features", {"authorization": "of-sdks"}))


async def window_of_streams(scene: Scene, options: ProxyOptions) -> object:
    """See over how many milliseconds callers hear of a change; test_streams has what that does."""
    return make_streams(options).limits.window_ms


async def bytes_of_requests(scene: Scene, options: ProxyOptions) -> object:
    """See how many bytes of requests may be under way; what that does is the front's (test_front_memory_budget)."""
    return make_connection_limits(options, RecordingLog()).memory


LISTENING = (
    Row("maxStreams", "1", second_stream, "429", "200", beside={"port": "{port}"}),
    Row("maxStreamsPerNetwork", "1", second_stream, "429", "200", beside={"port": "{port}"}),
    Row("offerStreaming", "true", OFFERED, ["streaming"], [None], beside={"expServerSideSdkConfig.tokens": "of-sdks"}),
    Row("streamWindow", "250", window_of_streams, 250, None),
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


def bounded(name: str, text: str, make: Callable[[int], Ask], sizes: tuple[int, int, int, int]) -> Row:
    """Return a row of a limit: the first size is at the option, the third at the default, and the next ones are one more."""
    asks = statuses(*(make(size) for size in sizes))
    return Row(name, text, asks, [200, 400, 400, 400], [200, 200, 200, 400])


RATED = statuses(*[ask("/proxy")] * 3, ask("/proxy", {"authorization": "unknown"}))
CONTEXTS = ("a=1&properties[b]=2&userId=7", "a=1&properties[b]=2&c=3", "&".join(f"p{number}=1" for number in range(251)))
OK = statuses(ask("/proxy"))

REQUESTS = (
    bounded("jsonDepthLimit", "10", lambda levels: ask("/proxy", method="POST", body=nested(levels)), (10, 11, 32, 33)),
    Row("contextPropertiesLimit", "2", statuses(*(ask(f"/proxy?{query}") for query in CONTEXTS)), [200, 400, 400], [200, 200, 400]),
    bounded("contextValueLimit", "10", lambda size: ask(f"/proxy?userId={'x' * size}"), (10, 11, 4096, 4097)),
    bounded("toggleLimit", "2", lambda size: ask("/proxy", method="POST", body={"toggles": ["on"] * size}), (2, 3, 5000, 5001)),
    Row("rateLimitKey", "2", RATED, [200, 200, 429, 401], [200, 200, 200, 401]),
    Row("rateLimitAddress", "2", RATED, [200, 200, 429, 429], [200, 200, 200, 401]),
    Row(
        "rateLimitBurst",
        "3",
        statuses(*[ask("/proxy")] * 5),
        [200, 200, 200, 429, 429],
        [200, 429, 429, 429, 429],
        beside={"rateLimitKey": "1"},
    ),
    Row("enricherTimeout", "50", OK, [500], [200], beside=enriching("late"), files={"late.py": LATE}),
    Row("enricherFailure", "context", OK, [200], [500], beside=enriching("broken"), files={"broken.py": BROKEN}),
)
