"""The limits of a context."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.engine.context import Context
from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import VALUE
from flagsvc.proxy.api.query import ContextLimits
from support.serving import attempt

BOUNDS = ContextLimits(3, 5, 10)
TEXTS = st.text(max_size=7)


def problem(context: Context) -> tuple[str, str, str]:
    """Return the pointer, the rule and the limit of the refusal of a context."""
    refused = attempt(BOUNDS.check, context, "/at", "/in")
    assert isinstance(refused, HttpError) and refused.status == 400
    [(pointer, rule)] = refused.problems
    return pointer, rule, refused.limit


@pytest.mark.parametrize("field", ["user_id", "session_id", "remote_address", "app_name", "environment"])
def test_every_standard_text_has_a_length(field: str) -> None:
    """One character over the limit is refused, with its wire name."""
    context = Context()
    setattr(context, field, "x" * 5)
    assert attempt(BOUNDS.check, context, "/at", "/in") is None
    setattr(context, field, "x" * 6)
    head, _, tail = field.partition("_")
    assert problem(context) == (f"/at/{head}{tail.title()}", "must NOT have more than 5 characters", VALUE)


@given(st.dictionaries(TEXTS, TEXTS, max_size=5), TEXTS)
def test_what_passes_is_within_bounds(properties: dict[str, str], user: str) -> None:
    """A context within the limits passes."""
    within = len(properties) <= 3 and all(len(text) <= 5 for text in (user, *properties, *properties.values()))
    found = attempt(BOUNDS.check, Context(user_id=user, properties=properties), "/at", "/in")
    assert (found is None) is within
