"""The load generator: its requests, its accepted answers, its counts and times."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import load, prepared
from harness.load import BenchError, Plan
from harness.servers import FAMILY
from support.bench_scene import PLAIN, Loopback, fire, generator, loopback

COUNT = Plan(count=40, connections=4, warm=0.0)


def requests_file(folder: Path, *classes: int) -> Path:
    """Write a request for each class; its path is its place."""
    path = folder / "requests"
    path.write_bytes(
        b"".join(prepared.records((kind, b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % at) for at, kind in enumerate(classes)))
    )
    return path


@pytest.fixture
def plain() -> Iterator[Loopback]:
    """A server with one answer for everything."""
    with loopback(lambda request: PLAIN) as server:
        yield server


def paths(server: Loopback) -> list[list[str]]:
    """Return the paths that each connection asked for."""
    return [[request.split()[1].decode() for request in each] for each in server.seen]


def test_a_second_server_has_half_of_the_connections(plain: Loopback, tmp_path: Path) -> None:
    """Every other connection goes to it, the requests of both are counted, and the CPU of both processes is."""
    with loopback(lambda request: PLAIN) as other:
        file, mine = requests_file(tmp_path, *[0] * 8), (other.port, os.getpid())
        shot = load.run_load(generator(), plain.port, os.getpid(), file, COUNT, frozenset({200}), mine)
        alone = fire(plain, file, COUNT)
    assert shot.requests == 40
    assert (len(plain.seen), len(other.seen)) == (2 + 4, 2)
    assert len(other.requests) + len(plain.requests) == 80
    assert other.requests
    assert shot.used > 0 and alone.used > 0


def test_every_request_is_counted_and_each_connection_has_a_place_of_its_own(plain: Loopback, tmp_path: Path) -> None:
    """The requested number is sent and counted. Connections start at different places of the file and wrap around."""
    shot = fire(plain, requests_file(tmp_path, *[0] * 8), COUNT)
    assert shot.requests == 40
    assert shot.statuses == {"200": 40}
    assert shot.bytes == 40 * len(PLAIN)
    assert shot.prepared == 8
    assert len(plain.requests) == 40
    assert {each[0] for each in paths(plain)} == {"/0", "/2", "/4", "/6"}
    for each in paths(plain):
        places = [int(path[1:]) for path in each]
        assert places == [(places[0] + at) % 8 for at in range(len(places))]


CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
    b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\n"
)


@pytest.mark.parametrize(
    ("answer", "encoded", "more"),
    [
        (PLAIN, 0, {}),
        (CHUNKED, 1, {}),
        (CHUNKED, 1, {"piece": 1}),
        (b"HTTP/1.1 200 OK\r\ncontent-length:  0\r\nconnection: close\r\n\r\n", 0, {}),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, {}),
    ],
)
def test_whole_answers(tmp_path: Path, answer: bytes, encoded: int, more: dict[str, int]) -> None:
    """Sized, chunked with extensions and trailers, empty, and closing answers are each one answer, also byte by byte."""
    with loopback(lambda request: answer, **more) as server:
        shot = fire(server, requests_file(tmp_path, 0, 0), Plan(count=12, connections=2, warm=0.0))
    assert (shot.requests, shot.encoded) == (12, 12 * encoded)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 abc\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        PLAIN + b"more",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000,
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_broken_answers_are_no_measurement(tmp_path: Path, answer: bytes) -> None:
    """An answer that is cut off, without a length, followed by other bytes, or of another status fails the run."""
    with loopback(lambda request: answer) as server, pytest.raises(BenchError, match=r"broken|closed|'503': 3"):
        fire(server, requests_file(tmp_path, 0), Plan(count=3, connections=1, warm=0.0))


def test_a_server_may_close_what_is_idle(tmp_path: Path) -> None:
    """If the server closes a connection that a slow rate leaves idle, it is opened again, which is no failure."""
    with loopback(lambda request: PLAIN, idle=1.0) as server:
        plan = Plan(seconds=3.0, connections=4, warm=0.0, rate=50)
        shot = fire(server, requests_file(tmp_path, 0), plan)
    assert shot.statuses == {"200": shot.requests}
    assert len(server.seen) > 4


def tagged(request: bytes) -> bytes:
    """Answer with a tag for each path, except /1, and with 304 if the tag comes back."""
    path = request.split()[1]
    if b'If-None-Match: "t%b"' % path in request:
        return b'HTTP/1.1 304 Not Modified\r\nETag: "t%b"\r\n\r\n' % path
    tag = b"" if path == b"/1" else b'ETag: "t%b"\r\n' % path
    return b"HTTP/1.1 200 OK\r\n%bContent-Length: 2\r\n\r\n{}" % tag


def test_tags_are_learnt_and_sent_back(tmp_path: Path) -> None:
    """Each request gets the tag of its own answer; one without a tag is left out; learning is not counted."""
    with loopback(tagged) as server:
        shot = fire(server, requests_file(tmp_path, 0, 0, 0), Plan(count=20, connections=2, warm=0.0, learn=5.0), 304)
    assert shot.prepared == 2
    assert shot.statuses == {"304": 20}
    assert len(server.requests) == 23


@pytest.mark.parametrize("form", [prepared.LIST, prepared.POST_LIST])
def test_fresh_users(plain: Loopback, tmp_path: Path, form: prepared.Form) -> None:
    """Every request gets the next number, in a query as in a body, and nothing else of it changes."""
    file = prepared.write(tmp_path / "requests", form, FAMILY, "identity", 1, [])
    fire(plain, file, Plan(count=5, connections=1, warm=0.0, fresh=41))
    numbers = re.findall(rb'userId(?:=|":")(\d+)', b"".join(plain.requests))
    seen = 5 if form is prepared.LIST else 4  # the server here reads a body as the beginning of the next request
    assert numbers == [b"%d" % (1_000_041 + at) for at in range(seen)]


def test_classes_have_latencies_of_their_own(plain: Loopback, tmp_path: Path) -> None:
    """In mixed traffic each class is counted separately."""
    shot = fire(plain, requests_file(tmp_path, 0, 0, 1, 2), Plan(count=40, connections=1, warm=0.0))
    assert {name: each["count"] for name, each in shot.latency.items()} == {"0": 20, "1": 10, "2": 10}


def test_a_rate_is_kept_and_a_stall_is_charged_to_all_that_were_due(tmp_path: Path) -> None:
    """At 200 a second over one connection, an answer held back until 40 more are due makes at least 30 of them late."""
    gate = Gate(0.2)
    with loopback(gate) as server:
        shot = fire(server, requests_file(tmp_path, 0), Plan(seconds=0.5, connections=1, warm=0.0, rate=200))
    assert shot.requests == 100
    assert shot.latency["0"]["100"] >= 200_000
    assert shot.latency["0"]["90"] >= 100_000
    assert shot.seconds >= 0.49


class Gate:
    """Answers at once, but holds the tenth answer back for some seconds."""

    def __init__(self, seconds: float) -> None:
        self.asked = 0
        self.seconds = seconds

    def __call__(self, request: bytes) -> bytes:
        """Return the answer; every tenth one is late."""
        self.asked += 1
        if self.asked == 10:
            threading.Event().wait(self.seconds)
        return PLAIN


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no requests"),
        (b"0 100\nshort", "is cut off"),
        (b"9 1\nx", "malformed"),
        (b"0 1\nx" + b"rest", "something else"),
    ],
)
def test_malformed_files_are_refused(plain: Loopback, tmp_path: Path, content: bytes, told: str) -> None:
    """A malformed file of requests is an error, and nothing is sent."""
    path = tmp_path / "requests"
    path.write_bytes(content)
    with pytest.raises(BenchError, match=told):
        fire(plain, path, COUNT)
    assert plain.requests == []
