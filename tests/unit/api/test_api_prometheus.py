"""Samples in Prometheus text format."""

from __future__ import annotations

import pytest
from serving import Serving

from flagsvc.api.prometheus import COUNTED, KEPT, SERVED, SPECIFIED, Sample, written


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0"), (1700000000123.0, "1700000000123"), (1700000000123.9, "1700000000123")]
)
def test_a_sample_is_three_lines(value: float, shown: str) -> None:
    """Help, type, value; milliseconds are whole, as the reference writes them."""
    sample = Sample("name", "gauge", "What it is.", lambda _: 0)
    assert written(sample, value) == ["# HELP name What it is.", "# TYPE name gauge", f"name {shown}"]


def test_the_specifications_names() -> None:
    """Exactly three and the alias."""
    assert [sample.name for sample in SPECIFIED] == [
        "last_metrics_update_epoch_timestamp_ms",
        "last_metrics_fetch_epoch_timestamp_ms",
        "flagsvc_proxy_up",
        "unleash_proxy_up",
    ]


def test_the_age_before_the_first_check() -> None:
    """There is none: NaN, not the time since 1970."""
    body = Serving().ask(b"GET", b"/proxy/internal-backstage/prometheus").body
    assert b"\nflagsvc_config_age_seconds NaN\n" in body


def test_two_services_share_no_numbers() -> None:
    """Each has a registry of its own."""
    first, second = Serving(), Serving()
    first.ask(b"GET", b"/proxy")
    assert b'route="/proxy",status="200"' not in second.ask(b"GET", b"/proxy/internal-backstage/prometheus").body


def test_rows_have_names_of_their_own() -> None:
    """No two rows have one name, and a counter's has no suffix yet."""
    names = [row.name for row in KEPT + SERVED] + [sample.name for sample in SPECIFIED]
    assert len(names) == len(set(names))
    assert not [name for name in COUNTED if name.endswith("_total")]


def test_one_process_is_one_worker() -> None:
    """It answers for itself alone, and was never replaced."""
    body = Serving().ask(b"GET", b"/proxy/internal-backstage/prometheus").body
    assert b"\nflagsvc_workers 1.0\n" in body and b"\nflagsvc_worker_restarts_total 0.0\n" in body
