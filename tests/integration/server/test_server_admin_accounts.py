"""`…/user-admin/:id/accounts`: who may see the accounts elsewhere of a user, and unlink one, and what that ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from flagsvc.server.sign_in.ways import SignInWays, UserHeader
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources import identities, users
from flagsvc.server.store.resources.identities import HEADER, Person, account_id
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, VIEWER_SECRET, AppClient, app_client
from support.page_forms import COOKIE, Visitor

USERS = "/api/admin/user-admin"
BOSS, READER = 1, 3
ISSUER = "https://id.example"
PROXY = "10.1.2.3"


@pytest.fixture
def client(database_url: str) -> Iterator[AppClient]:
    """Give a server behind a proxy that names people, on each kind of database."""
    with app_client(database_url, ways=SignInWays(UserHeader("x-user", ("10.0.0.0/8",)))) as client:
        yield replace(client, peer=PROXY)


def link(client: AppClient, user: int, issuer: str, subject: str) -> str:
    """Link a user to an account, and return the id of the account."""
    with client.server.store.writing(None) as tx:
        identities.link(tx, users.find(tx, user), issuer, subject)
    return account_id(issuer, subject)


def named(client: AppClient, name: str) -> Visitor:
    """Return a visitor who is signed in as the user that the proxy names."""
    visitor = Visitor(client, None)
    answer = visitor.see("/sign-in/header", **{"x-user": name})
    found = COOKIE.match(answer.headers["set-cookie"])
    assert found is not None
    visitor.cookie = f"{found[1]}={found[2]}"
    return visitor


def test_the_accounts_of_a_user(client: AppClient) -> None:
    """Each has issuer, subject and the time of the link; another user's are not among them."""
    link(client, READER, ISSUER, "r-1")
    link(client, READER, HEADER, "reader")
    link(client, BOSS, ISSUER, "b-1")
    found = client.get(f"{USERS}/{READER}/accounts").json()["accounts"]
    assert [(each["issuer"], each["subject"]) for each in found] == [(HEADER, "reader"), (ISSUER, "r-1")]
    assert all(set(each) == {"id", "issuer", "subject", "createdAt"} for each in found)


def test_an_unlinked_account_opens_nothing(client: AppClient) -> None:
    """Its sessions end. Sessions of tokens and of other users stay. An administrator is not linked again by a name."""
    boss, reader = link(client, BOSS, HEADER, "boss"), named(client, "reader")
    by_header, by_token = named(client, "boss"), Visitor(client)
    assert by_header.see("/flags", **{"x-user": "boss"}).status == 200
    assert client.delete(f"{USERS}/{BOSS}/accounts/{boss}").status == 200
    assert by_header.see("/flags", **{"x-user": "boss"}).status == 303 and by_token.see("/flags").status == 200
    assert reader.see("/flags", **{"x-user": "reader"}).status == 200
    refused = Visitor(client, None).see("/sign-in/header", **{"x-user": "boss"})
    assert refused.status == 403 and "flagsvc server user link" in refused.text
    assert client.get(f"{USERS}/{BOSS}/accounts").json() == {"accounts": []}


def test_a_provider_and_the_header_are_two_ways(client: AppClient) -> None:
    """Unlinking the account at a provider leaves the sessions that the header has opened."""
    account, visitor = link(client, READER, ISSUER, "r-1"), named(client, "reader")
    with client.server.store.writing(None) as tx:
        person = Person(ISSUER, "r-1")
        secret = identities.sign_in(tx, person, (), "provider")
    other = Visitor(client, None)
    other.cookie = f"flagsvc={secret}"
    assert other.see("/flags").status == 200
    assert client.delete(f"{USERS}/{READER}/accounts/{account}").status == 200
    assert (other.see("/flags").status, visitor.see("/flags", **{"x-user": "reader"}).status) == (303, 200)


def test_another_person_gets_the_user_after_it(client: AppClient) -> None:
    """A user who is no administrator can be linked to a new account at the issuer."""
    account = link(client, READER, ISSUER, "old")
    with client.server.store.writing(None) as tx, pytest.raises(CallerError, match="linked to another account"):
        identities.find_user(tx, Person(ISSUER, "new", username="reader"))
    assert client.delete(f"{USERS}/{READER}/accounts/{account}").status == 200
    with client.server.store.writing(None) as tx:
        assert identities.find_user(tx, Person(ISSUER, "new", username="reader")) == READER
        assert identities.find_user(tx, Person(ISSUER, "old")) is None


def test_what_is_told(client: AppClient) -> None:
    """The event names user, issuer and subject, also where no session ends. It has no undo, with the reason."""
    client.delete(f"{USERS}/{READER}/accounts/{link(client, READER, ISSUER, 'r-1')}")
    newest = client.get("/api/admin/search/events?limit=1").json()["events"][0]
    assert newest["type"] == "user-unlinked" and "unlinked the user **reader**" in newest["summary"]
    assert (newest["before"]["issuer"], newest["before"]["subject"], newest["after"]) == (ISSUER, "r-1", None)
    refused = client.post(f"/api/admin/events/{newest['id']}/undo")
    assert refused.status == 409 and "Who may sign in" in refused.text


def test_who_may(client: AppClient) -> None:
    """Administrators only. An account of another user is not found, and neither is an account that is gone."""
    account = link(client, READER, ISSUER, "r-1")
    path = f"{USERS}/{READER}/accounts"
    for token in (EDITOR_SECRET, VIEWER_SECRET):
        answers = [client.get(path, token=token), client.delete(f"{path}/{account}", token=token)]
        assert [each.status for each in answers] == [403, 403]
    assert client.delete(f"{USERS}/{BOSS}/accounts/{account}").status == 404
    assert [client.get(f"{USERS}/99/accounts").status, client.delete(f"{USERS}/99/accounts/x").status] == [404, 404]
    assert [client.delete(f"{path}/{account}", token=ADMIN_SECRET).status for _ in range(2)] == [200, 404]
