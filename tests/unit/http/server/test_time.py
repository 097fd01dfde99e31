"""What takes too long ends: one clock for all connections of a server. And what ends when the server does."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest

from flagsvc.http.server import ConnectionLimits, shared
from support.aio import until
from support.frontkit import KEYED, dial, get, head, serving

LIMITS = ConnectionLimits(keep_alive_s=5, head_s=10, body_s=10, write_s=3, linger_s=2, shutdown_s=4)
HEALTH = get("/proxy/health")
POST = head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 2")


async def test_patience_begins_with_a_request() -> None:
    """The clock of one request is not that of the next, and bytes that trickle in do not turn it back."""
    line = dial(serving(), LIMITS)
    for _ in range(3):
        line.send(HEALTH[:10])
        line.tick(5)
        line.send(HEALTH[10:])
        line.tick(4)
    for at in range(11):
        assert not line.transport.closed
        line.send(HEALTH[at : at + 1])
        line.tick()
    assert line.transport.closed


async def test_keep_alive() -> None:
    """Between two requests a connection may rest for a while."""
    line = dial(serving(), LIMITS).send(HEALTH)
    line.tick(5)
    line.send(HEALTH)
    line.tick(5)
    assert not line.transport.closed
    line.tick()
    assert line.transport.closed


async def test_making_an_answer_takes_its_time() -> None:
    """While the application works, nothing is cut off."""
    slow = serving(slow=True)
    line = dial(slow, LIMITS).send(get())
    line.tick(100)
    assert not line.transport.over
    slow.gate.set()
    await until(line.transport.answered)


async def test_a_caller_who_takes_nothing() -> None:
    """Is cut off after a while without progress, also when the answer was the last one."""
    for last in ((), ("Connection: close",)):
        line = dial(serving(), LIMITS, takes=10).send(get("/proxy", *last))
        line.tick(4)
        line.transport.unsent -= 1
        line.tick(3)
        assert not line.transport.aborted
        line.tick(2)
        assert line.transport.aborted


async def test_lingering_ends() -> None:
    """After an answer that closes, the rest of the request is waited for briefly."""
    line = dial(serving(), LIMITS).send(head("POST /proxy HTTP/1.1", "Expect: 100-continue", "Content-Length: 9"))
    assert line.transport.ended
    line.tick(2)
    assert not line.transport.closed
    line.tick()
    assert line.transport.closed


async def test_the_clock_stands_still_without_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock ticks only while there are connections. It reports answered requests to the server."""
    loop = asyncio.get_running_loop()
    later = Mock(wraps=loop.call_later)
    monkeypatch.setattr(loop, "call_later", later)
    line = dial(serving(), ConnectionLimits(tick_s=0.002)).send(HEALTH * 3)
    shared = line.connection.shared
    state = shared.server
    await until(lambda: shared.now > 2 and state.total_requests == 3)
    assert shared.ticking
    line.lose()
    await until(lambda: not shared.ticking)
    ticks = [each for each in later.call_args_list if each.args[1].__name__ == "tick"]
    assert len(ticks) == shared.now  # every tick that was asked for has come: there will be no other
    assert not state.connections


async def test_the_end_of_the_server() -> None:
    """An idle connection is closed. A started request is finished, and its answer says that it is the last."""
    resting, fresh = dial(serving(), LIMITS).send(HEALTH), dial(serving(), LIMITS)
    for line in (resting, fresh):
        line.connection.shutdown()
        assert line.transport.closed
    begun = dial(serving(), LIMITS).send(HEALTH[:20])
    begun.connection.shutdown()
    assert not begun.transport.over
    begun.send(HEALTH[20:])
    assert b"connection: close" in begun.transport.data and begun.transport.closed and begun.answers() == [200]


async def test_the_end_of_the_server_while_an_answer_is_made() -> None:
    """The current request is answered; later ones are not."""
    slow = serving(slow=True)
    line = dial(slow, LIMITS).send(get() + HEALTH)
    line.connection.shutdown()
    assert not line.transport.over
    slow.gate.set()
    await until(line.transport.answered)
    assert line.answers() == [200] and b"connection: close" in line.transport.data and line.transport.ended


async def test_the_end_of_the_server_in_the_middle_of_a_request() -> None:
    """A request that does not get on is waited for less than otherwise; a body that is not wanted is not waited for."""
    begun = dial(serving(), LIMITS).send(POST)
    begun.connection.shutdown()
    begun.tick(4)
    assert not begun.transport.over
    begun.tick()
    assert begun.transport.closed
    answered = dial(serving(), LIMITS).send(head("PUT /proxy HTTP/1.1", "Content-Length: 9"))
    answered.connection.shutdown()
    assert answered.transport.ended and answered.answers("PUT") == [405]


async def test_the_end_of_the_server_while_nothing_is_taken() -> None:
    """A caller that does not read has less time then."""
    line = dial(serving(), ConnectionLimits(write_s=50, shutdown_s=4), takes=10).send(get())
    line.connection.shutdown()
    line.tick(5)
    assert not line.transport.aborted
    line.tick(2)
    assert line.transport.aborted


async def test_how_late_the_clock_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tick notes how late it comes. One that comes early is not late."""
    moments = iter((100.0, 100.5, 100.5, 103.0, 103.0))
    monkeypatch.setattr(shared, "monotonic", lambda: next(moments))
    line = dial(serving(), LIMITS)
    line.tick(2)
    lag = line.connection.traffic.lag
    assert (sum(lag.counts), lag.counts[0], lag.sum) == (2, 1, 1.5)


async def test_what_is_counted_of_connections() -> None:
    """Every byte that is written counts, also of a large answer, and every open connection until it is lost."""
    line = dial(serving(), LIMITS).send(HEALTH, get())
    traffic = line.connection.traffic
    assert (traffic.open, traffic.sent) == (1, len(line.transport.data)) and traffic.sent > 100
    line.lose()
    assert traffic.open == 0
