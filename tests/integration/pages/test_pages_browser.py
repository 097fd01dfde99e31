"""The pages in a real browser: they work by keyboard and in place, ask no other host, and break no rule of accessibility.

Signing in in a real browser: the way to a provider and back breaks no policy, and the form no rule of accessibility.
A newcomer's way through the pages of a new flag server, in a real browser, with the real SDK as caller.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support import processes
from support.browser import NAME, Browser, browser, check_page, faults
from support.flagservers import OurFlagServer, our_flag_server
from support.person import Person, Way, sign_in
from support.processes import KEY, Program, Proxy, node_script, our_proxy
from support.provider import CLIENT, SECRET, running_provider

pytestmark = pytest.mark.programs
STRATEGY = {
    "name": "flexibleRollout",
    "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "a"},
    "constraints": [{"contextName": "plan", "operator": "IN", "values": ["team", "business"]}],
    "variants": [{"name": name, "weight": 500, "weightType": "variable", "stickiness": "userId"} for name in ("blue", "red")],
}
GIVEN = {
    "features": [{"name": name} for name in ("new", "newer", "old")],
    "segments": [{"name": "beta", "constraints": STRATEGY["constraints"]}],
    "contextFields": [{"name": "plan", "legalValues": [{"value": "team"}, {"value": "business"}]}],
    "tagTypes": [{"name": "team", "color": "#1d4ed8"}],
    "strategyTypes": [{"name": "hours", "parameters": [{"name": "from", "type": "number"}]}],
}
STATES = "[...document.querySelectorAll('#list .switch')].map(each => each.ariaChecked === 'true' ? 'on' : 'off')"
IN = "document.querySelector('#list .switch[aria-label$=\"in {}\"]')"
DEVELOPMENT, PRODUCTION = IN.format("development"), IN.format("production")
LIVE = "typeof stream !== 'undefined' && stream?.readyState === EventSource.OPEN"
ROWS = "document.querySelectorAll('#list tbody tr').length"


def prepare(server: OurFlagServer) -> None:
    """Give the flags a strategy, a parent and a link."""
    server.admin("/projects/default/features/new/environments/production/strategies", STRATEGY)
    server.admin("/projects/default/features/new/dependencies", {"feature": "old"})
    variants = [{"name": name, "weight": 500, "stickiness": "userId"} for name in ("blue", "red")]
    batch = {"environments": ["development"], "variants": variants}
    server.admin("/projects/default/features/new/variants-batch", batch, method="PUT")
    server.admin("/projects/default/features/new/link", {"url": "https://example.com/1", "title": "The ticket"})


@pytest.fixture(scope="module")
def page(server: OurFlagServer) -> Iterator[Browser]:
    """Give a browser that is signed in. In the end it must not have complained, nor looked elsewhere."""
    with browser() as page:
        sign_in(page, server.root, "/flags")
        yield page
        assert [each for each in page.complaints() if "404" not in each] == []
        foreign = [each for each in page.requested() if urlsplit(each).netloc != urlsplit(server.url).netloc]
        assert not [each for each in foreign if not each.startswith("data:image/svg+xml")], "only the browser's own symbols"


def test_search_as_you_type(server: OurFlagServer, page: Browser) -> None:
    """The list follows what is typed, in place, and the address has it."""
    page.go(f"{server.root}/ui/flags")
    page.run("window.mark = 1; const box = document.getElementById('search'); box.focus(); box.value = 'new'")
    page.run("document.getElementById('search').dispatchEvent(new Event('input', {bubbles: true}))")
    page.wait_for(f"{ROWS} === 2")
    assert page.run("window.mark") == 1 and "q=new" in page.run("location.search")
    assert page.run("document.activeElement.id") == "search"


def test_a_switch_on_the_page_of_a_flag(server: OurFlagServer, page: Browser) -> None:
    """It switches in place: the focus and the chosen week stay, and the notice tells what happened."""
    page.go(f"{server.root}/ui/flags/old?span=week")
    mine = "document.querySelector('[action$=\"/development/on\"] .switch')"
    page.run(f"window.mark = 1; {mine}.focus(); {mine}.click()")
    page.wait_for("document.querySelector('#notice .done')?.innerText.includes('You switched old on in development.')")
    assert page.run("window.mark") == 1 and "last 7 days" in page.run("document.getElementById('use-title').innerText")
    assert page.run("document.activeElement.getAttribute('aria-checked')") == "true"
    server.admin("/projects/default/features/old/environments/development/off", {})


def test_switches_in_the_list(server: OurFlagServer, page: Browser) -> None:
    """A switch of the list tells what happened, in place, and offers to undo it; the filters stay."""
    page.go(f"{server.root}/ui/flags?q=old")
    page.run(f"window.mark = 1; {DEVELOPMENT}.click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    assert "You switched old on in development." in page.run("document.getElementById('notice').innerText")
    assert page.run(STATES) == ["off", "on"] and page.run(ROWS) == 1 and page.run("window.mark") == 1
    page.run("document.querySelector('#notice button').click()")
    page.wait_for("document.querySelector('#notice .done')?.innerText.includes('off in development')")
    assert page.run(STATES) == ["off", "off"] and "q=old" in page.run("location.search")
    page.run(f"{PRODUCTION}.click()")
    page.wait_for("document.querySelector('h1')?.innerText === 'Switch old on in production?'")
    page.run("document.querySelector('button.main').click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    assert page.run(STATES) == ["on", "off"] and "q=old" in page.run("location.search")
    server.admin("/projects/default/features/old/environments/production/off", {})


def test_several_flags_are_ticked(server: OurFlagServer, page: Browser) -> None:
    """One box ticks all flags of the page. The ticks stay while the list changes, and end in one preview and one undo."""
    page.go(f"{server.root}/ui/flags?q=new")
    page.wait_for(LIVE)
    bar = "document.getElementById('ticked')"
    assert page.run(f"getComputedStyle({bar}).display") == "none"
    page.run("document.querySelector('[data-all]').click()")
    assert page.run(f"getComputedStyle({bar}).display") == "flex"
    assert page.run(f"{bar}.querySelector('b').innerText") == "2 flags ticked"
    before = page.run(STATES)
    server.admin("/projects/default/features/newer/environments/development/on", {})
    page.wait_for(f"JSON.stringify({STATES}) !== {json.dumps(json.dumps(before, separators=(',', ':')))}")
    page.wait_for("document.querySelectorAll('[name=flag]:checked').length === 2")
    page.run(f"{bar}.tag.value = 'simple:web'; {bar}.querySelector('[value=tag]').click()")
    page.wait_for("document.querySelector('h1')?.innerText === 'Add the tag simple:web to 2 flags?'")
    check_page(page, 1200)
    page.run("document.querySelector('button.main').click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    assert "q=new" in page.run("location.search") and page.run("document.body.innerText").count("simple:web") >= 2
    page.run("document.querySelector('#notice button').click()")
    page.wait_for("document.querySelector('#notice .done')?.innerText.includes('took the tag')")
    server.admin("/projects/default/features/newer/environments/development/off", {})


def test_a_test_of_a_webhook_leaves_what_is_typed(server: OurFlagServer, page: Browser) -> None:
    """It is sent in place: the page says how it came out, and the fields keep what is secret. A second press waits."""
    page.go(f"{server.root}/ui/new-webhook?for=slack")
    page.run("window.mark = 1; document.querySelector('[name=url]').value = 'http://127.0.0.1:1/secret-path'")
    page.run("[1, 2].forEach(() => document.querySelector('[value=test]').click())")
    page.wait_for("document.querySelector('#tried .problem')?.innerText.startsWith('Not delivered: the receiver')")
    assert page.run("document.querySelector('[name=url]').value") == "http://127.0.0.1:1/secret-path"
    assert page.run("window.mark") == 1 and page.run("document.querySelector('[data-busy]') === null")
    assert len([each for each in page.requested() if each.endswith("/new-webhook/try")]) == 1
    check_page(page, 1200)


@pytest.mark.parametrize(
    ("path", "button"),
    [
        ("/compare?from=production&to=development", "[value=preview]:not(.hidden)"),
        ("/new-webhook", "[value=save]"),
        ("/flags/new/production/strategies/new", "[value=save]"),
    ],
)
def test_the_button_of_a_long_form_stays_in_view(server: OurFlagServer, page: Browser, path: str, button: str) -> None:
    """It is there without scrolling, on a low window, too."""
    page.go(f"{server.root}/ui{path}")
    page.call("Emulation.setDeviceMetricsOverride", width=1000, height=420, deviceScaleFactor=1, mobile=False)
    box = json.loads(page.run(f"JSON.stringify(document.querySelector('{button}').getBoundingClientRect())"))
    assert 0 <= box["top"] < box["bottom"] <= 420 < page.run("document.documentElement.scrollHeight")


def test_compare_has_equal_columns(server: OurFlagServer, page: Browser) -> None:
    """The two environments have the same width, also with sentences of different length."""
    page.go(f"{server.root}/ui/compare?from=production&to=development")
    page.call("Emulation.setDeviceMetricsOverride", width=1200, height=800, deviceScaleFactor=1, mobile=False)
    first, second = json.loads(
        page.run("JSON.stringify([...document.querySelectorAll('.equal td')].slice(0, 2).map(each => each.offsetWidth))")
    )
    assert abs(first - second) <= 1


def test_a_switch_that_is_refused(server: OurFlagServer, page: Browser) -> None:
    """What a switch of the list cannot do is told by the page of the error."""
    server.admin("/projects/default/features", {"name": "going", "type": "release"})
    page.go(f"{server.root}/ui/flags?q=going")
    page.wait_for(f"{ROWS} === 1")
    page.run("stream?.close()")
    server.admin("/projects/default/features/going", method="DELETE")
    page.run(f"{DEVELOPMENT}.click()")
    page.wait_for("document.querySelector('main')?.innerText.includes('archived features')")


def test_a_protected_environment(server: OurFlagServer, page: Browser) -> None:
    """Its switch asks first, and then does what it said."""
    page.go(f"{server.root}/ui/flags/new")
    page.run("document.querySelectorAll('.switch')[0].click()")
    page.wait_for("document.querySelector('h1')?.innerText.startsWith('Switch new on in production')")
    assert "25 % by userId" in page.run("document.querySelector('main').innerText")
    page.run("document.querySelector('button.main').click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    assert page.run("document.querySelectorAll('.switch')[0].ariaChecked") == "true"


def test_keys(server: OurFlagServer, page: Browser) -> None:
    """`/` goes to the search, `g f` to the flags, `g t` to Try, and `g s` to the segments."""
    page.go(f"{server.root}/ui/flags")
    press(page, "/")
    assert page.run("document.activeElement.id") == "search"
    for key, path in (("t", "/ui/try"), ("s", "/ui/segments"), ("f", "/ui/flags")):
        press(page, "g")
        press(page, key)
        page.wait_for(f"location.pathname === {json.dumps(path)} && document.readyState === 'complete'")


def test_a_change_of_another_client_is_shown(server: OurFlagServer, page: Browser) -> None:
    """The list follows a switch without being loaded again. What is half typed in the search stays, and its focus."""
    page.go(f"{server.root}/ui/flags")
    page.wait_for(LIVE)
    page.run("window.mark = 1; const box = document.getElementById('search'); box.focus(); box.value = 'half ty'")
    before = page.run(STATES)
    server.admin("/projects/default/features/newer/environments/development/on", {})
    page.wait_for(f"{STATES}.filter(each => each === 'on').length === {before.count('on') + 1}")
    assert page.run("window.mark") == 1 and page.run("document.activeElement.id") == "search"
    assert page.run("document.getElementById('search').value") == "half ty"
    page.go(f"{server.root}/ui/flags/newer")
    page.wait_for("stream?.readyState === EventSource.OPEN")
    server.admin("/projects/default/features/newer/environments/development/off", {})
    page.wait_for("document.querySelectorAll('.switch')[1].ariaChecked === 'false'")


def test_a_stream_that_was_refused_is_asked_for_again(server: OurFlagServer, page: Browser) -> None:
    """A page whose stream the server refuses asks every few seconds, and follows by a stream again when it may."""
    page.go(f"{server.root}/ui/flags")
    page.wait_for(LIVE)
    page.run("window.live = document.body.dataset.live; document.body.dataset.live = '/ui/nowhere'; follow()")
    page.wait_for("stream.readyState === EventSource.CLOSED && polling !== 0")
    page.run("document.body.dataset.live = window.live; pollOnce()")
    page.wait_for("stream.readyState === EventSource.OPEN && polling === 0")


def test_an_error_changes_nothing_and_a_signed_out_page_says_so(server: OurFlagServer) -> None:
    """A live part stays while the server answers with an error. Without a session the page says so, and leads to the sign-in."""
    with browser() as page:
        sign_in(page, server.root, "/flags")
        page.wait_for(LIVE)
        page.run("const list = document.getElementById('list'); list.setAttribute('data-hx-get', '/ui/nowhere')")
        page.run("window.asked = 0; document.addEventListener('htmx:finally:request', () => { window.asked += 1 })")
        page.run("tell('revision')")
        page.wait_for("window.asked > 0")
        assert page.run(ROWS) == 3
        page.run("list.setAttribute('data-hx-get', '/ui/flags')")
        page.run("fetch('/ui/sign-out', {method: 'POST'}).then(() => tell('revision'))")
        page.wait_for("document.getElementById('connection').innerText === 'Your session has ended. Sign in'")
        assert page.run(ROWS) == 3
        page.follow("#connection a")
        assert page.run("document.querySelector('[name=next]').value") == "/flags"


def press(page: Browser, key: str) -> None:
    """Press a key."""
    page.run(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(key)}, bubbles: true}}))")


def test_a_sign_in_link(server: OurFlagServer, page: Browser) -> None:
    """The code of a link is put into the form and out of the address; only the button uses it."""
    page.go(f"{server.root}/ui/sign-in#the-code")
    page.wait_for("document.getElementById('token')?.value === 'the-code'")
    assert page.run("location.hash") == ""


def test_a_strategy_is_previewed_by_return(server: OurFlagServer, page: Browser) -> None:
    """Return in a field shows what saving changes and saves nothing; that page breaks no rule either."""
    found = server.admin("/projects/default/features/new/environments/production/strategies")
    page.go(f"{server.root}/ui/flags/new/production/strategies/{found[0]['id']}")
    page.wait_for("document.querySelector('[name=rollout]') !== null")
    page.run("document.querySelector('[name=rollout]').value = '40'; document.querySelector('[name=rollout]').focus()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    page.wait_for("document.querySelector('.preview') !== null")
    assert "15 % of the users by userId get it." in page.run("document.querySelector('.preview').innerText")
    assert server.admin("/projects/default/features/new/environments/production/strategies") == found
    for width in (320, 1200):
        check_page(page, width)


def test_why_in_a_browser(server: OurFlagServer, page: Browser) -> None:
    """A context is tried and a flag is explained; the address never has what was typed."""
    page.go(f"{server.root}/ui/try")
    page.wait_for("document.querySelector('[name=value]') !== null")
    page.run("document.querySelector('[name=value]').value = 'marked-user'; document.querySelector('.edit .main').click()")
    page.wait_for("document.getElementById('results') !== null")
    page.run("document.querySelector('#results ~ .wide [name=why]').click()")
    page.wait_for("document.querySelector('.tree') !== null")
    assert "marked" not in page.run("location.href")
    assert page.run("document.querySelector('[name=value]').value") == "marked-user"
    for width in (320, 1200):
        check_page(page, width)


def test_the_first_page_is_small(server: OurFlagServer, page: Browser, tmp_path: Path) -> None:
    """The first page takes five requests and 60 kB at most, and the stream."""
    page.call("Network.clearBrowserCache")
    page.events.clear()
    page.go(f"{server.root}/ui/flags")
    page.wait_for(f"{ROWS} === 3")
    assert 10_000 < sum(each["encodedDataLength"] for each in page.told("Network.loadingFinished")) <= 60_000
    assert len([each for each in page.requested() if not each.endswith("/stream")]) <= 5
    page.screenshot(tmp_path / "flags.png", 1200, 800)
    assert (tmp_path / "flags.png").stat().st_size > 1000


OVER_HTTP = "Cross-Origin-Opener-Policy header has been ignored"
"""What the browser says about each page that comes over http."""
BUTTON = "[...document.querySelectorAll('a.button')].find(each => each.innerText === 'Sign in with Company account')"


def test_a_person_signs_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A click leads to the provider, and from there to the page that was asked for."""
    port = processes.free_port()
    monkeypatch.setattr(processes, "free_port", lambda: port)
    with running_provider() as provider:
        env: dict[str, Any] = {
            "FLAGSVC_SERVER_PUBLIC_URL": f"http://127.0.0.1:{port}",
            "FLAGSVC_OIDC_ISSUER": provider.issuer,
            "FLAGSVC_OIDC_CLIENT_ID": CLIENT,
            "FLAGSVC_OIDC_CLIENT_SECRET": SECRET,
            "FLAGSVC_OIDC_NAME": "Company account",
            "FLAGSVC_GROUP_ROLES": "devs=editor",
        }
        with our_flag_server(folder=tmp_path, **env) as server, browser() as page:
            page.go(f"{server.root}/ui/sessions")
            page.wait_for(f"{BUTTON} !== undefined")
            for width in (320, 1200):
                check_page(page, width)
            page.run(f"{BUTTON}.click()")
            page.wait_for("document.querySelector('.who summary')?.title === 'ada@flags.example (editor)'")
            assert page.run("location.pathname") == "/ui/sessions"
            assert page.complaints() == []


def test_a_session_over_http(tmp_path: Path) -> None:
    """Where browsers are to come over https, one that comes over http drops the cookie, and its page says so."""
    public = f"https://{NAME}"
    with our_flag_server(folder=tmp_path, FLAGSVC_SERVER_PUBLIC_URL=public) as server, browser() as page:
        for host, words in ((NAME, "because this page came over http"), ("127.0.0.1", "boss (admin)")):
            sign_in(page, server.root.replace("127.0.0.1", host), "/sessions")
            assert words in page.run("document.body.innerHTML")
            assert [each for each in faults(page, 1200) if OVER_HTTP not in each] == []
        assert page.run("location.pathname") == "/ui/sessions", "loopback counts as https"


WAYS = ("pointer", *(pytest.param(way, marks=pytest.mark.long) for way in ("keys", "without script")))
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
