"""The table of routes."""

from __future__ import annotations

from flagsvc.proxy.api.dialects import ROUTES
from flagsvc.proxy.api.route import Auth, Limit


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
        "/proxy/live.js",
        "/proxy/ready",
        "/proxy/internal-backstage/prometheus",
    }
