"""Pages are never silent, in a real browser: what happens where the server does not answer, or the session has ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.balancers import nginx_as
from support.browser import Browser, browser
from support.flagservers import FILE, USER_SECRET, OurFlagServer, our_flag_server
from support.page_faults import check_page
from support.person import sign_in
from support.processes import flagsvc, running
from support.waiting import wait_until

pytestmark = pytest.mark.programs
GIVEN = {"features": [{"name": "new"}], "projects": [], "contextFields": []}
LIVE = "typeof stream !== 'undefined' && stream?.readyState === EventSource.OPEN"
SAID = "(document.querySelector('.unsent')?.innerText ?? '').trim()"
STRIP = "document.getElementById('connection').innerText"
SWITCH = "[...document.querySelectorAll('#list .switch')].find(each => each.ariaLabel.includes('development'))"
ANSWERED = "document.querySelector('[data-busy]') === null"
CREATE = "[...document.querySelectorAll('main form button')].find(each => each.value === 'save' || each.innerText === 'Create')"


@pytest.fixture
def page(server: OurFlagServer) -> Iterator[Browser]:
    """Give a browser that shows the list, signed in."""
    with browser() as page:
        sign_in(page, f"{server.root}/ui/flags")
        yield page


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


def is_on(server: OurFlagServer) -> bool:
    """Return whether the flag is on in the environment that the tests switch."""
    return bool(server.admin("/projects/default/features/new/environments/development")["enabled"])


def made(server: OurFlagServer, kind: str) -> int:
    """Return how many events of a kind there are."""
    return sum(each["type"] == kind for each in server.admin("/events")["events"])


def test_a_switch_without_an_answer(server: OurFlagServer, page: Browser) -> None:
    """Offline, a sentence at the switch says that it is not switched. The next press switches it, and the sentence goes."""
    before = is_on(server)
    with offline(page):
        page.run(f"{SWITCH}.click()")
        page.wait_for(f"{SAID} === 'Not switched: the server did not answer. Try again.'")
        assert page.run(f"{SWITCH}.nextElementSibling.className") == "problem unsent"
        assert page.run(ANSWERED)
        check(page, 1200)
    assert is_on(server) is before
    page.run(f"{SWITCH}.click()")
    page.wait_for(f"{SWITCH}.ariaChecked === '{str(not before).lower()}'")
    assert page.run(SAID) == ""
    assert is_on(server) is not before


def test_a_switch_that_asks_without_an_answer(server: OurFlagServer, page: Browser) -> None:
    """The switch of production leads to a question. Offline it says the same, and after a way back it can be pressed again."""
    asking = SWITCH.replace("development", "production")
    with offline(page):
        page.run(f"{asking}.click()")
        page.wait_for(f"{SAID} === 'Not switched: the server did not answer. Try again.'")
    for _ in range(2):
        page.run(f"{asking}.click()")
        page.wait_for("location.pathname.endsWith('/flags/new/production/switch')")
        page.run("history.back()")
        page.wait_for(f"location.pathname.endsWith('/flags') && document.readyState === 'complete' && {ANSWERED}")


def test_a_second_press_does_nothing(server: OurFlagServer, page: Browser) -> None:
    """While the server hangs, the switch is busy and takes no further press. When the server goes on, it was switched once."""
    before, kinds = is_on(server), ("feature-environment-enabled", "feature-environment-disabled")
    events = [made(server, each) for each in kinds]
    with server.hanging():
        page.run(f"{SWITCH}.click(); {SWITCH}.click()")
        page.wait_for(f"{SWITCH}.matches('[data-busy][aria-disabled=true]')")
        page.run(f"{SWITCH}.click()")
    page.wait_for(f"{SWITCH}.ariaChecked === '{str(not before).lower()}'")
    page.wait_for(ANSWERED)
    assert sum(made(server, each) for each in kinds) == sum(events) + 1


def test_a_form_without_an_answer(server: OurFlagServer, page: Browser) -> None:
    """A form that gets no answer stays as it was typed, and says so. Pressed twice later, it makes a single flag."""
    page.go(f"{server.root}/ui/projects/default/new-flag")
    page.run("document.querySelector('[name=name]').value = 'typed'")
    with offline(page):
        page.run(f"{CREATE}.click()")
        page.wait_for(f"{SAID} === 'Not sent: the server did not answer. Try again.'")
        check(page, 320)
    assert page.run("document.querySelector('[name=name]').value") == "typed"
    page.run(f"{{ const button = {CREATE}; button.click(); button.click() }}")
    page.wait_for("location.pathname === '/ui/flags/typed'")
    assert server.admin("/projects/default/features/typed")["name"] == "typed"


def test_a_session_that_ends_inside_a_form(server: OurFlagServer, page: Browser) -> None:
    """The form stays as it was typed, and leads to the sign-in in another tab. After it, the same press does what was wanted."""
    page.go(f"{server.root}/ui/projects/default/new-flag")
    page.run("document.querySelector('[name=name]').value = 'kept'")
    page.run("fetch('/ui/sign-out', {method: 'POST'}).then(() => { window.out = true })")
    page.wait_for("window.out")
    page.run(f"{CREATE}.click()")
    page.wait_for(f"{SAID} === 'Not sent: your session has ended. Sign in in a new tab, and press again'")
    assert page.run("document.querySelector('.unsent a').target") == "_blank"
    assert page.run("new URL(document.querySelector('.unsent a').href).searchParams.get('next')") == "/projects/default/new-flag"
    body = f"new URLSearchParams({{token: {json.dumps(USER_SECRET)}, next: '/flags'}})"
    page.run(f"fetch('/ui/sign-in', {{method: 'POST', body: {body}}}).then(() => {{ window.back = true }})")
    page.wait_for("window.back")
    page.run(f"{CREATE}.click()")
    page.wait_for("location.pathname === '/ui/flags/kept'")


def test_a_switch_after_the_end_of_the_session(server: OurFlagServer, page: Browser) -> None:
    """The switch says that the session has ended, and offers to sign in."""
    page.run("fetch('/ui/sign-out', {method: 'POST'}).then(() => { window.out = true })")
    page.wait_for("window.out")
    page.run(f"{SWITCH}.click()")
    page.wait_for(f"{SAID} === 'Not switched: your session has ended. Sign in in a new tab, and press again'")


def test_a_server_that_restarts_under_an_open_page(tmp_path: Path) -> None:
    """The page says that it reconnects, and no more once the server is back. It then lives on: its switches work."""
    with browser() as page:
        with our_flag_server(given=GIVEN, folder=tmp_path) as server:
            sign_in(page, f"{server.root}/ui/flags")
            page.wait_for(LIVE)
            page.run("window.mark = 1")
            port = server.root.rpartition(":")[2]
            assert page.run(STRIP) == ""
        page.wait_for(f"{STRIP}.startsWith('Reconnecting')")
        check(page, 320)
        command = [*flagsvc(), "server", "--host", "127.0.0.1", "--port", port]
        with running("again", command, env={"FLAGSVC_DATABASE_URL": str(tmp_path / FILE)}, folder=tmp_path):
            page.wait_for(f"{STRIP} === '' && {LIVE}")
            before = page.run(f"{SWITCH}.ariaChecked")
            page.run(f"{SWITCH}.click()")
            page.wait_for(f"{SWITCH}.ariaChecked !== '{before}'")
            assert page.run("window.mark") == 1


def test_a_server_that_is_away_behind_a_gateway() -> None:
    """The gateway answers in its place with 502. The page and the switch say that the server does not answer."""
    with ExitStack() as running_server, browser() as page:
        server = running_server.enter_context(our_flag_server(given=GIVEN))
        with nginx_as(f"    server {server.root.removeprefix('http://')};", "/health") as port:
            sign_in(page, f"http://127.0.0.1:{port}/ui/flags")
            page.wait_for(LIVE)
            running_server.close()
            page.run(f"{SWITCH}.click()")
            page.wait_for(f"{SAID} === 'Not switched: the server did not answer. Try again.'")
            page.wait_for(f"{STRIP}.startsWith('Reconnecting')")


def test_a_stream_that_says_nothing(server: OurFlagServer, page: Browser) -> None:
    """A page whose stream says nothing for longer than its heartbeat asks by itself, and says that the server does not answer."""
    page.wait_for(LIVE)
    page.run("hear(); window.clearTimeout(heard); poll(true)")
    with server.hanging():
        page.wait_for(f"{STRIP}.startsWith('Reconnecting')")
    page.wait_for(f"{STRIP} === '' && {LIVE}")


def test_no_page_has_words_for_programs(server: OurFlagServer, page: Browser) -> None:
    """The address of a button, and a change without a session, have a page in words for people."""
    page.go(f"{server.root}/ui/flags/new/development/on")
    assert "belongs to a button" in page.run("document.querySelector('.problem').innerText")
    page.run("fetch('/ui/sign-out', {method: 'POST'}).then(() => { window.out = true })")
    page.wait_for("window.out")
    page.run("fetch('/ui/flags/new/archive', {method: 'POST'}).then(each => each.text()).then(text => { window.text = text })")
    page.wait_for("window.text")
    assert "Your session has ended" in page.run("window.text")
    assert "program" not in page.run("window.text")


def test_a_stopped_server_is_no_reason_to_wait_for_ever(server: OurFlagServer, page: Browser) -> None:
    """A press that hangs says after ten seconds that there was no answer."""
    with server.hanging():
        page.run(f"{SWITCH}.click()")
        page.wait_for(f"{SAID}.startsWith('Not switched')")
    wait_until(lambda: server.admin("/projects"))
