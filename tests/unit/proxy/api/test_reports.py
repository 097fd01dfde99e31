"""Bodies of the metrics and register posts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.http.messages import Refused
from flagsvc.proxy.api.reports import MAX_COUNT, is_date, read_count, read_metrics, read_registration
from support.serving import attempt

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
NAMES = st.one_of(st.sampled_from(["yes", "no", "variants"]), st.text(max_size=3))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
TIMES = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:00:00Z"}
BOUNDED = settings(max_examples=60, deadline=None)


@BOUNDED
@given(VALUES)
def test_any_count_is_in_bounds_or_refused(value: object) -> None:
    """A whole number from 0 to the bound, or a 400."""
    found = attempt(read_count, "/body", "yes", value)
    if isinstance(found, Refused):
        assert found.problems[0][0] == "/body/yes"
    else:
        assert type(found) is int
        assert 0 <= found <= MAX_COUNT


@BOUNDED
@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_any_report_is_read_or_refused(toggles: dict[str, object]) -> None:
    """Nothing but Refused is raised."""
    found = attempt(read_metrics, {"appName": "a", "instanceId": "i", "bucket": {**TIMES, "toggles": toggles}})
    if isinstance(found, Refused):
        assert found.status == 400
    else:
        assert isinstance(found, list)
        assert [usage.name for usage in found] == list(toggles)


@BOUNDED
@given(VALUES, VALUES, VALUES)
def test_any_registration_is_read_or_refused(interval: object, started: object, strategies: object) -> None:
    """Nothing but Refused is raised."""
    body = {"appName": "a", "interval": interval, "started": started, "strategies": strategies}
    found = attempt(read_registration, body)
    assert found is None or (isinstance(found, Refused) and found.status == 400)


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00Z", "2026-01-01T24:30:00Z", "2026-01-01T00:00:00+99:00"])
def test_dates_that_do_not_exist(text: str) -> None:
    """The calendar counts, not only the form."""
    with pytest.raises(Refused):
        is_date("/body", "start", text)
