"""What is wrong with a page in a browser: complaints, other hosts, small targets, findings of axe, sideways scrolling."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from support import peers
from support.browser import Browser

ALL = "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
BROKEN = f"{ALL}.then(found => JSON.stringify(found.violations.map(each => [each.id, each.nodes.map(n => n.html)])))"
SMALL = """JSON.stringify([...document.querySelectorAll('a, button, input, select, textarea, summary')]
    .filter(each => !each.closest('p, li, dd, dt, .skip, .hidden') && each.type !== 'hidden' && each.offsetParent)
    .map(each => [each.outerHTML.slice(0, 90), each.getBoundingClientRect()])
    .filter(([, box]) => Math.min(box.width, box.height) < 23.5).map(([html]) => html))"""
"""The controls below 24 pixels; those in running text may be smaller."""
LOOKS: dict[str, list[dict[str, str]]] = {
    "light": [],
    "dark": [{"name": "prefers-color-scheme", "value": "dark"}],
    "forced colours": [{"name": "forced-colors", "value": "active"}],
}
OF_A_STATUS = "the server responded with a status of"
"""What the browser says about the page of an error."""


def faults_of(page: Browser, url: str, width: int) -> list[str]:
    """Load a page at a width in pixels, and return what is wrong with it."""
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    page.go(url)
    return faults(page, width)


def check_page(page: Browser, width: int) -> None:
    """Check that nothing is wrong with the page that is shown, at a width in pixels."""
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    found = faults(page, width)
    assert not found, "\n".join(found)


def faults(page: Browser, width: int) -> list[str]:
    """Return what is wrong with the page that is shown at a width in pixels."""
    here = urlsplit(page.run("location.href"))
    found: list[Any] = [each for each in page.complaints() if OF_A_STATUS not in each]
    asked = [each for each in page.requested() if not each.startswith("data:image/svg")]
    found += [each for each in asked if urlsplit(each).netloc != here.netloc]
    page.run(f"{(peers.package('axe-core', 'accessibility') / 'axe.min.js').read_text()}; 0")
    found += json.loads(page.run(BROKEN))
    found += json.loads(page.run(SMALL))
    if page.run("document.documentElement.scrollWidth") > width:
        found.append("it must be scrolled sideways")
    if page.run("document.title") == "run" or page.told("Page.javascriptDialogOpening"):
        found.append("a name was run as a script")
    return [f"{here.path} at {width}: {each}" for each in found]
