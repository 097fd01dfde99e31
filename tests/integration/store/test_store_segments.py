"""Segments: made, changed, deleted, given to strategies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flagsvc.server.store.resources import segments
from support.noun_calls import STRATEGIES
from support.noun_store import ACTOR, NOW, Nouns, nouns_in

CONSTRAINT = {"contextName": "userId", "operator": "IN", "values": ["a"]}
USED, ARCHIVED, FAR = STRATEGIES["used"], STRATEGIES["archived"], STRATEGIES["far"]
FACES = "\N{GRINNING FACE}" * 51
HERE = {"project": "default", "environment": "development"}


@pytest.fixture
def nouns(database_url: str) -> Iterator[Nouns]:
    """Give the state in each kind of database."""
    with nouns_in(database_url) as nouns:
        yield nouns


def wanted(name: str = "beta", **given: Any) -> dict[str, Any]:
    """Return a segment to make."""
    return {"name": name, "constraints": [CONSTRAINT], **given}


def test_a_segment_is_made_and_shown(nouns: Nouns) -> None:
    """A segment has the given members, its author and its date, and a list of values even if none was sent."""
    plain = {"contextName": "userId", "operator": "NUM_GT", "value": "5"}
    made = nouns.write(segments.create, wanted(constraints=[plain], description="d", project="default", extra=1))
    assert made == {
        "id": made["id"],
        "name": "beta",
        "description": "d",
        "project": "default",
        "constraints": [plain | {"values": []}],
        "createdBy": ACTOR.name,
        "createdAt": NOW,
    }
    assert nouns.read(segments.find, made["id"]) == made
    everything = nouns.read(segments.list_segments)
    assert everything == [made | {"usedInProjects": 0, "usedInFeatures": 0}]
    assert nouns.told("project") == [("segment-created", "default")]


def test_what_cannot_be_made(nouns: Nouns) -> None:
    """Names are unique and not empty, projects exist, constraints hold; what is refused leaves nothing behind."""
    nouns.write(segments.create, wanted())
    assert nouns.refusal(segments.create, wanted()) == (409, "NameExistsError", ["Segment name already exists"])
    assert nouns.refusal(segments.create, wanted("")) == (400, "BadDataError", ['"name" is not allowed to be empty.'])
    long = "x" * 256
    told = f'"name" length must be less than or equal to 255 characters long. You provided "{long}".'
    assert nouns.refusal(segments.create, wanted(long)) == (400, "BadDataError", [told])
    assert nouns.refusal(segments.check_name, long) == (400, "BadDataError", [told])
    assert nouns.refusal(segments.create, wanted("b", project="nosuch"))[2] == ["Project 'nosuch' does not exist"]
    emoji = CONSTRAINT | {"values": ["a", FACES]}
    assert nouns.refusal(segments.create, wanted("b", constraints=[CONSTRAINT, emoji]))[2] == [
        f'"constraints[1].values[1]" length must be less than or equal to 100 characters long. You provided "{FACES}".'
    ]
    illegal = CONSTRAINT | {"contextName": "plan"}
    assert nouns.refusal(segments.create, wanted("b", constraints=[illegal]))[2] == [
        "input values are not specified as a legal value on this context field"
    ]
    many = CONSTRAINT | {"values": [str(number) for number in range(501)]}
    assert nouns.refusal(segments.create, wanted("b", constraints=[many, many]))[2] == [
        "Segments may not have more than 1000 values"
    ]
    assert [each["name"] for each in nouns.read(segments.list_segments)] == ["beta"]
    assert len(nouns.told()) == 1


def test_there_are_so_many_segments_and_no_more(nouns: Nouns, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the limit of segments."""
    monkeypatch.setattr(segments, "MAX_SEGMENTS", 2)
    for name in ("a", "b"):
        nouns.write(segments.create, wanted(name))
    limit = "Failed to create segment. You can't create more than the established limit of 2."
    assert nouns.refusal(segments.create, wanted("c")) == (400, "ExceedsLimitError", [limit])


def test_a_segment_is_changed(nouns: Nouns) -> None:
    """Constraints and project are replaced, the description only where one is given; a name may stay its own."""
    number = nouns.write(segments.create, wanted(description="d", project="default"))["id"]
    nouns.write(segments.create, wanted("taken"))
    nouns.write(segments.change, number, wanted(constraints=[]))
    changed = nouns.read(segments.find, number)
    assert (changed["constraints"], changed["description"], changed.get("project")) == ([], "d", None)
    nouns.write(segments.change, number, wanted("new", description=None))
    assert nouns.read(segments.find, number)["description"] is None
    assert nouns.refusal(segments.change, number, wanted("taken"))[0] == 409
    assert nouns.refusal(segments.change, 99, wanted("x")) == (404, "NotFoundError", ['No segment exists with ID "99"'])
    assert nouns.told()[-1] == ("segment-updated",)


def test_the_segments_of_a_strategy(nouns: Nouns) -> None:
    """A strategy's segments are set as a whole, in order, without repeats; the strategy must be in the given place."""
    numbers = [nouns.write(segments.create, wanted(name))["id"] for name in ("a", "b", "c")]
    nouns.write(segments.set_segments, USED, [numbers[2], numbers[0], numbers[2]], **HERE)
    assert [each["name"] for each in nouns.read(segments.segments_of, USED)] == ["c", "a"]
    nouns.write(segments.set_segments, USED, [numbers[1]], **HERE)
    assert [each["name"] for each in nouns.read(segments.segments_of, USED)] == ["b"]
    assert nouns.read(segments.segments_of, "nosuch") == []
    for place in (HERE | {"project": "other"}, HERE | {"environment": "production"}):
        assert nouns.refusal(segments.set_segments, USED, [], **place)[0] == 404
    assert nouns.refusal(segments.set_segments, USED, [numbers[0], 99], **HERE)[2] == ['No segment exists with ID "99"']
    too_many = nouns.refusal(segments.set_segments, USED, [*range(6)], **HERE)
    assert too_many == (400, "BadDataError", ["Strategies may not have more than 5 segments"])
    assert [each["name"] for each in nouns.read(segments.segments_of, USED)] == ["b"]


def test_where_a_segment_is_used(nouns: Nouns) -> None:
    """Active features count, archived ones do not; a segment in use by other projects cannot move to one project."""
    number = nouns.write(segments.create, wanted())["id"]
    nouns.write(segments.set_segments, ARCHIVED, [number], **HERE)
    assert nouns.read(segments.strategies_using, number) == []
    nouns.write(segments.set_segments, USED, [number], **HERE)
    nouns.write(segments.set_segments, FAR, [number], **HERE | {"project": "other"})
    shown = {"projectId": "default", "featureName": "web", "strategyName": "default", "environment": "development"}
    far = {"id": FAR, "projectId": "other", "featureName": "elsewhere"}
    assert nouns.read(segments.strategies_using, number) == [{"id": USED, **shown}, {**shown, **far}]
    listed = nouns.read(segments.list_segments)[0]
    assert (listed["usedInProjects"], listed["usedInFeatures"]) == (2, 2)
    assert nouns.refusal(segments.change, number, wanted(project="default"))[2] == [
        "Invalid project. Segment is being used by strategies in other projects: default, other"
    ]


def test_a_segment_in_use_stays(nouns: Nouns) -> None:
    """A segment that only strategies of archived features use can be deleted, and disappears from them."""
    number = nouns.write(segments.create, wanted())["id"]
    nouns.write(segments.set_segments, USED, [number], **HERE)
    nouns.write(segments.set_segments, ARCHIVED, [number], **HERE)
    assert nouns.write(segments.remove, number) is False
    nouns.write(segments.set_segments, USED, [], **HERE)
    assert nouns.write(segments.remove, number) is True
    assert nouns.read(segments.segments_of, ARCHIVED) == []
    assert nouns.refusal(segments.remove, number)[0] == 404
    assert nouns.told()[-1] == ("segment-deleted",)


def test_a_name_that_is_asked_about(nouns: Nouns) -> None:
    """An empty name is a 400, a name in use is a 409."""
    nouns.write(segments.create, wanted())
    nouns.read(segments.check_name, "free")
    assert nouns.refusal(segments.check_name, "")[:2] == (400, "BadDataError")
    assert nouns.refusal(segments.check_name, "beta")[:2] == (409, "NameExistsError")
