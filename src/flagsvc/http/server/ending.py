"""How a connection ends: well, after its last answer; or because something takes too long. Compiled."""

from __future__ import annotations

import asyncio
from typing import Final

from mypy_extensions import i64

from flagsvc.http.contract import Contract
from flagsvc.http.limits import BODY_TIME, HEADER_TIME, WRITE_TIME
from flagsvc.http.messages import Response
from flagsvc.http.server.intake import NO_CALL, SLACK, Intake
from flagsvc.http.server.names import Names
from flagsvc.http.server.site import Site
from flagsvc.http.server.stages import CLOSED, LINGER, OPEN


class Ending(Intake):
    """The end of a connection. `service` answers; `site` is what the connections of a server share.

    `stage` is how far it is, `since` the tick at which what is under way began. `pending` tells that an answer is being made,
    `paused` that the caller does not take what was written (`untaken` bytes), `fresh` that no request has begun, `ended` that the
    caller sends no more, `astray` that nobody knows where a request begins. `held` are bytes, from `at` on, not yet parsed, `body`
    or `parts` those of a body, `ready` answers not yet written; `waited` is the answer that is being made.
    """

    def __init__(self, site: Site, service: Contract, names: Names) -> None:
        super().__init__(names, service.header_limit + service.query_limit + SLACK, "", "http")
        self.site: Final = site
        self.service: Final = service
        self.transport: asyncio.Transport | None = None
        self.stage: i64 = OPEN
        self.pending: bool = False
        self.waited: asyncio.Future[Response] | None = None
        self.paused: bool = False
        self.reading: bool = True
        self.ended: bool = False
        self.secure: bool = False
        self.fresh: bool = True
        self.astray: bool = False
        self.held: bytes = b""
        self.at: i64 = 0
        self.body: bytes = b""
        self.parts: bytearray | None = None
        self.ready: bytes = b""
        self.got: i64 = 0
        self.since: i64 = site.now
        self.unsent: i64 = 0
        self.untaken: i64 = 0

    def read(self) -> None:
        """Read again."""
        transport = self.transport
        if transport is not None and not self.reading:
            self.reading = True
            transport.resume_reading()

    def send(self) -> None:
        """Send the answers that are ready. One that nobody can get any more is dropped."""
        ready = self.ready
        if ready:
            self.ready = b""
            transport = self.transport
            if transport is not None and not transport.is_closing():
                transport.write(ready)

    def drop(self) -> None:
        """Keep nothing of what the caller has sent: of a head that has no end the parser alone holds all there is."""
        self.parser = None
        self.call = NO_CALL
        self.url = b""
        self.held = b""
        self.at = 0
        self.body = b""
        self.parts = None

    def settle(self) -> None:
        """End after the last answer: at once, or when the caller has sent the rest of what it began."""
        if self.ended or not (self.inside or self.held or self.astray):
            self.close()
        else:
            self.linger()

    def linger(self) -> None:
        """Throw away what comes, for a while: closing at once would take the answer away from a caller who is still sending."""
        transport = self.transport
        self.stage = LINGER
        self.since = self.site.now
        self.drop()
        self.got = 0
        if transport is None:
            return
        self.send()
        if not self.secure and transport.can_write_eof():
            transport.write_eof()
        self.read()

    def close(self) -> None:
        """Close when what was written is sent."""
        self.stage = CLOSED
        self.since = self.site.now
        self.drop()
        self.send()
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close at once."""
        self.stage = CLOSED
        self.drop()
        if self.transport is not None:
            self.transport.abort()

    def let_go(self) -> None:
        """Cancel the task that makes an answer for a caller that is gone. Work in a thread goes on."""
        waited = self.waited
        if isinstance(waited, asyncio.Task):
            self.site.loop.call_soon(
                waited.cancel
            )  # not before its first step, or what it was to wait for would never end

    def sweep(self, now: i64) -> None:
        """End what takes too long."""
        site = self.site
        took = now - self.since
        if self.paused or self.stage == CLOSED:
            self.watch_writing(now)
        elif self.stage == LINGER:
            if took > site.linger:
                self.close()
        elif self.pending:
            if self.ended and took > site.half:
                self.let_go()
        elif self.inside or self.idle or self.fresh:
            self.watch_reading(took)
        elif took > site.keep_alive:
            self.close()

    def watch_reading(self, took: i64) -> None:
        """Close when the head, or the body behind it, is not there in time; sooner when the server is to end."""
        site = self.site
        heading = self.in_head or not self.inside
        if took > (site.leave if site.stopping else site.header if heading else site.body):
            if not self.fresh or self.idle:
                self.service.reached.add(HEADER_TIME if heading else BODY_TIME)
            self.close()

    def watch_writing(self, now: i64) -> None:
        """Cut off a caller who has taken nothing for too long."""
        transport = self.transport
        if transport is None:
            return
        unsent: i64 = transport.get_write_buffer_size()
        if unsent != self.unsent:
            self.unsent = unsent
            self.since = now
        elif now - self.since > (self.site.leave if self.site.stopping else self.site.stall):
            self.service.reached.add(WRITE_TIME)
            self.abort()
