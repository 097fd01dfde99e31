"""The first start creates one administrator and one token, which it shows once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import select, text

from flagsvc.core.clock import SystemClock
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.first_start import FirstSecrets, create_first_token
from flagsvc.server.store.keyring import LINK, Keyring
from flagsvc.server.store.schema import tokens, users
from flagsvc.server.store.seed.apply import apply_seed, parse_seed
from flagsvc.server.store.store import Store
from flagsvc.testing import RecordingLog


def holder(store: Store, secret: str | None) -> Actor:
    """Return the holder of a secret."""
    keyring = Keyring(store, SystemClock(), RecordingLog())
    keyring.load()
    found = keyring.find(secret or "")
    assert isinstance(found, Actor)
    return found


def names(store: Store) -> list[str | None]:
    """Return the names of all users."""
    with store.reading() as tx:
        return list(tx.db.execute(select(users.c.username).order_by(users.c.id)).scalars())


def apply_seed_once(store: Store, *people: dict[str, str], **sections: list[dict[str, str]]) -> None:
    """Write users."""
    with store.writing(None) as tx:
        apply_seed(tx, parse_seed({"users": list(people), **sections}))


def token_of(made: FirstSecrets | None) -> str | None:
    """Return the token of a first start."""
    return None if made is None else made.token


def test_the_first_start_makes_an_administrator(store: Store) -> None:
    """The token belongs to a user with all permissions; the second start makes nothing."""
    made = create_first_token(store)
    found = holder(store, token_of(made))
    assert (found.name, found.is_user, found.root_role) == ("admin", True, "admin")
    assert create_first_token(store) is None
    with store.reading() as tx:
        row, link = tx.db.execute(select(tokens).order_by(tokens.c.id)).all()
    assert made is not None and row.expires_at is None and link.kind == LINK
    assert not [value for value in (*row, *link) if made.token in str(value) or made.link in str(value)]


def test_an_administrator_of_the_seed_gets_the_token(store: Store) -> None:
    """If the seed has an administrator, no second one is made."""
    apply_seed_once(store, {"name": "somebody"}, {"name": "boss", "rootRole": "admin"})
    assert holder(store, token_of(create_first_token(store))).name == "boss"
    assert names(store) == ["somebody", "boss"]


def test_a_taken_name_is_no_trouble(store: Store) -> None:
    """A viewer who is called admin stays a viewer."""
    apply_seed_once(store, {"name": "admin"})
    assert holder(store, token_of(create_first_token(store))).name == "admin-2"
    assert names(store) == ["admin", "admin-2"]


def test_where_there_is_a_token_nothing_is_made(store: Store) -> None:
    """If the seed has a token of any kind, no first token is made."""
    apply_seed_once(store, tokens=[{"secret": "*:*.x", "type": "admin"}])
    revision = store.revision()
    assert create_first_token(store) is None
    assert names(store) == [] and store.revision() == revision


def test_servers_that_start_at_once_make_one_token(store: Store, database_url: str) -> None:
    """Of several servers on one new database, only one creates a token."""
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: create_first_token(store), range(4)))
    assert sum(secret is not None for secret in made) == 1
    assert names(store) == ["admin"]


def test_a_start_without_tokens_makes_one(store: Store) -> None:
    """When every token is deleted, as the how-to describes, a start makes one for the existing administrator."""
    lost = create_first_token(store)
    with store.recording() as tx:
        tx.db.execute(text("DELETE FROM tokens"))
    secret = token_of(create_first_token(store))
    assert secret not in (None, token_of(lost))
    assert holder(store, secret).root_role == "admin"
    assert names(store) == ["admin"]
