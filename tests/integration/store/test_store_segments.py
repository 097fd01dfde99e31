"""Segments: made, changed, deleted, given to strategies."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.store.resources import segments
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
