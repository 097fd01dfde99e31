"""One connection: requests in, answers out, in order, within limits. Compiled.

While an answer is being made, or the caller does not read, the connection parses and reads nothing more; bytes that have arrived
are held. So answers keep the order of requests, and a caller that pipelines costs the memory of one read. `states` has the table of
events. The methods below carry it out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mypy_extensions import i64, u8

from flagsvc.core.log import locate_error
from flagsvc.core.tracing import SERVER, Span
from flagsvc.http.call import TRACED, TRACEPARENT, Call
from flagsvc.http.contract import Contract
from flagsvc.http.counts import now
from flagsvc.http.messages import Response
from flagsvc.http.parts import SEPARATE_BYTES, Outlet, Parts, PartsResponse
from flagsvc.http.reached_limits import BODY_TIME, CONNECTIONS, HEADER_TIME, MEMORY, WRITE_TIME
from flagsvc.http.server import request_parser as parsing
from flagsvc.http.server import states
from flagsvc.http.server.request_parser import HeaderNames
from flagsvc.http.server.shared import SMALL, ConnectionLimits, SharedState
from flagsvc.http.server.writer import CLOSE, CONTINUE, ENDED, KEEP, KEEP_1_0, ServerState, Stream

REQUESTS_A_TURN: Final = 8
"""Requests of one connection that are answered before other connections get their turn."""
CONNECT: Final = b"CONNECT"
CHUNKED: Final = (b"transfer-encoding", b"chunked")
LAST_CHUNK: Final = b"0\r\n\r\n"
MEMORY_GONE: Final = 0
"""All connections together hold too much. This reason to refuse stands beside the parser's, which are not 0."""


class Connection(Stream):
    """The protocol of one connection. `contract` answers requests, and `shared` is what all connections of a server share.

    `state` is one of states.WAITING to CLOSED; `since` is the tick at which the current step began. `parser` has the request
    and the bytes that are not parsed yet. `task` is the answer that is being made, and `span` the span of the request, if it is
    traced. `turn` is how many requests are answered before other connections get their turn; 0 outside of `parse`.
    """

    def __init__(self, shared: SharedState, contract: Contract, names: HeaderNames) -> None:
        super().__init__(contract.traffic)
        self.shared: Final = shared
        self.contract: Final = contract
        self.parser: Final = parsing.RequestParser(names)
        self.state: u8 = states.WAITING
        self.since: i64 = shared.now
        self.task: asyncio.Future[Response] | None = None
        self.span: Span | None = None
        self.turn: u8 = 0

    def step(self, event: i64) -> i64:
        """Change to the state that follows from an event, and return the action."""
        found = states.cell(self.state, event)
        self.state = states.state_of(found)
        return states.action_of(found)

    def handshake_begins(self) -> bool:
        """Count the connection before its TLS handshake. Returns whether there is room for it."""
        if self.shared.begin_handshake(self):
            return True
        self.contract.reached.add(CONNECTIONS)
        return False

    def handshake_over(self) -> None:
        """Stop counting it if the handshake failed."""
        self.shared.end_handshake(self)

    def blocked(self) -> bool:
        """Return whether no request may be answered now."""
        return self.paused or self.state > states.DISCARDING

    def charge(self) -> None:
        """Charge what it holds: an incomplete request, a request in work, unparsed bytes, an unread answer."""
        size: i64 = self.untaken + self.pending
        if self.state < states.LAST:
            size += self.parser.memory()
        if self.charged == 0 and size >= SMALL:
            self.network = self.contract.network(self.parser.peer)
        self.shared.budget.charge(self, size)

    def refusal(self, why: u8) -> Response:
        """Return the answer to a refused request."""
        if why == MEMORY_GONE:
            return self.contract.early_refusal(503, crowded=True)
        if why & parsing.TLS_CAME:
            self.shared.count_tls_caller(self.contract.log)
            return self.contract.tls_refusal()
        return self.contract.early_refusal(431 if why & parsing.HEAD_TOO_LARGE else 400)

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.traffic.open += 1
        self.parser.open(self.open_transport(transport), self.secure)
        self.since = self.shared.now
        if not self.shared.add(self):
            self.reject()

    def reject(self) -> None:
        """Refuse the connection for lack of room: answer 503 if there is room for that, and close."""
        if self.shared.reject(self):
            self.parser.stop()
            self.reply(self.contract.early_refusal(503))
            self.linger()
        else:
            self.contract.reached.add(CONNECTIONS)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and cancel the answer that is being made."""
        self.traffic.open -= 1
        self.step(states.LOST)
        if self.charged:
            self.shared.budget.charge(self, 0)
        self.cancel_answer()
        self.end_span(0)
        self.lose_parts()
        self.shared.remove(self)
        self.parser.close()
        self.transport = None

    def data_received(self, data: bytes) -> None:
        action = self.step(states.DATA)
        if action == states.PARSE:
            parser = self.parser
            if parser.held:
                parser.hold_more(data)
                self.pause()
            else:
                self.parse(data, 0)
            if self.charged or self.pending or parser.held or parser.unfinished():
                self.charge()
        elif action == states.COUNT:
            self.parser.got += len(data)
            if self.parser.got > self.shared.limits.lingered:
                self.close()

    def eof_received(self) -> bool:
        """Handle the end of the caller's bytes. The caller still gets every answer. Returns whether that takes longer.

        A caller that has gone looks the same, so an answer that is being made has limited time. TLS has no half-closed
        connections.
        """
        self.input = ENDED
        event = states.EOF_AHEAD if self.parser.held else states.EOF
        if self.step(event) == states.FINISH and not self.secure:
            self.since = self.shared.now
            return True
        self.close()
        return False

    def pause_writing(self) -> None:
        """Stop, because the caller does not read."""
        self.note_untaken()
        self.since = self.shared.now
        self.charge()

    def resume_writing(self) -> None:
        """Continue, because the caller has read."""
        self.note_taken()
        self.since = self.shared.now
        self.go_on()
        if self.charged:
            self.charge()

    def shutdown(self) -> None:
        """End after the answer to the current request; at once if there is none, or if it comes in parts."""
        self.shared.draining = True
        self.shared.times.stopping = True
        if self.parts is not None:
            self.parts.end()
        parser = self.parser
        begun = self.state == states.WAITING and parser.unfinished()
        if not (begun or parser.held or parser.idle) and self.step(states.SHUTDOWN) == states.SETTLE:
            self.settle()

    def free_memory(self) -> None:
        """End, because all connections together hold too much. Say so if an answer can still be written."""
        if self.step(states.MEMORY_SHORT) == states.ABORT or self.paused:
            self.contract.reached.add(MEMORY)
            self.abort()
        else:
            self.refuse(MEMORY_GONE)
            self.linger()
        self.shared.budget.charge(self, 0)

    def parse(self, data: bytes, at: i64) -> None:
        """Parse bytes from `at` on, in pieces, while nothing blocks it. Hold the rest."""
        parser = self.parser
        size: i64 = len(data)
        if not parser.unfinished():
            self.since = self.shared.now
        self.turn = REQUESTS_A_TURN
        while at < size and self.turn > 0 and not self.blocked():
            at = self.parse_piece(data, at)
        self.turn = 0
        if at < size and self.state <= states.LAST:
            parser.hold(data, at)
        if self.state < states.LAST:
            if parser.held:
                self.pause()
                return
            parser.remember(data)
            if parser.idle > parser.names.head_limit:
                self.refuse(parsing.HEAD_TOO_LARGE)
        if self.state == states.LAST:
            self.settle()

    def parse_piece(self, data: bytes, at: i64) -> i64:
        """Parse one piece and act on it. Returns where the next piece begins."""
        parser = self.parser
        end = parser.cut(data, at)
        piece = data if at == 0 and end == len(data) else data[at:end]
        try:
            news = parser.feed(piece)
            if news & parsing.HEAD_CAME:
                self.on_head()
            if news & parsing.BODY_CAME:
                self.on_body()
            if news & parsing.END_CAME:
                self.on_end()
            if news >= parsing.NO_HTTP and self.state < states.LAST:
                self.refuse(news)
        except Exception as error:  # the last resort: the other connections go on
            self.contract.log.error("an unexpected error", error=locate_error(error))
            self.abort()
        return end - parser.unread

    def pause(self) -> None:
        """Stop reading. If nothing else blocks the connection, continue when other connections have had their turn."""
        self.pause_reading()
        if not self.blocked():
            self.shared.loop.call_soon(self.go_on)

    def go_on(self) -> None:
        """Parse the held bytes and read again, if nothing blocks the connection."""
        if self.turn or self.blocked():
            return
        parser = self.parser
        held, at = parser.held, parser.held_from
        if held:
            parser.hold(b"", 0)
            self.parse(held, at)
        if self.charged or self.pending or parser.unfinished():
            self.charge()
        if parser.held or self.blocked():
            return
        if self.input == ENDED:
            self.close()
        else:
            self.resume_reading()

    def on_head(self) -> None:
        """Answer, if the head decides the answer. Otherwise wait for the body."""
        parser = self.parser
        call = parser.call
        call.handler = self.contract
        call.started = now()
        call.use_spare_key()
        span = self.begin_span(call)
        admitted = self.contract.check_head(call) if span is None else span.run(self.contract.check_head, call)
        if call.request.method == CONNECT:
            parser.persistence = parsing.ENDS  # bytes of another protocol may follow
        if isinstance(admitted, Response):
            if parser.may_hold_back_body():
                parser.persistence = parsing.ENDS  # a body may come or not
            self.reply(admitted)
        elif call.limit == 0:
            self.answer(b"")
        else:
            self.since = self.shared.now
            if parser.waits_to_continue():
                self.write(CONTINUE)

    def begin_span(self, call: Call) -> Span | None:
        """Begin the span of a request, and return it; None if the request is not traced."""
        tracer = self.traffic.tracer
        if tracer is not None:
            self.span = call.span = tracer.begin("HTTP", SERVER, call.other(TRACEPARENT))
        return self.span

    def end_span(self, status: int) -> None:
        """End the span of the request, if it is traced, with the status of its answer; 0 if there is no answer."""
        span = self.span
        if span is None:
            return
        self.span = None
        span.attributes["url.scheme"] = "https" if self.secure else "http"
        port = self.local_port()
        if port:
            span.attributes["server.port"] = port
        if status:
            span.note_status(status, 500)
        else:
            span.error = "abandoned"
        span.end()

    def on_body(self) -> None:
        """Keep the part of the body that the contract wants."""
        parser = self.parser
        if self.state == states.WAITING:
            if parser.got > parser.call.limit:
                parser.persistence = parsing.ENDS
                self.answer(parser.take_body())
            return
        parser.drop_body()
        if parser.got > self.shared.limits.discarded:
            self.step(states.TOO_MUCH_DISCARDED)

    def on_end(self) -> None:
        """Answer with the body, if the head was not enough. Then continue with the next request."""
        if self.state == states.WAITING:
            self.answer(self.parser.take_body())
        self.turn -= 1
        self.step(states.REQUEST_COMPLETE)
        self.parser.next_request()

    def refuse(self, why: u8) -> None:
        """Answer a request that is refused, by the parser's reason or MEMORY_GONE. This is the last answer."""
        self.parser.stop()
        if self.step(states.BAD_REQUEST) == states.REPLY:
            self.reply(self.refusal(why))

    def answer(self, body: bytes) -> None:
        """Answer the current request."""
        call = self.parser.call
        span = self.span
        answer = call.handler.answer(call, body) if span is None else span.run(call.handler.answer, call, body)
        if isinstance(answer, Response):
            self.reply(answer)
            return
        self.pending = self.parser.size + len(body)
        if span is None:
            self.wait(answer)
        else:
            span.run(self.wait, answer)

    def wait(self, answer: Awaitable[Response]) -> None:
        """Wait for an answer that is being made."""
        self.step(states.ANSWER_BEGUN)
        self.task = self.shared.start(answer)
        self.task.add_done_callback(self.answer_made)

    def answer_made(self, task: asyncio.Future[Response]) -> None:
        """Write the answer that was waited for, and continue."""
        self.task = None
        self.pending = 0
        action = self.step(states.ANSWER_MADE)
        if task.cancelled():
            self.abort()
            return
        error = task.exception()
        if error is not None:
            self.contract.log.error("an unexpected error", error=locate_error(error))
            self.abort()
        elif action == states.REPLY:
            made = task.result()
            if isinstance(made, PartsResponse):
                self.begin_parts(made)
                return
            self.reply(made)
            if self.state == states.LAST:
                self.settle()
            self.go_on()

    def begin_parts(self, response: PartsResponse) -> None:
        """Write the head of an answer in parts, which is the last one. What the caller still sends is discarded."""
        shared, parser = self.shared, self.parser
        shared.answered += 1
        self.end_span(response.status)
        chunked = not parser.speaks("1.0")
        if chunked:
            response.own.append(CHUNKED)
        self.step(states.PARTS_BEGUN)
        shared.writer.write(self, response, CLOSE)
        parser.close()
        self.resume_reading()
        self.parts = response.parts
        shared.streams += 1
        self.notice_silence()
        response.parts.open(ConnectionOutlet(self, response.parts, chunked))
        if shared.draining:
            response.parts.end()

    def lose_parts(self) -> None:
        """Tell an answer in parts that nothing more can be written. From now on its connection counts as any other."""
        if self.parts is not None:
            self.shared.streams -= 1
        Stream.lose_parts(self)

    def end_parts(self) -> None:
        """End after the last part."""
        self.step(states.ANSWERED_LAST)
        self.settle()

    def drop_slow_reader(self) -> None:
        """End at once, because the caller does not read the parts of its answer."""
        self.contract.reached.add(WRITE_TIME)
        self.abort()

    def cancel_answer(self) -> None:
        """Cancel the task that makes an answer for a caller that has gone. Work in a thread continues."""
        task = self.task
        if isinstance(task, asyncio.Task):  # not before its first step, or what it was to wait for would never end
            self.shared.loop.call_soon(task.cancel)

    def reply(self, response: Response) -> None:
        """Write an answer."""
        shared = self.shared
        shared.answered += 1
        self.end_span(response.status)
        self.since = shared.now
        if response.close or shared.draining or self.parser.persistence == parsing.ENDS:
            self.step(states.ANSWERED_LAST)
            ending = CLOSE
        else:
            self.step(states.ANSWERED)
            ending = KEEP if self.parser.persistence == parsing.KEEPS else KEEP_1_0
        shared.writer.write(self, response, ending)

    def settle(self) -> None:
        """End after the last answer: at once, or when the caller has sent the rest of its request."""
        if self.parser.held or self.parser.state >= states.HEAD:
            self.linger()
        else:
            self.close()

    def linger(self) -> None:
        """Discard received bytes for a while. Closing at once would destroy the answer for a caller that still sends."""
        if self.input == ENDED:
            self.close()
            return
        self.step(states.LINGER_BEGUN)
        self.since = self.shared.now
        self.parser.close()
        self.end_writing()
        self.resume_reading()

    def close(self) -> None:
        """Close when everything is sent."""
        self.step(states.CLOSE_BEGUN)
        self.since = self.shared.now
        self.parser.close()
        self.close_transport()

    def abort(self) -> None:
        """Close at once."""
        self.step(states.CLOSE_BEGUN)
        self.parser.close()
        self.abort_transport()

    def check_time(self, now: i64) -> None:
        """End a step that takes too long."""
        action = self.step(states.TICK)
        took = now - self.since
        times = self.shared.times
        if self.paused or action == states.CHECK_WRITING:
            if self.took_some():
                self.since = now
            elif took > times.writing():
                self.contract.reached.add(WRITE_TIME)
                self.abort()
        elif action == states.CHECK_READING:
            self.check_reading(took)
        elif action == states.CHECK_ANSWER:
            if self.input == ENDED and took > times.half_closed:
                self.cancel_answer()
        elif action == states.CHECK_LINGER and took > times.linger:
            self.close()

    def check_reading(self, took: i64) -> None:
        """Close if the head, the body or the next request is late. A timeout counts only if bytes have arrived."""
        parser = self.parser
        if took > self.shared.times.reading(parser.state, parser.idle):
            if parser.unfinished():
                self.contract.reached.add(BODY_TIME if parser.state == states.BODY else HEADER_TIME)
            self.close()


class ConnectionOutlet(Outlet):
    """The parts of the last answer of a connection. With `chunked` each part is a chunk (RFC 9112, 7.1). Without, the end of the
    connection ends the body.

    The queue of a stream is the transport's. It is full when the transport tells that the caller does not read, at 64 kB. The next
    part then finds a slow reader, and drops it.
    """

    def __init__(self, stream: Stream, parts: Parts, chunked: bool) -> None:
        self.stream: Final = stream
        self.parts: Final = parts
        self.chunked: Final = chunked

    def write(self, data: bytes) -> None:
        """Write a part now. A caller that does not read is dropped."""
        stream = self.stream
        if stream.paused:
            stream.drop_slow_reader()
        elif not self.chunked:
            stream.write(data)
        elif len(data) < SEPARATE_BYTES:
            stream.write(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            stream.write_pieces((b"%x\r\n" % len(data), data, b"\r\n"))

    def is_full(self) -> bool:
        return self.stream.paused

    def waiting(self) -> int:
        return self.stream.waiting()

    def end(self) -> None:
        """End the answer and its connection. A caller that does not read is not waited for."""
        stream = self.stream
        if stream.paused:
            stream.drop_slow_reader()
        elif stream.parts is self.parts:
            if self.chunked:
                stream.write(LAST_CHUNK)
            stream.lose_parts()
            stream.end_parts()


EXTRA_BYTES = 4096
"""Bytes of a head for method and path, in addition to its headers and query."""


class ConnectionFactory:
    """Makes the connections of a server. uvicorn calls it like a protocol class: `uvicorn.Config(http=ConnectionFactory(…))`.

    `contract` is called for each connection, which keeps the returned contract.
    """

    def __init__(self, contract: Callable[[], Contract], limits: ConnectionLimits) -> None:
        self._contract = contract
        self._limits = limits
        self._draining = False
        self._shared: SharedState | None = None
        self._names = HeaderNames({}, 0)
        self._headers: dict[bytes, int] | None = None

    def __call__(
        self,
        config: object,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Connection:
        """Return the protocol of a new connection. `config` and `app_state` are uvicorn's, and not used."""
        contract = self._contract()
        if contract.headers is not self._headers:
            limit = contract.header_limit + contract.query_limit + EXTRA_BYTES
            more = {} if contract.traffic.tracer is None else TRACED
            self._headers, self._names = contract.headers, HeaderNames({**contract.headers, **more}, limit)
        return Connection(self._shared_by(server_state, _loop), contract, self._names)

    @property
    def answered(self) -> int:
        """How many requests were answered."""
        return 0 if self._shared is None else self._shared.answered

    def drain(self) -> None:
        """Make every answer from now on the last of its connection, so that callers move to another server.

        Answers in parts end now.
        """
        self._draining = True
        if self._shared is not None:
            self._shared.drain()

    def _shared_by(self, server_state: ServerState, loop: asyncio.AbstractEventLoop | None) -> SharedState:
        """Return the shared state of a server's connections. Only one server runs at a time."""
        shared = self._shared
        if shared is None or shared.server is not server_state:
            loop = loop or asyncio.get_running_loop()
            shared = self._shared = SharedState(server_state, self._limits, loop, self._contract().traffic)
            shared.draining = self._draining
        return shared
