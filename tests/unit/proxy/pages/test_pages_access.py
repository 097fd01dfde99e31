"""Who may see the proxy's pages, and what every answer of them has."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.pages.headers import POLICY
from flagsvc.pages.sign_in_tries import NETWORK_TRIES
from flagsvc.proxy.pages.access import MAX_SESSIONS, SESSION_S
from flagsvc.proxy.pages.desk import PagesContract
from flagsvc.proxy.pages.page import SITE
from flagsvc.testing import RecordingLog
from support.desk_scene import ELSEWHERE, KEY, LOCAL, DeskScene, header

PAGES = ("/ui/flags", "/ui/flags/off", "/ui/try", "/ui/config")
KEYED = f"Bearer {KEY}"


async def test_every_answer_has_the_policy_and_no_cors() -> None:
    """Pages, data, files, redirects and errors have the guards, and none has a CORS header."""
    desk = DeskScene()
    style = (await desk.text("/ui/status")).partition('rel="stylesheet" href="')[2].partition('"')[0]
    paths = ["/ui/", "/ui/status", "/ui/status.json", *PAGES, "/ui/nothing", "/ui/nothing.json", style, "/ui/static/0/x.js"]
    for path in paths:
        for method in ("GET", "HEAD", "DELETE"):
            answer = await desk.ask(path, method, accept="text/html", origin="https://other.example")
            assert header(answer, "content-security-policy") == POLICY, (method, path)
            assert header(answer, "x-content-type-options") == "nosniff"
            assert not [name for name, _ in answer.headers() if name.startswith(b"access-control")]
            assert (method != "HEAD") or answer.body == b""
    assert header(await desk.ask(style), "cache-control") == "public, max-age=31536000, immutable"
    assert header(await desk.ask("/ui/status"), "cache-control") == "no-store"


async def test_odd_addresses_are_no_errors() -> None:
    """Bytes that are no text, many parameters and other methods get an answer of the pages, and no line in the log."""
    log = RecordingLog()
    desk = DeskScene(logger=log)
    assert (await desk.ask("/ui/%FF")).status == 404
    assert (await desk.ask("/ui/status?" + "&".join("a" * 200))).status == 200
    assert (await desk.ask(f"/ui/static/{SITE.files.address('style.css')}", "DELETE")).status in (404, 405)
    assert not [line for line in log.lines if "unexpected" in repr(line)]


async def test_a_browser_at_the_root_comes_to_the_pages() -> None:
    """Other callers get the answer as before, and so do all other paths of the address."""
    desk = DeskScene(proxy_base_path="/base")
    browser: dict[str, Any] = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
    for path, place in {"/": "/ui/", "/base": "/base/ui/", "/base/": "/base/ui/"}.items():
        answer = await desk.ask(path, **browser)
        assert (answer.status, header(answer, "location")) == (303, place)
    assert (await desk.ask("/")).status == 404 and (await desk.ask("/", accept="*/*")).status == 404
    assert (await desk.ask("/livez", **browser)).status == 200 and (await desk.ask("/metrics")).status == 200
    assert header(await desk.ask("/base/ui/"), "location") == "/base/ui/status"
    assert 'href="/base/ui/flags"' in await desk.text("/base/ui/status")


async def test_callers_do_not_get_the_pages() -> None:
    """The callers' port knows no page."""
    desk = DeskScene()
    desk.desk = desk.runtime.service
    assert (await desk.ask("/ui/status")).status == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9090", "127.0.0.1.evil.example", "10.0.0.5", "", "[::2]"])
async def test_another_host_is_refused_where_pages_are_open(host: str) -> None:
    """No site reaches the pages under its own name; the sentence says which Host is right."""
    desk = DeskScene()
    for path in ("/ui/status", "/ui/flags", "/ui/status.json"):
        answer = await desk.ask(path, host=host)
        assert answer.status == 421 and b"localhost" in answer.body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9090", "127.9.9.9", "[::1]:9090", "[::1]"])
async def test_our_own_addresses_are_right(host: str) -> None:
    """A forwarded port does not matter."""
    for address in (LOCAL, "localhost:9090", "unix:/tmp/desk.sock"):
        assert (await DeskScene(address).ask("/ui/status", host=host)).status == 200


async def test_without_keys_only_the_status_is_open_elsewhere() -> None:
    """Pages with names say how to get them, and the status names no flag."""
    desk = DeskScene(ELSEWHERE)
    desk.only.poller.notes.error = "toggle broken is wrong"
    for path in PAGES:
        for data in ("", ".json"):
            answer = await desk.ask(path + data, host="proxy.example")
            assert answer.status == 403 and b"adminPageKeys" in answer.body
    told = (await desk.text("/ui/status")) + (await desk.text("/ui/status.json"))
    assert "broken" not in told and "new-checkout" not in told
    [told_of] = (await desk.data("/ui/status.json"))["environments"]
    assert told_of["leftOut"] == told_of["odd"] == {"number": 1, "parts": []}


async def test_a_key_opens_the_pages_elsewhere() -> None:
    """It is sent alone or behind `Bearer`; another one is refused, and a browser is asked to sign in."""
    desk = DeskScene(ELSEWHERE, admin_page_keys=(KEY, "another-key"))
    for path in PAGES:
        for key in (KEY, KEYED, "another-key"):
            assert (await desk.ask(path, authorization=key)).status == 200
        for key in ("", "Bearer", f"{KEY}x", KEY[:-1], "key"):
            assert (await desk.ask(path, authorization=key)).status == 401
            await desk.clock.advance(60)
        assert (await desk.ask(f"{path}.json")).status == 401
        answer = await desk.ask(path)
        assert (answer.status, header(answer, "location")) == (303, "/ui/sign-in")
    assert "new-checkout" in await desk.text("/ui/status", authorization=KEY)


async def test_signing_in_and_out() -> None:
    """The cookie is for this site's own scripts-free use, holds no key, and ends with time or by signing out."""
    desk = DeskScene(ELSEWHERE, admin_page_keys=KEY)
    assert 'name="key"' in await desk.text("/ui/sign-in")
    wrong = await desk.ask("/ui/sign-in", "POST", {"key": "wrong"})
    assert wrong.status == 403 and header(wrong, "set-cookie") is None
    answer = await desk.ask("/ui/sign-in", "POST", {"key": KEY})
    cookie = header(answer, "set-cookie") or ""
    assert answer.status == 303 and KEY not in cookie
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    pair = cookie.partition(";")[0]
    assert "Sign out" in await desk.text("/ui/flags", cookie=f"other=1; {pair}")
    assert (await desk.ask("/ui/flags", cookie=f"{pair}x")).status == 303
    left = await desk.ask("/ui/sign-out", "POST", {}, cookie=pair)
    assert "Max-Age=0" in (header(left, "set-cookie") or "") and (await desk.ask("/ui/flags", cookie=pair)).status == 303
    again = (header(await desk.ask("/ui/sign-in", "POST", {"key": KEY}), "set-cookie") or "").partition(";")[0]
    await desk.clock.advance(SESSION_S + 1)
    assert (await desk.ask("/ui/flags", cookie=again)).status == 303


async def test_wrong_keys_are_tried_slowly() -> None:
    """After ten wrong keys in a minute, by form or header, even the right one waits. Sessions and other addresses do not."""
    desk = DeskScene(ELSEWHERE, admin_page_keys=KEY, trust_proxy="192.0.2.1")
    session = (header(await desk.ask("/ui/sign-in", "POST", {"key": KEY}), "set-cookie") or "").partition(";")[0]
    for number in range(NETWORK_TRIES):
        by_form = await desk.ask("/ui/sign-in", "POST", {"key": "wrong"}) if number % 2 else None
        assert (by_form or await desk.ask("/ui/flags", authorization="wrong")).status in (401, 403)
    for answer in (await desk.ask("/ui/sign-in", "POST", {"key": KEY}), await desk.ask("/ui/flags", authorization=KEY)):
        assert (answer.status, header(answer, "retry-after")) == (429, "6") and b"in 6 seconds" in answer.body
    assert (await desk.ask("/ui/flags", cookie=session)).status == 200
    assert (await desk.ask("/ui/flags", authorization=KEY, x_forwarded_for="198.51.100.7")).status == 200
    await desk.clock.advance(6)
    assert (await desk.ask("/ui/flags", authorization=KEY)).status == 200


async def test_the_number_of_sessions_is_bounded() -> None:
    """The oldest one ends."""
    desk = DeskScene(ELSEWHERE, admin_page_keys=KEY)
    assert isinstance(desk.desk, PagesContract)
    first = desk.desk.access.open_session()[1].decode().partition(";")[0]
    assert (await desk.ask("/ui/config", cookie=first)).status == 200
    for _ in range(MAX_SESSIONS):
        desk.desk.access.open_session()
    assert (await desk.ask("/ui/config", cookie=first)).status == 303


async def test_forms_of_other_sites_are_refused() -> None:
    """A browser says where a form came from; a program sends neither header."""
    desk = DeskScene()
    for headers, status in (
        ({}, 200),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"origin": f"http://{LOCAL}"}, 200),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"origin": "https://evil.example"}, 403),
    ):
        assert (await desk.ask("/ui/try", "POST", {"userId": "7"}, **headers)).status == status, headers


async def test_forms_are_bounded() -> None:
    """Another media type is a 415, a large form a 413, and a strange method a 405 with what is allowed."""
    desk = DeskScene()
    assert (await desk.ask("/ui/try", "POST", {"a": "b"}, content_type="application/json")).status == 415
    assert (await desk.ask("/ui/try", "POST", {"a": "b" * 200_000})).status == 413
    answer = await desk.ask("/ui/flags", "POST", {})
    assert answer.status == 405 and header(answer, "allow") == "GET, HEAD, POST"
    assert (await desk.ask("/ui/status", padding="x" * 20_000)).status == 431
