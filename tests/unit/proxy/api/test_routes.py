"""The table of routes.

A row of the routes.
"""

from __future__ import annotations

import pytest

from flagsvc.proxy.api.dialects import ROUTES
from flagsvc.proxy.api.route import Auth, Condition, Limit, ProxyRoute
from flagsvc.proxy.api.settings import ServiceSettings

SETTINGS = ServiceSettings(client_keys=("k",))


def test_a_method_of_a_path_is_one_row() -> None:
    """No row hides another."""
    places = [(row.path, row.method) for row in ROUTES]
    assert len(places) == len(set(places))


def test_a_row_that_reads_a_body_has_a_limit() -> None:
    """Only a row with a body has a limit."""
    assert all(bool(row.body) == (row.limit is not Limit.NONE) == (row.method == "POST") for row in ROUTES)


def test_everything_under_proxy_that_answers_with_flags_needs_a_key() -> None:
    """Health, liveness, metrics and documentation are open, the rest is not."""
    assert {row.path for row in ROUTES if row.auth is Auth.NONE and row.path.startswith("/proxy")} == {
        "/proxy/health",
        "/proxy/live",
        "/proxy/ready",
        "/proxy/internal-backstage/prometheus",
    }


def test_what_is_at_the_root() -> None:
    """Probes are at the root with any base path, those of Edge also below it. All other routes are below the base path."""
    assert {row.place("/base") for row in ROUTES if not row.place("/base").startswith("/base/")} == {
        "/livez",
        "/readyz",
        "/internal-backstage/health",
        "/internal-backstage/ready",
    }
    assert all(row.always and row.auth is Auth.NONE for row in ROUTES if row.rooted)
    several = {row.path: row.places("/base") for row in ROUTES if row.places("/base") != (row.place("/base"),)}
    probes = [f"/internal-backstage/{name}" for name in ("health", "ready")]
    assert several == {"/": ("", "/base"), **{path: (path, f"/base{path}") for path in probes}}, "at both"
    assert {row.places("") for row in ROUTES if row.path == "/"} == {("",)}


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
