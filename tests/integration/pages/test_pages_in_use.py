"""Pages in use, in a real browser: a server that hangs or is away, the end of a session, two tabs, and what is read aloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.balancers import nginx_as
from support.browser import LOOKS, Browser, browser, check_page
from support.flagservers import BACKEND_SECRET, FILE, OurFlagServer, our_flag_server
from support.person import Person, Way, sign_in
from support.processes import ask, flagsvc, running

pytestmark = pytest.mark.programs
PLAN = {"name": "plan", "legalValues": [{"value": "team"}, {"value": "business"}]}
GIVEN: dict[str, Any] = {
    "features": [{"name": name} for name in ("away", "hung", "long", "new", "old", "twice", "read", "forced", "web-1", "web-2")],
    "segments": [{"name": "beta", "constraints": [{"contextName": "plan", "operator": "IN", "values": ["team"]}]}],
    "contextFields": [PLAN],
    "tagTypes": [{"name": "team"}],
    "strategyTypes": [{"name": "hours", "parameters": [{"name": "from", "type": "number"}]}],
}
FLAGS = "/projects/default/features"
VARIANTS = [{"name": name, "weight": 500, "weightType": "variable", "stickiness": "userId"} for name in ("blue", "red")]
LIVE = "typeof stream !== 'undefined' && stream?.readyState === EventSource.OPEN"
SAID = "(document.querySelector('.unsent')?.innerText ?? '').trim()"
STRIP = "document.getElementById('connection').innerText"
SWITCH = "document.querySelector('#list .switch[aria-label=\"{} in development\"]')"
CREATE = "document.querySelector('main form.edit [value=save]')"
SILENT = frozenset(
    {"StaticText", "InlineTextBox", "generic", "none", "paragraph", "LineBreak", "ListMarker", "LabelText", "LayoutTable"}
)
"""Roles without a line: their texts are in the names of others, or are read as they stand."""
STATES = ("checked", "pressed", "expanded", "invalid", "focused", "disabled", "required")
"""The states that a line has, if they are there and not false; a switch that is off says so, too."""


def read_aloud(page: Browser, selector: str) -> list[str]:
    """Return the lines for an element and what is in it: role, name, states, and what describes it."""
    for domain in ("DOM", "Accessibility"):
        page.call(f"{domain}.enable")
    found = page.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")["result"]["objectId"]
    wanted = page.call("DOM.describeNode", objectId=found)["node"]["backendNodeId"]
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    by_id = {each["nodeId"]: each for each in nodes}
    root = next(each for each in nodes if each.get("backendDOMNodeId") == wanted)
    return [line for each in walk(root, by_id) if (line := line_of(each))]


def walk(node: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a node and all nodes below it that are not ignored."""
    if not node["ignored"]:
        yield node
    for each in node.get("childIds", ()):
        if each in by_id:
            yield from walk(by_id[each], by_id)


def line_of(node: dict[str, Any]) -> str:
    """Return the line of a node; empty for a silent node, and for a node without a name."""
    role, name = node["role"]["value"], node.get("name", {}).get("value", "").strip()
    if role in SILENT or not name:
        return ""
    given = {each["name"]: str(each["value"].get("value", "")).lower() for each in node.get("properties", ())}
    states = [
        f"{each} {given[each]}"
        for each in STATES
        if given.get(each, "") not in ("", "false") or (each, role) == ("checked", "switch")
    ]
    description = node.get("description", {}).get("value", "")
    return " | ".join([f"{role}: {name}", *states, *([description] if description else [])])


@pytest.fixture(scope="module")
def server() -> Iterator[OurFlagServer]:
    """Give a flag server with one of everything that has a page."""
    with our_flag_server(given=GIVEN) as server:
        rule = {"name": "flexibleRollout", "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "new"}}
        server.admin(f"{FLAGS}/new/environments/development/strategies", rule)
        server.admin(f"{FLAGS}/new/variants-batch", {"environments": ["development"], "variants": VARIANTS}, method="PUT")
        hook = {
            "provider": "webhook",
            "enabled": False,
            "events": ["feature-created"],
            "parameters": {"url": "http://127.0.0.1:1/"},
        }
        server.admin("/addons", hook)
        server.admin(f"{FLAGS}/forced/environments/development/on", {})
        moment = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z"
        counts = {"start": moment, "stop": moment, "toggles": {"read": {"yes": 3, "no": 1, "variants": {}}}}
        report = {"appName": "web", "instanceId": "one", "bucket": counts}
        answer = ask(f"{server.root}/api/client/metrics", method="POST", headers={"Authorization": BACKEND_SECRET}, body=report)
        assert answer.status == 202
        yield server


@pytest.fixture(scope="module")
def signed_in(server: OurFlagServer) -> Iterator[Browser]:
    """Give a browser with two tabs, where somebody is signed in."""
    with browser() as page:
        sign_in(page, server.root, "/settings")
        page.open()
        yield page


@pytest.fixture
def page(signed_in: Browser) -> Iterator[Browser]:
    """Give the browser with its first tab, as wide as usual, in the scheme of colours that is usual."""
    signed_in.take(0)
    yield signed_in
    for tab in (1, 0):
        signed_in.take(tab)
        signed_in.call("Emulation.setEmulatedMedia", features=[])
        signed_in.call("Emulation.clearDeviceMetricsOverride")
        signed_in.call("Emulation.setScriptExecutionDisabled", value=False)
        signed_in.go("about:blank")


def show(page: Browser, server: OurFlagServer, path: str, tab: int = 0) -> None:
    """Show a page in a tab."""
    page.take(tab)
    page.go(f"{server.root}/ui{path}")


def events_of(server: OurFlagServer, feature: str) -> list[str]:
    """Return the types of the events of a flag, the newest first."""
    return [each["type"] for each in server.admin("/events?project=default&limit=100")["events"] if each["featureName"] == feature]


def press_both(page: Browser, server: OurFlagServer, name: str) -> None:
    """Press the switch of a flag in the first tab, and the button of a form that makes another flag in the second one."""
    show(page, server, f"/flags?q={name}")
    page.wait_for(LIVE)
    show(page, server, "/projects/default/new-flag", 1)
    page.run(f"document.querySelector('[name=name]').value = 'made-{name}'")


def test_a_short_hang(server: OurFlagServer, page: Browser) -> None:
    """The button is seen to be busy, and takes no second press. When the server goes on, what was pressed is done once."""
    buttons = (SWITCH.format("hung"), CREATE)
    press_both(page, server, "hung")
    with server.hanging():
        for tab, button in enumerate(buttons):
            page.take(tab)
            page.run(f"window.pressed = {button}; pressed.click()")
        page.run("new Promise((done) => setTimeout(done, 1000))")
        for tab in (0, 1):
            page.take(tab)
            page.wait_for("getComputedStyle(pressed).opacity === '0.55' && pressed.ariaDisabled === 'true'")
            assert page.run("pressed.getAnimations()[0].effect.getTiming().delay") == 200
            page.run("pressed.click()")
    page.wait_for("location.pathname === '/ui/flags/made-hung'")
    page.take(0)
    page.wait_for(f"{buttons[0]}.ariaChecked === 'true' && document.querySelector('[data-busy]') === null")
    assert page.run(SAID) == "" and page.run("document.querySelector('#notice .done') !== null")
    assert events_of(server, "hung").count("feature-environment-enabled") == 1
    assert events_of(server, "made-hung").count("feature-created") == 1


FAST = """const wait = window.setTimeout, limit = AbortSignal.timeout;
window.setTimeout = (work, ms, ...more) => wait(work, ms / 10, ...more);
AbortSignal.timeout = (ms) => limit.call(AbortSignal, ms / 10);"""
"""A page whose clock is ten times as fast."""


def test_a_hang_of_thirty_seconds(server: OurFlagServer, page: Browser) -> None:
    """After ten seconds the page says so and takes the button back, after twenty it reconnects. Then it shows what is so."""
    scripts = []
    for tab in (0, 1):
        page.take(tab)
        scripts.append(page.call("Page.addScriptToEvaluateOnNewDocument", source=FAST)["identifier"])
    press_both(page, server, "long")
    buttons = (SWITCH.format("long"), CREATE)
    with server.hanging():
        for tab, (button, words) in enumerate(zip(buttons, ("Not switched", "Not sent"), strict=True)):
            page.take(tab)
            page.run(f"{button}.click()")
            page.wait_for(f"{SAID} === '{words}: the server did not answer. Try again.'")
            assert page.run("document.querySelector('[data-busy]') === null")
        page.take(0)
        page.wait_for(f"{STRIP}.startsWith('Reconnecting')")
    page.wait_for(f"{STRIP} === '' && {LIVE}")
    page.wait_for(f"{SAID} === ''")
    is_on = server.admin(f"{FLAGS}/long/environments/development")["enabled"]
    page.wait_for(f"{buttons[0]}.ariaChecked === '{str(is_on).lower()}'")
    page.take(1)
    page.run(f"{CREATE}.click()")
    page.wait_for("location.pathname === '/ui/flags/made-long'")
    assert events_of(server, "made-long").count("feature-created") == 1
    for tab in (0, 1):
        page.take(tab)
        page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=scripts[tab])


NOT_SWITCHED = f"{SAID} === 'Not switched: the server did not answer. Try again.'"
ONE_FLAG = {"features": [{"name": "new"}]}


@contextmanager
def offline(page: Browser) -> Iterator[None]:
    """Have the browser reach no server until the block ends."""
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.call("Network.emulateNetworkConditions", offline=True, **network)
    try:
        yield
    finally:
        page.call("Network.emulateNetworkConditions", offline=False, **network)


def check(page: Browser, width: int) -> None:
    """Fail for what is wrong with a page, but for what the browser says about a server that does not answer."""
    page.events.clear()
    check_page(page, width)


def test_a_switch_without_an_answer(server: OurFlagServer, page: Browser) -> None:
    """Offline, a sentence at the switch says that it is not switched, also at one that asks. The next press is taken."""
    show(page, server, "/flags?q=away")
    switch = SWITCH.format("away")
    asking = switch.replace("development", "production")
    with offline(page):
        page.run(f"{asking}.click()")
        page.wait_for(NOT_SWITCHED)
        page.run("document.querySelector('.unsent').remove()")
        page.run(f"{switch}.click()")
        page.wait_for(NOT_SWITCHED)
        assert page.run(f"{switch}.nextElementSibling.className") == "problem unsent"
        check(page, 1200)
    page.run(f"{switch}.click()")
    page.wait_for(f"{switch}.ariaChecked === 'true' && {SAID} === ''")
    for _ in range(2):
        page.run(f"{asking}.click()")
        page.wait_for("location.pathname.endsWith('/flags/away/production/switch')")
        page.run("history.back()")
        page.wait_for("location.pathname.endsWith('/flags') && document.readyState === 'complete'")
        page.wait_for("document.querySelector('[data-busy]') === null")


def test_a_server_that_restarts_under_an_open_page(tmp_path: Path) -> None:
    """The page says that it reconnects, and no more once the server is back. It then lives on: its switches work."""
    switch = SWITCH.format("new")
    with browser() as page:
        page.call("Page.addScriptToEvaluateOnNewDocument", source=FAST)
        with our_flag_server(given=ONE_FLAG, folder=tmp_path) as server:
            sign_in(page, server.root, "/flags")
            page.wait_for(f"{LIVE} && {STRIP} === ''")
            page.run("window.mark = 1")
            port = server.root.rpartition(":")[2]
        page.wait_for(f"{STRIP}.startsWith('Reconnecting')")
        check(page, 320)
        command = [*flagsvc(), "server", "--host", "127.0.0.1", "--port", port]
        with running("again", command, env={"FLAGSVC_DATABASE_URL": str(tmp_path / FILE)}, folder=tmp_path):
            page.wait_for(f"{STRIP} === '' && {LIVE}")
            before = page.run(f"{switch}.ariaChecked")
            page.run(f"{switch}.click()")
            page.wait_for(f"{switch}.ariaChecked !== '{before}'")
            assert page.run("window.mark") == 1


def test_a_server_that_is_away_behind_a_gateway() -> None:
    """The gateway answers in its place with 502. The page and the switch say that the server does not answer."""
    with ExitStack() as running_server, browser() as page:
        page.call("Page.addScriptToEvaluateOnNewDocument", source=FAST)
        server = running_server.enter_context(our_flag_server(given=ONE_FLAG))
        with nginx_as(f"    server {server.root.removeprefix('http://')};", "/health") as port:
            sign_in(page, f"http://127.0.0.1:{port}", "/flags")
            page.wait_for(LIVE)
            running_server.close()
            page.run(f"{SWITCH.format('new')}.click()")
            page.wait_for(NOT_SWITCHED)
            page.wait_for(f"{STRIP}.startsWith('Reconnecting')")


SIGN_IN = "Sign in in a new tab, and press again"
FORMS = {
    "/flags": 3,
    "/flags/new": 2,
    "/flags/new/edit": 4,
    "/flags/new/copy": 1,
    "/flags/new/parent?parent=old": 1,
    "/flags/new/production/switch": 1,
    "/flags/new/development/variants": 1,
    "/flags/new/development/strategies/new": 1,
    "/projects/default/new-flag": 1,
    "/import": 1,
    "/compare?from=development&to=production": 1,
    "/export?environment=development": 1,
    "/try": 1,
    "/segments/1": 2,
    "/new-project": 1,
    "/projects/default": 5,
    "/tokens": 3,
    "/tokens/new": 1,
    "/my-tokens": 2,
    "/sessions": 1,
    "/people/1": 4,
    "/people/new": 1,
    "/environments": 2,
    "/environments/development": 3,
    "/new-environment": 1,
    "/context-fields/plan": 2,
    "/tag-types/team": 2,
    "/strategy-types/hours": 3,
    "/webhooks/1": 4,
    "/new-webhook": 1,
    "/new-tag-type": 1,
    "/new-context-field": 1,
    "/new-strategy-type": 1,
    "/segments/new": 1,
}
"""Page → how many forms it has that change or show something, at least."""
PRESSED = """(async () => {
  const found = [], first = document.querySelector("main form[method=post] :is(input:not([type]), textarea)");
  if (first) first.value = "typed";
  for (const form of document.querySelectorAll("main form[method=post]")) {
    form.noValidate = true;
    const button = [...form.elements].find((each) => each.matches("button:not([disabled], [type=button])"));
    if (!button) continue;
    button.click();
    for (let left = 500; left && !document.querySelector(".unsent"); left -= 1) await new Promise((done) => setTimeout(done, 10));
    const line = document.querySelector(".unsent"), link = line?.querySelector("a");
    const back = link && new URL(link.href).searchParams.get("next");
    found.push([form.getAttribute("action"), line?.textContent.trim(), link?.target, back, button.hasAttribute("data-busy")]);
    line?.remove();
  }
  return [found, first ? first.value : "typed"];
})()"""
"""Press the first button of each form of a page that has lost its session."""


def keep_signed_in(page: Browser, cookies: list[dict[str, Any]]) -> None:
    """Give the browser the session again."""
    kept = [{name: each[name] for name in ("name", "value", "domain", "path")} for each in cookies]
    page.call("Network.setCookies", cookies=kept)


def test_a_session_that_ends_in_each_form(server: OurFlagServer, page: Browser) -> None:
    """Each form stays with what was typed, says that the session has ended, and leads to the sign-in and back to its page."""
    show(page, server, "/settings")
    cookies = page.call("Network.getCookies")["cookies"]
    wrong = []
    for path, forms in FORMS.items():
        keep_signed_in(page, cookies)
        show(page, server, path)
        page.call("Network.clearBrowserCookies")
        found, typed = page.run(PRESSED)
        expected = [f": your session has ended. {SIGN_IN}", "_blank", path, False]
        said = [[(words or "").removeprefix("Not switched").removeprefix("Not sent"), *more] for _, words, *more in found]
        wrong += [f"{path} {each[0]}: {each[1:]}" for each, now in zip(found, said, strict=True) if now != expected]
        wrong += [f"{path}: {len(found)} forms, {typed}"] * (typed != "typed" or len(found) < forms)
    keep_signed_in(page, cookies)
    assert not wrong, "\n".join(wrong)


def test_a_session_that_ends_in_a_form_without_script(server: OurFlagServer, page: Browser) -> None:
    """The page that answers keeps what was typed. Who signs in in another tab sends it again, and it is done."""
    person = Person(page, "without script")
    person.go(f"{server.root}/ui/projects/default/new-flag")
    person.fill("[name=name]", "made-again")
    person.fill("[name=description]", 'typed "once"')
    page.call("Network.clearBrowserCookies")
    for _ in range(2):
        person.follow("main form button.main")
        assert person.sees("Your session has ended") and person.sees("This page keeps what you typed.")
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    check_page(page, 320)
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.take(1)
    sign_in(page, server.root, "/flags")
    page.take(0)
    person.follow("main form button.main")
    page.wait_for("location.pathname === '/ui/flags/made-again'")
    assert server.admin(f"{FLAGS}/made-again")["description"] == 'typed "once"'


def test_no_page_has_words_for_programs(server: OurFlagServer, page: Browser) -> None:
    """The address of a button has a page in words for people."""
    show(page, server, "/flags/new/development/on")
    assert "belongs to a button" in page.run("document.querySelector('.problem').innerText")


def test_two_tabs(server: OurFlagServer, page: Browser) -> None:
    """A switch in a tab is seen in another tab. Of two edits, the second is told what the first was, and nothing is lost."""
    show(page, server, "/flags?q=new")
    page.wait_for(LIVE)
    show(page, server, "/flags/new", 1)
    page.run("window.mark = 1; document.querySelector('[action$=\"/development/on\"] .switch').click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    page.take(0)
    page.wait_for(f"{SWITCH.format('new')}.ariaChecked === 'true'")
    for tab in (0, 1):
        show(page, server, "/flags/new/edit", tab)
        page.run(f"document.querySelector('[name=description]').value = 'of tab {tab}'")
    page.follow("main form.edit [value=save]")
    page.take(0)
    page.follow("main form.edit [value=save]")
    assert read_aloud(page, "[aria-labelledby=conflict]") == CONFLICT
    for look, width in (("light", 1200), ("dark", 320), ("forced colours", 320)):
        page.call("Emulation.setEmulatedMedia", features=LOOKS[look])
        check_page(page, width)
    assert page.run("document.querySelector('[name=description]').value") == "of tab 0"
    page.follow("[aria-labelledby=conflict] [value=save]")
    assert server.admin(f"{FLAGS}/new")["description"] == "of tab 0"


CONFLICT = [
    "alert: Someone else changed this flag meanwhile",
    "heading: Someone else changed this flag meanwhile",
    *(f"columnheader: {each}" for each in ("Part", "Theirs, as it is stored now", "Yours")),
    *("rowheader: Description", "cell: of tab 1", "cell: of tab 0"),
    *("link: Take theirs", "button: Save mine anyway"),
]


def test_the_way_back(server: OurFlagServer, page: Browser) -> None:
    """After a switch, the list that is gone back to shows it. The back button shows a form with what was typed."""
    show(page, server, "/flags?q=old")
    page.follow("#list tbody th a")
    page.wait_for(LIVE)
    page.run("document.querySelector('[action$=\"/development/on\"] .switch').click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    page.run("history.back()")
    page.wait_for(f"location.pathname === '/ui/flags' && {SWITCH.format('old')}?.ariaChecked === 'true'")
    show(page, server, "/projects/default/new-flag")
    page.run("document.querySelector('[name=name]').focus()")
    page.call("Input.insertText", text="typed")
    page.follow("nav a[href$='/history']")
    page.run("history.back()")
    page.wait_for("location.pathname.endsWith('/new-flag') && document.querySelector('[name=name]')?.value === 'typed'")


TITLE = "عرض 91 %"
IN_ORDER = """(() => {
  const [title, words] = document.querySelectorAll(".strategies .strategy bdi");
  const [box, first] = [title.getBoundingClientRect(), words.getClientRects()[0]];
  return box.top === first.top && box.right < first.left;
})()"""


def test_a_title_from_right_to_left(server: OurFlagServer, page: Browser) -> None:
    """It stands before the sentence of its strategy, as it is written, and the number in it moves nothing."""
    rule = {"name": "flexibleRollout", "title": TITLE, "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "read"}}
    server.admin(f"{FLAGS}/read/environments/production/strategies", rule)
    page.call("Emulation.setDeviceMetricsOverride", width=1900, height=800, deviceScaleFactor=1, mobile=False)
    show(page, server, "/flags/read")
    assert page.run(IN_ORDER)


TWICE = {
    "a strategy": ("/flags/twice/production/strategies/new", {}, ".buttons [value=save]", "feature-strategy-add"),
    "the question of a switch": ("/flags/twice/production/switch", {}, "main form button.main", "feature-environment-enabled"),
    "an edit": ("/flags/twice/edit", {"description": "x"}, "form.edit [value=save]", "feature-metadata-updated"),
    "a tag": ("/flags/twice/edit", {"value": "web"}, "[action$='/tags'] [value=add]", "feature-tagged"),
    "a link": ("/flags/twice/edit", {"url": "https://example.com"}, "[action$='/links'] button", "feature-link-added"),
    "the archive": ("/flags/twice/edit", {}, "[action$='/archive'] button", "feature-archived"),
}
"""Form → its page, what is typed, its button, and the type of the event that the button makes."""


def test_a_double_press(server: OurFlagServer, page: Browser) -> None:
    """Each form does what it does once."""
    for path, typed, button, _ in TWICE.values():
        show(page, server, path)
        for name, text in typed.items():
            page.run(f"document.querySelector('[name={name}]').value = '{text}'")
        page.run(f'window.mark = document.querySelector("{button}"); mark.click(); mark.click()')
        page.wait_for("document.readyState === 'complete' && !window.mark")
    found = events_of(server, "twice")
    assert {each: found.count(each) for *_, each in TWICE.values()} == {each: 1 for *_, each in TWICE.values()}


WAYS: tuple[Way, ...] = ("without script", "keys")


@pytest.mark.parametrize("way", WAYS)
def test_the_list_without_a_pointer_or_script(server: OurFlagServer, page: Browser, way: Way) -> None:
    """Search, switch, tick two, archive both, and take it back."""
    person = Person(page, way)
    person.go(f"{server.root}/ui/flags")
    person.fill("#search", "web-")
    person.send()
    page.wait_for("document.querySelectorAll('#list tbody tr').length === 2 && location.search.includes('q=web-')")
    switch = "#list .switch[aria-label='web-1 in development']"
    (person.press if way == "keys" else person.follow)(switch)
    page.wait_for(f"document.querySelector(\"{switch}\").ariaChecked === 'true'")
    for name in ("web-1", "web-2"):
        person.tick(f"#list [name=flag][value={name}]")
    person.follow("#ticked [value=archive]")
    assert person.sees("Archive 2 flags?") and person.sees("It is on in development now")
    person.follow("main .buttons button.main")
    assert person.sees("No flag fits the filters")
    person.follow("#notice .done button")
    assert person.sees("Undo this?")
    person.follow("main .buttons button.main")
    assert person.sees("2 flags") and server.admin(f"{FLAGS}/web-2")["archived"] is False
    server.admin(f"{FLAGS}/web-1/environments/development/off", {})


def test_what_is_read_of_a_switch(server: OurFlagServer, page: Browser) -> None:
    """It has a name of its own, and says whether it is on; on the page of a flag it says what a press does."""
    show(page, server, "/flags?q=read")
    assert read_aloud(page, "#list .switch[aria-label$=development]") == ["switch: read in development | checked false"]
    show(page, server, "/flags/read")
    assert read_aloud(page, "[action$='/development/on'] .switch") == ["switch: off in development: switch on | checked false"]


def test_what_is_read_of_a_chart(server: OurFlagServer, page: Browser) -> None:
    """It is an image with its numbers as its name, and the table behind it has the same numbers by hour."""
    show(page, server, "/flags/read?environment=development")
    page.run("document.getElementById('numbers').open = true")
    read = [each for each in read_aloud(page, "#use") if not each.startswith("rowheader")]
    assert read[: len(CHART)] == CHART


CHART = [
    "region: Requests, last 24 hours · development",
    "heading: Requests, last 24 hours · development",
    "image: Requests of read in development, last 24 hours. At most 4; on 75 %; off 25 %.",
    "graphics-symbol: 3 on, 1 off",
    "link: Show the last 7 days",
    "link: Show production",
    "DisclosureTriangle: Show as a table | expanded true",
    *(f"columnheader: {each}" for each in ("Hour from", "On", "Off")),
    *("cell: 3", "cell: 1"),
    *("cell: 0", "cell: 0"),
]


def test_what_is_read_of_an_error(server: OurFlagServer, page: Browser) -> None:
    """The field has the focus, is told to be wrong, and its sentence describes it; a link above the form leads to it."""
    show(page, server, "/projects/default/new-flag")
    page.run("document.querySelector('[name=name]').value = 'a/b'")
    page.follow("main form.edit [value=save]")
    assert read_aloud(page, "main")[:4] == [
        "heading: New flag",
        f"link: {LETTERS}",
        f"textbox: Name | invalid true | focused true | required true | {LETTERS}",
        "textbox: Description",
    ]


LETTERS = "A name has only letters from A to Z, digits and the signs - _ . ! ~ * ' ( )."


def test_forced_colours(server: OurFlagServer, page: Browser) -> None:
    """In colours that the system forces, on and off look different, and so do a switch with and without the focus."""
    page.call("Emulation.setEmulatedMedia", features=LOOKS["forced colours"])
    show(page, server, "/flags?q=forced")
    pictures = [picture(page, "development"), picture(page, "production")]
    page.run("document.querySelector('#list .switch[aria-label=\"forced in development\"]').focus({focusVisible: true})")
    pictures.append(picture(page, "development"))
    assert len(set(pictures)) == 3


def picture(page: Browser, environment: str) -> str:
    """Return a picture of a switch."""
    switch = f"document.querySelector('#list .switch[aria-label=\"forced in {environment}\"]')"
    box = json.loads(page.run(f"JSON.stringify({switch}.getBoundingClientRect())"))
    clip = {"x": box["x"] - 4, "y": box["y"] - 4, "width": box["width"] + 8, "height": box["height"] + 8, "scale": 1}
    data: str = page.call("Page.captureScreenshot", format="png", clip=clip)["data"]
    return data


def test_a_chosen_theme(server: OurFlagServer, page: Browser) -> None:
    """Who chooses the dark theme gets it at once, on every page and in the palette, and no rule is broken in it."""
    show(page, server, "/flags")
    page.run("document.querySelector('.theme [value=dark]').click()")
    page.wait_for("document.documentElement.dataset.theme === 'dark'")
    page.run("document.querySelector('[data-palette]').click()")
    page.wait_for("document.querySelector('dialog [aria-selected=true]') !== null")
    check_page(page, 320)
    show(page, server, "/flags/new")
    page.wait_for("document.documentElement.dataset.theme === 'dark'")
    page.run("document.querySelector('.theme [value=system]').click()")
    page.wait_for("document.documentElement.dataset.theme === 'system'")
