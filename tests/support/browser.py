"""A headless Chromium that tests drive over its DevTools pipe: no port, no library, one new profile each time.

It may speak to loopback addresses only: every other host than NAME is unknown to it.
What is wrong with a page in it: complaints, other hosts, small targets, findings of axe, sideways scrolling.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support import needs, peers
from support.processes import clean_environment, scratch

SECONDS = 60.0
NAME = "flags.example"
"""A name of this machine for the browser, which does not know that it is this machine."""
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--remote-debugging-pipe",
    f"--host-resolver-rules=MAP {NAME} 127.0.0.1 , MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
STOP_AFTER = b"\0"
BETWEEN = ("Inspected target navigated or closed", "Execution context was destroyed.", "Cannot find context with specified id")
"""What the browser answers to a script if the page goes to another document at that moment."""
MOVE = """import fcntl, os, sys
high = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
os.dup2(high[0], 3)
os.dup2(high[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts two descriptors where the browser looks for them and becomes the browser."""


class BetweenDocumentsError(AssertionError):
    """The document that the script would run in is gone."""


class Browser:
    """A page in each tab. `events` are all events of DevTools in order. `call` sends a command, `wait` waits for a condition."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._received = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._session: str | None = None
        self._tabs: list[str] = []
        self.events: list[dict[str, Any]] = []

    def open(self, *, window: bool = False) -> None:
        """Open an empty page in a new tab, and have everything told that happens in it.

        The tabs of a window hide each other. With `window` the tab has a window of its own.
        """
        self._session = None
        target = self.call("Target.createTarget", url="about:blank", newWindow=window)["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._tabs.append(self._session)
        for domain in ("Page", "Runtime", "Log", "Network", "Security"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def take(self, tab: int) -> None:
        """Bring a tab to the front, and have the commands from now on meant for it: the first one is 0."""
        self._session = self._tabs[tab]
        self.call("Page.bringToFront")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of a DevTools method; fails when it fails, with `BetweenDocumentsError` if the document is gone."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + STOP_AFTER)
        self.wait(lambda: number in self._answers, f"an answer to {method}")
        answer = self._answers.pop(number)
        if answer.get("error", {}).get("message") in BETWEEN:
            raise BetweenDocumentsError(method, answer)
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def wait(self, condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
        """Return when `condition` holds; it is looked at after each message of the browser."""
        end = time.monotonic() + seconds
        while not condition():
            left = end - time.monotonic()
            assert left > 0, f"the browser did not give {what} within {seconds} s; the last it said was {self.events[-3:]}"
            self._read(min(left, 0.1))

    def _read(self, seconds: float) -> None:
        """Read the browser's message within this time."""
        if not select.select([self._from], [], [], seconds)[0]:
            return
        part = os.read(self._from, 1 << 20)
        assert part, "the browser has ended"
        *messages, self._received = (self._received + part).split(STOP_AFTER)
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                self.events.append(message)

    def told(self, *methods: str) -> list[dict[str, Any]]:
        """Return the parameters of the events of these methods so far."""
        return [event["params"] for event in self.events if event["method"] in methods]

    def go(self, url: str) -> None:
        """Load a page and wait until it is loaded."""
        self.events.clear()
        loader = self.call("Page.navigate", url=url)["loaderId"]
        # the load of the page before, still on its way, is not this one's
        loaded = {"name": "load", "loaderId": loader}.items()
        self.wait(lambda: any(loaded <= each.items() for each in self.told("Page.lifecycleEvent")), f"`{url}`")

    def follow(self, selector: str) -> None:
        """Click on the link or button that leads to another page, and wait until that page and its scripts are loaded."""
        before = len(self.told("Page.loadEventFired"))
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
        self.wait(lambda: len(self.told("Page.loadEventFired")) > before, f"the page behind `{selector}`")

    def run(self, script: str) -> Any:
        """Return what an expression is in the page; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (script, result)
        return result["result"].get("value")

    def wait_for(self, script: str, seconds: float = 30.0) -> Any:
        """Return the value of an expression as soon as it is true in the page, or in the page that this page leads to."""
        found: list[Any] = []

        def holds() -> bool:
            try:
                found[:] = [self.run(script)]
            except BetweenDocumentsError:
                return False
            return bool(found[0])

        self.wait(holds, f"a page in which `{script}` holds", seconds)
        return found[0]

    def complaints(self) -> list[str]:
        """Return the errors and warnings of the page's console: scripts, network, violated policies."""
        log = [each["entry"] for each in self.told("Log.entryAdded")]
        lines = [f"{each['source']}: {each['text']} {each.get('url', '')}" for each in log if each["level"] in ("error", "warning")]
        lines += [str(each["exceptionDetails"]) for each in self.told("Runtime.exceptionThrown")]
        return lines + [
            str(each["args"]) for each in self.told("Runtime.consoleAPICalled") if each["type"] in ("error", "warning", "assert")
        ]

    def requested(self) -> list[str]:
        """Return every address that the page asked for, or wanted to."""
        return [each["request"]["url"] for each in self.told("Network.requestWillBeSent")]

    def screenshot(self, path: Path, width: int, height: int) -> None:
        """Write a picture of the page as a window of this size shows it, in the format of the file's name: png or webp."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        data = self.call("Page.captureScreenshot", format=path.suffix.removeprefix("."))["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a browser with one page until the block ends."""
    command = needs.program("chromium", "chromium-browser", "google-chrome")
    to_browser, to_us = os.pipe(), os.pipe()
    with scratch() as folder, contextlib.ExitStack() as stack:
        stack.callback(os.close, to_browser[1])
        stack.callback(os.close, to_us[0])
        try:
            process = _start(command, folder, to_browser[0], to_us[1])
        finally:  # each is closed once: its number is soon somebody else's
            os.close(to_browser[0])
            os.close(to_us[1])
        stack.callback(_stop, process)
        page = Browser(to_browser[1], to_us[0])
        page.open()
        yield page
        with contextlib.suppress(AssertionError, OSError):  # it may be gone before it says so
            page.call("Browser.close")


def _start(command: str, folder: Path, read: int, write: int) -> subprocess.Popen[bytes]:
    """Start the browser with its pipe at the descriptors it looks for, 3 and 4."""
    flags = [*FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
    return subprocess.Popen(
        [sys.executable, "-c", MOVE, str(read), str(write), command, *flags],
        env=clean_environment(folder),
        pass_fds=(read, write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Wait until the browser has ended; it and its children are killed if it does not."""
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


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
