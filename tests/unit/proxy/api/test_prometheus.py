"""Samples in Prometheus text format."""

from __future__ import annotations

import pytest

from flagsvc.proxy.api.prometheus import written
from flagsvc.proxy.api.samples import Sample
from support.serving import Serving


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0"), (1700000000123.0, "1700000000123"), (1700000000123.9, "1700000000123")]
)
def test_a_sample_is_three_lines(value: float, shown: str) -> None:
    """Help, type, value; milliseconds are whole, as the reference writes them."""
    sample = Sample("name", "gauge", "What it is.", lambda _: 0)
    assert written(sample, value) == ["# HELP name What it is.", "# TYPE name gauge", f"name {shown}"]


def test_two_services_share_no_numbers() -> None:
    """Each has a registry of its own."""
    first, second = Serving(), Serving()
    first.ask(b"GET", b"/proxy")
    assert b'route="/proxy",status="200"' not in second.ask(b"GET", b"/proxy/internal-backstage/prometheus").body
