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
