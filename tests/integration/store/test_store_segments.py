"""Segments: made, changed, deleted, given to strategies.

Context fields: created, changed, deleted, and their legal values.
Strategy types: created, changed, deprecated, deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import event

from flagsvc.server.store.resources import context_fields, segments, strategy_types
from flagsvc.server.store.resources.strategies import read_legal_values
from support.admin_call_rows import STRATEGIES
from support.seeded_store import ACTOR, NOW, SeededStore

CONSTRAINT = {"contextName": "userId", "operator": "IN", "values": ["a"]}
USED, ARCHIVED, FAR = STRATEGIES["used"], STRATEGIES["archived"], STRATEGIES["far"]
FACES = "\N{GRINNING FACE}" * 51
HERE = {"project": "default", "environment": "development"}


def wanted(name: str = "beta", **given: Any) -> dict[str, Any]:
    """Return a segment to make."""
    return {"name": name, "constraints": [CONSTRAINT], **given}


def test_a_segment_is_made_and_shown(seeded: SeededStore) -> None:
    """A segment has the given members, its author and its date, and a list of values even if none was sent."""
    plain = {"contextName": "userId", "operator": "NUM_GT", "value": "5"}
    made = seeded.write(segments.create, wanted(constraints=[plain], description="d", project="default", extra=1))
    assert made == {
        "id": made["id"],
        "name": "beta",
        "description": "d",
        "project": "default",
        "constraints": [plain | {"values": []}],
        "createdBy": ACTOR.name,
        "createdAt": NOW,
    }
    assert seeded.read(segments.find, made["id"]) == made
    everything = seeded.read(segments.list_segments)
    assert everything == [made | {"usedInProjects": 0, "usedInFeatures": 0}]
    assert seeded.told("project") == [("segment-created", "default")]


def test_what_cannot_be_made(seeded: SeededStore) -> None:
    """Names are unique and not empty, projects exist, constraints hold; what is refused leaves nothing behind."""
    seeded.write(segments.create, wanted())
    assert seeded.refusal(segments.create, wanted()) == (409, "NameExistsError", ["Segment name already exists"])
    assert seeded.refusal(segments.create, wanted("")) == (400, "BadDataError", ['"name" is not allowed to be empty.'])
    long = "x" * 256
    told = f'"name" length must be less than or equal to 255 characters long. You provided "{long}".'
    assert seeded.refusal(segments.create, wanted(long)) == (400, "BadDataError", [told])
    assert seeded.refusal(segments.check_name, long) == (400, "BadDataError", [told])
    assert seeded.refusal(segments.create, wanted("b", project="nosuch"))[2] == ["Project 'nosuch' does not exist"]
    emoji = CONSTRAINT | {"values": ["a", FACES]}
    assert seeded.refusal(segments.create, wanted("b", constraints=[CONSTRAINT, emoji]))[2] == [
        f'"constraints[1].values[1]" length must be less than or equal to 100 characters long. You provided "{FACES}".'
    ]
    illegal = CONSTRAINT | {"contextName": "plan"}
    assert seeded.refusal(segments.create, wanted("b", constraints=[illegal]))[2] == [
        "input values are not specified as a legal value on this context field"
    ]
    many = CONSTRAINT | {"values": [str(number) for number in range(501)]}
    assert seeded.refusal(segments.create, wanted("b", constraints=[many, many]))[2] == [
        "Segments may not have more than 1000 values"
    ]
    assert [each["name"] for each in seeded.read(segments.list_segments)] == ["beta"]
    assert len(seeded.told()) == 1


def test_there_are_so_many_segments_and_no_more(seeded: SeededStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the limit of segments."""
    monkeypatch.setattr(segments, "MAX_SEGMENTS", 2)
    for name in ("a", "b"):
        seeded.write(segments.create, wanted(name))
    limit = "Failed to create segment. You can't create more than the established limit of 2."
    assert seeded.refusal(segments.create, wanted("c")) == (400, "ExceedsLimitError", [limit])


def test_a_segment_is_changed(seeded: SeededStore) -> None:
    """Constraints and project are replaced, the description only where one is given; a name may stay its own."""
    number = seeded.write(segments.create, wanted(description="d", project="default"))["id"]
    seeded.write(segments.create, wanted("taken"))
    seeded.write(segments.change, number, wanted(constraints=[]))
    changed = seeded.read(segments.find, number)
    assert (changed["constraints"], changed["description"], changed.get("project")) == ([], "d", None)
    seeded.write(segments.change, number, wanted("new", description=None))
    assert seeded.read(segments.find, number)["description"] is None
    assert seeded.refusal(segments.change, number, wanted("taken"))[0] == 409
    assert seeded.refusal(segments.change, 99, wanted("x")) == (
        404,
        "NotFoundError",
        ['No segment exists with ID "99"'],
    )
    assert seeded.told()[-1] == ("segment-updated",)


def test_the_segments_of_a_strategy(seeded: SeededStore) -> None:
    """A strategy's segments are set as a whole, in order, without repeats; the strategy must be in the given place."""
    numbers = [seeded.write(segments.create, wanted(name))["id"] for name in ("a", "b", "c")]
    seeded.write(segments.set_segments, USED, [numbers[2], numbers[0], numbers[2]], **HERE)
    assert [each["name"] for each in seeded.read(segments.segments_of, USED)] == ["c", "a"]
    seeded.write(segments.set_segments, USED, [numbers[1]], **HERE)
    assert [each["name"] for each in seeded.read(segments.segments_of, USED)] == ["b"]
    assert seeded.read(segments.segments_of, "nosuch") == []
    for place in (HERE | {"project": "other"}, HERE | {"environment": "production"}):
        assert seeded.refusal(segments.set_segments, USED, [], **place)[0] == 404
    assert seeded.refusal(segments.set_segments, USED, [numbers[0], 99], **HERE)[2] == [
        'No segment exists with ID "99"'
    ]
    too_many = seeded.refusal(segments.set_segments, USED, [*range(6)], **HERE)
    assert too_many == (400, "BadDataError", ["Strategies may not have more than 5 segments"])
    assert [each["name"] for each in seeded.read(segments.segments_of, USED)] == ["b"]


def test_where_a_segment_is_used(seeded: SeededStore) -> None:
    """Active features count, archived ones do not; a segment in use by other projects cannot move to one project."""
    number = seeded.write(segments.create, wanted())["id"]
    seeded.write(segments.set_segments, ARCHIVED, [number], **HERE)
    assert seeded.read(segments.strategies_using, number) == []
    seeded.write(segments.set_segments, USED, [number], **HERE)
    seeded.write(segments.set_segments, FAR, [number], **HERE | {"project": "other"})
    shown = {"projectId": "default", "featureName": "web", "strategyName": "default", "environment": "development"}
    far = {"id": FAR, "projectId": "other", "featureName": "elsewhere"}
    assert seeded.read(segments.strategies_using, number) == [{"id": USED, **shown}, {**shown, **far}]
    listed = seeded.read(segments.list_segments)[0]
    assert (listed["usedInProjects"], listed["usedInFeatures"]) == (2, 2)
    assert seeded.refusal(segments.change, number, wanted(project="default"))[2] == [
        "Invalid project. Segment is being used by strategies in other projects: default, other"
    ]


def test_a_segment_in_use_stays(seeded: SeededStore) -> None:
    """A segment that only strategies of archived features use can be deleted, and disappears from them."""
    number = seeded.write(segments.create, wanted())["id"]
    seeded.write(segments.set_segments, USED, [number], **HERE)
    seeded.write(segments.set_segments, ARCHIVED, [number], **HERE)
    assert seeded.write(segments.remove, number) is False
    seeded.write(segments.set_segments, USED, [], **HERE)
    assert seeded.write(segments.remove, number) is True
    assert seeded.read(segments.segments_of, ARCHIVED) == []
    assert seeded.refusal(segments.remove, number)[0] == 404
    assert seeded.told()[-1] == ("segment-deleted",)


def test_a_name_that_is_asked_about(seeded: SeededStore) -> None:
    """An empty name is a 400, a name in use is a 409."""
    seeded.write(segments.create, wanted())
    seeded.read(segments.check_name, "free")
    assert seeded.refusal(segments.check_name, "")[:2] == (400, "BadDataError")
    assert seeded.refusal(segments.check_name, "beta")[:2] == (409, "NameExistsError")


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


def test_what_cannot_be_made_of_fields(seeded: SeededStore) -> None:
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
    seeded.write(context_fields.remove, *names)
    assert sum("FROM strategies" in each for each in sent) == 1 and len(sent) < 15
    assert seeded.told()[-10:] == [("context-field-deleted",)] * 10
    assert seeded.refusal(context_fields.remove, "userId", "plan")[:2] == (409, "ConflictError")


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


def test_a_type_is_made_and_shown(seeded: SeededStore) -> None:
    """Only known members of parameters are stored; a new type is neither deprecated nor built in."""
    parameters = [{"name": "p", "type": "list", "required": True, "extra": 1}]
    made = seeded.write(
        strategy_types.create, {"name": "mine", "title": "t", "parameters": parameters, "deprecated": True}
    )
    assert made == {
        "displayName": None,
        "name": "mine",
        "editable": True,
        "description": None,
        "parameters": [{"name": "p", "type": "list", "required": True}],
        "deprecated": False,
        "title": "t",
    }
    names = [each["name"] for each in seeded.read(strategy_types.list_types)]
    assert names == ["flexibleRollout", "default", "remoteAddress", "applicationHostname", "custom", "mine"]
    assert seeded.told() == [("strategy-created",)]


def test_what_cannot_be_made_of_strategy_types(seeded: SeededStore) -> None:
    """All problems are reported together; names are unique."""
    bad = {"name": "a b", "parameters": [{"name": "", "type": "list"}, {"name": "", "type": "list"}]}
    assert seeded.refusal(strategy_types.create, bad) == (
        400,
        "BadDataError",
        [
            '"name" must be URL friendly. You provided "a b".',
            '"parameters[0].name" is not allowed to be empty.',
            '"parameters[1].name" is not allowed to be empty.',
        ],
    )
    taken = seeded.refusal(strategy_types.create, {"name": "custom", "parameters": []})
    assert taken == (409, "NameExistsError", ["Strategy with name custom already exist!"])


def test_a_type_is_written_anew(seeded: SeededStore) -> None:
    """Parameters are replaced; an absent title or description stays."""
    seeded.write(strategy_types.create, {"name": "mine", "title": "t", "description": "d", "parameters": []})
    seeded.write(strategy_types.change, "mine", {"parameters": [{"name": "p", "type": "list"}], "title": None})
    found = seeded.read(strategy_types.find, "mine")
    assert (found["title"], found["description"]) == (None, "d")
    assert found["parameters"] == [{"name": "p", "type": "list"}]
    assert seeded.refusal(strategy_types.change, "nosuch", {"parameters": []})[0] == 404


def test_what_is_built_in_stays(seeded: SeededStore) -> None:
    """A built-in type cannot be changed or deleted, but it can be deprecated."""
    refused = (403, "OperationDeniedError", ["Cannot edit strategy default"])
    assert seeded.refusal(strategy_types.change, "default", {"parameters": []}) == refused
    assert seeded.refusal(strategy_types.remove, "default") == refused
    seeded.write(strategy_types.deprecate, "default")
    assert seeded.read(strategy_types.find, "default")["deprecated"] is True
    seeded.write(strategy_types.reactivate, "default")
    assert seeded.read(strategy_types.find, "default")["deprecated"] is False
    assert seeded.told() == [("strategy-deprecated",), ("strategy-reactivated",)]


def test_what_does_not_exist(seeded: SeededStore) -> None:
    """It is a 404, with each operation's own message."""
    messages = [
        seeded.refusal(each, "nosuch")
        for each in (strategy_types.deprecate, strategy_types.reactivate, strategy_types.find, strategy_types.remove)
    ]
    assert messages == [
        (404, "NotFoundError", ["Could not find strategy with name nosuch"]),
        *[(404, "NotFoundError", ["No strategy found"])] * 3,
    ]


def test_a_custom_type_goes_although_it_is_used(seeded: SeededStore) -> None:
    """A custom type in use can be deleted, as on the real server."""
    seeded.write(strategy_types.remove, "custom")
    assert seeded.refusal(strategy_types.find, "custom")[0] == 404
    assert seeded.told() == [("strategy-deleted",)]
