"""Readiness and liveness.

The interactive page and its files.
The proxy's metrics endpoint.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from flagsvc.proxy.api.operations import PROBES
from flagsvc.proxy.api.prometheus import by_row
from support import forms
from support.serving import Serving

LIVE = ("/proxy/live", "/livez", "/internal-backstage/health")
READY = ("/proxy/ready", "/readyz", "/internal-backstage/ready")


def test_ready_and_alive() -> None:
    """With a configuration both answer ok; without one only liveness does."""
    serving = Serving()
    assert serving.ask(b"GET", b"/proxy/health").body == b"ok"
    assert serving.ask(b"GET", b"/proxy/live").body == b"ok"
    serving.holder.current = None
    assert serving.ask(b"GET", b"/proxy/health").status == 503
    assert serving.ask(b"GET", b"/proxy/live").body == b"ok"


@pytest.mark.parametrize("base", ["", "/base"])
def test_every_probe_says_the_same(base: str) -> None:
    """Under every name there is, those of the root wherever the base path is."""
    serving = Serving(base_path=base)
    for path in (*LIVE, *READY):
        place = path if path in [probe[0] for probe in PROBES] else base + path
        answer = serving.ask(b"GET", place.encode())
        assert (answer.status, answer.body) == (200, b"ready" if path in READY else b"ok")


@pytest.mark.parametrize("path", READY)
def test_why_not(path: str) -> None:
    """Readiness gives its reason in one word. Liveness, health and evaluations still answer, unless there is no configuration."""
    serving = Serving(max_staleness=10)
    for word, change in (("stale", None), ("draining", "draining"), ("draining", "cold")):
        if change == "draining":
            serving.service.readiness.is_draining = True
        elif change == "cold":
            serving.holder.current = None
        else:
            asyncio.run(serving.clock.advance(11))
        answer = serving.ask(b"GET", path.encode())
        assert (answer.status, answer.body) == (503, word.encode())
        assert {(b"retry-after", b"1"), (b"cache-control", b"no-store")} <= set(answer.headers())
        assert serving.ask(b"GET", b"/livez").status == 200
        if change != "cold":
            assert serving.ask(b"GET", b"/proxy/health").status == serving.ask(b"GET", b"/proxy").status == 200
    serving.service.readiness.is_draining = False
    assert serving.ask(b"GET", path.encode()).body == b"cold"


def test_no_cache_keeps_the_answer_to_a_probe() -> None:
    """No cache may keep the answer to a probe."""
    answer = Serving().ask(b"HEAD", b"/readyz")
    assert (answer.status, answer.body) == (200, b"")
    assert (b"cache-control", b"no-store") in answer.headers()


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
