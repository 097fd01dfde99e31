"""A newcomer's way through the pages of a new flag server, in a real browser, with the real SDK as caller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.browser import browser
from support.flagservers import our_flag_server
from support.person import Person, Way
from support.processes import KEY, Program, Proxy, node_script, our_proxy

pytestmark = pytest.mark.programs

WAYS: tuple[Way, ...] = ("pointer", "keys", "without script")
PROXY_TOKEN = {"tokenName": "proxy", "type": "client", "environment": "production", "projects": ["*"]}
APP = """
const { UnleashClient, InMemoryStorageProvider } = require(process.argv[2]);
const [url, clientKey] = process.argv.slice(3);
const client = new UnleashClient({
  url, clientKey, appName: "app", refreshInterval: 1, storageProvider: new InMemoryStorageProvider(),
});
let last;
setInterval(() => {
  const on = client.isEnabled("new-checkout");
  if (on !== last) console.log(JSON.stringify({ event: "state", on: (last = on) }));
}, 50);
client.start();
process.stdin.on("end", () => process.exit()).resume();
"""


@contextmanager
def app(proxy: Proxy) -> Iterator[Program]:
    """Run an app with the SDK for browsers; it tells each state of the flag."""
    with node_script("app", APP, "unleash-proxy-client", proxy.url, KEY) as program:
        yield program


def wait_for(app: Program, *states: bool) -> None:
    """Wait until the app has seen these states of the flag, and no other ones."""
    app.wait(lambda: [each["on"] for each in app.said("state")] == [*states], f"at {states}")


@pytest.mark.parametrize("way", WAYS)
def test_the_first_day(way: Way, tmp_path: Path) -> None:
    """From the link of the first start to a flag that the SDK sees in production, and back by the history."""
    with our_flag_server(seeded=False, folder=tmp_path) as server, browser() as page:
        first = server.first_secrets(tmp_path / "flags.db")
        token = server.ask("POST", "/admin/api-tokens", PROXY_TOKEN, token=first.token).json()["secret"]
        person = Person(page, way)
        person.go(first.link)
        if way == "without script":
            person.fill("#token", first.link.partition("#")[2])
        person.follow("main form button")
        with our_proxy(server.url, UNLEASH_API_TOKEN=token) as proxy, app(proxy) as caller:
            make_flag(person)
            wait_for(caller, False)
            switch_on(person)
            wait_for(caller, False, True)
            page.go(f"{server.root}/ui/proxies")
            page.wait_for("document.body.innerText.includes('1 of 1')")
            undo(person)
            wait_for(caller, False, True, False)
        assert page.complaints() == []


def make_flag(person: Person) -> None:
    """Make the flag, and give it a strategy in production."""
    person.follow("main a[href$='/new-flag']")
    person.fill("[name=name]", "new-checkout")
    person.follow("main form.edit button.main")
    person.follow("a[href$='/production/strategies/new']")
    person.fill("[name=rollout]", "100")
    person.fill("[name=title]", "all of them")
    person.follow("button[value=preview]:not(.hidden)")
    assert person.sees("What changes when you save")
    person.follow(".preview button.main")
    assert person.sees("all of them")


def switch_on(person: Person) -> None:
    """Switch it on in production, which asks first."""
    person.follow("form[action$='/production/switch'] button")
    assert person.sees("Switch new-checkout on in production?")
    person.follow("main form button.main")
    assert person.sees("You switched new-checkout on in production")


def undo(person: Person) -> None:
    """Take the switch back by the history."""
    person.follow("nav a[href$='/history']")
    assert person.sees("switched new-checkout on in production")
    person.follow("main tbody tr:first-child form[action$='/undo'] button")
    person.follow("main form button.main")
    assert person.sees("switched new-checkout off in production")
