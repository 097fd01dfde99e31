"""Readiness and liveness.

The interactive page and its files.
The proxy's metrics endpoint.
"""

from __future__ import annotations

import os
import subprocess
import sys

from flagsvc.proxy.api.metrics import by_row
from support import forms
from support.serving import Serving


def test_the_bundle_is_not_imported() -> None:
    """Importing the package reads megabytes; only its files are read, and only with enableOAS."""
    script = "import sys, flagsvc.proxy.api.service; sys.exit('offapi' in sys.modules)"
    places = {**os.environ, "PYTHONPATH": str(forms.SOURCES)}
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60, env=places).returncode == 0


def test_the_files_are_the_bundles() -> None:
    """The names that the page uses are defined by the bundle."""
    serving = Serving(enable_oas=True)
    bundle = serving.ask(b"GET", b"/docs/openapi/swagger_bundle.js").body
    start = serving.ask(b"GET", b"/docs/openapi/init.js").body
    assert b"SwaggerUIBundle" in bundle
    assert b"SwaggerUIBundle({" in start
    assert b".swagger-ui" in serving.ask(b"GET", b"/docs/openapi/swagger_style.css").body


def test_two_services_share_no_numbers() -> None:
    """Each has a registry of its own."""
    first, second = Serving(), Serving()
    first.ask(b"GET", b"/proxy")
    assert b'route="/proxy",status="200"' not in second.ask(b"GET", b"/proxy/internal-backstage/prometheus").body


def test_readings_by_row() -> None:
    """Each row gets the numbers of its own name, by their labels."""
    readings = {("seen", "a"): 1.0, ("seen", "b"): 2.0, ("size",): 3.0}
    assert by_row(readings) == {"seen": {("a",): 1.0, ("b",): 2.0}, "size": {(): 3.0}}
