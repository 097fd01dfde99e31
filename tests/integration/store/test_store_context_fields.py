"""Context fields: created, changed, deleted, and their legal values."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import event

from flagsvc.server.store.legal_values import read_legal_values
from flagsvc.server.store.resources import context_fields
from support.admin_call_rows import STRATEGIES
from support.seeded_store import NOW, SeededStore


def test_a_field_is_made_and_shown(seeded: SeededStore) -> None:
    """A field has the given members and defaults for the others; it has a project only if it belongs to one."""
    least = seeded.write(context_fields.create, {"name": "tier"})
    assert least == {
        "name": "tier",
        "description": None,
        "stickiness": False,
        "sortOrder": 0,
        "legalValues": [],
        "createdAt": NOW,
    }
    given = {
        "description": "d",
        "stickiness": True,
        "sortOrder": 7,
        "legalValues": [{"value": "a"}],
        "project": "other",
    }
    assert seeded.write(context_fields.create, {"name": "full", **given, "extra": 1}) == {
        "name": "full",
        **given,
        "createdAt": NOW,
    }
    assert seeded.read(context_fields.find, "full")["project"] == "other"
    assert seeded.told() == [("context-field-created",)] * 2


def test_what_cannot_be_made(seeded: SeededStore) -> None:
    """A name in use is reported before other problems; only the first problem is reported."""
    create = context_fields.create
    assert seeded.refusal(create, {"name": "userId", "description": "d" * 251})[:2] == (409, "NameExistsError")
    assert seeded.refusal(create, {"name": "a b", "description": "d" * 251})[2] == [
        '"name" must be URL friendly. You provided "a b".'
    ]
    twice = {"name": "t", "legalValues": [{"value": "a"}, {"value": "a", "description": "d"}]}
    assert seeded.refusal(create, twice) == (
        400,
        "BadDataError",
        ['"legalValues[1]" contains a duplicate value. You provided {"value":"a","description":"d"}.'],
    )
    assert seeded.refusal(create, {"name": "t", "project": "nosuch"})[2] == ["Project 'nosuch' does not exist"]
    assert seeded.refusal(create, {"name": "t", "project": ""})[2] == ['"project" is not allowed to be empty.']


def test_a_field_is_written_anew(seeded: SeededStore) -> None:
    """Stickiness, legal values and sort order are reset if absent; description and project stay."""
    given = {
        "description": "d",
        "stickiness": True,
        "sortOrder": 7,
        "legalValues": [{"value": "a"}],
        "project": "other",
    }
    seeded.write(context_fields.create, {"name": "full", **given})
    seeded.write(context_fields.change, "full", {})
    found = seeded.read(context_fields.find, "full")
    assert (found["stickiness"], found["legalValues"], found["sortOrder"]) == (False, [], 0)
    assert (found["description"], found["project"]) == ("d", "other")
    assert seeded.refusal(context_fields.change, "nosuch", {"description": "d" * 251})[0] == 404
    assert seeded.refusal(context_fields.change, "full", {"description": "d" * 251})[0] == 400


def test_legal_values(seeded: SeededStore) -> None:
    """A new value is added at the end, an existing one gets a new description; removing an unknown one is not an error."""
    change, remove = context_fields.set_legal_value, context_fields.remove_legal_value
    seeded.write(change, "plan", {"value": "wood", "description": "d"})
    seeded.write(change, "plan", {"value": "gold", "description": "first"})
    seeded.write(remove, "plan", "silver")
    seeded.write(remove, "plan", "nosuch")
    assert seeded.read(context_fields.find, "plan")["legalValues"] == [
        {"value": "gold", "description": "first"},
        {"value": "wood", "description": "d"},
    ]
    assert seeded.read(context_fields.find, "plan")["sortOrder"] == 10
    assert seeded.refusal(change, "plan", {"value": ""})[2] == ['"value" is not allowed to be empty.']
    assert seeded.refusal(change, "nosuch", {"value": ""})[0] == 404
    assert seeded.refusal(remove, "nosuch", "a")[0] == 404


def test_where_a_field_is_used(seeded: SeededStore) -> None:
    """Strategies of active features count, and keep the field; those of archived features do not."""
    uses = {
        each["name"]: (each["usedInProjects"], each["usedInFeatures"])
        for each in seeded.read(context_fields.list_fields)
    }
    assert (uses["plan"], uses["oldfield"], uses["userId"], uses["appName"]) == ((1, 1), (0, 0), (2, 2), (0, 0))
    assert [each["id"] for each in seeded.read(context_fields.strategies_using, "plan")] == [STRATEGIES["used"]]
    assert seeded.read(context_fields.strategies_using, "oldfield") == []
    assert seeded.refusal(context_fields.remove, "plan")[:2] == (409, "ConflictError")
    seeded.write(context_fields.remove, "oldfield")
    assert seeded.refusal(context_fields.remove, "oldfield")[0] == 404
    assert seeded.told() == [("context-field-deleted",)]


def test_the_fields_of_a_project_are_deleted_together(seeded: SeededStore) -> None:
    """All strategies are read once for all fields: for each field, 5,000 fields and as many strategies took minutes."""
    names = [f"of-{number}" for number in range(10)]
    for name in names:
        seeded.write(context_fields.create, {"name": name})
    sent: list[str] = []
    event.listen(seeded.store.engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    seeded.write(context_fields.remove_all, names)
    assert sum("FROM strategies" in each for each in sent) == 1 and len(sent) < 15
    assert seeded.told()[-10:] == [("context-field-deleted",)] * 10
    assert seeded.refusal(context_fields.remove_all, ["userId", "plan"])[:2] == (409, "ConflictError")


def test_fields_come_by_name(seeded: SeededStore) -> None:
    """The list is sorted by name, not by sort order."""
    names = [each["name"] for each in seeded.read(context_fields.list_fields)]
    assert names == sorted(names)


def test_legal_values_are_looked_up(seeded: SeededStore) -> None:
    """Legal values are in order and in no list, because strategies look thousands of values up among thousands."""
    several = ("b", "a", "c")
    seeded.write(context_fields.create, {"name": "many", "legalValues": [{"value": each} for each in several]})
    found = seeded.read(read_legal_values, ["many"])["many"]
    assert tuple(found) == several
    assert not isinstance(found, Sequence)
