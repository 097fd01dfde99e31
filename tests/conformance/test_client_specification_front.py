"""The suites of `@unleash/client-specification` again, the whole way that a caller's bytes go.

A connection of the front, checks, context, entity tag and cache stand between the case and the engine: the answer must be the same
the first time, from the cache, in the list of all toggles, and for whoever asks only whether something is new.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
import test_client_specification as specification

from flagsvc.http.etag import etag
from flagsvc.proxy.configuration import ConfigurationDocument
from support import needs
from support.aio import asynchronous
from support.frontkit import KEYED, ConnectionWithTransport, dial, get, head, parse_answers, serving

ASKED = 4
"""How often a look-up is asked: it is evaluated, kept the second time, and given from the cache from then on."""


def context_of(content: dict[str, Any]) -> dict[str, Any]:
    """Return a context of the data as a caller sends it; a property that is null is absent there, and empty on the wire."""
    properties = {name: value for name, value in content.get("properties", {}).items() if value is not None}
    return {**content, "properties": properties}


def query_of(context: dict[str, Any]) -> str:
    """Return the same context as a query string."""
    fields = {name: value for name, value in context.items() if name != "properties"}
    return urlencode(fields | {f"properties[{name}]": value for name, value in context["properties"].items()})


def answer(line: ConnectionWithTransport, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return the answer to one request on a connection that stays open."""
    line.transport.data.clear()
    line.send(request)
    [(status, fields, body)] = parse_answers(bytes(line.transport.data), [request.partition(b" ")[0].decode()])
    return status, dict(fields), body


def looked_up(line: ConnectionWithTransport, context: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a toggle from each of several look-ups by name; whole answers are equal unless they are random."""
    body = json.dumps({"context": context, "toggles": [name]}).encode()
    request = head("POST /proxy HTTP/1.1", KEYED, f"Content-Length: {len(body)}") + body
    answers = [answer(line, request) for _ in range(ASKED)]
    assert {status for status, _, _ in answers} == {200}
    if not by_chance(*answers[0][1:]):
        assert len({body for _, _, body in answers}) == 1
    return [toggle for _, _, body in answers for toggle in json.loads(body)["toggles"]]


def by_chance(fields: dict[str, str], body: bytes) -> bool:
    """Return whether an answer is random, as with a session drawn for a caller without one: its tag is its body's."""
    return fields["etag"].encode() == etag(body)


def listed(line: ConnectionWithTransport, context: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return a toggle of the list of all, and check that a caller with the list gets a 304.

    Returns None if the list depends on a random draw.
    """
    target = f"/proxy/all?{query_of(context)}"
    status, fields, body = answer(line, get(target))
    assert status == 200
    if by_chance(fields, body):
        return None
    assert answer(line, get(target, f"If-None-Match: {fields['etag']}"))[::2] == (304, b"")
    return next((toggle for toggle in json.loads(body)["toggles"] if toggle["name"] == name), None)


def verdict(case: specification.Case, toggle: dict[str, Any]) -> object:
    """Return what a case is about: whether the toggle is on, or its variant."""
    return toggle["enabled"] if case.kind == "tests" else specification.shape(toggle["variant"])


@pytest.mark.parametrize("case", specification.cases())
@asynchronous
async def test_case_on_the_wire(case: specification.Case | None) -> None:
    """By name and in the list of all, evaluated, cached and not modified, the toggle is the one that the specification expects."""
    if case is None:
        needs.missing(str(specification.suites()))
    given = serving()
    given.holder.replace(specification.snapshot(case.suite), ConfigurationDocument(b"{}", '"v1"'), 0)
    line = dial(given)
    context, name = context_of(case.content["context"]), case.content["toggleName"]
    expected = case.content["expectedResult"]
    wanted = expected if case.kind == "tests" else specification.shape(expected)
    told = (case.content["description"], context)
    assert [verdict(case, toggle) for toggle in looked_up(line, context, name)] == [wanted] * ASKED, told
    toggle = listed(line, context, name)
    assert toggle is None or verdict(case, toggle) == wanted, told
    line.lose()
