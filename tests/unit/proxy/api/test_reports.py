"""Bodies of the metrics and register posts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.http.messages import HttpError
from flagsvc.http.reports import (
    BULK,
    CLIENT_REGISTRATION,
    MAX_COUNT,
    REGISTRATION,
    ReportedMetrics,
    ReportedUsage,
    count_malformed,
    cut,
)
from flagsvc.proxy.api.client import read, read_metrics
from support.same_inputs import examples
from support.serving import attempt

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
NAMES = st.one_of(st.sampled_from(["yes", "no", "variants"]), st.text(max_size=3))
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=3)), max_leaves=6
)
START = "2026-01-01T00:00:00Z"
TIMES = {"start": START, "stop": START}
BOUNDED = settings(max_examples=examples(60), deadline=None)


def metrics(**toggles: object) -> dict[str, Any]:
    return {"appName": "a", "instanceId": "i", "bucket": {**TIMES, "toggles": toggles}}


@BOUNDED
@given(VALUES)
def test_any_count_is_in_bounds_or_left_out(value: object) -> None:
    """A whole number from 0 to the bound, or an entry that is counted as malformed."""
    counts, malformed = read_metrics(metrics(t={"yes": value}))
    assert len(counts) + malformed == 1
    assert all(type(usage.yes) is int and 0 <= usage.yes <= MAX_COUNT for usage in counts)


@BOUNDED
@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_any_entry_is_read_or_left_out(toggles: dict[str, object]) -> None:
    """An entry of any kind costs only itself."""
    counts, malformed = read_metrics(metrics(good={"yes": 1}, **toggles))
    assert ReportedUsage("good", 1, 0, {}) in counts or "good" in toggles
    assert len(counts) + malformed >= len(toggles | {"good": None})


@BOUNDED
@given(VALUES, VALUES, VALUES)
def test_any_registration_is_read_or_refused(interval: object, started: object, strategies: object) -> None:
    """For any value, the only error is HttpError."""
    body = {"appName": "a", "interval": interval, "started": started, "strategies": strategies}
    for shape in (REGISTRATION, CLIENT_REGISTRATION):
        found = attempt(read, shape, dict(body))
        assert isinstance(found, dict) or (isinstance(found, HttpError) and found.status == 400)


@pytest.mark.parametrize("bucket", [None, False, "", 0])
def test_a_report_may_have_no_bucket(bucket: object) -> None:
    """SDKs send null if they have only impact metrics."""
    assert read_metrics(metrics() | {"bucket": bucket}) == read_metrics({"appName": "a"}) == ReportedMetrics([], 0)


def test_a_bulk_report_loses_only_what_cannot_be_read() -> None:
    """Of applications and counts the entries that can be read stay, without the members that cannot."""
    applications = [None, {"appName": ""}, {"appName": "a", "interval": "x", "projects": ["p", ""], "sdkType": "other"}]
    counted = [{"featureName": "t"}, {"featureName": "t", "appName": "a", "yes": 2, "timestamp": "soon"}]
    body = read(BULK, {"applications": applications, "metrics": counted, "impactMetrics": 5})
    assert body["applications"][2] == {"appName": "a", "interval": None, "projects": ["p", None], "sdkType": None}
    assert body["metrics"][1]["yes"] == 2
    assert count_malformed(body["applications"]) == 2
    assert count_malformed(body["metrics"]) == 1


def test_names_that_can_be_stored() -> None:
    """A name is cut, and a NUL in it replaced: one database in front of many refuses it with all that is written beside it."""
    assert cut("x" * 300) == "x" * 255
    assert cut("a\0b") == "a\ufffdb"
