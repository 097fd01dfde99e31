"""A person at the pages, in a real browser: with a pointer, with the keys alone, or with a pointer where scripts do not run."""

from __future__ import annotations

import json
from typing import Literal, TypeAlias

from support.browser import Browser
from support.flagservers import USER_SECRET

Way: TypeAlias = Literal["pointer", "keys", "without script"]

KEYS = {
    "Tab": {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9},
    "Space": {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32, "text": " "},
    "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
}
MOST_TABS = 300
"""No page here has so many controls: the focus goes round and does not meet what is looked for."""
PLACE = """(() => {
  const found = document.querySelector(%s);
  if (!found) return null;
  found.scrollIntoView({block: "center", behavior: "instant"});
  const box = found.getClientRects()[0];
  return [box.x + box.width / 2, box.y + box.height / 2];
})()"""


def sign_in(page: Browser, root: str, path: str, secret: str = USER_SECRET) -> None:
    """Sign in at the pages of a server, and show a page."""
    page.go(f"{root}/ui{path}")
    page.wait_for("document.getElementById('token') !== null")
    page.run(f"document.getElementById('token').value = {json.dumps(secret)}")
    page.follow("main form button")


class Person:
    """Somebody who uses pages in one way."""

    def __init__(self, page: Browser, way: Way) -> None:
        self.page = page
        self._keys = way == "keys"
        if way == "without script":
            page.call("Emulation.setScriptExecutionDisabled", value=True)

    def go(self, address: str) -> None:
        self.page.go(address)

    def press(self, selector: str) -> None:
        self._reach(selector)
        if self._keys:
            self._key("Enter")

    def follow(self, selector: str) -> None:
        """Press what leads to another page, and wait for it."""
        before = len(self.page.told("Page.loadEventFired"))
        self.press(selector)
        self.page.wait(lambda: len(self.page.told("Page.loadEventFired")) > before, f"the page behind `{selector}`")

    def tick(self, selector: str) -> None:
        """Tick a box, or take its tick away."""
        self._reach(selector)
        if self._keys:
            self._key("Space")

    def send(self) -> None:
        """Press Return in the field that was filled in."""
        self._key("Enter")

    def fill(self, selector: str, text: str) -> None:
        """Write into a field, over what is there."""
        self._reach(selector)
        self.page.run("document.activeElement.select()")
        self.page.call("Input.insertText", text=text)

    def sees(self, text: str) -> bool:
        return text in self.page.run("document.body.innerText")

    def _reach(self, selector: str) -> None:
        """Click on something; or bring the focus to it, key by key."""
        wanted = json.dumps(selector)
        if not self._keys:
            self.page.wait_for(f"document.querySelector({wanted}) !== null")
            x, y = self.page.run(PLACE % wanted)
            for kind in ("mousePressed", "mouseReleased"):
                self.page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            return
        for _ in range(MOST_TABS):
            if self.page.run(f"document.activeElement?.matches({wanted}) ?? false"):
                return
            self._key("Tab")
        raise AssertionError(f"the focus does not reach `{selector}`")

    def _key(self, name: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.page.call("Input.dispatchKeyEvent", type=kind, **KEYS[name])
