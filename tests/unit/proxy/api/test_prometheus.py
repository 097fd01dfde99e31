"""The proxy's metrics endpoint."""

from __future__ import annotations

from flagsvc.proxy.api.prometheus import by_row
from support.serving import Serving


def test_two_services_share_no_numbers() -> None:
    """Each has a registry of its own."""
    first, second = Serving(), Serving()
    first.ask(b"GET", b"/proxy")
    assert b'route="/proxy",status="200"' not in second.ask(b"GET", b"/proxy/internal-backstage/prometheus").body


def test_readings_by_row() -> None:
    """Each row gets the numbers of its own name, by their labels."""
    readings = {("seen", "a"): 1.0, ("seen", "b"): 2.0, ("size",): 3.0}
    assert by_row(readings) == {"seen": {("a",): 1.0, ("b",): 2.0}, "size": {(): 3.0}}
