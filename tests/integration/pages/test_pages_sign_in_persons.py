"""Who a person of a provider becomes, also with a long or odd name, or the name of another user; and why somebody is refused.

Roles that groups gave end with the groups: in the database, in sessions that are open, in tokens, and on every server.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from flagsvc.server.sign_in.provider import Provider
from flagsvc.server.sign_in.ways import SignInWays
from flagsvc.server.store.resources import identities, personal_tokens, project_access, sessions, users
from flagsvc.server.store.resources.identities import HEADER, Person, account_id
from flagsvc.server.store.schema import identities as identities_table
from flagsvc.server.store.texts import utf16_length
from support.flagservers import app_client
from support.page_forms import Visitor
from support.provider import RULES, SECRET, URL, Scene, provider_scene, settings_of
from support.waiting import wait_until


def newest(scene: Scene) -> dict[str, Any]:
    """Return the user that was made last."""
    return dict(scene.client.get("/api/admin/user-admin").json()["users"][-1])


@pytest.mark.parametrize("subject", ["Ben@Flags.Example", "ben\uff20flags.example", "new@flags.example"])
def test_a_subject_is_no_name_that_could_be_an_address(scene: Scene, subject: str) -> None:
    """The new user gets the id of the account as name: the subject may be the address of somebody else, now or later."""
    assert scene.sign_in(sub=subject, email=None).status == 303
    made = newest(scene)
    assert (made["username"], made.get("email")) == (account_id(scene.provider.issuer, subject), None)
    assert scene.role_of("ben@flags.example") == ("viewer", [])


def test_a_subject_is_not_the_name_of_another_user(scene: Scene) -> None:
    """The person is not locked out either, and becomes a user of a name that is free."""
    assert scene.sign_in(sub="boss", email=None).status == 303
    assert newest(scene)["username"] == account_id(scene.provider.issuer, "boss")
    assert scene.sign_in(sub="u-1").status == 303 and newest(scene)["username"] == "u-1"


def test_an_address_does_not_become_that_of_another_by_its_letters(scene: Scene) -> None:
    """The Kelvin sign is a k in lower case. Such an address is not stored, and one in lower case is, as it is."""
    assert scene.sign_in(sub="k-1", email="\u212aim@flags.example").status == 303
    assert newest(scene).get("email") is None
    assert scene.sign_in(sub="k-2", email="k\u00f6nig@flags.example").status == 303
    assert newest(scene)["email"] == "k\u00f6nig@flags.example"


LONG = [
    ("name", "\U0001f600" * 200),
    ("name", "Ada\r\n\u202eadmin\ud83d\x00"),
    ("email", "\U0001f600" * 200 + "@flags.example"),
    ("sub", "\U0001f600" * 5_000),
    ("sub", "a\nb\u202e\ud83d\x00"),
    ("preferred_username", "\u202e" * 10_000),
]


@pytest.mark.parametrize(("claim", "text"), LONG, ids=[f"{claim}-{number}" for number, (claim, _) in enumerate(LONG)])
def test_a_long_or_odd_name_locks_nobody_out(scene: Scene, claim: str, text: str) -> None:
    """The name is shortened or left out. The stored name is printable. The same person comes back as the same user."""
    given: dict[str, Any] = {"name": None, "sub": "l-1", claim: text}
    visitor = Visitor(scene.client, None)
    assert scene.sign_in(visitor, **given).status == 303 and scene.sign_in(**given).status == 303
    people = scene.client.get("/api/admin/user-admin").json()["users"]
    names = [people[-1].get(name) or "" for name in ("name", "username", "email")]
    assert all(name.isprintable() and utf16_length(name) <= users.MAX_LENGTH for name in names) and any(names)
    assert len([each for each in people if each["id"] >= people[-1]["id"]]) == 1
    assert visitor.see("/sessions").status == 200


REASONS: list[tuple[dict[str, Any], str]] = [
    ({"groups": None, "hasgroups": True}, "group overage"),
    ({"groups": None}, "the claim `groups` is missing: oidcGroupsClaim"),
    ({"groups": ["others"]}, "groupRoles names none of the groups"),
    ({"email": "chief@flags.example"}, "is an administrator, and is not linked"),
    ({"exp": 1_749_999_000}, "the token has expired (`exp`): compare the clocks"),
    ({"nonce": "another"}, "the claim `nonce` is that of another sign-in"),
]


@pytest.mark.parametrize(("claims", "reason"), REASONS, ids=[reason for _, reason in REASONS])
def test_a_refusal_has_its_reason_in_the_log(scene: Scene, claims: dict[str, Any], reason: str) -> None:
    """At a level that is logged by default, in words that say what to do, without anything of the person."""
    assert scene.sign_in(**claims).status == 403
    line = scene.client.log.lines[-1]
    assert line.level == "warn" and reason in str(line)
    assert not any(text in str(line) for text in ("flags.example", "Ada", "a-1", SECRET, "code-", "evil", "others"))


def test_an_address_that_is_not_verified_is_named_in_the_log(database_url: str) -> None:
    """Where the roles are given here and no user is found, the log says that the address did not count."""
    with provider_scene(database_url, ()) as scene:
        assert scene.sign_in(email="ben@flags.example", email_verified=None).status == 403
        line = str(scene.client.log.lines[-1])
    assert "no user has the verified address" in line and "`email_verified` is not true" in line
    assert "ben@" not in line


def test_a_refusal_that_any_visitor_causes_is_in_the_log_of_more_detail(scene: Scene) -> None:
    """An answer without its cookie, with another state or for the second time, and a wrong token."""
    visitor = Visitor(scene.client, None)
    assert visitor.see("/sign-in/callback?code=x&state=y").status == 403
    query = scene.provider.sign_in(scene.leave(visitor))
    before = visitor.cookie
    assert visitor.see("/sign-in/callback?code=x&state=y").status == 403
    assert scene.come_back(visitor, query).status == 303
    visitor.cookie = before
    assert scene.come_back(visitor, query).status == 403
    assert Visitor(scene.client, None).send("/sign-in", token="wrong").status == 403
    lines = [str(line) for line in scene.client.log.lines if line.level == "info"]
    words = ("no cookie of a try", "that of another try", "used already", "unknown or has expired")
    assert [word in line for word, line in zip(words, lines, strict=True)] == [True] * 4


ADA = "ada@flags.example"
NO_ROLE = "None of your groups has a role here"


def signed_in(scene: Scene, *groups: str) -> Visitor:
    """Return the browser of Ada, who is signed in with groups."""
    visitor = Visitor(scene.client, None)
    assert scene.sign_in(visitor, groups=list(groups)).status == 303
    return visitor


def number_of(scene: Scene, name: str) -> int:
    """Return the id of a user."""
    with scene.client.server.store.reading() as tx:
        return int(users.find_by_name(tx, name).id)


def events_of(scene: Scene, *kinds: str) -> list[dict[str, Any]]:
    """Return the newest events of these kinds, the newest first."""
    found = scene.client.get("/api/admin/search/events?limit=20").json()["events"]
    return [each for each in found if each["type"] in kinds]


def token_of(scene: Scene, name: str) -> str:
    """Return the secret of a new personal token of a user."""
    with scene.client.server.store.writing(None) as tx:
        user = users.find_by_name(tx, name).id
        made = personal_tokens.create(tx, user, {"description": "ci", "expiresAt": "2099-01-01T00:00:00Z"})
    return str(made["secret"])


@pytest.mark.parametrize("groups", [["others"], None])
def test_an_answer_without_a_role_takes_what_groups_gave(scene: Scene, groups: object) -> None:
    """The administrator becomes a viewer without projects, the sessions of the provider end, and the events say all of it."""
    older = signed_in(scene, "flag-admins", "shop")
    assert older.see("/people").status == 200 and scene.role_of(ADA) == ("admin", ["shop"])
    answer = scene.sign_in(groups=groups)
    assert answer.status == 403 and NO_ROLE in answer.text
    assert scene.role_of(ADA) == ("viewer", []) and older.see("/flags").status == 303
    told = events_of(scene, "user-updated", "project-access-user-roles-updated", "user-sessions-ended")
    assert [each["way"] for each in told[:3]] == ["sign-in"] * 3
    role = next(each for each in told if each["type"] == "user-updated")
    assert (role["before"]["email"], role["before"]["rootRole"], role["after"]["rootRole"]) == (ADA, 1, 3)
    assert next(each for each in told if each["type"] == "user-sessions-ended")["before"]["sessions"] == 1


def test_a_refusal_that_takes_nothing_changes_nothing(scene: Scene) -> None:
    """The second answer without a role makes no event and no new revision; neither does that of a stranger."""
    signed_in(scene, "devs")
    scene.sign_in(groups=[])
    before = scene.client.server.store.revision()
    for subject in ("a-1", "stranger"):
        assert scene.sign_in(sub=subject, email=None, groups=[]).status == 403
    assert scene.client.server.store.revision() == before


def test_the_roles_come_back_with_the_groups(scene: Scene) -> None:
    """The person is the same user as before, with the roles that the groups give now."""
    signed_in(scene, "flag-admins")
    number = number_of(scene, ADA)
    scene.sign_in(groups=[])
    signed_in(scene, "devs", "shop")
    assert scene.role_of(ADA) == ("editor", ["shop"]) and number_of(scene, ADA) == number


def test_other_groups_change_older_sessions_and_tokens_at_once(scene: Scene) -> None:
    """A session and a token have the rights of their user at each request, and no more."""
    older = signed_in(scene, "flag-admins")
    secret = token_of(scene, ADA)
    assert scene.client.get("/api/admin/user-admin", token=secret).status == 200
    signed_in(scene, "devs")
    assert (older.see("/flags").status, older.see("/people").status) == (200, 403)
    assert scene.client.get("/api/admin/user-admin", token=secret).status == 403


def test_a_personal_token_loses_the_rights_and_stays(scene: Scene) -> None:
    """It reads, as every viewer does, and changes nothing. A session that it has opened stays, too."""
    signed_in(scene, "flag-admins")
    secret = token_of(scene, ADA)
    by_token = Visitor(scene.client, secret)
    scene.sign_in(groups=[])
    assert scene.client.get("/api/admin/projects", token=secret).status == 200
    assert scene.client.post("/api/admin/projects", {"id": "x", "name": "x"}, token=secret).status == 403
    assert (by_token.see("/flags").status, by_token.see("/people").status) == (200, 403)


def test_roles_given_by_hand_stay(scene: Scene) -> None:
    """An account that was linked on the database, and whose groups never gave a role, loses none."""
    with scene.client.server.store.writing(None) as tx:
        identities.link(tx, users.find_by_name(tx, "chief"), scene.provider.issuer, "c-1")
    answer = scene.sign_in(sub="c-1", groups=["others"])
    assert answer.status == 403 and scene.role_of("chief") == ("admin", [])


def test_what_is_given_by_hand_since_then_stays(scene: Scene) -> None:
    """Of the roles only those go that the groups gave at the last sign-in."""
    signed_in(scene, "devs")
    with scene.client.server.store.writing(None) as tx:
        user = users.find_by_name(tx, ADA).id
        users.change(tx, user, {"rootRole": "Admin"})
        project_access.replace(tx, "shop", user, [5])
    scene.sign_in(groups=[])
    assert scene.role_of(ADA) == ("admin", ["shop"])
    signed_in(scene, "devs", "shop")
    scene.sign_in(groups=[])
    assert scene.role_of(ADA) == ("viewer", [])


def test_an_account_of_an_older_version(scene: Scene) -> None:
    """Where nothing is noted, the last sign-in set every role, so every role goes."""
    signed_in(scene, "flag-admins", "shop")
    with scene.client.server.store.writing(None) as tx:
        tx.db.execute(update(identities_table).values(roles=None))
    scene.sign_in(groups=[])
    assert scene.role_of(ADA) == ("viewer", [])


def test_the_only_administrator_stays_one(scene: Scene) -> None:
    """The sessions of the provider end also then. With another administrator the next answer takes the role."""
    older = signed_in(scene, "flag-admins")
    with scene.client.server.store.writing(None) as tx:
        for row in users.list_with_roles(tx):
            if row["role"] == "admin" and row["email"] != ADA:
                users.change(tx, row["id"], {"rootRole": "Viewer"})
    assert scene.sign_in(groups=[]).status == 403
    assert scene.role_of(ADA) == ("admin", []) and older.see("/flags").status == 303
    with scene.client.server.store.writing(None) as tx:
        users.change(tx, users.find_by_name(tx, "chief").id, {"rootRole": "Admin"})
    assert scene.sign_in(groups=[]).status == 403 and scene.role_of(ADA) == ("viewer", [])


def test_sessions_of_other_ways_stay(scene: Scene) -> None:
    """A link that an administrator has made opens a session that no provider ends."""
    signed_in(scene, "devs")
    with scene.client.server.store.writing(None) as tx:
        code = sessions.create_link(tx, users.find_by_name(tx, ADA).id)
    by_link = Visitor(scene.client, code)
    scene.sign_in(groups=[])
    assert by_link.see("/flags").status == 200


def test_it_holds_on_every_server_of_the_database(scene: Scene, database_url: str) -> None:
    """A session of the provider ends at another server as soon as that notices the change."""
    ways = SignInWays(group_roles=RULES, provider=Provider(settings_of(scene.provider), scene.clock))
    with app_client(database_url, clock=scene.clock, url=URL, ways=ways, seeded=False) as other:
        older = signed_in(scene, "flag-admins")
        elsewhere = Visitor(other, None)
        elsewhere.cookie = older.cookie
        wait_until(lambda: elsewhere.see("/people").status == 200)
        scene.sign_in(groups=[])
        wait_until(lambda: elsewhere.see("/flags").status == 303)


def test_the_header_takes_roles_likewise(database_url: str) -> None:
    """Groups of the proxy in front, of which none has a role any more, end the sessions that the header has opened."""
    with app_client(database_url) as client:
        given = Person(HEADER, "ada", "", "ada", groups=("flag-admins",))
        with client.server.store.writing(None) as tx:
            assert identities.sign_in(tx, given, RULES, "header x")
        with client.server.store.writing(None) as tx:
            assert identities.sign_in(tx, given._replace(groups=()), RULES, "header y") is None
        with client.server.store.reading() as tx:
            user = users.find_by_name(tx, "ada")
            assert (user.root_role, sessions.list_sessions(tx, user.id)) == ("viewer", [])
