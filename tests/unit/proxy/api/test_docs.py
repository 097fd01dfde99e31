"""The interactive page and its files."""

from __future__ import annotations

import os
import subprocess
import sys

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
