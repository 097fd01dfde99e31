"""Where the focus is in a real browser after a form was refused, and after a button changed its rows; with and without script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import Browser, browser, check_page
from support.flagservers import OurFlagServer
from support.person import sign_in

pytestmark = pytest.mark.programs
STRATEGY = {"feature": "a", "environment": "development", "name": "default"}
GIVEN: dict[str, Any] = {
    "features": [{"name": "a"}, {"name": "b"}],
    "strategies": [STRATEGY | {"title": each} for each in ("one", "two")],
    "contextFields": [{"name": "country"}],
    "strategyTypes": [{"name": "hours"}],
}
NEW = "/flags/a/development/strategies/new"
FOCUS = "document.activeElement.id"
NO_SCRIPT = "matchMedia('(scripting: none)').matches"
SAID = "document.getElementById(document.activeElement.getAttribute('aria-describedby'))?.innerText"


@pytest.fixture(scope="module", params=[True, False], ids=["script", "no script"])
def page(server: OurFlagServer, request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Give a browser that is signed in, and in which pages have script or not."""
    with browser() as page:
        sign_in(page, server.root, NEW)
        page.call("Emulation.setScriptExecutionDisabled", value=not request.param)
        yield page


def fill(page: Browser, **typed: str) -> None:
    """Type into fields; `__` in a name stands for a dot."""
    for name, text in typed.items():
        page.run(f"document.getElementsByName({json.dumps(name.replace('__', '.'))})[0].value = {json.dumps(text)}")


def press(page: Browser, button: str, seen: str) -> None:
    """Press a button, and wait for its page, in which something has the focus."""
    page.follow(f"button[value='{button}']")
    page.wait_for(f"{FOCUS} === {json.dumps(seen)}")


def test_the_first_wrong_field(server: OurFlagServer, page: Browser) -> None:
    """The first wrong field has the focus and its sentence, and its page breaks no rule of accessibility, also on a phone."""
    page.go(f"{server.root}/ui{NEW}")
    press(page, "add-condition", "c0.field")
    fill(page, rollout="7", c0__field="contry", c0__values="x" * 101)
    press(page, "save", "c0.field")
    assert page.run("document.activeElement.ariaInvalid") == "true"
    assert "Do you mean `country`?" in page.run("document.getElementById('c0.field-error').innerText")
    if not page.run(NO_SCRIPT):
        check_page(page, 320)
        check_page(page, 1280)
    press(page, "name-condition:0:country", "c0.field")
    assert page.run("document.activeElement.value") == "country"


def test_rows_keep_the_focus(server: OurFlagServer, page: Browser) -> None:
    """The focus stays with the row that moves, and what happened is told there."""
    page.go(f"{server.root}/ui{NEW}")
    for at, name in enumerate(("userId", "country", "appName")):
        press(page, "add-condition", f"c{at}.field")
        fill(page, **{f"c{at}.field": name})
    press(page, "condition-up:2", "condition-2-up")
    assert page.run(SAID) == "Condition 3 is condition 2 now."
    press(page, "condition-up:1", "condition-1")
    assert page.run(SAID) == "Condition 2 is condition 1 now."
    assert page.run("document.getElementsByName('c0.field')[0].value") == "appName"
    press(page, "condition-down:0", "condition-2-down")
    press(page, "remove-condition:2", "condition-2")
    assert page.run(SAID) == "Condition 3 is removed; 2 are left."
    press(page, "remove-condition:0", "condition-1")
    press(page, "remove-condition:0", "add-condition")


LONG = (
    *("/flags/a/development/strategies/new", "/new-flag", "/new-webhook", "/new-context-field", "/segments/new"),
    *("/flags/a/copy", "/compare", "/export"),
)
IN_VIEW = """(() => {
  document.querySelector("main form button.main").form.scrollIntoView({behavior: "instant"});
  return [...document.querySelectorAll("main form button.main")].map(each => each.getBoundingClientRect())
    .some(box => box.height > 0 && box.top >= 0 && box.bottom <= innerHeight);
})()"""


def test_what_saves_stays_in_view(server: OurFlagServer, page: Browser) -> None:
    """On a small screen, the button that saves, copies or exports is seen from the beginning of the form on, however long it is."""
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=600, deviceScaleFactor=1, mobile=False)
    out = []
    for path in LONG:
        page.go(f"{server.root}/ui{path}")
        out += [] if page.run(IN_VIEW) else [path]
    page.call("Emulation.clearDeviceMetricsOverride")
    assert out == []


LIST = "[role=switch][aria-label='a in {}']"
QUESTION = "main form .main"
MOVE, FAVOURITE, ORDER = "[action$='/move'] [value={}]", "[action$='/favourites'] button", "[formaction$='/{}/down']:enabled"
CASES = {
    "the list": ("/flags", [LIST.format("development")], LIST.format("development")),
    "the list, after a question": ("/flags", [LIST.format("production"), QUESTION], LIST.format("production")),
    "a flag": ("/flags/a", ["[action*='/development/o'] .switch"], "[action*='/development/o'] .switch"),
    "a flag, after a question": ("/flags/a", ["[action*='/production/'] .switch", QUESTION], "[action*='/production/'] .switch"),
    "a strategy that moves": ("/flags/a", [f"{MOVE.format('down')}:enabled"], MOVE.format("up")),
    "an environment that moves": ("/environments", [ORDER.format("development")], "[action$='/development/up'] button"),
    "an environment": ("/environments/development", ["[action$='/off'] button"], "[action$='/on'] button"),
    "a strategy type": ("/strategy-types/hours", ["[action$='/deprecate'] button"], "[action$='/reactivate'] button"),
    "a favourite": ("/flags/b", [FAVOURITE], FAVOURITE),
}


@pytest.mark.parametrize(("path", "pressed", "focused"), CASES.values(), ids=CASES)
def test_something_is_switched(server: OurFlagServer, page: Browser, path: str, pressed: list[str], focused: str) -> None:
    """The focus is at what was pressed, or at what takes its place, also after a question. A notice of a new page is said aloud."""
    page.go(f"{server.root}/ui{path}")
    if page.run(NO_SCRIPT):
        return
    page.run("window.before = true")
    for each in pressed:
        found = f"document.querySelector({json.dumps(each)})"
        page.wait_for(f"document.readyState === 'complete' && {found} !== null")
        page.run(f"{found}.focus(); {found}.click()")
    page.wait_for(
        f"(!window.before || document.querySelector('#notice .done')) && document.activeElement?.matches({json.dumps(focused)})"
    )
    if not page.run("window.before || document.querySelector('#notice .done') === null"):
        page.wait_for("document.querySelector('main > [role=status]')?.innerText.includes('You ')")
