"""A seed as the wanted state: what differs is changed, what the file does not name stays, and a plan writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from sqlalchemy import select

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import SeedError
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.documents import DocumentQuery, Documents
from flagsvc.server.store.keyring import Keyring
from flagsvc.server.store.resources import context_fields, feature_archive, segments, strategies, tags
from flagsvc.server.store.resources.features import create as create_feature
from flagsvc.server.store.resources.maintenance import is_in_maintenance
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.seed.once import SeedOutcome, apply_seed_once
from flagsvc.server.store.seed.wanted import apply_wanted, plan_seed
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import RecordingLog
from support.same_inputs import thinned

pytestmark = pytest.mark.one_database

WHO = Actor(-1, "tester (command line)", root_role="admin")
CART: dict[str, Any] = {"feature": "cart", "environment": "production"}
ROLLOUT = CART | {"name": "flexibleRollout", "parameters": {"rollout": "25"}}
GIVEN: dict[str, Any] = {
    "environments": [{"name": "production"}, {"name": "staging", "type": "test"}],
    "projects": [{"id": "shop", "name": "Shop", "environments": ["production", "staging"]}],
    "contextFields": [{"name": "plan", "legalValues": [{"value": "free"}]}],
    "segments": [{"name": "beta", "constraints": [{"contextName": "plan", "operator": "IN", "values": ["free"]}]}],
    "users": [{"name": "ada", "rootRole": "editor", "projectRoles": [{"project": "shop", "role": "member"}]}],
    "tokens": [
        {"type": "personal", "user": "ada", "secret": "user:of-ada"},
        {"type": "backend", "secret": "*:production.of-a-proxy", "name": "proxy"},
    ],
    "features": [{"name": "cart", "project": "shop", "description": "the cart", "enabled": ["production"]}],
    "strategies": [ROLLOUT, CART | {"name": "default", "segments": ["beta"]}],
}
SEED = parse_seed(GIVEN)
PLACE = StrategyPlace("shop", "cart", "production")


@pytest.fixture
def open_database(new_database: Callable[[str], str]) -> Iterator[Callable[[str], Store]]:
    """Give a function that opens a new database of a kind."""
    stores: list[Store] = []

    def open_(kind: str) -> Store:
        stores.append(open_store(new_database(kind), SystemClock(), RecordingLog()))
        return stores[-1]

    yield open_
    for each in stores:
        each.close()


@pytest.fixture
def store(store: Store) -> Store:
    """Give a database that is as the seed says."""
    apply_wanted(store, SEED, WHO)
    return store


def everything(store: Store) -> dict[str, Any]:
    """Return every row of every table."""
    with store.reading() as tx:
        return {name: sorted(map(repr, tx.db.execute(select(table)))) for name, table in METADATA.tables.items()}


def with_other(section: str, **other: Any) -> dict[str, Any]:
    """Return the seed with other values in the first entry of a section."""
    first, *others = GIVEN[section]
    return GIVEN | {section: [first | other, *others]}


def sentences(store: Store, given: dict[str, Any]) -> list[str]:
    """Return what a seed changes, after a look that the plan says the same and the next plan is empty."""
    seed = parse_seed(given)
    planned, before = plan_seed(store, seed, WHO), everything(store)
    assert everything(store) == before
    made = apply_wanted(store, seed, WHO)
    assert [each.words for each in made] == [each.words for each in planned]
    assert plan_seed(store, seed, WHO) == []
    return [each.words for each in made]


def meaning(store: Store, environment: str) -> Any:
    """Return what clients get, without ids, orders and the revision."""
    document = json.loads(Documents(store, SystemClock(), RecordingLog()).get(DocumentQuery(environment, inline=True)).body)
    for each in document["features"]:
        each["description"] = each["description"] or None
        for strategy in each["strategies"]:
            strategy.pop("id", None)
            strategy.pop("sortOrder", None)
    return sorted(document["features"], key=lambda each: each["name"])


def test_an_empty_database(store: Store, open_database: Callable[[str], Store]) -> None:
    """A new database becomes what a start with the seed makes of it."""
    started = open_database(store.engine.dialect.name)
    assert apply_seed_once(started, SEED).outcome is SeedOutcome.WRITTEN
    assert meaning(store, "production") == meaning(started, "production")
    assert plan_seed(started, SEED, WHO) == []


def test_nothing_to_change(store: Store) -> None:
    """The same seed changes nothing, not even the revision, and a start of a server with it neither."""
    before = everything(store)
    assert plan_seed(store, SEED, WHO) == [] and apply_wanted(store, SEED, WHO) == []
    assert apply_seed_once(store, SEED, add=True).outcome is SeedOutcome.KNOWN
    assert everything(store) == before


CHANGES = {
    "environments": (with_other("environments", sortOrder=7), ["changed the environment production"]),
    "a project": (with_other("projects", description="new", featureLimit=3), ["changed the project shop"]),
    "a project's environments": (
        with_other("projects", environments=["production", "development"]),
        ["added development to the project shop", "removed staging from the project shop"],
    ),
    "legal values": (with_other("contextFields", legalValues=[]), ["changed the context field plan"]),
    "a segment": (with_other("segments", constraints=[]), ["changed the segment beta"]),
    "a user": (with_other("users", rootRole="viewer", email="a@example.com"), ["changed the user ada"]),
    "roles": (
        with_other("users", projectRoles=[{"project": "default", "role": "owner"}]),
        ["changed the roles of a user in default", "changed the roles of a user in shop"],
    ),
    "a token": (
        GIVEN | {"tokens": [GIVEN["tokens"][0], GIVEN["tokens"][1] | {"name": "edge", "projects": ["shop"]}]},
        ["changed the API token edge"],
    ),
    "a flag": (
        with_other("features", description="", type="experiment", stale=True, enabled=["staging"]),
        [
            "changed the description of cart",
            "marked cart as stale",
            "switched cart off in production",
            "switched cart on in staging",
        ],
    ),
    "archived": (with_other("features", archived=True), ["archived cart"]),
    "a strategy changes": (
        GIVEN | {"strategies": [ROLLOUT | {"parameters": {"rollout": "50"}}, GIVEN["strategies"][1]]},
        ["changed flexibleRollout of cart in production"],
    ),
    "a strategy goes": (GIVEN | {"strategies": [GIVEN["strategies"][1]]}, ["removed flexibleRollout of cart in production"]),
    "a strategy comes": (
        GIVEN | {"strategies": [GIVEN["strategies"][0], CART | {"name": "default", "title": "b"}, GIVEN["strategies"][1]]},
        ["added default to cart in production", "sorted the strategies of cart in production"],
    ),
    "the order": (GIVEN | {"strategies": GIVEN["strategies"][::-1]}, ["sorted the strategies of cart in production"]),
    "in another environment": (
        GIVEN | {"strategies": [*GIVEN["strategies"], {**ROLLOUT, "environment": "staging"}]},
        ["added flexibleRollout to cart in staging"],
    ),
    "change requests": (
        GIVEN | {"changeRequests": [{"project": "shop", "environment": "staging"}]},
        ["created the setting changeRequests"],
    ),
    "new ones": (
        GIVEN | {"environments": [*GIVEN["environments"], {"name": "qa"}], "features": [{"name": "a"}, *GIVEN["features"]]},
        ["created the environment qa", "created the flag a in default"],
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_each_change(store: Store, what: str) -> None:
    """A difference is one sentence, its events are by a seed and belong together, and afterwards nothing differs."""
    given, said = CHANGES[what]
    with store.reading() as tx:
        last = max(tx.db.execute(select(schema.events.c.id)).scalars())
    revision = store.revision()
    assert sorted(sentences(store, given)) == sorted(said)
    assert store.revision() == revision + 1
    with store.reading() as tx:
        rows = tx.db.execute(select(schema.events).where(schema.events.c.id > last)).all()
    assert {(row.way, row.created_by) for row in rows} == {("seed", WHO.name)}
    assert len({row.action for row in rows}) == 1 and len(rows) == len(said)
    if what not in ("archived",):
        sentences(store, GIVEN)
    assert "the-secret" not in str(rows)


def test_what_the_seed_does_not_name_stays(store: Store) -> None:
    """Flags, tags, strategies elsewhere, fields and keys that the file leaves out are not touched."""
    with store.writing(WHO) as tx:
        create_feature(tx, "shop", {"name": "by-hand"})
        tags.add_to_feature(tx, "cart", {"type": "simple", "value": "web"})
        strategies.create(tx, StrategyPlace("shop", "cart", "staging"), {"name": "default"})
        context_fields.change(tx, "plan", {"description": "by hand", "legalValues": [{"value": "free"}]})
    before = everything(store)
    assert plan_seed(store, SEED, WHO) == []
    less = parse_seed({"features": [{"name": "cart"}], "contextFields": [{"name": "plan"}], "users": [{"name": "ada"}]})
    assert apply_wanted(store, less, WHO) == []
    assert everything(store) == before


def test_what_the_api_fills_in_is_no_drift(store: Store) -> None:
    """A strategy and a segment that were saved at a page mean what the seed says, with the defaults that the API adds."""
    with store.writing(WHO) as tx:
        first = strategies.list_all(tx, "cart", "production")[0]
        strategies.change(tx, PLACE, first["id"], first | {"parameters": {"rollout": "25"}})
        number = tx.db.execute(select(schema.segments.c.id)).scalar_one()
        segments.change(tx, number, {"name": "beta", "constraints": [GIVEN["segments"][0]["constraints"][0] | {"inverted": False}]})
    assert plan_seed(store, SEED, WHO) == []


def test_drift(store: Store) -> None:
    """What somebody changed by hand is in the plan, with what it was and what it becomes, and is set back."""
    with store.writing(WHO) as tx:
        strategies.set_state(tx, PLACE, enabled=False)
        first = strategies.list_all(tx, "cart", "production")[0]
        strategies.change(tx, PLACE, first["id"], first | {"parameters": {"rollout": "99"}})
    planned = plan_seed(store, SEED, WHO)
    assert [each.words for each in planned] == ["changed flexibleRollout of cart in production", "switched cart on in production"]
    assert planned[1].members == [{"name": "enabled", "before": False, "after": True}]
    apply_wanted(store, SEED, WHO)
    assert plan_seed(store, SEED, WHO) == []
    with store.writing(WHO) as tx:
        feature_archive.archive(tx, "shop", "cart")
    assert sentences(store, with_other("features", archived=False)) == ["revived cart", "switched cart on in production"]


def test_tokens_work(store: Store) -> None:
    """A token of the seed opens what it says, and maintenance mode is on where the seed says so."""
    sentences(store, GIVEN | {"maintenance": True, "tokens": [{"type": "admin", "secret": "*:*.the-secret"}]})
    keyring = Keyring(store, SystemClock(), RecordingLog())
    keyring.load()
    assert all(keyring.find(secret) for secret in ("*:*.the-secret", "user:of-ada", "*:production.of-a-proxy"))
    with store.reading() as tx:
        assert is_in_maintenance(tx)


NOWHERE: dict[str, Any] = {
    "environments": [{"name": "nowhere"}],
    "projects": [{"id": "shop"}, {"id": "default", "environments": []}],
    "features": [*GIVEN["features"], {"name": "b", "enabled": ["nowhere"]}],
}
OF_BEN = with_other("tokens", user="ben") | {"users": [*GIVEN["users"], {"name": "ben"}]}


REFUSALS: list[tuple[dict[str, Any], str]] = [
    (with_other("features", project="default"), "features[0].project: the flag is in the project `shop`"),
    (with_other("features", enabled=["development"]), "features[0].enabled: the project `shop` does not have"),
    (GIVEN | NOWHERE, "features[1].enabled: the project `default` does not have the environment `nowhere`"),
    (OF_BEN, "tokens[0]: the personal token with this secret cannot become this one: use a new secret"),
    (with_other("tokens", expiresAt="2099-01-01T00:00:00Z"), "tokens[0]: the personal token"),
    (with_other("segments", project="default"), "segments[0].project: Invalid project. Segment is being used"),
    (
        GIVEN
        | {"segments": [*GIVEN["segments"], {"name": "s", "project": "default"}]}
        | {"strategies": [ROLLOUT | {"segments": ["s"]}]},
        "strategies of `cart` in `production`: The segments s",
    ),
]


def test_refusals(store: Store) -> None:
    """What cannot become so is refused with its place in the file, by the plan too, and nothing changes."""
    before = everything(store)
    for (given, message), work in product(REFUSALS, (plan_seed, apply_wanted)):
        with pytest.raises(SeedError) as refused:
            work(store, parse_seed(given), WHO)
        assert message in str(refused.value)
        assert "of-ada" not in str(refused.value)
        assert everything(store) == before


def any_constraints(random: Random) -> list[dict[str, Any]]:
    """Return no constraint or one."""
    values = random.sample(["1", "2", "3"], random.randrange(3))
    one = {"contextName": "userId", "operator": random.choice(["IN", "NOT_IN"]), "values": values}
    return [one] * random.randrange(2)


def any_flag(random: Random, name: str) -> dict[str, Any]:
    """Return a flag with every key."""
    texts = {"name": name, "description": random.choice(["", "a", "b"]), "type": random.choice(["release", "experiment"])}
    enabled = random.sample(["development", "production"], random.randrange(3))
    flags = {"stale": random.random() < 0.5, "impressionData": random.random() < 0.5, "archived": False}
    return texts | flags | {"enabled": enabled}


def any_strategy(random: Random, feature: str) -> dict[str, Any]:
    """Return a strategy with every key but its order."""
    rollout: dict[str, Any] = {"name": "flexibleRollout", "parameters": {"rollout": str(random.randrange(100))}}
    kind = random.choice([{"name": "default"}, rollout])
    used = random.sample(["s", "t"], random.randrange(3))
    more = {"constraints": any_constraints(random), "segments": used, "disabled": random.random() < 0.2}
    return {"feature": feature, "environment": "production", "title": random.choice(["", "a"])} | kind | more


def any_seed(random: Random) -> dict[str, Any]:
    """Return a seed that says all of three flags and two segments."""
    return {
        "segments": [{"name": name, "constraints": any_constraints(random)} for name in "st"],
        "features": [any_flag(random, name) for name in "xyz"],
        "strategies": [any_strategy(random, name) for name in "xyz" for _ in range(random.randrange(1, 5))],
    }


@pytest.mark.parametrize("number", thinned(range(12)))
def test_any_seed_after_any_other(number: int, store: Store, open_database: Callable[[str], Store]) -> None:
    """Clients get of the flags of a seed what they get of a new database with it, and no drift is left."""
    random = Random(number)
    fresh = open_database(store.engine.dialect.name)
    for _ in range(3):
        given = any_seed(random)
        sentences(store, given)
    apply_wanted(fresh, parse_seed(given), WHO)
    for environment in ("development", "production"):
        found = [each for each in meaning(store, environment) if each["name"] in "xyz"]
        assert found == meaning(fresh, environment)
