"""Every page in every state, in a browser: no complaint, no other host, no broken rule of accessibility, on a phone too."""

from __future__ import annotations

import json

import pytest

from support.browser import Browser, browser
from support.flagservers import USER_SECRET, VIEWER_SECRET, OurFlagServer, our_flag_server
from support.page_faults import LOOKS, faults, faults_of
from support.page_states import LONG, PATHS, STATES, WORDS

pytestmark = pytest.mark.programs


def signed_in(page: Browser, server: OurFlagServer, secret: str) -> str:
    """Sign in; returns the address of the pages."""
    root = f"{server.url.removesuffix('/api')}/ui"
    page.go(f"{root}/flags")
    page.run(f"document.getElementById('token').value = {json.dumps(secret)}")
    page.follow("main form button")
    return root


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
    pytest.param("one", USER_SECRET, "dark", 1200, id="one"),
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
        root = signed_in(page, server, secret)
        found = [each for path in PATHS for each in faults_of(page, root + path, width)]
        for path, fields, button in FORMS if state != "empty" and secret == USER_SECRET else ():
            answered(page, root + path, fields, button)
            found += faults(page, width)
    assert not found, "\n".join(found)
