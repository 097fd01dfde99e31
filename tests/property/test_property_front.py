"""For any bytes, cut at any place, our HTTP server answers like uvicorn's protocol around the same application, or better."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from flagsvc.proxy.api.service import Service
from fuzzing.rows import Row, run
from support import frontkit, frontstreams
from support.frontkit import serving
from support.frontpeers import DIFFERENCES, Reply, Talk, difference, over_front, over_uvicorn, over_uvicorn_alone, talk


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep what uvicorn has to say of bad bytes out of the output."""
    logger = logging.getLogger("uvicorn.error")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


def without_refusal_texts(spoken: Talk) -> Talk:
    """Return what came back without the words of refusals that uvicorn makes itself."""
    plain = [Reply(400, [], b"") if reply.status == 400 and reply.closes else reply for reply in spoken.replies]
    return replace(spoken, replies=tuple(plain))


async def as_with_uvicorn(service: Service, stream: bytes, where: list[int]) -> str:
    """Compare the front with uvicorn, and with uvicorn under our words; return the difference that explains the latter."""
    pieces = frontstreams.pieces(stream, where)
    ours = await talk(over_front, service, pieces)
    theirs = await talk(over_uvicorn, service, pieces)
    named = difference(stream, ours, theirs)
    assert named is not None, (pieces, ours, theirs)
    if not any(reply.status == 431 for reply in theirs.replies):
        alone = without_refusal_texts(await talk(over_uvicorn_alone, service, pieces))
        assert difference(stream, without_refusal_texts(ours), alone) is not None, (pieces, ours, alone)
    return named


async def cut_as_whole(service: Service, stream: bytes, where: list[int]) -> None:
    """Compare the same bytes in pieces and in one."""
    whole = await talk(over_front, service, [stream])
    cut = await talk(over_front, service, frontstreams.pieces(stream, where))
    assert cut == whole, frontstreams.pieces(stream, where)


def as_uvicorn(service: Service, given: tuple[bytes, list[int]]) -> None:
    """The answers are the same, in the same order, and so is whether the connection ends; else a row says why."""
    asyncio.run(as_with_uvicorn(service, *given))


def as_one(service: Service, given: tuple[bytes, list[int]]) -> None:
    """The same bytes give the same answers, wherever they are cut."""
    asyncio.run(cut_as_whole(service, *given))


STREAMS = Row("as uvicorn", st.tuples(frontstreams.streams, frontstreams.cuts), as_uvicorn, 250)
CUTS = Row("cut as whole", st.tuples(frontstreams.whole | frontstreams.damaged(), frontstreams.cuts), as_one, 150)


@pytest.mark.parametrize("turns", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("row", [STREAMS, CUTS], ids=str)
def test_any_stream(row: Row[Service], turns: bool) -> None:
    """Bytes of any kind, cut anywhere; answers made at once, or over some turns of the loop."""
    run(row, serving(turns=turns).service)


WITNESSES: dict[str, tuple[bytes, list[int]]] = {
    "gives_up": (frontkit.head("GET /proxy/health HTTP/1.1") + b"\0\0", []),
    "forgets_after_upgrade": (
        frontkit.head("GET /proxy/health HTTP/1.1", "Connection: Upgrade", "Upgrade: x")
        + frontkit.head("GET /proxy/health HTTP/1.1"),
        [],
    ),
    "keeps_old_connections": (frontkit.head("GET /proxy/health HTTP/1.0", "Connection: keep-alive"), []),
    "closes_over_limit": (
        frontkit.head("POST /proxy HTTP/1.1", frontkit.KEYED, "Transfer-Encoding: chunked")
        + b"20000\r\n"
        + b" " * 0x20000
        + b"\r\n0\r\n\r\n",
        [],
    ),
    "closes_unexpected": (
        frontkit.head("POST /proxy HTTP/1.1", "Expect: 100-continue", "Content-Length: 2"),
        [],
    ),
    "finds_no_path": (frontkit.head("GET http://proxy HTTP/1.1"), []),
    "refuses_framing": (
        frontkit.head("POST /proxy HTTP/1.1", frontkit.KEYED, "Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n",
        [],
    ),
    "refuses_hosts": (b"GET /proxy/health HTTP/1.1\r\n\r\n", []),
    "closes_tunnels": (frontkit.head("CONNECT /proxy HTTP/1.1", frontkit.KEYED), []),
    "answers_once": (
        frontkit.head("PUT /proxy HTTP/1.1", frontkit.KEYED, "Transfer-Encoding: chunked") + b"x",
        [-1],
    ),
}
"""For each difference a stream that shows it."""


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.__name__)
def test_every_difference_is_one(row: object) -> None:
    """A row that describes no difference any more must be removed."""
    name = getattr(row, "__name__", "")
    assert asyncio.run(as_with_uvicorn(serving().service, *WITNESSES[name])) == name
