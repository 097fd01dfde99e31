"""When answers are written: those of one turn of the loop together, and never out of order.

The memory of all connections is limited. The largest connections are closed, smaller ones continue, and one network has half.
The shared parts of answers are encoded once.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from flagsvc.http.messages import Response
from flagsvc.http.reached_limits import MEMORY
from flagsvc.http.server import ConnectionLimits
from flagsvc.http.server.shared import SMALL
from flagsvc.http.server.writer import CLOSE, KEEP, KEEP_1_0, MAX_ANSWERS, MAX_BYTES, MAX_KEPT, ResponseEncoder, status_line
from flagsvc.testing import turns
from support.aio import until
from support.frontkit import (
    KEYED,
    ConnectionWithTransport,
    Serving,
    State,
    get,
    head,
    open_connections,
    parse_answer,
    parse_answers,
    serving,
)
from unit.http.server.test_connection import many_flags

HEALTH = get("/proxy/health")
MIDDLING = many_flags(500, 8)
"""A document whose answer is of some size, and still copied behind its head."""
LARGE = many_flags(2_000, 8)
"""A document whose answer is written beside its head."""


def ask(callers: list[ConnectionWithTransport], data: bytes) -> None:
    """Send the same on every connection, and leave the answers to the loop."""
    for line in callers:
        line.connection.data_received(data)


def statuses(callers: list[ConnectionWithTransport]) -> list[list[int]]:
    """Return what every connection got."""
    sent = [bytes(line.transport.data) for line in callers]
    return [[status for status, _, _ in parse_answers(data, ["GET"] * data.count(b"HTTP/1.1 "))] for data in sent]


async def test_answers_of_one_turn_go_out_at_its_end() -> None:
    """Nothing is written while other connections may still be answered; when the loop has turned everything is, once each."""
    callers = open_connections(serving(), 3)
    ask(callers, HEALTH * 2)
    assert statuses(callers) == [[], [], []]
    await asyncio.sleep(0)
    assert statuses(callers) == [[200, 200]] * 3
    assert [line.transport.writes for line in callers] == [1, 1, 1]
    ask(callers, HEALTH)
    await asyncio.sleep(0)
    assert statuses(callers) == [[200, 200, 200]] * 3


async def test_many_answers_do_not_wait_for_more() -> None:
    """At this number of answers, all are written within the turn."""
    callers = open_connections(serving(), MAX_ANSWERS + 1)
    ask(callers, HEALTH)
    assert statuses(callers) == [[200]] * MAX_ANSWERS + [[]]
    await asyncio.sleep(0)
    assert statuses(callers)[-1] == [200]


async def test_many_bytes_do_not_wait_for_more() -> None:
    """At this number of bytes, all are written within the turn."""
    given = serving(MIDDLING)
    callers = open_connections(given, 20)
    ask(callers, get())
    sent = [len(line.transport.data) for line in callers]
    assert sent[0] > 0 and sent[-1] == 0
    together = next(number for number in range(20) if sum(sent[:number]) >= MAX_BYTES)
    assert sent.index(0) % together == 0
    await asyncio.sleep(0)
    assert statuses(callers) == [[200]] * 20


async def test_a_large_answer_does_not_overtake_a_small_one() -> None:
    """Ready answers of the same connection are written first."""
    callers = open_connections(serving(LARGE), 1)
    ask(callers, HEALTH + get() + HEALTH)
    await asyncio.sleep(0)
    transport = callers[0].transport
    answers = parse_answers(bytes(transport.data), ["GET"] * 3)
    assert [status for status, _, _ in answers] == [200, 200, 200]
    assert [len(body) > 65_536 for _, _, body in answers] == [False, True, False]


async def test_a_word_to_go_on_does_not_overtake_an_answer() -> None:
    """The answer before comes first."""
    callers = open_connections(serving(), 1)
    ask(callers, HEALTH + head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 2", "Expect: 100-continue"))
    transport = callers[0].transport
    assert transport.data.startswith(b"HTTP/1.1 200") and transport.data.endswith(b"HTTP/1.1 100 Continue\r\n\r\n")


@pytest.mark.parametrize(("last", "lingers"), [(get("/proxy/health", "Connection: close"), False), (b"nonsense\r\n\r\n", True)])
async def test_the_last_answer_is_written_before_the_end(last: bytes, lingers: bool) -> None:
    """The answer is written whether the connection closes at once or lingers."""
    callers = open_connections(serving(), 1)
    transport = callers[0].transport
    ask(callers, HEALTH + last)
    assert (transport.ended, transport.closed) == (lingers, not lingers)
    assert statuses(callers) == [[200, 400 if lingers else 200]]


async def test_callers_who_are_gone_do_not_disturb_others() -> None:
    """The answer to a lost or closing connection is dropped; the others get theirs."""
    callers = open_connections(serving(), 4)
    ask(callers, HEALTH)
    lost, closing, cut, other = callers
    lost.connection.connection_lost(None)
    closing.transport.closed = True
    cut.connection.abort()
    await asyncio.sleep(0)
    assert cut.transport.aborted
    assert statuses(callers) == [[], [], [], [200]] and other.transport.writes == 1


LIMITS = ConnectionLimits(memory=100_000)
HALF_A_HEAD = head("GET /proxy HTTP/1.1", KEYED, "X-Long: " + "x" * 9_000)[:-4]
HALF_A_BODY = head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 20000") + b"{" + b" " * 9_000


def from_networks(
    given: Serving, number: int, limits: ConnectionLimits = LIMITS, takes: int | None = None
) -> list[ConnectionWithTransport]:
    """Return connections to one server, each from a network of its own."""
    lines = open_connections(given, number, limits, takes=takes, quiet=True)
    for at, line in enumerate(lines):
        line.connection.parser.peer = f"198.51.100.{at}"
    return lines


def held(line: ConnectionWithTransport) -> int:
    """Return the charged bytes of all connections."""
    return int(line.connection.shared.budget.total)


def gone(lines: list[ConnectionWithTransport]) -> list[int]:
    """Return which connections were ended."""
    return [at for at, line in enumerate(lines) if line.transport.over]


@pytest.mark.parametrize("begun", [HALF_A_HEAD, HALF_A_BODY], ids=["heads", "bodies"])
async def test_many_unfinished_requests(begun: bytes) -> None:
    """The sum stays within the limit. Closed connections get a 503 with Retry-After. A complete request is answered."""
    given = serving()
    lines = from_networks(given, 40)
    for line in lines:
        line.send(begun)
        assert held(line) <= LIMITS.memory
    assert len(gone(lines)) >= 20
    status, fields, body, _ = parse_answer(bytes(lines[gone(lines)[0]].transport.data))
    assert (status, dict(fields)["retry-after"], dict(fields)["connection"]) == (503, "1", "close")
    assert b"under way" in body
    left = next(line for line in lines if not line.transport.over)
    left.connection.shared.writer.flush()
    others = from_networks(given, 1)
    assert others[0].send(get()).answers() == [200]
    assert given.service.reached.counts[MEMORY] == len(gone(lines))


async def test_who_holds_most_is_let_go() -> None:
    """A request that grows beyond all others does not touch small requests that wait for their end."""
    given = serving(body_limit=1_000_000)
    lines = from_networks(given, 5, replace(LIMITS, memory=60_000))
    for line in lines[1:]:
        line.send(head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 4000") + b"{" + b" " * 2_500)
    lines[0].send(head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 200000") + b"{" + b" " * 40_000)
    assert gone(lines) == [0]
    for line in lines[1:]:
        line.send(b" " * 1_498 + b"}")
        assert line.answers("POST") == [200]
    assert held(lines[1]) == 0


async def test_one_network_has_half() -> None:
    """Many connections from one network leave room for the others; a balancer that speaks for many callers may use all."""
    given = serving()
    lines = from_networks(given, 31)
    for line in lines[:30]:
        line.connection.parser.peer = "203.0.113.7"
    lines[30].send(HALF_A_BODY)
    for line in lines[:30]:
        line.send(HALF_A_HEAD)
        assert held(line) <= LIMITS.memory // 2 + 10_000
    assert not lines[30].transport.over

    trusting = serving(trust_proxy=("loopback",))
    balanced = from_networks(trusting, 9)
    for line in balanced:
        line.connection.parser.peer = "127.0.0.1"
        line.send(HALF_A_HEAD)
    assert gone(balanced) == []


async def test_what_is_given_back() -> None:
    """Complete requests, lost connections and closed connections are no longer charged."""
    given = serving()
    lines = from_networks(given, 3)
    for line in lines:
        line.send(HALF_A_HEAD)
    assert held(lines[0]) > 3 * SMALL
    lines[0].send(b"\r\n\r\n")
    lines[1].lose()
    lines[2].send(b"\0")
    lines[2].lose()
    budget = lines[0].connection.shared.budget
    assert (held(lines[0]), len(budget.holders), budget.networks) == (0, 0, {})


async def test_answers_that_are_not_taken() -> None:
    """They count as well. Connections that read nothing and hold most are cut."""
    lines = from_networks(serving(many_flags(300, 8)), 12, takes=1_000)
    for line in lines:
        line.send(get())
        assert held(line) <= LIMITS.memory
    assert gone(lines)
    left = [line for line in lines if not line.transport.over]
    for line in left:
        line.transport.take()
    assert held(left[0]) == 0 and left[0].answers() == [200]


def waiting_post(size: int) -> bytes:
    """Return a complete request with a body of this size."""
    body = b"{" + b" " * (size - 2) + b"}"
    fields = (KEYED, "Content-Type: application/json", f"Content-Length: {size}")
    return head("POST /proxy HTTP/1.1", *fields) + body


async def test_requests_that_wait_for_their_answers() -> None:
    """Their bodies are held as long as the answers are being made, so they count that long. Those that hold most are ended."""
    given = serving(slow=True, body_limit=50_000)
    lines = from_networks(given, 21)
    small = lines.pop()
    small.send(waiting_post(3_000))
    for line in lines:
        line.send(waiting_post(9_000))
        assert SMALL < held(line) <= LIMITS.memory
    await turns()
    assert given.waiting == 21 and len(gone(lines)) >= 10 and not small.transport.over
    for at in gone(lines):
        lines[at].lose()
    await turns()
    assert given.left == len(gone(lines)), "what is ended is not made any more"
    given.gate.set()
    await until(lambda: all(line.transport.answered() for line in [*lines, small] if not line.transport.over))
    assert held(small) == 0 and small.answers("POST") == [200]


async def test_a_large_head_that_waits() -> None:
    """It counts until its answer is written; the next request of the connection begins at nothing."""
    given = serving(slow=True)
    [line] = from_networks(given, 1)
    line.send(get("/proxy", "X-Long: " + "x" * 9_000))
    assert 9_000 < held(line) < 10_000
    given.gate.set()
    await until(line.transport.answered)
    assert held(line) == 0
    line.send(get())
    assert held(line) == 0


def test_an_answer() -> None:
    """Status line, the server's headers, the fixed ones, its own, the connection's, the body."""
    encoder = ResponseEncoder(State([(b"date", b"now"), (b"x", b"y")]))
    response = Response(200, [(b"a", b"1")], [(b"b", b"2"), (b"content-length", b"4")], b"body")
    head = b"HTTP/1.1 200 OK\r\ndate: now\r\nx: y\r\na: 1\r\nb: 2\r\ncontent-length: 4\r\n"
    assert encoder.encode(response, KEEP, [response.body]) == head + b"\r\nbody"
    assert encoder.encode(response, KEEP_1_0, [response.body]) == head + b"connection: keep-alive\r\n\r\nbody"
    assert encoder.encode(response, CLOSE, [response.body]) == head + b"connection: close\r\n\r\nbody"
    assert encoder.encode(response, KEEP, [b"bo", b"d", b"y"]) == head + b"\r\nbody"


def test_the_date_goes_on() -> None:
    """The server's headers are taken again as soon as there is another list of them."""
    state = State([(b"date", b"one")])
    encoder = ResponseEncoder(state)
    response = Response(204, [], [], b"")
    assert encoder.encode(response, KEEP, [response.body]) == b"HTTP/1.1 204 No Content\r\ndate: one\r\n\r\n"
    state.default_headers = [(b"date", b"two")]
    assert encoder.encode(response, KEEP, [response.body]) == b"HTTP/1.1 204 No Content\r\ndate: two\r\n\r\n"


def test_answers_that_take_turns() -> None:
    """Answers that share headers but not the status, or the status but not the headers, are kept apart."""
    encoder = ResponseEncoder(State())
    one, two = [(b"a", b"1")], [(b"a", b"2")]
    for _ in range(2):
        for status, fixed in ((200, one), (404, one), (200, two)):
            wanted = status_line(status) + b"a: " + fixed[0][1] + b"\r\n\r\n"
            assert encoder.encode(Response(status, fixed, [], b""), KEEP, []) == wanted


def test_what_is_kept_is_bounded() -> None:
    """Headers that are new with every answer do not add up; lists that live no longer are not taken for others."""
    encoder = ResponseEncoder(State())
    for at in range(3 * MAX_KEPT):
        answer = encoder.encode(Response(200, [(b"a", str(at).encode())], [], b""), KEEP, [])
        assert answer == b"HTTP/1.1 200 OK\r\na: %d\r\n\r\n" % at
    assert len(encoder.kept) <= MAX_KEPT


@pytest.mark.parametrize(("status", "line"), [(404, b"HTTP/1.1 404 Not Found\r\n"), (299, b"HTTP/1.1 299 \r\n")])
def test_status_lines(status: int, line: bytes) -> None:
    """A status without a name has no words."""
    assert status_line(status) == line
