"""Signing in by the header of an authenticating proxy: from its networks alone, as the person that it names now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from flagsvc.server.sign_in.ways import SignInWays, UserHeader
from flagsvc.server.store.resources import identities, users
from support import processes
from support.flagservers import AppClient, app_client
from support.page_forms import COOKIE, Visitor

PROXY, ELSEWHERE = "10.1.2.3", "203.0.113.7"
NETWORKS = ("10.0.0.0/8",)
RULES = (("flag-admins", "admin"), ("devs", "editor"), ("shop", "member:shop"), ("shop-leads", "owner:shop"), ("x", "owner:gone"))
SHOP: dict[str, Any] = {"projects": [{"id": "shop", "name": "Shop"}]}


@contextmanager
def behind_a_proxy(
    database: str, *, groups: bool = False, given: dict[str, Any] | None = None, url: str = ""
) -> Iterator[AppClient]:
    """Give a server that trusts the header X-User of a proxy, with groups or without."""
    ways = SignInWays(UserHeader("x-user", NETWORKS, "x-groups" if groups else None), RULES if groups else ())
    with app_client(database, given=given, ways=ways, url=url) as client:
        yield replace(client, peer=PROXY)


@pytest.fixture
def client(database_url: str) -> Iterator[AppClient]:
    """Give a server behind a proxy that names no groups."""
    with behind_a_proxy(database_url) as client:
        yield client


def enter(visitor: Visitor, path: str = "/flags", **headers: str) -> processes.Answer:
    """Open a page, follow the way through the sign-in, and return the last answer."""
    answer = visitor.see(path, **headers)
    while answer.status == 303:
        answer = visitor.client.get(answer.headers["location"], token=None, headers={"cookie": visitor.cookie, **headers})
        if found := COOKIE.match(answer.headers.get("set-cookie", "")):
            visitor.cookie = f"{found[1]}={found[2]}"
    return answer


def test_a_person_comes_in_without_a_form(client: AppClient) -> None:
    """The page that was asked for is there, as the user of the header, and the session says what opened it."""
    visitor = Visitor(client, None)
    away = visitor.see("/history?page=2", **{"x-user": "writer"})
    assert away.headers["location"] == "/ui/sign-in/header?next=%2Fhistory%3Fpage%3D2"
    answer = enter(visitor, "/sessions", **{"x-user": "writer"})
    assert answer.status == 200 and "writer (editor)" in answer.text and "the proxy in front" in answer.text
    assert visitor.was_seen("writer")


def test_the_header_counts_from_the_proxy_alone(client: AppClient) -> None:
    """From any other address it is as if it were absent, also with a session that the proxy's header opened."""
    outside = Visitor(replace(client, peer=ELSEWHERE), None)
    assert outside.see("/flags", **{"x-user": "writer"}).headers["location"].startswith("/ui/sign-in?")
    assert outside.see("/sign-in/header", **{"x-user": "writer"}).headers["location"] == "/ui/sign-in?next=%2Fflags"
    inside = Visitor(client, None)
    assert enter(inside, **{"x-user": "writer"}).status == 200
    outside.cookie = inside.cookie
    assert outside.see("/flags", **{"x-user": "writer"}).status == 303, "a stolen cookie opens nothing from elsewhere"
    assert outside.see("/flags", **{"x-user": "writer", "x-forwarded-for": PROXY}).status == 303


def test_a_browser_that_drops_the_cookie_is_told(database_url: str) -> None:
    """Over http, while the public address is https, the way through the sign-in ends at the form with the reason."""
    with behind_a_proxy(database_url, url="https://flags.example") as client:
        visitor, named = Visitor(client, None), {"x-user": "writer"}
        goal = visitor.see("/flags", **named).headers["location"].removeprefix("/ui")
        kept = visitor.see(goal, **named).headers["location"].removeprefix("/ui")
        answer = visitor.see(kept, **named)
        assert answer.status == 403 and "because this page came over http" in answer.text
        assert "https://flags.example/ui/flags" in answer.text and "writer (editor)" in enter(visitor, **named).text


def test_a_session_is_that_of_the_header(client: AppClient) -> None:
    """It ends for requests without the header and with another name; who comes then is the other person."""
    visitor = Visitor(client, None)
    assert enter(visitor, **{"x-user": "writer"}).status == 200
    session = visitor.cookie
    assert visitor.see("/flags").headers["location"].startswith("/ui/sign-in?")
    assert visitor.see("/flags", **{"x-user": "Writer"}).status == 303
    assert "reader (viewer)" in enter(visitor, "/flags", **{"x-user": "reader"}).text
    visitor.cookie = session
    assert visitor.see("/flags", **{"x-user": "writer"}).status == 200


def test_tokens_and_links_work_beside_it(client: AppClient) -> None:
    """The form is there, with a way to go on as the named person, and a session of a token needs no header."""
    visitor = Visitor(client)
    assert visitor.see("/flags").status == 200 and "boss (admin)" in visitor.see("/flags", **{"x-user": "writer"}).text
    form = Visitor(client, None).see("/sign-in?next=/try", **{"x-user": "writer"}).text
    assert "Continue as writer" in form and "/ui/sign-in/header?next=/try" in form and 'name="token"' in form


def test_the_header_opens_pages_only(client: AppClient) -> None:
    """The API takes tokens alone, and a form without a session is refused."""
    for path in ("/api/admin/projects", "/api/client/features", "/ui/flags.json"):
        assert client.get(path, token=None, headers={"x-user": "writer"}).status == 401
    assert Visitor(client, None).send("/sessions/end", headers={"sec-fetch-site": "same-origin", "x-user": "boss"}).status == 401


def test_a_name_without_a_user_is_refused(client: AppClient) -> None:
    """Without groups nobody is made a user, and nothing changes."""
    before = client.server.store.revision()
    answer = enter(Visitor(client, None), **{"x-user": "stranger"})
    assert answer.status == 403 and "no user for you here" in answer.text
    assert client.server.store.revision() == before


def test_an_administrator_has_to_be_linked(client: AppClient) -> None:
    """A name alone makes nobody an administrator. Once linked, the administrator comes in."""
    answer = enter(Visitor(client, None), **{"x-user": "boss"})
    assert answer.status == 403 and "flagsvc server user link boss --issuer header --subject boss" in answer.text
    with client.server.store.writing(None) as tx:
        identities.link(tx, users.find_by_name(tx, "boss"), identities.HEADER, "boss")
    assert "boss (admin)" in enter(Visitor(client, None), **{"x-user": "boss"}).text


def test_an_address_finds_its_user(database_url: str) -> None:
    """Letter case does not matter in an address."""
    given = {"users": [{"name": "ada", "email": "ada@flags.example", "rootRole": "editor"}]}
    with behind_a_proxy(database_url, given=given) as client:
        assert "ada@flags.example (editor)" in enter(Visitor(client, None), **{"x-user": "Ada@Flags.Example"}).text


def grouped(database: str) -> AbstractContextManager[AppClient]:
    """Give a server behind a proxy that names groups."""
    return behind_a_proxy(database, groups=True, given=SHOP)


def roles_of(client: AppClient, name: str) -> tuple[str, dict[str, str]]:
    """Return the root role of a user, and the roles in projects."""
    with client.server.store.reading() as tx:
        found = next(each for each in users.list_with_roles(tx) if each["user"] == name)
    return found["role"], {each["project"]: each["role"] for each in found["projectRoles"]}


def test_groups_make_a_user_and_give_the_roles(database_url: str) -> None:
    """The strongest root role holds, roles in projects come on top, and projects that are not there do not matter."""
    with grouped(database_url) as client:
        answer = enter(Visitor(client, None), **{"x-user": "ada", "x-groups": "devs, flag-admins , others"})
        assert "ada (admin)" in answer.text and roles_of(client, "ada") == ("admin", {})
        enter(Visitor(client, None), **{"x-user": "ben", "x-groups": "shop,x"})
        assert roles_of(client, "ben") == ("viewer", {"shop": "member"})
        kinds = client.get("/api/admin/events").json()["events"]
        assert {"user-created", "project-access-user-roles-updated"} <= {each["type"] for each in kinds if each["way"] == "sign-in"}


def test_groups_are_applied_at_each_sign_in(database_url: str) -> None:
    """With other groups the session ends, and the roles are those of the new groups; without any of ours nobody comes in."""
    with grouped(database_url) as client:
        visitor = Visitor(client, None)
        enter(visitor, **{"x-user": "ada", "x-groups": "devs,shop"})
        assert roles_of(client, "ada") == ("editor", {"shop": "member"})
        assert visitor.see("/flags", **{"x-user": "ada", "x-groups": "shop, devs"}).status == 200, "the order does not matter"
        assert visitor.see("/flags", **{"x-user": "ada", "x-groups": "shop-leads"}).status == 303
        enter(visitor, **{"x-user": "ada", "x-groups": "shop-leads"})
        assert roles_of(client, "ada") == ("viewer", {"shop": "owner"})
        for groups in ("others", ""):
            answer = enter(visitor, **{"x-user": "ada", "x-groups": groups})
            assert answer.status == 403 and "None of your groups has a role here" in answer.text
        assert client.get("/ui/flags", token=None, headers={"x-user": "ada"}, more=[("x-groups", "devs")] * 2).status == 303
