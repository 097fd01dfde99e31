"""Who a person of a provider becomes: names that are long, odd or those of others; and why somebody is refused, in the log."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.store.resources import identities, users
from flagsvc.server.store.resources.identities import account_id
from flagsvc.server.store.texts import utf16_length
from support.page_scene import Visitor
from support.provider import SECRET
from support.provider_scene import Scene, provider_scene


def newest(scene: Scene) -> dict[str, Any]:
    """Return the user that was made last."""
    return dict(scene.client.get("/api/admin/user-admin").json()["users"][-1])


ADDRESSES = [
    "ben@flags.example",
    "Ben@Flags.Example",
    "ben\uff20flags.example",
    "new@flags.example",
    "b\u00e9n@x.example",
]


@pytest.mark.parametrize("subject", ADDRESSES)
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
    ("name", "x" * 10_000),
    ("name", "\U0001f600" * 200),
    ("name", "Ada\r\n\u202eadmin\ud83d\x00"),
    ("email", "x" * 10_000 + "@flags.example"),
    ("email", "\U0001f600" * 200 + "@flags.example"),
    ("email", "a\x00\u202eb\ud83d@flags.example"),
    ("sub", "x" * 10_000),
    ("sub", "\U0001f600" * 5_000),
    ("sub", "a\nb\u202e\ud83d\x00"),
    ("preferred_username", "\u202e" * 10_000),
]


@pytest.mark.parametrize(("claim", "text"), LONG, ids=[f"{claim}-{number}" for number, (claim, _) in enumerate(LONG)])
def test_a_long_or_odd_name_locks_nobody_out(scene: Scene, claim: str, text: str) -> None:
    """It is shortened or left out, and what is stored is printable. The same person comes back as the same user."""
    given: dict[str, Any] = {"name": None, "sub": "l-1", claim: text}
    visitor = Visitor(scene.client, None)
    assert scene.sign_in(visitor, **given).status == 303 and scene.sign_in(**given).status == 303
    people = scene.client.get("/api/admin/user-admin").json()["users"]
    names = [people[-1].get(name) or "" for name in ("name", "username", "email")]
    assert all(name.isprintable() and utf16_length(name) <= users.MAX_LENGTH for name in names) and any(names)
    assert len([each for each in people if each["id"] >= people[-1]["id"]]) == 1
    assert visitor.see("/sessions").status == 200


def test_long_subjects_with_the_same_beginning_are_two_people(scene: Scene) -> None:
    """A subject that looks like a shortened one is another person, too."""
    texts = ["x" * 10_000, "x" * 10_000 + "y", "x\n", "x\r"]
    for text in texts:
        assert scene.sign_in(sub=text, email=None).status == 303
    with scene.client.server.store.reading() as tx:
        stored = [
            each["subject"] for row in users.list_with_roles(tx) for each in identities.list_accounts(tx, row["id"])
        ]
    assert len(set(stored)) == len(texts) and all(each.isprintable() and len(each) <= 255 for each in stored)
    assert scene.sign_in(sub=stored[0], email=None).status == 303
    with scene.client.server.store.reading() as tx:
        assert sum(len(identities.list_accounts(tx, row["id"])) for row in users.list_with_roles(tx)) == len(texts) + 1


REASONS: list[tuple[dict[str, Any], str]] = [
    ({"groups": None, "_claim_names": {"groups": "src1"}}, "group overage"),
    ({"groups": None, "hasgroups": True}, "group overage"),
    ({"groups": None}, "the claim `groups` is missing: oidcGroupsClaim"),
    ({"groups": 5}, "the claim `groups` is not a text or a list of texts"),
    ({"groups": [5]}, "an entry of the claim `groups` is not a text"),
    ({"groups": ["others"]}, "groupRoles names none of the groups"),
    ({"email": "chief@flags.example"}, "is an administrator, and is not linked"),
    ({"exp": 1_749_999_000}, "the token has expired (`exp`): compare the clocks"),
    ({"nbf": 1_750_001_000}, "the token is not valid yet (`nbf`): compare the clocks"),
    ({"iat": 1_750_001_000}, "the token is from the future (`iat`)"),
    ({"aud": "another"}, "the token is for another client"),
    ({"iss": "https://evil.example"}, "the claim `iss` names another issuer"),
    ({"nonce": "another"}, "the claim `nonce` is that of another sign-in"),
    ({"nonce": ["another"]}, "the claim `nonce` is not a text"),
    ({"sub": 5}, "the claim `sub` is not a text"),
]


@pytest.mark.parametrize(("claims", "reason"), REASONS, ids=[reason for _, reason in REASONS])
def test_a_refusal_has_its_reason_in_the_log(scene: Scene, claims: dict[str, Any], reason: str) -> None:
    """At a level that is logged by default, in words that say what to do, without anything of the person."""
    assert scene.sign_in(**claims).status == 403
    line = scene.client.log.lines[-1]
    assert line.level == "warn" and reason in str(line)
    assert not any(text in str(line) for text in ("flags.example", "Ada", "a-1", SECRET, "code-", "evil", "others"))


@pytest.mark.parametrize("verified", [None, False, "true"])
def test_an_address_that_is_not_verified_is_named_in_the_log(database_url: str, verified: object) -> None:
    """Where the roles are given here and no user is found, the log says that the address did not count."""
    with provider_scene(database_url, ()) as scene:
        assert scene.sign_in(email="ben@flags.example", email_verified=verified).status == 403
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
