"""A change arrives at real proxies while its page is open, in a real browser, and people read the same revision at both products.

Moments in words: the script agrees with the server, and with the time zone of the reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support.browser import Browser, browser, check_page
from support.flagservers import BACKEND_SECRET, USER_SECRET, OurFlagServer
from support.moments import MOMENTS, NOW
from support.person import sign_in
from support.processes import Proxy, ask, free_port, our_proxy

pytestmark = pytest.mark.programs
GIVEN = {"features": [{"name": "new"}]}
STRIP = "(document.getElementById('notice')?.innerText ?? '')"
SWITCH = "[...document.querySelectorAll('#list .switch')].find(each => each.ariaLabel.includes('development')).click()"


@pytest.fixture(scope="module")
def page(server: OurFlagServer) -> Iterator[Browser]:
    """Give a browser that shows the list, signed in."""
    with browser() as page:
        sign_in(page, server.root, "/flags")
        yield page


def proxies(made: ExitStack, server: OurFlagServer, *names: str) -> list[str]:
    """Run proxies that poll ten times in a second; returns the addresses of their pages."""
    ports = [free_port() for _ in names]
    for name, port in zip(names, ports, strict=True):
        own = {"UNLEASH_INSTANCE_ID": name, "FLAGSVC_ADMIN_ADDRESS": f"127.0.0.1:{port}", "FLAGSVC_STORAGE": "none"}
        given = {"UNLEASH_API_TOKEN": BACKEND_SECRET, "FLAGSVC_FETCH_INTERVAL": "100", **own}
        found: Proxy = made.enter_context(our_proxy(server.url, **given))
        assert found.program.process.poll() is None
    return [f"http://127.0.0.1:{port}" for port in ports]


def data(address: str, **headers: str) -> Any:
    """Return the data of a page."""
    return ask(address, headers=headers).json()


def test_a_change_arrives_while_its_page_is_open(server: OurFlagServer, page: Browser) -> None:
    """The strip of the list follows, in place, and ends with all proxies and a time; both products show one revision."""
    page.go(f"{server.root}/ui/flags")
    page.run(f"window.mark = 1; {SWITCH}")
    page.wait_for(f"{STRIP}.includes('No proxy has asked yet.')")
    with ExitStack() as made:
        addresses = proxies(made, server, "one", "two")
        page.wait_for(f"{STRIP}.includes('Arrived at 2 of 2 proxies.')")
        page.run(SWITCH)
        page.wait_for(f"/Arrived at 2 of 2 proxies after (less than )?[0-9.]+ s/.test({STRIP})")
        assert page.run("window.mark") == 1 and page.run("document.querySelectorAll('#arrival').length") == 1
        check_page(page, 320)
        newest = {each["shortRevision"] for each in data(f"{server.root}/ui/proxies.json", authorization=USER_SECRET)["proxies"]}
        shown = {data(f"{each}/ui/status.json")["environments"][0]["shortRevision"] for each in addresses}
        assert newest == shown and re.fullmatch("[0-9a-f]{8}", *shown)
        page.go(f"{server.root}/ui/proxies")
        assert next(iter(shown)) in page.run("document.querySelector('main').innerText")
    page.go(f"{server.root}/ui/flags")
    page.run(SWITCH)
    page.wait_for(f"{STRIP}.includes('Arrived at 0 of 2 proxies. Not yet at proxy-under-test (')")


def test_the_script_says_the_same_words(page: Browser) -> None:
    """The words of the script are those of the server, but for the name of the time zone; the title is the whole moment."""
    page.call("Emulation.setTimezoneOverride", timezoneId="UTC")
    script = f"JSON.stringify({json.dumps(list(MOMENTS))}.map(each => inWords(new Date(each), new Date('{NOW}'))))"
    assert json.loads(page.run(script)) == [each.removesuffix(" UTC") for each in MOMENTS.values()]
    page.call("Emulation.setTimezoneOverride", timezoneId="America/New_York")
    assert page.run(f"inWords(new Date('2026-11-27T04:30:00Z'), new Date('{NOW}'))") == "2 days ago"
    assert page.run(f"inWords(new Date('2026-11-27T05:30:00Z'), new Date('{NOW}'))") == "yesterday, 00:30"


def test_a_wrong_clock_changes_no_words(page: Browser, server: OurFlagServer) -> None:
    """The script takes the server's clock, and the title is the whole moment where the reader is."""
    page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Kathmandu")
    late = "const real = Date.now; Date.now = () => real() - 7200000"
    known = page.call("Page.addScriptToEvaluateOnNewDocument", source=late)["identifier"]
    page.go(f"{server.root}/ui/history")
    page.wait_for("document.querySelector('main time')?.title.includes('GMT')")
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=known)
    assert re.search(r"GMT\+5:45", page.run("document.querySelector('main time').title"))
    assert re.fullmatch("just now|[0-9]+ minutes? ago", page.run("document.querySelector('main time').textContent"))
