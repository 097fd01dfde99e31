"""Segments, context fields, tags of features and users: bounds, cost, events, and what the real server does not check.

`test_server_resources_beside_the_real_one.py` compares all operations. Lists of many features, and who worked on one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event, select

from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.keyring import hash_secret
from flagsvc.server.store.resources import (
    context_fields,
    feature_archive,
    feature_views,
    features,
    segments,
    strategies,
    tags,
    users,
)
from flagsvc.server.store.resources.strategies import read_legal_values
from flagsvc.server.store.resources.users import list_collaborators, names_of
from flagsvc.server.store.schema import feature_tags
from flagsvc.server.store.seed.apply import apply_seed
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.seed.once import missing
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import FakeClock, RecordingLog
from support.planting import plant
from support.server_pair import STRATEGIES
from support.stored_flags import ACTOR, SeededStore

HERE = {"project": "default", "environment": "development"}


def wanted(name: str = "beta", **given: Any) -> dict[str, Any]:
    """Return a segment to make."""
    return {"name": name, "constraints": [{"contextName": "userId", "operator": "IN", "values": ["a"]}], **given}


def test_a_segment_has_a_longest_name(seeded: SeededStore) -> None:
    """A longer name is refused where it is asked about and where it is made. A refusal leaves nothing behind."""
    long = "x" * 256
    told = f'"name" length must be less than or equal to 255 characters long. You provided "{long}".'
    assert seeded.refusal(segments.create, wanted(long)) == (400, "BadDataError", [told])
    assert seeded.refusal(segments.check_name, long) == (400, "BadDataError", [told])
    assert seeded.read(segments.list_segments) == seeded.told() == []


def test_there_are_so_many_segments_and_no_more(seeded: SeededStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the limit of segments."""
    monkeypatch.setattr(segments, "MAX_SEGMENTS", 2)
    for name in ("a", "b"):
        seeded.write(segments.create, wanted(name))
    limit = "Failed to create segment. You can't create more than the established limit of 2."
    assert seeded.refusal(segments.create, wanted("c")) == (400, "ExceedsLimitError", [limit])


def test_the_segments_of_a_strategy_are_set_at_its_place(seeded: SeededStore) -> None:
    """The segments keep their order, without repeats. A strategy is not found in another project or environment."""
    numbers = [seeded.write(segments.create, wanted(name))["id"] for name in ("a", "b", "c")]
    seeded.write(segments.set_segments, STRATEGIES["used"], [numbers[2], numbers[0], numbers[2]], **HERE)
    for place in (HERE | {"project": "other"}, HERE | {"environment": "production"}):
        assert seeded.refusal(segments.set_segments, STRATEGIES["used"], [], **place)[0] == 404
    assert [each["name"] for each in seeded.read(segments.segments_of, STRATEGIES["used"])] == ["c", "a"]


def test_a_legal_value_changes_nothing_else(seeded: SeededStore) -> None:
    """A new legal value is the last one, and the field keeps its place in lists."""
    before = seeded.read(context_fields.find, "plan")
    seeded.write(context_fields.set_legal_value, "plan", {"value": "wood"})
    after = seeded.read(context_fields.find, "plan")
    assert after == before | {"legalValues": [*before["legalValues"], {"value": "wood"}]}
    assert before["sortOrder"] != 0


def test_the_fields_of_a_project_are_deleted_together(seeded: SeededStore) -> None:
    """All strategies are read once for all fields: for each field, 5,000 fields and as many strategies took minutes."""
    names = [f"of-{number}" for number in range(10)]
    for name in names:
        seeded.write(context_fields.create, {"name": name})
    sent: list[str] = []
    event.listen(seeded.store.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    seeded.write(context_fields.remove, *names)
    assert sum("FROM strategies" in each for each in sent) == 1 and len(sent) < 15
    assert seeded.told()[-10:] == [("context-field-deleted",)] * 10
    assert seeded.refusal(context_fields.remove, "userId", "plan")[:2] == (409, "ConflictError")


def test_legal_values_are_looked_up(seeded: SeededStore) -> None:
    """Legal values are in order and in no list, because strategies look thousands of values up among thousands."""
    several = ("b", "a", "c")
    seeded.write(context_fields.create, {"name": "many", "legalValues": [{"value": each} for each in several]})
    found = seeded.read(read_legal_values, ["many"])["many"]
    assert tuple(found) == several
    assert not isinstance(found, Sequence)


NO_FEATURE = (404, "NotFoundError", ["No feature flag found"])


def tag(value: str, kind: str = "simple", **given: Any) -> dict[str, Any]:
    """Return a tag."""
    return {"type": kind, "value": value, **given}


def values(seeded: SeededStore, feature: str = "web") -> list[str]:
    """Return the values of a feature's tags."""
    return [each["value"] for each in seeded.read(tags.tags_of, feature)]


def test_only_changes_have_events(seeded: SeededStore) -> None:
    """Tags are added, then removed. What changes nothing has no event. The author of a tag is stored."""
    change = tags.change_tags_of_feature
    seeded.write(tags.add_to_feature, "web", tag("first", color="#000000"))
    with seeded.store.reading() as tx:
        assert {row.created_by_id for row in tx.db.execute(feature_tags.select())} == {ACTOR.id}
    seeded.write(change, "web", [tag("first"), tag("third")], [tag("first"), tag("third"), tag("never")])
    assert values(seeded) == []
    assert seeded.told("feature", "project", "data", "before") == [
        ("tag-created", None, None, tag("first"), None),
        ("feature-tagged", "web", "default", tag("first"), None),
        ("tag-created", None, None, tag("third"), None),
        ("feature-tagged", "web", "default", tag("third"), None),
        ("feature-untagged", "web", "default", None, tag("first")),
        ("feature-untagged", "web", "default", None, tag("third")),
    ]


def test_more_features_than_a_statement_takes_names(seeded: SeededStore) -> None:
    """Long lists of names are read in chunks."""
    names = [f"no-{number}" for number in range(40_000)]
    assert seeded.refusal(tags.change_tags_of_features, "default", names, [tag("aa")], []) == NO_FEATURE


def test_many_tags_of_many_features_are_bounded(seeded: SeededStore) -> None:
    """Adding tags to features is bounded by both together. What is bounded changes nothing."""
    many = [tag(f"tag-{number}") for number in range(5001)]
    assert seeded.refusal(tags.change_tags_of_features, "default", ["web", "app"], many, [])[2] == [
        "5,001 tags for 2 features are more than 10,000 at once"
    ]
    assert seeded.refusal(tags.change_tags_of_feature, "web", many[:1001], [])[0] == 400
    assert seeded.read(tags.list_tags) == []


def test_tags_are_read_together(seeded: SeededStore) -> None:
    """Removing thousands of tags takes a few statements."""
    sent: list[str] = []
    event.listen(seeded.store.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    never = [tag(f"tag-{number}") for number in range(5000)]
    seeded.write(tags.change_tags_of_features, "default", ["web", "app"], [], never)
    seeded.write(tags.change_tags_of_feature, "web", never[:500], never[:500])
    assert len(sent) < 100
    assert values(seeded) == []


ANNA = {"username": "anna", "email": "Anna@Example.com", "name": "Anna", "rootRole": 2, "sendEmail": True}


def listed(seeded: SeededStore) -> dict[str, dict[str, Any]]:
    """Return the users by what they are called."""
    found = seeded.read(users.list_users)["users"]
    return {user.get("username") or user["email"]: user for user in found}


@pytest.mark.parametrize("key", ["username", "email", "name"])
def test_names_have_a_length(seeded: SeededStore, key: str) -> None:
    """255 characters are stored; a longer text is refused with the name of its member."""
    text = "a@" + "x" * 253
    assert seeded.write(users.create, {"username": "a", "rootRole": 3, key: text})[key] == text
    told = seeded.refusal(users.create, {"username": "b", "rootRole": 3, key: text + "x"})
    assert told[0] == 400
    assert told[2][0].startswith(f'"{key}" length must be less than or equal to 255 characters long.')


def test_a_password_is_refused(seeded: SeededStore) -> None:
    """A password would be useless here; the error says what authenticates and does not repeat it. An empty password is ignored."""
    status, name, [message] = seeded.refusal(users.create, {**ANNA, "password": "s3cret"})
    assert (status, name) == (400, "BadDataError")
    assert message.startswith("This server has no passwords") and "s3cret" not in message
    assert seeded.write(users.create, {**ANNA, "password": ""})["username"] == "anna"


@pytest.mark.parametrize("called", ["anna", "carl@example.com"])
def test_a_seed_gives_a_token_to_a_user_that_is_there(seeded: SeededStore, called: str) -> None:
    """A seed names a user by the user name, or by the mail address of one who has no user name."""
    seeded.write(users.create, ANNA)
    seeded.write(users.create, {"email": "carl@example.com", "rootRole": 1})
    before = listed(seeded)
    token = {"type": "personal", "user": called, "secret": "user:of-a-seed"}
    seed = parse_seed({"users": [{"name": called}], "tokens": [token]})
    seeded.write(lambda tx: apply_seed(tx, missing(tx, seed)))
    assert listed(seeded) == before
    hashed = schema.tokens.c.hash == hash_secret("user:of-a-seed")
    owner = seeded.read(lambda tx: tx.db.execute(select(schema.tokens.c.user_id).where(hashed)).scalar_one())
    assert owner == before[called]["id"]


NOON = datetime(2026, 3, 4, 12, 34, 56, tzinfo=UTC)
COUNT = 1_201
"""More than one list of a statement may hold, and more than twice that."""
NAMES = [f"f{number:04}" for number in range(COUNT)]
GIVEN: dict[str, Any] = {
    "features": [{"name": name, "enabled": ["production"]} for name in NAMES],
    "strategies": [
        {"feature": name, "environment": place, "name": "default", "disabled": place == "development"}
        for name in NAMES
        for place in ("development", "production")
    ],
    "contextFields": [{"name": name, "legalValues": [{"value": "x"}]} for name in NAMES],
}
ADMIN = Actor(7, "somebody", root_role="admin")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Give a store with many features, on each kind of database."""
    store = open_store(database_url, FakeClock(NOON.timestamp()), RecordingLog())
    with store.writing(None) as tx:
        plant(tx, GIVEN)
    yield store
    store.close()


def test_all_of_many(store: Store) -> None:
    """The list has every feature in order of creation, with its own environments and strategies."""
    with store.reading() as tx:
        listed = feature_views.list_in_project(tx, "default")
    assert [each["name"] for each in listed] == NAMES
    for each in listed:
        states = [(place["enabled"], place["hasStrategies"], place["hasEnabledStrategies"]) for place in each["environments"]]
        assert states == [(False, True, False), (True, True, True)]


def test_many_names_at_once(store: Store) -> None:
    """Archive, revive, mark and delete work for any number of names, and so does reading legal values."""
    with store.writing(ADMIN) as tx:
        assert len(read_legal_values(tx, NAMES)) == COUNT
        features.set_stale(tx, "default", NAMES, stale=True)
        feature_archive.archive_all(tx, "default", NAMES)
        feature_archive.revive_all(tx, "default", NAMES[:600])
        feature_archive.remove_all(tx, "default", NAMES)
        rows = features.find_all(tx, NAMES)
        states = feature_views.states_of(tx, NAMES)
    assert [(row.name, row.stale) for row in rows] == [(name, True) for name in NAMES[:600]]
    assert not any(state.enabled for held in states.values() for state in held)


def test_collaborators(store: Store) -> None:
    """The authors of changes are listed, the most recent first; an author who is not a user is named by the event."""
    place = strategies.StrategyPlace("default", NAMES[0], "development")
    for actor in (ADMIN, Actor(-42, "a token", "token", "admin"), ADMIN):
        with store.writing(actor) as tx:
            strategies.create(tx, place, {"name": "default"})
    with store.reading() as tx:
        found = list_collaborators(tx, NAMES[0])
        assert names_of(tx, [7, -42]) == {}
        assert list_collaborators(tx, NAMES[1]) == []
    assert [(each["id"], each["name"]) for each in found] == [(7, "somebody"), (-42, "a token")]
