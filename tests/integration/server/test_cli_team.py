"""`flagsvc server token`, `user` and `sign-in-link` on the database of each kind, beside a store that has it open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select

from flagsvc.core.clock import SystemClock
from flagsvc.server.application import load_keyring
from flagsvc.server.store.migrate import VERSION_TABLE
from flagsvc.server.store.resources.identities import Person, find_user
from flagsvc.server.store.resources.sessions import can_sign_in
from flagsvc.server.store.resources.users import find_by_name
from flagsvc.server.store.schema import events
from flagsvc.server.store.seed.once import create_first_token
from flagsvc.server.store.store import Store
from flagsvc.testing import RecordingLog
from support.cli_helpers import Flagsvc
from support.waiting import wait_until

pytestmark = pytest.mark.one_database


@pytest.fixture
def store(store: Store) -> Store:
    """Give a database after a first start, open as a server has it."""
    create_first_token(store)
    return store


def test_a_lost_token_costs_nobody_else_theirs(store: Store, run: Flagsvc) -> None:
    """A new token of the administrator is known to a running server, and the others stay. Only the secret is on stdout."""
    keyring = load_keyring(store, SystemClock(), RecordingLog())
    proxy = run("token", "create", "proxy", "--environment", "development")
    mine = run("token", "create", "laptop", "--user", "admin")
    assert (proxy.code, mine.code) == (0, 0) and mine.out.startswith("user:") and mine.out.count("\n") == 1
    assert mine.out.strip() not in mine.err and "shown only now" in mine.err
    wait_until(lambda: None not in [keyring.find(each.out.strip()) for each in (proxy, mine)])
    listed = run("token", "list")
    assert [line.split()[2] for line in listed.out.splitlines()[1:]] == ["made", "proxy", "laptop"]
    assert mine.out.strip() not in listed.out
    numbers = {each["name"]: each["id"] for each in json.loads(run("token", "list", "--json").out)}
    assert run("token", "revoke", str(numbers["laptop"])).out == "revoked the personal token `laptop` for admin\n"
    wait_until(lambda: keyring.find(mine.out.strip()) is None)
    assert keyring.find(proxy.out.strip()) is not None


def test_users(store: Store, run: Flagsvc) -> None:
    """A user is created, gets roles and is removed; each change is an event by a command."""
    made = run("user", "create", "ben", "--email", "ben@example.com")
    assert (made.code, made.out) == (0, "created the viewer `ben` with the id 2\n")
    assert run("user", "role", "ben", "editor").code == 0
    assert run("user", "role", "BEN@example.com", "member", "--project", "default").code == 0
    assert "default: member" in run("user", "list").out and "editor" in run("user", "list").out
    assert run("user", "remove", "ben").code == 2  # there is no terminal to ask at
    assert run("user", "remove", "ben", "--yes").out == "removed the editor `ben` with 0 personal tokens\n"
    with store.reading() as tx:
        kinds = tx.db.execute(select(events.c.type).where(events.c.way == "command").order_by(events.c.id)).scalars()
        assert list(kinds) == ["user-created", "user-updated", "project-access-user-roles-updated", "user-deleted"]


def test_a_user_is_linked(store: Store, run: Flagsvc) -> None:
    """The account then signs in as this user, also an administrator. At an issuer, a user has one account."""
    account = ("--issuer", "https://id.example", "--subject", "a-1")
    assert run("user", "link", "admin", *account).out == "`admin` is linked to `a-1` at `https://id.example`\n"
    assert run("user", "create", "ben").code == 0
    for words in (("ben", *account), ("admin", *account[:-1], "a-2")):
        refused = run("user", "link", *words)
        assert refused.code == 2 and "linked to another account" in refused.err
    with store.writing(None) as tx:
        found = find_user(tx, Person("https://id.example", "a-1"))
        assert found == find_by_name(tx, "admin").id and find_user(tx, Person("header", "a-1")) is None


def test_a_user_is_unlinked(store: Store, run: Flagsvc) -> None:
    """The account then signs in as no user; at an issuer without one, the message names the others."""
    assert "none is linked" in run("user", "unlink", "admin", "--issuer", "https://id.example").err
    run("user", "link", "admin", "--issuer", "https://id.example/", "--subject", "a-1")
    refused = run("user", "unlink", "admin", "--issuer", "header")
    assert refused.code == 2 and "no account at `header`; linked are those at `https://id.example`" in refused.err
    done = run("user", "unlink", "admin", "--issuer", "https://id.example/")
    assert done.out == "`admin` is no longer linked to `a-1` at `https://id.example/`\n"
    with store.writing(None) as tx:
        assert find_user(tx, Person("https://id.example", "a-1")) is None
    assert run("user", "unlink", "nosuch", "--issuer", "header").code == 2


def test_a_sign_in_link(store: Store, run: Flagsvc) -> None:
    """The link has the given address, and its secret signs in."""
    called = run("sign-in-link", "admin", "--url", "https://flags.example.com/")
    address, _, secret = called.out.strip().partition("#")
    assert (called.code, address) == (0, "https://flags.example.com/ui/sign-in")
    with store.reading() as tx:
        assert can_sign_in(tx, secret)
    assert run("sign-in-link", "admin").out.startswith("http://127.0.0.1:4242/ui/sign-in#")


MISTAKES = (
    (("token", "create", "x"), "missing: --environment NAME"),
    (("token", "create", "x", "--user", "nobody"), "There is no user `nobody`"),
    (("token", "create", "x", "--environment", "nosuch"), "Environment=nosuch does not exist"),
    (("token", "create", "x", "--user", "admin", "--expires", "2001-01-01"), "expected a time in the future"),
    (("token", "revoke", "999"), "There is no token 999"),
    (("token", "revoke", "user:s3cret"), "expected the number of a token"),
    (("user", "role", "admin", "viewer"), "This is the only administrator"),
    (("user", "role", "admin", "owner"), "`owner` is no role on the server"),
    (("user", "remove", "admin", "--yes"), "This is the only administrator"),
    (("token",), "`server token` needs another word"),
    (("s3cret",), "unexpected argument"),
)


def test_bad_usage(store: Store, run: Flagsvc) -> None:
    """Bad usage is exit code 2 and one line without a secret; nothing changes."""
    for words, message in MISTAKES:
        called = run(*words)
        assert (called.code, called.out) == (2, "") and message in called.err and called.err.count("\n") == 1
        assert "s3cret" not in called.err


def test_databases_that_cannot_be_used(store: Store, run: Flagsvc, tmp_path: Path) -> None:
    """An older schema and a missing file are one clear line and exit code 1; the missing file is not created."""
    with store.writing(None) as tx:
        tx.db.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '0001'")
    called = run("token", "list")
    assert called.code == 1 and "has the older schema `0001`" in called.err
    with store.writing(None) as tx:
        tx.db.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    called = run("token", "list")
    assert called.code == 1 and "a newer version made it" in called.err
    path = tmp_path / "nothing.db"
    called = run("token", "list", "--database", str(path))
    assert called.code == 1 and "does not exist" in called.err and not path.exists()
