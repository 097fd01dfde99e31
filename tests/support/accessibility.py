"""The rules of accessibility, checked in a browser by axe-core."""

from __future__ import annotations

import json

from support import peers
from support.browser import Browser

BROKEN = "axe.run().then(found => JSON.stringify(found.violations.map(each => [each.id, each.nodes.map(n => n.html)])))"


def check_accessibility(page: Browser, width: int) -> None:
    """Check the page that is shown, at a width."""
    script = (peers.package("axe-core", "accessibility") / "axe.min.js").read_text()
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    page.run(f"{script}; 0")
    page.run(f"window.broken = null; {BROKEN}.then(found => window.broken = found); 0")
    page.wait_for("window.broken !== null")
    assert json.loads(page.run("window.broken")) == []
    assert page.run("document.documentElement.scrollWidth") <= width
