"""A flag server that works and fails by turns: `python flapping.py PORT FLAGS`.

It is calm until `POST /flap/SECONDS`: from then on it serves one document, each time with another flag changed, for so many
seconds, and answers everything with one fault of `upstream_faults` for as long, a different one each time, for ever; `POST
/flap/0` makes it calm again. `GET /seen` gives as JSON what it saw: polls, faults by name, and the sum of the usage it took.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / name) for name in ("tests", "benchmarks")]

from harness.upstream import VERSIONS, body  # noqa: E402
from support.loopback import Loopback, Request, Writer, reply  # noqa: E402
from support.upstream_faults import FAULTS, Fault, bomb  # noqa: E402

PATIENT = tuple(f", retry after {wish}" for wish in ("1e999", "120", "9", "Fri"))
SERVED = tuple(fault for fault in FAULTS if fault.answer is not bomb and not any(each in fault.name for each in PATIENT))
"""The faults that cost this server next to nothing, as it shares the machine with what is measured; none asks for a long pause."""
UNTAKEN = re.compile(rb"HTTP/1\.1 (5\d\d|401|403|404|408|429) ")
SILENT = ("closed at once", "reset at once", "silence")
AWAY = reply(503)


class Flapping:
    """The behaviour of the server; `fault` is the present one, None while all is well."""

    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.fault: Fault | None = None
        self.version = 0
        self.seen: Counter[str] = Counter()
        self.usage = 0
        self._random = random.Random(1)
        self._turns: asyncio.Task[None] | None = None

    async def answer(self, request: Request, reader: asyncio.StreamReader, writer: Writer) -> None:
        """Answer one request."""
        if request.path.startswith(("/flap/", "/seen")):
            writer.write(self.control(request))
        elif self.fault is None:
            writer.write(self.usual(request))
        else:
            self.seen[self.fault.name] += 1
            return await self.fail(self.fault, request, reader, writer)
        return await writer.drain()

    async def fail(self, fault: Fault, request: Request, reader: asyncio.StreamReader, writer: Writer) -> None:
        """Answer with a fault. The fault of a post leaves no doubt that its usage is not taken, now or later."""
        answer = fault.answer
        if request.method == "POST" and fault.name not in SILENT and not (isinstance(answer, bytes) and UNTAKEN.match(answer)):
            answer = AWAY
        if not isinstance(answer, bytes):
            return await answer(request, reader, writer)
        writer.write(answer)
        return await writer.drain()

    def usual(self, request: Request) -> bytes:
        """Return what a flag server answers."""
        if request.method == "POST":
            self.usage += used(request)
            return reply(202)
        self.seen["polls"] += 1
        _, packed, tag = body(self.flags, "-one", self.version % VERSIONS)
        if request.headers.get("if-none-match") == tag:
            return reply(304, etag=tag)
        return reply(200, packed, etag=tag, content_type="application/json", content_encoding="gzip")

    def control(self, request: Request) -> bytes:
        """Do what the benchmark asks for."""
        if request.method == "POST":
            if self._turns is not None:
                self._turns.cancel()
            self.fault = None
            seconds = float(request.path.rpartition("/")[2])
            self._turns = asyncio.ensure_future(self.turn(seconds)) if seconds else None
        told = {"seen": self.seen, "usage": self.usage}
        return reply(200, json.dumps(told).encode(), content_type="application/json")

    async def turn(self, seconds: float) -> None:
        """Fail and work by turns, for ever."""
        for fault in self.shuffled():
            self.fault = fault
            await asyncio.sleep(seconds)
            self.fault, self.version = None, self.version + 1
            await asyncio.sleep(seconds)

    def shuffled(self) -> Iterator[Fault]:
        """Give every fault in a random order, over and over."""
        while True:
            yield from self._random.sample(SERVED, len(SERVED))


def used(request: Request) -> int:
    """Return the number of look-ups in a post of usage metrics."""
    given: dict[str, Any] = json.loads(request.body)
    toggles = given.get("bucket", {}).get("toggles", {}) if request.path.endswith("/metrics") else {}
    return sum(each["yes"] + each["no"] for each in toggles.values())


async def main(port: int, flags: int) -> None:
    """Serve until the process is ended."""
    flapping, server = Flapping(flags), Loopback("http")
    server.requests = Forgetful()
    server.script(flapping.answer)
    async with await asyncio.start_server(server.serve, "127.0.0.1", port) as running:
        await running.serve_forever()


class Forgetful(list[Request]):
    """A list that keeps nothing: the server would remember every request."""

    def append(self, request: Request) -> None:
        """Forget."""


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
