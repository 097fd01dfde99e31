"""Every page in every state, in a browser: no complaint, no other host, no broken rule of accessibility, on a phone too."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from flagsvc.server.api.route import Auth
from flagsvc.server.application import PAGE_ROUTES
from support.browser import LOOKS, Browser, browser, faults, faults_of
from support.flagservers import USER_SECRET, VIEWER_SECRET, OurFlagServer, our_flag_server
from support.person import sign_in
from support.same_inputs import thinned

SCRIPT = "<script>document.title='run'</script>\"'><img src=x onerror=\"document.title='run'\">"
RIGHT_TO_LEFT = "مفتاح الميزة ‮abc‬ חדש"
LONG = "word " * 60 + "x" * 200
"""500 characters, 200 of them without a place to break."""
WORDS = f"{SCRIPT} {RIGHT_TO_LEFT}"
CONSTRAINT = {"contextName": "plan", "operator": "IN", "values": [SCRIPT, RIGHT_TO_LEFT, "x" * 100]}


def strategy(feature: str, words: str) -> dict[str, Any]:
    """Return a strategy of a flag in development, with these words wherever words may stand."""
    parameters = {"rollout": "25", "stickiness": "default", "groupId": words}
    constraints = [CONSTRAINT] if words != feature else []
    place = {"feature": feature, "environment": "development", "name": "flexibleRollout"}
    return {**place, "parameters": parameters, "constraints": constraints}


def flags(*names: str, words: str = "") -> dict[str, Any]:
    """Return a seed of these flags, on in development, each with a strategy."""
    features = [{"name": name, "description": words or "A flag.", "enabled": ["development"]} for name in names]
    return {"features": features, "strategies": [strategy(name, words or name) for name in names]}


STATES: dict[str, dict[str, Any]] = {
    "empty": {},
    "one": flags("new"),
    "hostile": {
        **flags("new", "n" * 100, words=f"{WORDS} {LONG}"),
        "segments": [{"name": "beta", "description": LONG, "constraints": [CONSTRAINT]}],
        "contextFields": [{"name": "plan", "description": LONG, "legalValues": [{"value": "x" * 100}]}],
        "tagTypes": [{"name": "team", "description": LONG, "icon": WORDS, "color": "#1d4ed8"}],
        "strategyTypes": [{"name": "hours", "parameters": [{"name": "x" * 90, "type": "number", "description": LONG}]}],
    },
    "5,000 flags": flags("new", *(f"flag-{number:04}" for number in range(4999))),
}
"""State → the seed that comes on top of the users and tokens of all tests."""

KNOWN = {"featureName": "new", "environment": "development", "projectId": "default", "contextField": "plan"}
NAMED = {"environments": "development", "strategy-types": "hours", "tag-types": "team"}
"""The values of parameters in paths; of a parameter `name` the section decides, and of any other one the value is 1."""


def filled(path: str) -> str:
    """Return the path of a page with values for its parameters."""
    known = KNOWN | {"name": NAMED.get(path.split("/")[-2], "")}
    return re.sub(r":(\w+)", lambda found: known.get(found[1], "1"), path.removeprefix("/ui"))


PATHS = (
    *(filled(each.path) for each in PAGE_ROUTES if each.method == "GET" and each.auth is Auth.PAGE and each.render),
    *("/flags?q=new", "/flags?q=nosuch", "/flags/new/production/switch", "/flags/new/production/strategies/new", "/tokens/2"),
    *("/compare?from=production&to=production", f"/flags/new/parent?parent={'n' * 100}", "/new-webhook?for=teams"),
    *("/palette?q=ne", "/history?feature=new", "/nowhere"),
)
"""Every page of the flag server, and some with a query. A usual run has every second one."""


pytestmark = pytest.mark.programs


def add_webhook(server: OurFlagServer, words: str) -> None:
    """Add a webhook to a server, which the words describe, and whose receiver cannot be reached."""
    parameters = {"url": "http://127.0.0.1:1/", "bodyTemplate": f"{words} {LONG}".replace("{{", "")}
    hook = {"provider": "webhook", "enabled": True, "description": f"{words} {LONG}", "parameters": parameters}
    events = ["feature-created", "change-request-created"]
    server.admin("/addons", hook | {"events": events, "projects": ["default", words]})
    server.ask("POST", "/admin/addons/1/test")


DATA_SET = {
    "features": [{"name": "new", "description": WORDS}, {"name": "other"}],
    "featureStrategies": [{"name": "default", "featureName": "new", "parameters": {}, "constraints": []}],
    "tagTypes": [],
}
LONG_NAME = {"[name=name]": f"{WORDS} {LONG}"}
FORMS: tuple[tuple[str, dict[str, str], str], ...] = (
    ("/import?project=default&environment=development", {"[name=text]": json.dumps(DATA_SET)}, "[value=preview]"),
    ("/import?project=default&environment=production", {"[name=text]": '{"a": "<script>"'}, "[value=preview]"),
    ("/compare", {"[name=flag]": "new"}, "[value=preview]"),
    ("/flags/new/copy", {"[name=to][value=production]": "production"}, "[value=preview]"),
    ("/export", {}, "[value=ticked]"),
    ("/new-flag", LONG_NAME, "[value=save]"),
    ("/new-flag", {"[name=name]": "made", "[name=on]": "production"}, "[value=save]"),
    ("/segments/new", LONG_NAME, "[value=save]"),
    ("/new-project", LONG_NAME, "main button.main"),
    ("/people/new", LONG_NAME, "main button.main"),
    ("/tokens/new", LONG_NAME, "[value=save]"),
    ("/new-context-field", LONG_NAME | {"[name=more]": f"{WORDS}, {LONG}"}, "[value=save]"),
    ("/new-tag-type", LONG_NAME, "main button.main"),
    ("/new-strategy-type", LONG_NAME, "[value=save]"),
    ("/flags/new/edit", {"[name=url]": f"{WORDS} {LONG}", "[name=title]": WORDS}, "[action$=links] button"),
    ("/new-webhook", {"[name=url]": "no address", "[name=description]": f"{WORDS} {LONG}"}, "[value=save]"),
    ("/my-tokens", {"[name=description]": WORDS}, "main button.main"),
    ("/try", {"[name=value]": f"{WORDS} {LONG}"}, ".edit .main"),
    ("/flags/new", {}, ".switch"),
    ("/history", {}, "td .small button"),
)
"""Page, what is typed into which fields (boxes are ticked), and the button that is pressed then: pages with errors, results,
notices and questions."""


def answered(page: Browser, address: str, fields: dict[str, str], button: str) -> None:
    """Fill in the form of a page, and press a button of it."""
    page.go(address)
    for field, value in fields.items():
        page.run(f"window.field = document.querySelector({json.dumps(field)}); field.value = {json.dumps(value)}")
        page.run("field.checked = true")
    page.run(f"document.querySelector('{button}').closest('form').noValidate = true; window.mark = 1")
    page.run(f"document.querySelector('{button}').click()")
    page.wait_for("document.readyState === 'complete' && (!window.mark || document.querySelector('#notice > *'))")


CASES = [
    pytest.param("hostile", USER_SECRET, "light", 320, id="hostile"),
    pytest.param("one", USER_SECRET, "dark", 1200, id="one", marks=pytest.mark.long),
    pytest.param("hostile", VIEWER_SECRET, "dark", 320, id="hostile-viewer", marks=pytest.mark.long),
    pytest.param("empty", USER_SECRET, "dark", 320, id="empty", marks=pytest.mark.long),
    pytest.param("empty", VIEWER_SECRET, "light", 1440, id="empty-viewer", marks=pytest.mark.long),
    pytest.param("one", USER_SECRET, "forced colours", 320, id="one-forced", marks=pytest.mark.long),
    pytest.param("one", VIEWER_SECRET, "light", 768, id="one-viewer", marks=pytest.mark.long),
    pytest.param("5,000 flags", USER_SECRET, "light", 360, id="many", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("state", "secret", "look", "width"), CASES)
def test_every_page(state: str, secret: str, look: str, width: int) -> None:
    """No page in this state has a fault, for who may change all and for who may only look, in each scheme of colours."""
    with our_flag_server(given=STATES[state]) as server, browser() as page:
        page.call("Emulation.setEmulatedMedia", features=LOOKS[look])
        add_webhook(server, WORDS if state == "hostile" else "For the chat")
        root = f"{server.root}/ui"
        sign_in(page, server.root, "/flags", secret)
        found = [each for path in thinned(PATHS) for each in faults_of(page, root + path, width)]
        for path, fields, button in thinned(FORMS) if state != "empty" and secret == USER_SECRET else ():
            answered(page, root + path, fields, button)
            found += faults(page, width)
    assert not found, "\n".join(found)
