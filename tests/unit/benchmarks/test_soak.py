"""The long run: its line through the memory, what strangers send, the upstream that fails by turns, its verdict and page.

Prepared requests: another user each, whole requests, the mixture that is promised.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import documents
import soak
from harness import hostile, prepared
from harness.flapping import SERVED, Flapping, used
from harness.prepared import Form
from harness.servers import FAMILY
from harness.trend import trend
from support.aio import until
from support.loopback import Request


def test_a_line_through_points() -> None:
    """The slope and its error equal the text-book's. Too few points, or points of one moment, have no slope."""
    straight = trend([(float(x), 3.0 + 2 * x) for x in range(10)])
    assert (straight.slope, straight.error) == (pytest.approx(2), pytest.approx(0))  # type: ignore[comparison-overlap]
    scattered = trend([(0, 1), (1, 3), (2, 2), (3, 5), (4, 4)])
    assert (scattered.slope, scattered.error) == (pytest.approx(0.8), pytest.approx(0.34641, rel=1e-4))  # type: ignore[comparison-overlap]
    assert [trend(points).slope for points in ([], [(0, 1)], [(0, 1), (1, 9)], [(1, 1), (1, 5), (1, 9)])] == [0.0] * 4


def divided(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Give class and bytes of each request that a file holds."""
    while content:
        line, _, content = content.partition(b"\n")
        kind, length = map(int, line.split())
        yield kind, content[:length]
        content = content[length:]


def test_strangers_send_whole_requests(tmp_path: Path) -> None:
    """Each request has a head with one line for each header, and a body of its length. Most requests differ."""
    found = [each for _, each in divided(hostile.write(tmp_path / "bad", FAMILY, 400).read_bytes())]
    assert len(found) == 400
    assert len(set(found)) > 300
    for each in found:
        head, end, body = each.partition(b"\r\n\r\n")
        assert end and head.isascii() and b"\n" not in head.replace(b"\r\n", b"")
        assert b"\r\n" not in head or (f"Content-Length: {len(body)}".encode() in head) == bool(body)


def request(method: str, path: str, body: bytes = b"") -> Request:
    """Return a request to the upstream."""
    return Request(method, path, {}, body)


def test_usage_is_added_up() -> None:
    """Every yes and no of a metrics post counts; other requests do not."""
    toggles = {"a": {"yes": 2, "no": 1, "variants": {}}, "b": {"yes": 0, "no": 4, "variants": {}}}
    body = json.dumps({"bucket": {"toggles": toggles}}).encode()
    assert used(request("POST", "/api/client/metrics", body)) == 7
    assert used(request("POST", "/api/client/register", body)) == 0


async def test_it_fails_and_works_by_turns() -> None:
    """Every fault gets its turn before one comes again, with another document between two; and it is calm when told to be."""
    flapping = Flapping(10)
    assert flapping.fault is None
    flapping.control(request("POST", "/flap/0.001"))
    seen: list[Any] = []
    for _ in range(3):
        await until(lambda: flapping.fault is not None and flapping.fault not in seen)
        seen.append(flapping.fault)
    await until(lambda: flapping.version > 3)
    assert b"304" in flapping.usual(Request("GET", "/api/client/features", {"if-none-match": tag(flapping)}, b""))[:20]
    flapping.control(request("POST", "/flap/0"))
    await asyncio.sleep(0)
    assert flapping.fault is None
    assert b'"usage": 0' in flapping.control(request("GET", "/seen"))
    assert sorted(map(repr, (each for _, each in zip(SERVED, flapping.shuffled(), strict=False)))) == sorted(map(repr, SERVED))


def tag(flapping: Flapping) -> str:
    """Return the entity tag of the served configuration."""
    head = flapping.usual(request("GET", "/api/client/features")).partition(b"\r\n\r\n")[0].decode()
    return next(line.split(": ", 1)[1] for line in head.split("\r\n") if line.lower().startswith("etag"))


def figures(**more: object) -> soak.Figures:
    """Return the figures of a run of an hour in which all went well."""
    about = {"date": "today", "commit": "abc", "versions": {"flagsvc": "1"}, "machine": {"processor": "p", "cores": 2}}
    memory = [(float(second), 40.0 + second % 3) for second in range(3600)]
    return soak.Figures(about, 60.0, 350, 3.0, samples=(100, 101), memory=memory, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("taken", [4, 6])
def test_the_verdict(taken: int) -> None:
    """Constant memory, constant labels and usage that arrives once are good. Each deviation is reported."""
    good = figures(usage_told=5, usage_taken=5)
    soak.judge(good)
    assert good.failed == [] and "| Failed | nothing |" in soak.page(good)
    bad = figures(usage_told=5, usage_taken=taken)
    bad.memory = [(at, rss + at / 600) for at, rss in bad.memory]
    bad.samples = (100, 400)
    soak.judge(bad)
    assert [line.split()[0] for line in bad.failed] == ["memory", "the", "of"]
    assert "+6.0" in soak.page(bad)


def test_where_the_page_goes() -> None:
    """Only a whole run is published."""
    assert soak.arguments(["--minutes", "30"]).output == soak.ROOT / "docs" / "benchmarks"
    assert soak.arguments(["--minutes", "1"]).output == soak.ROOT / ".cache" / "bench"


NAMES = [feature["name"] for feature in documents.document(350)["features"]]


def requests(form: Form, folder: Path, users: int = 200) -> list[tuple[int, bytes, bytes]]:
    """Return class, head and body of the requests that a form's file holds."""
    content = prepared.write(folder / "file", form, FAMILY, "gzip", users, NAMES).read_bytes()
    parts = ((kind, each.partition(b"\r\n\r\n")) for kind, each in divided(content))
    return [(kind, head, body) for kind, (head, _, body) in parts]


@pytest.mark.parametrize("form", [prepared.LIST, prepared.ALL, prepared.POST_LIST, prepared.POST_NAMED, prepared.BROWSERS])
def test_each_is_another_user(form: Form, tmp_path: Path) -> None:
    """No two requests are equal, and each has the length of its body."""
    found = requests(form, tmp_path)
    assert len({head + body for _, head, body in found}) == 200
    for _, head, body in found:
        assert (f"Content-Length: {len(body)}".encode() in head) == bool(body)


def test_a_browser_sends_seventeen_headers(tmp_path: Path) -> None:
    """The performance promises assume these headers."""
    assert all(head.count(b"\r\n") == 17 for _, head, _ in requests(prepared.BROWSERS, tmp_path))


def test_the_mixture(tmp_path: Path) -> None:
    """Of 100 requests 5 are metrics and one is a health check, at any starting point."""
    kinds = [kind for kind, _, _ in requests(prepared.MIXED, tmp_path, 400)]
    for at in range(300):
        assert Counter(kinds[at : at + 100]) == {prepared.EVALUATION: 94, prepared.METRICS: 5, prepared.HEALTH: 1}


def test_names_are_spread_over_the_document(tmp_path: Path) -> None:
    """There are twenty names, or all if there are fewer."""
    ((_, _, body), *_) = requests(prepared.POST_NAMED, tmp_path, 1)
    named = json.loads(body)["toggles"]
    assert len(set(named)) == 20
    assert set(named) <= set(NAMES)
    assert prepared.spread(NAMES[:10]) == NAMES[:10]


def test_query_and_body_say_the_same() -> None:
    """A user has the same context in either, and the fast way to write a query gives the same text as the usual one."""
    assert prepared.wire_context(7)["properties"]["plan"] == documents.context(7)["properties[plan]"]
    assert "properties[plan]=" in prepared.query(7)
    for at in range(200):
        assert prepared.query(at) == urlencode(prepared.flat(at), safe="[]")
