"""One connection: requests in, answers out, in order, within bounds. Compiled.

While an answer is being made, or the caller does not take what was written, nothing more is parsed and nothing more is read: what
came along stays as bytes. So answers are in order by themselves, and a caller who pipelines costs one read of memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

import httptools
from mypy_extensions import i64

from flagsvc.core.log import locate_error
from flagsvc.http.call import Call
from flagsvc.http.contract import Contract
from flagsvc.http.limits import CONNECTIONS, MEMORY
from flagsvc.http.messages import Response
from flagsvc.http.server.budget import SMALL
from flagsvc.http.server.encode import CLOSE, CONTINUE, KEEP, KEEP_TOLD
from flagsvc.http.server.ending import Ending
from flagsvc.http.server.intake import HeadTooLargeError
from flagsvc.http.server.names import Names
from flagsvc.http.server.site import Site
from flagsvc.http.server.stages import CLOSED, LAST, LINGER, OPEN

APART: Final = 65_536
"""Bytes of a body from which on it is cheaper to hand it over beside its head than to copy it behind."""

TURN: Final = 8
"""Requests of one connection that are answered before others get their turn."""

CONNECT: Final = b"CONNECT"


class Connection(Ending):
    """The protocol of one connection. `service` answers; `site` is what the connections of a server share.

    `done` tells that the request under way has its answer, `turned` that there was no room for the connection.
    """

    def __init__(self, site: Site, service: Contract, names: Names) -> None:
        super().__init__(site, service, names)
        self.done: bool = False
        self.working: bool = False
        self.turned: bool = False
        self.count: i64 = 0

    def handshake_begins(self) -> bool:
        """Count the connection before its TLS handshake; return whether there is room for that."""
        if self.site.open(self):
            return True
        self.service.reached.add(CONNECTIONS)
        return False

    def handshake_over(self) -> None:
        """Count it no longer if that came to nothing."""
        self.site.opening.discard(self)

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin."""
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple) and peer:
            self.peer = str(peer[0])
        if transport.get_extra_info("sslcontext") is not None:
            self.secure = True
            self.scheme = "https"
        self.since = self.site.now
        if not self.site.enter(self):
            self.turn_away()

    def turn_away(self) -> None:
        """Say that there is no room for another connection, as long as there is room for that, and end."""
        self.turned = True
        self.site.turned += 1
        if self.site.patient():
            self.keep = False
            self.reply(self.service.early_refusal(503))
            self.linger()
        else:
            self.service.reached.add(CONNECTIONS)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and cancel the answer that is being made."""
        self.stage = CLOSED
        if self.charged:
            self.site.budget.charge(self, 0)
        self.let_go()
        self.site.leave_out(self)
        if self.turned:
            self.site.turned -= 1
        self.drop()
        self.transport = None

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self.stage == OPEN:
            if self.held:
                self.held = self.held[self.at :] + data
                self.at = 0
                self.hold()
            else:
                self.pump(data, 0)
            if self.charged or self.inside or self.idle or self.held:
                self.weigh()
        elif self.stage == LINGER:
            self.got += len(data)
            if self.got > self.site.limits.linger:
                self.close()

    def weigh(self) -> None:
        """Charge what the connection holds: a request that is not complete, bytes not yet parsed, an answer not taken."""
        size: i64 = self.untaken
        if self.stage == OPEN:
            size += len(self.held) - self.at + self.idle + len(self.body)
            if self.parts is not None:
                size += len(self.parts)
            if self.inside and not self.in_head:
                size += self.size
        if size < SMALL:
            size = 0
        if size != self.charged:
            if self.charged == 0:
                self.network = self.service.network(self.peer)
            self.site.budget.charge(self, size)

    def give_up(self) -> None:
        """End, because all connections together hold too much, and this is one of those that hold most."""
        if self.stage != OPEN or self.pending or self.paused:
            self.service.reached.add(MEMORY)
            self.abort()
        else:
            self.refuse(503, crowded=True)
            self.linger()
        self.site.budget.charge(self, 0)

    def eof_received(self) -> bool:
        """Take that the caller sends no more; it gets every answer it asked for. Return whether that takes longer.

        A caller that only sends no more and one that is gone look the same. So one more answer that is being made has its time.
        """
        self.ended = True
        if self.stage == OPEN and not self.secure and (self.pending or self.held):
            self.since = self.site.now
            return True
        self.close()
        return False

    def pause_writing(self) -> None:
        """Stop: the caller does not take what was written."""
        self.paused = True
        self.unsent = 0
        self.since = self.site.now
        if self.transport is not None:
            self.untaken = self.transport.get_write_buffer_size()
            self.weigh()

    def resume_writing(self) -> None:
        """Go on: the caller took what was written."""
        self.paused = False
        self.untaken = 0
        self.since = self.site.now
        self.go_on()
        if self.charged:
            self.weigh()

    def shutdown(self) -> None:
        """End when what has begun is answered; at once where nothing has."""
        self.site.ending = True
        self.site.stopping = True
        if self.stage != OPEN or self.pending or self.held or (self.inside and not self.done) or self.idle:
            return
        self.stage = LAST
        self.settle()

    def pump(self, data: bytes, at: i64) -> None:
        """Parse from `at` on, piece by piece, as long as nothing is in the way; hold the rest."""
        size: i64 = len(data)
        most = self.count + TURN
        if not self.inside and self.idle == 0:
            self.since = self.site.now
        self.working = True
        while at < size and self.stage == OPEN:
            if self.blocked() or self.count >= most:
                break
            end = self.cut(data, at)
            piece = data if at == 0 and end == size else data[at:end]
            at += self.feed(piece)
        self.working = False
        if self.stage == OPEN:
            if at < size:
                self.held = data
                self.at = at
                self.hold()
                return
            if self.inside:
                self.mark(data)
            if self.idle > self.bound:
                self.refuse(431)
        if self.stage == LAST:
            if at < size:
                self.linger()
            else:
                self.settle()

    def blocked(self) -> bool:
        """Return whether no request may be answered now."""
        return self.pending or self.paused

    def hold(self) -> None:
        """Read no more; where nothing else is in the way, go on when others have had their turn."""
        transport = self.transport
        if transport is not None and self.reading:
            self.reading = False
            transport.pause_reading()
        if not self.blocked():
            self.site.loop.call_soon(self.go_on)

    def go_on(self) -> None:
        """Parse what was held, and read again, where nothing is in the way any more."""
        if self.stage != OPEN or self.working or self.blocked():
            return
        if self.held:
            held, at = self.held, self.at
            self.held = b""
            self.at = 0
            self.pump(held, at)
            if self.charged or self.inside or self.idle:
                self.weigh()
        self.catch_up()

    def catch_up(self) -> None:
        """Read again, or end, where all that came is answered."""
        if self.stage != OPEN or self.held or self.blocked():
            return
        if self.ended:
            self.close()
        else:
            self.read()

    def on_begin(self) -> None:
        """Begin a request."""
        self.done = False
        self.fresh = False
        self.body = b""
        self.parts = None
        self.got = 0

    def on_head(self, call: Call) -> None:
        """Answer what the head decides; else wait for the body."""
        admitted = self.service.judge(call)
        if isinstance(admitted, Response):
            if (self.expects and self.bodied) or call.request.method == CONNECT:
                self.keep = False  # whether the body still comes, or bytes of another protocol, is the caller's choice
            self.reply(admitted)
        elif call.limit == 0:
            self.answer(b"")
        else:
            self.since = self.site.now
            if self.expects and not self.old and self.transport is not None:
                self.send()
                self.transport.write(CONTINUE)

    def on_part(self, part: bytes) -> None:
        """Keep a part of the body, as far as it is wanted."""
        self.got += len(part)
        if self.done:
            if self.got > self.site.limits.unwanted:
                self.stage = LAST
            return
        if self.parts is not None:
            self.parts += part
        elif self.body:
            self.parts = bytearray(self.body)
            self.parts += part
            self.body = b""
        else:
            self.body = part
        if self.got > self.call.limit:
            self.keep = False
            self.answer(self.whole())

    def on_end(self) -> None:
        """Answer with the body, where the head was not enough."""
        self.count += 1
        if not (self.done or self.pending):
            self.answer(self.whole())

    def on_broken(self, error: Exception | None) -> None:
        """Refuse what is no HTTP. An error of our own is logged, and ends the connection."""
        if isinstance(error, httptools.HttpParserCallbackError):
            cause: BaseException | None = error.__context__
            if isinstance(cause, HeadTooLargeError):
                self.refuse(431)
                return
            self.service.log.error("an unexpected error", error=locate_error(error if cause is None else cause))
            self.abort()
        elif self.stage == OPEN:
            self.refuse(400)

    def on_tls(self) -> None:
        """Refuse a caller that speaks TLS here, and have the log say so."""
        if self.stage == OPEN:
            self.site.meet_tls(self.service.log)
            self.keep = False
            self.astray = True
            self.reply(self.service.tls_refusal())

    def whole(self) -> bytes:
        """Return the body."""
        return self.body if self.parts is None else bytes(self.parts)

    def answer(self, body: bytes) -> None:
        """Have the contract answer the request under way."""
        answer = self.service.answer(self.call, body)
        self.body = b""
        self.parts = None
        if isinstance(answer, Response):
            self.reply(answer)
        else:
            self.wait(answer)

    def wait(self, answer: Awaitable[Response]) -> None:
        """Wait for an answer that is being made."""
        self.pending = True
        task = asyncio.ensure_future(answer, loop=self.site.loop)
        self.waited = task
        self.site.attend(task)
        task.add_done_callback(self.arrived)

    def arrived(self, task: asyncio.Future[Response]) -> None:
        """Reply with an answer that was waited for, and go on."""
        self.pending = False
        self.waited = None
        if task.cancelled():
            self.abort()
            return
        error = task.exception()
        if error is not None:
            self.service.log.error("an unexpected error", error=locate_error(error))
            self.abort()
            return
        if self.stage != OPEN:
            return
        self.reply(task.result())
        if self.stage == LAST:
            self.settle()
        self.go_on()

    def reply(self, response: Response) -> None:
        """Write an answer."""
        self.done = True
        site = self.site
        site.answered += 1
        self.since = site.now
        transport = self.transport
        if transport is None:
            return
        if response.close or site.ending:
            self.keep = False
        if not self.keep:
            self.stage = LAST
            ending = CLOSE
        else:
            ending = KEEP_TOLD if self.old else KEEP
        body = response.body
        if len(body) < APART:
            head_and_body = site.encoder.encode(response, ending, body)
            self.ready = self.ready + head_and_body if self.ready else head_and_body
            site.outbox.post(self, len(head_and_body))
        else:
            self.send()
            transport.writelines((site.encoder.encode(response, ending, b""), body))

    def refuse(self, status: int, crowded: bool = False) -> None:
        """Answer what is no request, or no longer one, and end; a request that has its answer gets no second one.

        `crowded` tells that it is let go because too much is under way.
        """
        self.keep = False
        self.astray = True
        if self.pending:
            return
        if self.inside and self.done:
            self.stage = LAST
        else:
            self.reply(self.service.early_refusal(status, crowded))
