"""A call of the flag server's API."""

from __future__ import annotations

import pytest

from flagsvc.server.api.call import ANONYMOUS, ApiCall


def test_a_caller_that_a_route_did_not_ask_for() -> None:
    """A handler that reads the caller of another kind of route is a mistake of ours, which says so."""
    call = object.__new__(ApiCall)
    call.caller = ANONYMOUS
    call.query = {}
    with pytest.raises(LookupError, match=r"Auth\.ADMIN"):
        _ = call.actor
    with pytest.raises(LookupError, match=r"Auth\.CLIENT"):
        _ = call.token
    assert call.first_value("x") is None
