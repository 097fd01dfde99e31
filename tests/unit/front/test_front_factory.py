"""What uvicorn gets as its protocol."""

from __future__ import annotations

from aio import asynchronous
from flagsvc.front import Limits, front
from frontkit import State, serving


@asynchronous
async def test_connections_of_one_server_share_a_site() -> None:
    """And those of another server do not; each connection asks for the service anew."""
    given = [serving().service, serving().service]
    make = front(lambda: given[0], Limits())
    state = State()
    first, second = make(None, state, {}), make(config=None, server_state=state, app_state={}, _loop=None)
    given.reverse()
    third = make(None, State(), {})
    assert first.site is second.site and first.names is second.names
    assert third.site is not first.site and third.names is not first.names
    assert first.service is second.service is given[1] and third.service is given[0]
