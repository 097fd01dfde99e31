"""Signing in at the pages: with a personal token or a link, never with anything else, and what ends a session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest

from flagsvc.pages.sign_in_tries import NETWORK_TRIES
from flagsvc.server.application import PAGE_ROUTES
from flagsvc.server.pages.page import MOST_TYPED
from flagsvc.server.store.keyring import IDLE_S
from flagsvc.server.store.resources import sessions
from flagsvc.testing import FakeClock
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, FRONTEND_SECRET, USER_SECRET, VIEWER_SECRET, AppClient, app_client
from support.page_forms import SAME_ORIGIN, Visitor, pass_time, read_forms

CLOCK = FakeClock
DAY_S = 24 * 3600.0


def link_of(client: AppClient, user: int = 1) -> str:
    """Return the secret of a new link of a user."""
    with client.server.store.writing(None) as tx:
        return sessions.create_link(tx, user)


def test_a_personal_token_signs_in(client: AppClient) -> None:
    """The cookie opens the pages, and the page that was asked for comes next."""
    visitor = Visitor(client, None)
    away = visitor.see("/flags?q=a")
    assert away.status == 303
    wanted = unquote(away.headers["location"].partition("next=")[2])
    answer = visitor.sign_in(USER_SECRET, next=wanted)
    assert (answer.status, answer.headers["location"]) == (303, "/ui/flags?q=a")
    assert "HttpOnly" in answer.headers["set-cookie"] and "SameSite=Lax" in answer.headers["set-cookie"]
    assert USER_SECRET not in answer.headers["set-cookie"]
    assert visitor.see("/flags").status == 200


def test_signing_in_is_seen_at_once(client: AppClient) -> None:
    """The database knows it before anything is saved later: that a link opened a session, and that a token was used."""
    visitor = Visitor(client, None)
    assert not visitor.was_seen("reader") and visitor.sign_in(link_of(client, 3)).status == 303 and visitor.was_seen("reader")
    assert not visitor.was_seen("boss") and visitor.sign_in(USER_SECRET).status == 303 and visitor.was_seen("boss")
    assert all(each["seenAt"] for each in visitor.data("/my-tokens")["tokens"])


def test_nothing_else_signs_in(client: AppClient) -> None:
    """Another token is refused with a sentence that does not repeat the token. It makes no new revision."""
    before = client.server.store.revision()
    for secret in ("", "xyzzy", BACKEND_SECRET, FRONTEND_SECRET, ADMIN_SECRET, "user:wrong"):
        answer = Visitor(client, None).sign_in(secret)
        assert answer.status == 403 and "set-cookie" not in answer.headers
        assert "no token of a user" in answer.text and (not secret or secret not in answer.text)
    assert client.server.store.revision() == before


def test_secrets_are_tried_slowly(client: AppClient, clock: FakeClock) -> None:
    """After ten wrong ones in a minute from an address even the right one waits, and the form says how long."""
    visitor = Visitor(client)
    for _ in range(NETWORK_TRIES):
        assert Visitor(client, None).sign_in("guess").status == 403
    answer = Visitor(client, None).sign_in(USER_SECRET, next="/try")
    assert (answer.status, answer.headers["retry-after"]) == (429, "6") and "set-cookie" not in answer.headers
    assert "Try again in 6 seconds" in answer.text and 'value="/try"' in answer.text
    assert visitor.see("/flags").status == 200, "who is signed in, stays so"
    assert client.get("/api/admin/projects").status == 200, "the API has no part in it"
    pass_time(clock, 6)
    assert Visitor(client, None).sign_in(USER_SECRET).status == 303


def test_right_secrets_are_no_tries(client: AppClient) -> None:
    """People behind one address do not get in each other's way."""
    assert {Visitor(client, None).sign_in(USER_SECRET).status for _ in range(2 * NETWORK_TRIES)} == {303}


def test_a_link_and_a_session_are_no_tokens(client: AppClient) -> None:
    """Neither opens the admin API, and a link opens no page by itself."""
    link, visitor = link_of(client), Visitor(client)
    assert visitor.cookie is not None
    session = visitor.cookie.partition("=")[2]
    for secret in (link, session):
        assert client.get("/api/admin/projects", token=secret).status == 401
        assert client.get("/ui/flags.json", token=secret).status == 401
    assert client.get("/ui/flags.json", token=None, headers={"cookie": f"flagsvc={link}"}).status == 401


def test_signing_out(client: AppClient) -> None:
    """The session ends on the server, too: its cookie opens nothing any more."""
    visitor = Visitor(client)
    before = visitor.cookie
    answer = visitor.send("/sign-out")
    assert answer.headers["location"] == "/ui/sign-in" and "Max-Age=0" in answer.headers["set-cookie"]
    visitor.cookie = before
    assert visitor.see("/flags").status == 303


def test_a_session_ends_by_itself(client: AppClient, clock: FakeClock) -> None:
    """It ends after twelve hours without a page, and after seven days in any case."""
    idle, busy = Visitor(client), Visitor(client)
    for _ in range(13):
        pass_time(clock, IDLE_S / 12)
        assert busy.see("/flags").status == 200
    assert idle.see("/flags").status == 303
    for _ in range(14):
        pass_time(clock, DAY_S / 2 - 60)
        busy.see("/flags")
    assert busy.see("/flags").status == 303


def test_the_database_knows_the_last_use(client: AppClient, clock: FakeClock) -> None:
    """After a restart a session that was used goes on, also if it was opened more than twelve hours ago."""
    visitor = Visitor(client)
    for _ in range(2):
        pass_time(clock, IDLE_S - 60)
        assert visitor.see("/flags").status == 200
    client.server.keyring.save_seen_times()
    client.server.keyring._session_times.clear()
    client.server.keyring.load()
    pass_time(clock, 60)
    assert visitor.see("/flags").status == 200


def test_a_user_has_a_bound_of_sessions(client: AppClient) -> None:
    """One session more ends the oldest."""
    visitors = [Visitor(client) for _ in range(sessions.MAX_SESSIONS + 1)]
    assert [each.see("/flags").status for each in visitors] == [303] + [200] * sessions.MAX_SESSIONS


ELSEWHERE = (
    *("//evil.example", "https://evil.example", "/\\evil", "evil", "/sign-in", "/a\nb", "/ä", "/./sign-in/header?next=/"),
    *("/x/%2e%2E/sign-in/header", "/%73ign-in/header", "/Sign-in/header"),
)


def test_the_way_back_stays_here(client: AppClient) -> None:
    """Signing in always leads to a page of this server."""
    for goal in ELSEWHERE:
        assert Visitor(client, None).sign_in(USER_SECRET, next=goal).headers["location"] == "/ui/flags", goal


MAKE = "/projects/default/new-flag"
AGAIN = "Send again"
TYPED = {"name": "typed", "type": "release", "description": 'two "lines",\n<b>', "x": ["1", "2"], "do": "save"}
HOOK = {"url": "https://example.com/secret", "events": ["feature-created"], "do": "save"}
MARK = "----mark"
FILE = f'--{MARK}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nsecret\r\n--{MARK}--\r\n'.encode()


def test_a_form_without_a_session_is_sent_again(client: AppClient) -> None:
    """Its answer has a form of all that was typed, without an address of its own. After signing in it does what it would have."""
    visitor = Visitor(client, None)
    answer = visitor.send(MAKE, fields=TYPED)
    assert answer.status == 401 and answer.headers["cache-control"] == "no-store" and "<b>" not in answer.text
    [form] = [each for each in read_forms(answer) if each.buttons == [("", "")] and not each.action]
    kept = {name: [value for known, value in form.fields if known == name] for name, _ in form.fields}
    assert kept == {name: [value] if isinstance(value, str) else value for name, value in TYPED.items()}
    assert visitor.sign_in(USER_SECRET).status == 303
    assert visitor.send(MAKE, fields=kept).status == 303
    flag = client.get("/api/admin/projects/default/features/typed").json()
    assert flag["description"] == TYPED["description"]


@pytest.mark.parametrize(
    ("path", "fields", "headers"),
    [
        (MAKE, TYPED, {"sec-fetch-site": "cross-site"}),
        (MAKE, TYPED, {"sec-fetch-site": "same-site"}),
        (MAKE, TYPED, {}),
        (MAKE, TYPED | {"x": [""] * MOST_TYPED}, None),
        ("/new-webhook", HOOK, None),
        ("/new-webhook/try", HOOK, None),
    ],
    ids=["another site", "another origin", "no page", "too many fields", "a secret", "a secret that is tried"],
)
def test_no_page_repeats(client: AppClient, path: str, fields: dict[str, Any], headers: dict[str, str] | None) -> None:
    """Nothing that another origin sent, nothing secret, and no more than a bound is in the page of a form without a session."""
    answer = Visitor(client, None).send(path, fields=fields, headers=headers)
    assert answer.status == 401 and AGAIN not in answer.text and "secret" not in answer.text and "typed" not in answer.text


def test_no_page_repeats_a_file(client: AppClient) -> None:
    """The page of a file without a session asks for the file again."""
    headers = {"content-type": f"multipart/form-data; boundary={MARK}", **SAME_ORIGIN}
    answer = client.post("/ui/import", FILE, token=None, headers=headers)
    assert answer.status == 401 and AGAIN not in answer.text and "secret" not in answer.text


FORMS = [each for each in PAGE_ROUTES if each.method == "POST"]


@pytest.mark.parametrize("headers", [{"sec-fetch-site": "cross-site"}, {}])
def test_forms_of_other_origins_change_nothing(client: AppClient, headers: dict[str, str]) -> None:
    """Every form of the pages refuses what another site, or no page, has sent, also for a user who is signed in."""
    visitor = Visitor(client)
    for route in FORMS:
        answer = visitor.send(route.path.removeprefix("/ui").replace(":", ""), headers=headers, token=USER_SECRET)
        assert answer.status == 403 and "did not come from a page of this server" in answer.text, route.path


def test_an_origin_is_enough(client: AppClient) -> None:
    """Browsers send no Sec-Fetch-Site on plain HTTP: there the origin tells."""
    own = {"origin": "http://flags.example:4242", "host": "flags.example:4242"}
    assert Visitor(client, None).send("/sign-in", headers=own, token=USER_SECRET).status == 303


def test_a_program_needs_no_page(client: AppClient) -> None:
    """A request with a token comes from no browser, so it needs no origin."""
    sent = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/ui/sign-out", b"", headers=sent).status == 303


def test_https(database_url: str) -> None:
    """With TLS the cookie is for this host and for TLS only."""
    with app_client(database_url, url="https://flags.example") as client:
        visitor = Visitor(client, None)
        cookie = visitor.sign_in(VIEWER_SECRET).headers["set-cookie"]
        assert cookie.startswith("__Host-flagsvc=") and "; Secure" in cookie and "Path=/;" in cookie
        assert visitor.see("/flags").status == 200
        visitor.cookie = (visitor.cookie or "").removeprefix("__Host-")
        assert visitor.see("/flags").status == 303, "another host of the domain could have set this one"


HTTPS = "https://flags.example"
"""The public address of a server that a proxy in front offers over TLS."""
KEPT = "/ui/sign-in/kept?next=%2Ftry%3Fname%3Da"


def test_a_browser_that_keeps_the_session_goes_on(database_url: str) -> None:
    """Where it is in doubt, signing in goes by way of a page that leads on; the requested path stays on this server."""
    with app_client(database_url, url=HTTPS) as client:
        visitor = Visitor(client, None)
        assert visitor.sign_in(USER_SECRET, next="/try?name=a").headers["location"] == KEPT
        assert visitor.see(KEPT.removeprefix("/ui")).headers["location"] == "/ui/try?name=a"
        assert visitor.see("/sign-in/kept?next=//evil.example").headers["location"] == "/ui/flags"


def test_a_session_that_is_lost_over_http(database_url: str) -> None:
    """Without the cookie the form comes again, with the reason and the public address of the page that was asked for."""
    with app_client(database_url, url=HTTPS) as client:
        visitor = Visitor(client, None)
        visitor.sign_in(USER_SECRET, next="/try?name=a")
        visitor.cookie = None
        answer = visitor.see(KEPT.removeprefix("/ui"))
        assert answer.status == 403 and "because this page came over http" in answer.text
        assert f'href="{HTTPS}/ui/try?name=a"' in answer.text and 'value="/try?name=a"' in answer.text


def test_a_browser_without_cookies(database_url: str) -> None:
    """Where the page came over https to the proxy in front, http is not blamed: Sec-Fetch-Site comes with https alone."""
    with app_client(database_url, url=HTTPS) as client:
        answer = Visitor(client, None).see("/sign-in/kept", **{"sec-fetch-site": "same-origin"})
        assert answer.status == 403 and "Allow the cookies" in answer.text and "http:" not in answer.text


@pytest.mark.parametrize(("url", "scheme"), [("", "http"), ("http://flags.example", "http"), (HTTPS, "https")])
def test_a_session_without_doubt_needs_no_detour(database_url: str, url: str, scheme: str) -> None:
    """Without TLS, and with TLS of its own, the page that was asked for comes at once."""
    with app_client(database_url, url=url) as client:
        visitor = Visitor(replace(client, scheme=scheme), None)
        assert visitor.sign_in(USER_SECRET).headers["location"] == "/ui/flags"
