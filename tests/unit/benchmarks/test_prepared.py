"""Prepared requests: another user each, whole requests, the mixture that is promised."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from urllib.parse import urlencode

import pytest

import documents
from harness import prepared
from harness.prepared import Form
from harness.servers import EDGE, FAMILY, MOUNTED

NAMES = [feature["name"] for feature in documents.document(350)["features"]]


def requests(form: Form, folder: Path, users: int = 200) -> list[tuple[int, bytes, bytes]]:
    """Return class, head and body of the requests that a form's file holds."""
    content = prepared.write(folder / "file", form, FAMILY, "gzip", users, NAMES).read_bytes()
    found = []
    while content:
        line, _, content = content.partition(b"\n")
        kind, length = map(int, line.split())
        head, _, body = content[:length].partition(b"\r\n\r\n")
        found.append((kind, head, body))
        content = content[length:]
    return found


@pytest.mark.parametrize(
    "form", [prepared.LIST, prepared.ALL, prepared.POST_LIST, prepared.POST_NAMED, prepared.BROWSERS]
)
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
    """A user has the same context in either."""
    assert prepared.wire_context(7)["properties"]["plan"] == documents.context(7)["properties[plan]"]
    assert "properties[plan]=" in prepared.query(7)


def test_what_a_server_does_not_have_is_not_asked() -> None:
    """Edge has no request for several flags by name."""
    assert not prepared.POST_NAMED.needs(EDGE)
    assert prepared.ALL.needs(EDGE)
    assert prepared.POST_NAMED.needs(FAMILY)
    assert MOUNTED.enabled == "/flags/proxy"


def test_a_query_needs_no_quoting() -> None:
    """The fast way to write a query gives the same text as the usual one."""
    for at in range(200):
        assert prepared.query(at) == urlencode(prepared.flat(at), safe="[]")
