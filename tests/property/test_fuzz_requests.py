"""Every request gets an answer of the right shape, and never a 5xx (behaviour: Order of checks; Evaluation endpoints)."""

from __future__ import annotations

import gzip
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from fuzzing import words
from fuzzing.answers import Sent
from fuzzing.proxy import WORLDS, Fuzzed, fuzzed, unready
from fuzzing.requests import HUGE, ROWS
from fuzzing.rows import Row, run
from fuzzing.sockets import ROWS as STREAMS
from fuzzing.sockets import Target, target


@pytest.fixture(scope="module", params=list(WORLDS))
def proxy(request: pytest.FixtureRequest) -> Iterator[Fuzzed]:
    """A proxy with few options, and one with many."""
    with fuzzed(**WORLDS[request.param]) as running:
        yield running


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_any_request_is_answered(proxy: Fuzzed, row: Row[Fuzzed]) -> None:
    """Never a 5xx, never a hang; 200, 304 and errors each have their shape, headers and caching."""
    run(row, proxy)
    assert proxy.ready()


@pytest.fixture(scope="module")
def attacked() -> Iterator[Target]:
    """A proxy in a process of its own."""
    with target() as running:
        yield running


@pytest.mark.parametrize("row", STREAMS, ids=str)
def test_any_bytes_are_survived(attacked: Target, row: Row[Target]) -> None:
    """The process lives, answers in order the requests that it can read, and answers a good request after each stream."""
    run(row, attacked)


def posted(body: bytes, *headers: tuple[bytes, bytes]) -> Sent:
    """Return a POST /proxy of JSON."""
    described = ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)))
    return Sent("POST", headers=(*headers, *described), body=(body,))


KEPT: dict[str, tuple[Sent, int]] = {
    "a length of thousands of digits": (Sent("POST", headers=((b"content-length", b"9" * 5000),)), 413),
    "a length of thousands of noughts": (Sent("POST", headers=((b"content-length", b"0" * 5000),)), 200),
    "a weight that only Unicode takes for a digit": (Sent(headers=((b"accept-encoding", b"gzip;q=\xb2"),)), 200),
    "the same, and no such method": (Sent("PUT", headers=((b"accept-encoding", b"gzip;q=\xb9"),)), 405),
    "a time in a year that no date has": (Sent(query=b"currentTime=%2B275760-09-13T00:00:00Z"), 200),
    "one before all dates": (Sent(query=b"currentTime=-271821-04-20T00:00:00Z"), 200),
}
"""Requests that once got a 500, or no answer."""


@pytest.mark.parametrize("name", list(KEPT))
def test_what_was_found_once(proxy: Fuzzed, name: str) -> None:
    """An error that a fuzz test found does not come back."""
    sent, status = KEPT[name]
    assert proxy.ask(proxy.keyed(sent)).status == status


COSTLY: dict[str, tuple[Sent, int]] = {
    "a gzip bomb": (posted(words.BOMB, (b"content-encoding", b"gzip")), 413),
    "a bomb in a bomb": (posted(gzip.compress(words.BOMB, 9), (b"content-encoding", b"gzip")), 400),
    "as many parameters as fit": (Sent(query=b"a&" * 8_000), 200),
    "as many different ones": (Sent(query=b"&".join(b"%x" % number for number in range(3_400))), 200),
    "as many repeats": (Sent(query=b"a=b&" * 4_000), 200),
    "open brackets": (Sent(query=b"[" * 16_000), 200),
    "brackets in brackets": (Sent(query=b"a" + b"[" * 8_000 + b"]" * 8_000), 400),
    "bracket after bracket": (Sent(query=b"a" + b"[]" * 8_000), 400),
    "escapes that are none": (Sent(query=b"%" * 16_000), 200),
    "a time of digits": (Sent(query=b"currentTime=" + b"1" * 16_000), 200),
    "a time of brackets": (Sent(query=b"currentTime=" + b"(" * 16_000), 200),
    "a time of blanks": (Sent(query=b"currentTime=2022" + b"+" * 16_000), 200),
    "an address of colons": (Sent(query=b"remoteAddress=" + b":" * 16_000), 200),
    "a number of digits": (posted(b'{"context":{"userId":' + b"7" * 100_000 + b"}}"), 400),
    "a number of 4000 digits": (posted(b'{"context":{"userId":' + b"7" * 4_000 + b"}}"), 200),
    "open lists": (posted(b"[" * 100_000), 400),
    "open texts": (posted(b'{"' * 50_000), 400),
    "closed lists": (posted(b"[" * 50_000 + b"]" * 50_000), 400),
    "escapes": (posted(b'{"context":{"userId":"' + b"\\ud800" * 16_000 + b'"}}'), 200),
    "as many names as fit": (posted(b'{"toggles":[' + b'"",' * 30_000 + b'""]}'), 200),
    **{f"a {name.decode()} of {len(value)} bytes": (Sent(headers=((name, value),)), 0) for name, value in HUGE},
}
"""Requests that are as large as they may be, or larger; 0: whatever the limit on headers makes of it."""
SECONDS, MEGABYTES = 1.0, 24.0


@pytest.mark.parametrize("name", list(COSTLY))
def test_no_request_costs_much(proxy: Fuzzed, name: str) -> None:
    """The largest accepted requests take little time, and no more memory than their limits explain."""
    sent, status = COSTLY[name]
    proxy.ask(proxy.keyed(sent))
    began = time.process_time()
    got = proxy.ask(proxy.keyed(sent))
    assert time.process_time() - began < SECONDS
    limited = got.status == 400 and b"must NOT have" in got.body
    assert limited or got.status in ({status} if status else {200, 431}), (got.status, got.body[:200])
    tracemalloc.start()
    proxy.ask(proxy.keyed(sent))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEGABYTES * 1_000_000


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in ("headers", "paths and methods", "whole requests")], ids=str)
def test_before_the_first_configuration(row: Row[Fuzzed]) -> None:
    """Without a configuration everything is 503, except OPTIONS, the first page, liveness and a head that is too large."""
    with unready() as proxy:
        run(row, proxy)
        assert proxy.ask(proxy.keyed(Sent())).status == 503
