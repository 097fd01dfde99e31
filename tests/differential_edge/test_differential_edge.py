"""The comparison with Unleash Edge finds what it must find. It needs no Edge; the runs are in `tests/long`."""

from __future__ import annotations

import json

import edge_malformed
import pytest
from diff_pair import Reply
from diff_requests import Question
from edge_campaign import ROWS, Difference, explain
from edge_malformed import ODD, problem_of, row_of
from edge_reading import Outcome, as_ours
from edge_targeted import flag, limited

ON, OFF = (Outcome(is_on, "disabled", False, None, False) for is_on in (True, False))
REGION = limited("f", "region", "IN", "eu")
HOST = flag("f", {"name": "applicationHostname", "parameters": {"hostNames": "some-host"}})
PLAIN, TWICE = "userId=7&region=eu", "userId=7&region=us&properties[region]=eu"


@pytest.mark.parametrize(
    ("feature", "query", "edge", "ours", "rows", "problem"),
    [
        (REGION, TWICE, OFF, ON, ["properties win over plain fields"], ""),
        (REGION, TWICE, ON, OFF, [], "the same in this process says"),
        (REGION, PLAIN, OFF, ON, [], "with "),
        (REGION, PLAIN, ON, OFF, [], "the same in this process says"),
        (REGION, PLAIN, None, ON, [], "with "),
        (HOST, PLAIN, OFF, ON, ["a strategy knows the host"], ""),
        (HOST, PLAIN, ON._replace(impression=True), ON, [], "with "),
        (HOST, PLAIN, ON._replace(variant="a", has_variant=True), ON, [], "with "),
    ],
)
def test_a_difference_is_explained_or_not(
    feature: dict[str, object], query: str, edge: Outcome | None, ours: Outcome, rows: list[str], problem: str
) -> None:
    """Rows explain a difference only if ours says all that Edge says when it reads the document and the request as Edge does."""
    document = {"version": 2, "features": [feature]}
    found, told = explain(Difference("f", document, Question("GET", f"/all?{query}"), edge, ours))
    assert ([row.name for row in found], told[: len(problem)], not told) == (rows, problem, not problem)


TOGGLE = {"name": "f", "enabled": True, "impressionData": False, "impression_data": False}
BARE = {"name": "disabled", "enabled": False}
STATE = {"feature_enabled": True, "featureEnabled": True}


def test_the_form_of_toggles() -> None:
    """Edge's form becomes ours by two rows; each is counted only where it changes something."""
    assert as_ours(TOGGLE | {"variant": BARE | {"payload": None}})[0] == TOGGLE | {"variant": BARE | STATE}
    assert as_ours(TOGGLE | {"variant": BARE | STATE}) == (TOGGLE | {"variant": BARE | STATE}, [])
    told = {"type": "string", "value": ""}
    assert as_ours(TOGGLE | {"variant": BARE | {"payload": told}})[0]["variant"] == BARE | {"payload": told} | STATE


def reply(status: int, *names: str) -> Reply:
    return Reply(status, json.dumps({"toggles": [{"name": each, "enabled": True} for each in names]}).encode())


@pytest.mark.parametrize(
    ("request_", "edge", "ours", "is_found"),
    [
        ("userId=7", reply(200, "a"), reply(200, "a"), False),
        ("userId=7", reply(200, "a"), reply(200), True),
        ("userId=7", reply(200), reply(400), True),
        ("userId[]=7", reply(200, "a"), reply(200), False),
        ("userId[]=7", reply(200, "a"), reply(200, "a"), True),
        ("&&&", reply(400), reply(200), False),
        ("&&&", reply(200), reply(200), True),
    ],
)
def test_malformed_requests(request_: str, edge: Reply, ours: Reply, *, is_found: bool) -> None:
    """A request without a row has the same status and the same reading, one with a row has what the row says."""
    assert bool(problem_of(row_of(request_), Question("GET", f"?{request_}"), (edge, ours))) is is_found


def test_each_row_is_unique() -> None:
    """A request stands in one row, and names of rows are unique."""
    requests = [each for row in ODD for each in row.requests]
    assert len(requests) == len(set(requests))
    assert set(requests) <= {request for request, _ in edge_malformed.questions()}
    for names in ([name for name, *_ in ROWS], [row.name for row in ODD]):
        assert len(names) == len(set(names))
