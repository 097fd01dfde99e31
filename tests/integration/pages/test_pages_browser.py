"""The pages in a real browser: they work by keyboard and in place, ask no other host, and break no rule of accessibility."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.browser import Browser, browser
from support.flagservers import USER_SECRET, OurFlagServer, our_flag_server
from support.page_faults import check_page

pytestmark = pytest.mark.programs
STRATEGY = {
    "name": "flexibleRollout",
    "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "a"},
    "constraints": [{"contextName": "plan", "operator": "IN", "values": ["team", "business"]}],
    "variants": [
        {"name": name, "weight": 500, "weightType": "variable", "stickiness": "userId"} for name in ("blue", "red")
    ],
}
GIVEN = {
    "features": [{"name": name} for name in ("new", "newer", "old")],
    "segments": [{"name": "beta", "constraints": STRATEGY["constraints"]}],
    "contextFields": [{"name": "plan", "legalValues": [{"value": "team"}, {"value": "business"}]}],
    "tagTypes": [{"name": "team", "color": "#1d4ed8"}],
    "strategyTypes": [{"name": "hours", "parameters": [{"name": "from", "type": "number"}]}],
}
STATES = "[...document.querySelectorAll('#list .switch')].map(each => each.innerText.split(':')[0].trim())"
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
def server() -> Iterator[OurFlagServer]:
    """Give a flag server with a few flags."""
    with our_flag_server(given=GIVEN) as server:
        prepare(server)
        yield server


@pytest.fixture(scope="module")
def page(server: OurFlagServer) -> Iterator[Browser]:
    """Give a browser that is signed in. In the end it must not have complained, nor looked elsewhere."""
    with browser() as page:
        page.go(address(server, "/flags"))
        page.wait_for("document.getElementById('token') !== null")
        page.run(f"document.getElementById('token').value = {json.dumps(USER_SECRET)}")
        page.run("document.querySelector('main form button').click()")
        page.wait_for(f"{ROWS} === 3")
        yield page
        assert [each for each in page.complaints() if "404" not in each] == []
        foreign = [each for each in page.requested() if urlsplit(each).netloc != urlsplit(server.url).netloc]
        assert not [each for each in foreign if not each.startswith("data:image/svg+xml")], (
            "only the browser's own symbols"
        )


def address(server: OurFlagServer, path: str) -> str:
    """Return the address of a page."""
    return f"{server.url.removesuffix('/api')}/ui{path}"


def test_search_as_you_type(server: OurFlagServer, page: Browser) -> None:
    """The list follows what is typed, in place, and the address has it."""
    page.go(address(server, "/flags"))
    page.run("window.mark = 1; const box = document.getElementById('search'); box.focus(); box.value = 'new'")
    page.run("document.getElementById('search').dispatchEvent(new Event('input', {bubbles: true}))")
    page.wait_for(f"{ROWS} === 2")
    assert page.run("window.mark") == 1 and "q=new" in page.run("location.search")
    assert page.run("document.activeElement.id") == "search"


def test_switch_and_undo(server: OurFlagServer, page: Browser) -> None:
    """A switch tells what happened, and the button beside it takes it back."""
    page.go(address(server, "/flags/old"))
    page.run("document.querySelector('.switch').click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    assert "You switched old on in development." in page.run("document.getElementById('notice').innerText")
    assert page.run("document.querySelector('.switch').ariaChecked") == "true"
    page.run("document.querySelector('#notice button').click()")
    page.wait_for("document.querySelector('#notice .done')?.innerText.includes('off in development')")
    assert page.run("document.querySelector('.switch').ariaChecked") == "false"


def test_switches_in_the_list(server: OurFlagServer, page: Browser) -> None:
    """A switch of the list tells what happened, in place, and offers to undo it; the filters stay."""
    page.go(address(server, "/flags?q=old"))
    page.run("window.mark = 1; document.querySelector('#list .switch').click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    assert "You switched old on in development." in page.run("document.getElementById('notice').innerText")
    assert page.run(STATES) == ["on", "off"] and page.run(ROWS) == 1 and page.run("window.mark") == 1
    page.run("document.querySelector('#notice button').click()")
    page.wait_for("document.querySelector('#notice .done')?.innerText.includes('off in development')")
    assert page.run(STATES) == ["off", "off"] and "q=old" in page.run("location.search")
    page.run("document.querySelectorAll('#list .switch')[1].click()")
    page.wait_for("document.querySelector('h1')?.innerText === 'Switch old on in production?'")
    page.run("document.querySelector('button.main').click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    assert page.run(STATES) == ["off", "on"] and "q=old" in page.run("location.search")
    server.admin("/projects/default/features/old/environments/production/off", {})


def test_a_switch_that_is_refused(server: OurFlagServer, page: Browser) -> None:
    """What a switch of the list cannot do is told by the page of the error."""
    server.admin("/projects/default/features", {"name": "going", "type": "release"})
    page.go(address(server, "/flags?q=going"))
    page.wait_for(f"{ROWS} === 1")
    page.run("stream?.close()")
    server.admin("/projects/default/features/going", method="DELETE")
    page.run("document.querySelector('#list .switch').click()")
    page.wait_for("document.querySelector('main')?.innerText.includes('archived features')")


def test_a_protected_environment(server: OurFlagServer, page: Browser) -> None:
    """Its switch asks first, and then does what it said."""
    page.go(address(server, "/flags/new"))
    page.run("document.querySelectorAll('.switch')[1].click()")
    page.wait_for("document.querySelector('h1')?.innerText.startsWith('Switch new on in production')")
    assert "25 % by userId" in page.run("document.querySelector('main').innerText")
    page.run("document.querySelector('button.main').click()")
    page.wait_for("document.querySelector('#notice .done') !== null")
    assert page.run("document.querySelectorAll('.switch')[1].ariaChecked") == "true"


def test_keys(server: OurFlagServer, page: Browser) -> None:
    """`/` goes to the search, `g f` to the flags, `g t` to Try, and `g s` to the segments."""
    page.go(address(server, "/flags"))
    press(page, "/")
    assert page.run("document.activeElement.id") == "search"
    for key, path in (("t", "/ui/try"), ("s", "/ui/segments"), ("f", "/ui/flags")):
        press(page, "g")
        press(page, key)
        page.wait_for(f"location.pathname === {json.dumps(path)} && document.readyState === 'complete'")


def test_a_change_of_another_client_is_shown(server: OurFlagServer, page: Browser) -> None:
    """The list follows a switch without being loaded again. What is half typed in the search stays, and its focus."""
    page.go(address(server, "/flags"))
    page.wait_for("typeof stream !== 'undefined' && stream?.readyState === EventSource.OPEN")
    page.run("window.mark = 1; const box = document.getElementById('search'); box.focus(); box.value = 'half ty'")
    before = page.run(STATES)
    server.admin("/projects/default/features/newer/environments/development/on", {})
    page.wait_for(f"{STATES}.filter(each => each === 'on').length === {before.count('on') + 1}")
    assert page.run("window.mark") == 1 and page.run("document.activeElement.id") == "search"
    assert page.run("document.getElementById('search').value") == "half ty"
    page.go(address(server, "/flags/newer"))
    page.wait_for("stream?.readyState === EventSource.OPEN")
    server.admin("/projects/default/features/newer/environments/development/off", {})
    page.wait_for("document.querySelector('.switch').ariaChecked === 'false'")


def test_a_stream_that_was_refused_is_asked_for_again(server: OurFlagServer, page: Browser) -> None:
    """A page whose stream the server refuses asks every few seconds, and follows by a stream again when it may."""
    page.go(address(server, "/flags"))
    page.wait_for("typeof stream !== 'undefined' && stream?.readyState === EventSource.OPEN")
    page.run("window.live = document.body.dataset.live; document.body.dataset.live = '/ui/nowhere'; follow()")
    page.wait_for("stream.readyState === EventSource.CLOSED && polling !== 0")
    page.run("document.body.dataset.live = window.live; pollOnce()")
    page.wait_for("stream.readyState === EventSource.OPEN && polling === 0")


def test_an_error_changes_nothing_and_a_signed_out_page_goes_to_the_sign_in(server: OurFlagServer) -> None:
    """A live part stays while the server answers with an error. Without a session its page becomes the sign-in, and not empty."""
    with browser() as page:
        page.go(address(server, "/flags"))
        page.wait_for("document.getElementById('token') !== null")
        page.run(f"document.getElementById('token').value = {json.dumps(USER_SECRET)}")
        page.follow("main form button")
        page.wait_for("typeof stream !== 'undefined' && stream?.readyState === EventSource.OPEN")
        page.run("const list = document.getElementById('list'); list.setAttribute('data-hx-get', '/ui/nowhere')")
        page.run("window.asked = 0; document.addEventListener('htmx:finally:request', () => { window.asked += 1 })")
        page.run("tell('revision')")
        page.wait_for("window.asked > 0")
        assert page.run(ROWS) == 3
        page.run("list.setAttribute('data-hx-get', '/ui/flags')")
        page.run("fetch('/ui/sign-out', {method: 'POST'}).then(() => tell('revision'))")
        page.wait_for("document.getElementById('token') !== null")


def press(page: Browser, key: str) -> None:
    """Press a key."""
    page.run(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(key)}, bubbles: true}}))")


def test_a_sign_in_link(server: OurFlagServer, page: Browser) -> None:
    """The code of a link is put into the form and out of the address; only the button uses it."""
    page.go(address(server, "/sign-in#the-code"))
    page.wait_for("document.getElementById('token')?.value === 'the-code'")
    assert page.run("location.hash") == ""


@pytest.mark.parametrize("width", [320, 1200])
def test_a_strategy_is_previewed_by_return(server: OurFlagServer, page: Browser, width: int) -> None:
    """Return in a field shows what saving changes and saves nothing; that page breaks no rule either."""
    found = server.admin("/projects/default/features/new/environments/production/strategies")
    page.go(address(server, f"/flags/new/production/strategies/{found[0]['id']}"))
    page.wait_for("document.querySelector('[name=rollout]') !== null")
    page.run("document.querySelector('[name=rollout]').value = '40'; document.querySelector('[name=rollout]').focus()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    page.wait_for("document.querySelector('.preview') !== null")
    assert "15 % of the users by userId get it." in page.run("document.querySelector('.preview').innerText")
    assert server.admin("/projects/default/features/new/environments/production/strategies") == found
    check_page(page, width)


@pytest.mark.parametrize("width", [320, 1200])
def test_why_in_a_browser(server: OurFlagServer, page: Browser, width: int) -> None:
    """A context is tried and a flag is explained; the address never has what was typed."""
    page.go(address(server, "/try"))
    page.wait_for("document.querySelector('[name=value]') !== null")
    page.run(
        "document.querySelector('[name=value]').value = 'marked-user'; document.querySelector('.edit .main').click()"
    )
    page.wait_for("document.getElementById('results') !== null")
    page.run("document.querySelector('#results ~ .wide [name=why]').click()")
    page.wait_for("document.querySelector('.tree') !== null")
    assert "marked" not in page.run("location.href")
    assert page.run("document.querySelector('[name=value]').value") == "marked-user"
    check_page(page, width)


def test_the_first_page_is_small(server: OurFlagServer, page: Browser, tmp_path: Path) -> None:
    """The first page takes five requests at most, and the stream."""
    page.call("Network.clearBrowserCache")
    page.events.clear()
    page.go(address(server, "/flags"))
    page.wait_for(f"{ROWS} === 3")
    assert len([each for each in page.requested() if not each.endswith("/stream")]) <= 5
    page.screenshot(tmp_path / "flags.png", 1200, 800)
    assert (tmp_path / "flags.png").stat().st_size > 1000
