"""A row of the routes."""

from __future__ import annotations

import pytest

from flagsvc.proxy.api.route import Condition, ProxyRoute
from flagsvc.proxy.api.settings import ServiceSettings

SETTINGS = ServiceSettings(client_keys=("k",))


@pytest.mark.parametrize(
    ("status", "field", "on", "known"),
    [
        (404, "enable_oas", False, False),
        (501, "enable_oas", False, True),
        (404, "without_admin_address", True, True),
        (501, "without_admin_address", True, True),
    ],
)
def test_a_route_that_is_switched_off(status: int, field: str, on: bool, known: bool) -> None:
    """It is as unknown as any other path, or it is known and says how to switch it on."""
    row = ProxyRoute(path="/a", handler="a", summary="a", condition=Condition(field, status, "hint"))
    assert (row.on(SETTINGS), row.is_known(SETTINGS)) == (on, known)


def test_a_route_without_a_condition_is_on() -> None:
    """Only a condition switches a route off."""
    row = ProxyRoute(path="/a", handler="a", summary="a")
    assert row.on(SETTINGS)
    assert row.is_known(SETTINGS)
