"""A source of configuration documents that gives the answers of a script."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable

from flagsvc.proxy.upstream import Fetched

Answer = bytes | Fetched | Exception


class FakeSource:
    """A `flagsvc.proxy.configuration.Source` that gives the answers of a script in order. The last answer is repeated.

    Bytes are a document: they get their own ETag, and a request with that ETag gives "not modified". A `Fetched` is returned as it
    is, and an exception is raised. `etags` lists the ETags of all requests so far. If `gate` is an event, each answer waits for it.
    """

    def __init__(self, *script: Answer, pace: float | None = None) -> None:
        """Take the script, which has at least one answer, and the value of `pace`."""
        self.etags: list[str | None] = []
        self.gate: asyncio.Event | None = None
        self.pace = pace
        self._script = list(script)

    def then(self, answers: Iterable[Answer]) -> None:
        """Give these answers from now on."""
        self._script[:] = answers

    async def fetch(self, etag: str | None) -> Fetched:
        """Return or raise what the script says."""
        self.etags.append(etag)
        if self.gate is not None:
            await self.gate.wait()
        answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Fetched):
            return answer
        return Fetched(None, etag) if etag == etag_of(answer) else Fetched(answer, etag_of(answer))


def etag_of(document: bytes) -> str:
    """Return the ETag that a FakeSource gives a document."""
    return f'"{hashlib.sha256(document).hexdigest()[:16]}"'
