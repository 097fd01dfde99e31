"""Bodies of the metrics and register posts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.reports import (
    MAX_COUNT,
    ReportedUsage,
    is_date,
    is_number,
    is_start,
    read_metrics,
    read_registration,
)
from support.serving import attempt

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
NAMES = st.one_of(st.sampled_from(["yes", "no", "variants"]), st.text(max_size=3))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
START = "2026-01-01T00:00:00Z"
TIMES = {"start": START, "stop": START}
BOUNDED = settings(max_examples=60, deadline=None)
REGISTRATION = {"appName": "a", "interval": 5, "started": START, "strategies": []}


def metrics(**toggles: object) -> dict[str, Any]:
    """Return a report of these toggles."""
    return {"appName": "a", "instanceId": "i", "bucket": {**TIMES, "toggles": toggles}}


@BOUNDED
@given(VALUES)
def test_any_count_is_in_bounds_or_refused(value: object) -> None:
    """A whole number from 0 to the bound, or a 400."""
    found = attempt(read_metrics, metrics(t={"yes": value}))
    if isinstance(found, HttpError):
        assert found.problems[0][0] == "/body/bucket/toggles/t/yes"
        return
    assert isinstance(found, list)
    (usage,) = found
    assert type(usage.yes) is int
    assert 0 <= usage.yes <= MAX_COUNT


@BOUNDED
@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_any_report_is_read_or_refused(toggles: dict[str, object]) -> None:
    """For any value, the only error is HttpError."""
    found = attempt(read_metrics, metrics(**toggles))
    if isinstance(found, HttpError):
        assert found.status == 400
    else:
        assert isinstance(found, list)
        assert [usage.name for usage in found] == list(toggles)


@BOUNDED
@given(VALUES, VALUES, VALUES)
def test_any_registration_is_read_or_refused(interval: object, started: object, strategies: object) -> None:
    """For any value, the only error is HttpError."""
    body = {"appName": "a", "interval": interval, "started": started, "strategies": strategies}
    found = attempt(read_registration, body)
    assert found is None or (isinstance(found, HttpError) and found.status == 400)


def test_what_is_counted() -> None:
    """Texts of digits and whole numbers with a fraction are numbers. Null and missing numbers are 0."""
    report = metrics(t={"yes": "7", "no": 3.0, "variants": {"blue": True, "red": None}}, u={"yes": None})
    assert read_metrics(report) == [ReportedUsage("t", 7, 3, {"blue": 1, "red": 0}), ReportedUsage("u", 0, 0, {})]


REFUSED: list[tuple[Any, str, str]] = [
    ([], "/body", "must be object"),
    ({}, "/body", "must have required property 'appName'"),
    ({**metrics(), "appName": [], "instanceId": []}, "/body/appName", "must be string"),
    ({**metrics(), "bucket": None}, "/body/bucket", "must be object"),
    ({**metrics(), "bucket": {}}, "/body/bucket", "must have required property 'start'"),
    ({**metrics(), "bucket": {**TIMES, "toggles": []}}, "/body/bucket/toggles", "must be object"),
    (
        {**metrics(), "bucket": {**TIMES, "stop": 5, "toggles": {}}},
        "/body/bucket/stop",
        'must match format "date-time"',
    ),
    (metrics(t=None), "/body/bucket/toggles/t", "must be object"),
    (metrics(t={"yes": -1, "variants": []}), "/body/bucket/toggles/t/variants", "must be object"),
    (
        metrics(t={"yes": -1, "variants": {"a": -1}}),
        "/body/bucket/toggles/t/yes",
        "must be an integer from 0 to 1000000000",
    ),
    (metrics(**{"b": {"no": 1.5}, "7": None}), "/body/bucket/toggles/b/no", "must be an integer from 0 to 1000000000"),
    (
        metrics(**{"a/~": {"variants": {"b/": "99999999999"}}}),
        "/body/bucket/toggles/a~1~0/variants/b~1",
        "must be an integer from 0 to 1000000000",
    ),
]


@pytest.mark.parametrize(("body", "pointer", "rule"), REFUSED)
def test_the_first_problem_of_a_report_is_told(body: Any, pointer: str, rule: str) -> None:
    """Missing properties are reported first, in the order of the rows; then toggles, in the order of the report."""
    with pytest.raises(HttpError) as caught:
        read_metrics(body)
    assert (caught.value.status, caught.value.problems) == (400, [(pointer, rule)])


@pytest.mark.parametrize(
    ("change", "pointer", "rule"),
    [
        ({"instanceId": {}, "interval": "x"}, "/body/interval", "must be number"),
        ({"instanceId": {}}, "/body/instanceId", "must be string"),
        ({"started": "soon"}, "/body/started", 'must match format "date-time"'),
        ({"started": True}, "/body/started", 'must match format "date-time"'),
        ({"strategies": "a"}, "/body/strategies", "must be array"),
        ({"strategies": ["a", {}]}, "/body/strategies/1", "must be string"),
    ],
)
def test_the_first_problem_of_a_registration_is_told(change: dict[str, Any], pointer: str, rule: str) -> None:
    """Required properties are checked first."""
    with pytest.raises(HttpError) as caught:
        read_registration(REGISTRATION | change)
    assert caught.value.problems == [(pointer, rule)]


def test_what_is_not_looked_at() -> None:
    """The environment of a report and the version of an SDK may be anything, and so may further properties."""
    read_registration({**REGISTRATION, "sdkVersion": [], "more": {}})
    assert read_metrics({**metrics(), "environment": [], "more": {}}) == []


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00Z", "2026-01-01T24:30:00Z", "2026-01-01T00:00:00+99:00", "soon"])
def test_dates_that_do_not_exist(text: str) -> None:
    """The calendar counts, not only the form."""
    assert not is_date(text) and not is_start(text)


@pytest.mark.parametrize(
    ("value", "expected"), [(None, True), (1.5, True), ("12", True), ("1.5", False), (True, False)]
)
def test_numbers(value: object, expected: bool) -> None:
    """A number, null, or a text of digits."""
    assert is_number(value) is expected
