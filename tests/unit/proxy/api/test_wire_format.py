"""The wire format of `/proxy`."""

from __future__ import annotations

import json

import pytest

from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.query import ContextLimits
from flagsvc.proxy.api.wire_format import WireFormat

BOUNDS = ContextLimits(properties=2, value=5, toggles=2)


def test_the_body_of_an_error() -> None:
    """An error is a message, with its problems if there are some; some statuses have a text instead."""
    problems = [("/body/a", "must be string")]
    form = WireFormat(text_statuses=(401,))
    assert json.loads(form.error_body(HttpError(400, "no", problems), "authorization")) == {
        "error": "no",
        "validation": [{"instancePath": "/body/a", "message": "must be string"}],
    }
    assert json.loads(form.error_body(HttpError(404, "no", []), "authorization")) == {"error": "no"}
    assert form.error_body(HttpError(401, "no", []), "authorization") == b"no"


@pytest.mark.parametrize("query", [b"userId=123456", b"a=1&b=2&c=3", b"abcdef=1"])
def test_a_query_beyond_the_bounds_is_refused(query: bytes) -> None:
    """Values, names and the number of properties have limits."""
    with pytest.raises(HttpError) as refused:
        WireFormat().read_query(query, BOUNDS)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "body",
    [{"context": {"userId": "123456"}}, {"context": {"a": "1", "b": "2", "c": "3"}}, {"toggles": ["a", "b", "c"]}],
)
def test_a_body_beyond_the_bounds_is_refused(body: object) -> None:
    """Values, properties and toggles have limits."""
    with pytest.raises(HttpError) as refused:
        WireFormat().read_body(body, BOUNDS)
    assert refused.value.status == 400
