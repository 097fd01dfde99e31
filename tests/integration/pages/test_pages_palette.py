"""The palette: flags and pages by their names, as a page and as a dialog over a page, and what a screen reader gets of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from flagsvc.server.pages.palette import MOST_FLAGS
from support.browser import Browser, browser, check_page
from support.flagservers import USER_SECRET, VIEWER_SECRET, AppClient, OurFlagServer
from support.page_forms import Visitor
from support.person import sign_in

HOSTILE = "<img src=x onerror=alert(1)>"
NAMES = ("check", "new-check", "old-check-in", "zebra", *(f"many-{number}" for number in range(MOST_FLAGS + 1)))
GIVEN: dict[str, Any] = {"features": [{"name": name} for name in NAMES] + [{"name": "gone-check", "archived": True}]}


def flags(visitor: Visitor, text: str) -> list[str]:
    """Return the flags that the palette finds, a favourite with a mark."""
    found = visitor.data(f"/palette?q={text}")["flags"]
    return [f"{each['name']}{'*' if each['favorite'] else ''}" for each in found]


def star(client: AppClient, name: str, token: str = USER_SECRET) -> None:
    assert client.post(f"/api/admin/projects/default/features/{name}/favorites", token=token).status == 200


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("check", ["old-check-in*", "check", "new-check"]),
        ("NEW", ["new-check"]),
        ("che+ew", ["new-check"]),
        ("check+nothing", []),
        ("%25", []),
        ("", ["old-check-in*", "zebra*"]),
        ("many", [f"many-{number}" for number in range(MOST_FLAGS)]),
    ],
)
def test_flags(client: AppClient, text: str, found: list[str]) -> None:
    """Each word must be in the name. The caller's favourites come first, then what begins with the word; archived flags never."""
    for name in ("old-check-in", "zebra"):
        star(client, name)
    star(client, "check", VIEWER_SECRET)
    assert flags(Visitor(client), text) == found


def test_pages(client: AppClient) -> None:
    """Every section and setting is found by its title, once, and is there. A viewer is offered nothing that no viewer may see."""
    visitor, viewer = Visitor(client), Visitor(client, VIEWER_SECRET)
    every, seen = ([each["path"] for each in one.data("/palette")["pages"]] for one in (visitor, viewer))
    assert len(set(every)) == len(every) and {"/flags", "/webhooks", "/new-flag"} <= set(every)
    assert [each for each in every if each not in seen] == ["/people", "/new-flag", "/tokens/new"]
    assert {visitor.see(each).status for each in every} == {viewer.see(each).status for each in seen} == {200}
    assert [each["path"] for each in visitor.data("/palette?q=MY+tok")["pages"]] == ["/my-tokens"]


HERE = re.compile('<a href="/ui([^"]*)" aria-current="([^"]*)">')
PLACES = {
    "/flags": [("/flags", "page")],
    "/projects/default/new-flag": [("/flags", "true")],
    "/tokens": [("/tokens", "page")],
    "/people": [("/settings", "true")],
    "/new-webhook": [("/settings", "true")],
    "/projects/default": [("/settings", "true")],
    "/palette": [],
}
"""Page → the section that the navigation shows as the current one, and how."""


def test_where_a_page_is(client: AppClient) -> None:
    """The navigation says in which section a page is, also for pages that it has not."""
    visitor = Visitor(client)
    found = {each: HERE.findall(visitor.see(each).text.partition("</nav>")[0]) for each in PLACES}
    assert found == PLACES


def test_settings(client: AppClient) -> None:
    """They are in four groups, and link to pages that the palette knows, too."""
    visitor = Visitor(client)
    groups, page = visitor.data("/settings")["groups"], visitor.see("/settings").text
    assert [each["title"] for each in groups] == ["Flags and data", "Access", "Connections", "You"]
    assert all(f'href="/ui{each["path"]}"' in page for group in groups for each in group["pages"])


def test_without_script(client: AppClient) -> None:
    """Every page links to the palette, which is a form with links; what was typed is text only."""
    visitor = Visitor(client)
    assert 'href="/ui/palette"' in visitor.see("/flags").text
    page = visitor.see(f"/palette?q={HOSTILE}").text
    assert HOSTILE not in page and "&lt;img" in page and 'role="option"' not in page
    assert 'href="/ui/flags/new-check"' in visitor.see("/palette?q=new").text
    assert "<html" not in visitor.see("/palette?part=yes").text
    assert 'href="/ui/palette"' not in Visitor(client, None).see("/sign-in").text


@pytest.fixture
def page(server: OurFlagServer) -> Iterator[Browser]:
    """Give a browser that shows the settings, signed in."""
    with browser() as page:
        sign_in(page, server.root, "/settings")
        page.call("Emulation.setDeviceMetricsOverride", width=1200, height=800, deviceScaleFactor=1, mobile=False)
        yield page


KEYS: dict[str, dict[str, Any]] = {
    "Ctrl K": {"key": "k", "code": "KeyK", "windowsVirtualKeyCode": 75, "modifiers": 2},
    "Down": {"key": "ArrowDown", "code": "ArrowDown", "windowsVirtualKeyCode": 40},
    "Up": {"key": "ArrowUp", "code": "ArrowUp", "windowsVirtualKeyCode": 38},
    "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Escape": {"key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27},
}
OPEN = "document.querySelector('dialog')?.open === true"
CHOSEN = "document.querySelector('dialog [aria-selected=true] .grow')?.textContent"
ACTIVE = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.querySelector('.grow').textContent"


def press(page: Browser, *names: str) -> None:
    for name in names:
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, **KEYS[name])


@pytest.mark.programs
def test_with_keys(page: Browser) -> None:
    """Ctrl K opens it, arrows choose, Enter goes there. Escape closes it, and the focus is where it was."""
    page.run("document.querySelector('main a').focus()")
    press(page, "Ctrl K")
    page.wait_for(f"{OPEN} && {CHOSEN} !== undefined")
    press(page, "Escape")
    page.wait_for(f"!({OPEN})")
    assert page.run("document.activeElement === document.querySelector('main a')")
    press(page, "Ctrl K")
    page.wait_for(OPEN)
    page.call("Input.insertText", text="check")
    page.wait_for(f"{CHOSEN} === 'check'")
    press(page, "Down")
    assert page.run(CHOSEN) == page.run(ACTIVE) == "new-check"
    press(page, "Up", "Up")
    assert page.run(CHOSEN) == page.run(ACTIVE) == "old-check-in"
    press(page, "Enter")
    page.wait_for("location.pathname === '/ui/flags/old-check-in' && document.readyState === 'complete'")


@pytest.mark.programs
def test_enter_waits_for_what_was_typed(page: Browser) -> None:
    """Who types and presses Enter at once gets what was typed, not what was chosen before."""
    press(page, "Ctrl K")
    page.wait_for(f"{OPEN} && {CHOSEN} !== undefined")
    page.call("Input.insertText", text="zebra")
    press(page, "Enter")
    page.wait_for("location.pathname === '/ui/flags/zebra' && document.readyState === 'complete'")


@pytest.mark.programs
def test_the_dialog(server: OurFlagServer, page: Browser) -> None:
    """It is told as a field with a list, has no fault, loads its script when it is first wanted, and says that it finds nothing."""
    assert not any("palette.js" in each for each in page.requested())
    page.run("document.querySelector('[data-palette]').click()")
    page.wait_for(f"{OPEN} && {CHOSEN} !== undefined")
    assert any("palette.js" in each for each in page.requested())
    field = json.loads(
        page.run("JSON.stringify(Object.fromEntries([...document.activeElement.attributes].map(each => [each.name, each.value])))")
    )
    assert (field["role"], field["aria-controls"], field["aria-expanded"]) == ("combobox", "palette-list", "true")
    for width in (1200, 320):
        check_page(page, width)
    page.call("Input.insertText", text="nothing here")
    page.wait_for("document.querySelector('dialog [role=status]').textContent === '0 found'")
    assert page.run("document.activeElement.getAttribute('aria-expanded')") == "false"
    check_page(page, 1200)
    page.events.clear()
    page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    page.call("Input.insertText", text="x")
    page.wait_for("document.querySelector('dialog [role=status]').textContent.startsWith('The server did not answer')")
