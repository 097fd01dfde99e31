"""Tags, the tags of features, and tag types."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event

from flagsvc.server.store.resources import tag_types, tags
from flagsvc.server.store.schema import feature_tags
from support.seeded_store import ACTOR, SeededStore

NO_FEATURE = (404, "NotFoundError", ["No feature flag found"])


def tag(value: str, kind: str = "simple", **given: Any) -> dict[str, Any]:
    """Return a tag."""
    return {"type": kind, "value": value, **given}


def values(seeded: SeededStore, feature: str = "web") -> list[str]:
    """Return the values of a feature's tags."""
    return [each["value"] for each in seeded.read(tags.tags_of, feature)]


def test_a_tag_is_made(seeded: SeededStore) -> None:
    """White space at the ends is removed, as JavaScript defines it; type and value identify a tag."""
    assert seeded.write(tags.create, tag("\ufeff\u00a0 two words\n", color="#000000")) == tag("two words")
    assert seeded.read(tags.list_tags) == seeded.read(tags.list_tags, "simple") == [tag("two words")]
    assert seeded.read(tags.list_tags, "team") == []
    assert seeded.read(tags.find, "simple", "two words") == tag("two words")
    assert seeded.refusal(tags.find, "simple", "other")[2] == ["No tag with type: [simple] and value [other]"]
    assert seeded.refusal(tags.create, tag("two words"))[:2] == (409, "NameExistsError")
    assert seeded.refusal(tags.create, tag("one", "nosuch"))[2] == ["Tag type 'nosuch' does not exist"]
    assert seeded.refusal(tags.create, tag(" x ", "a b"))[2] == [
        '"value" length must be at least 2 characters long. You provided "x".',
        '"type" must be URL friendly. You provided "a b".',
    ]
    assert seeded.told("data") == [("tag-created", tag("two words"))]


def test_a_deleted_tag_is_gone_from_every_feature(seeded: SeededStore) -> None:
    """Deleting a tag that does not exist is no error and changes nothing."""
    for feature in ("web", "app"):
        seeded.write(tags.add_to_feature, feature, tag("both"))
    seeded.write(tags.remove, "simple", "both")
    assert values(seeded) == values(seeded, "app") == []
    before = seeded.told()
    seeded.write(tags.remove, "simple", "both")
    assert seeded.told() == before


def test_a_feature_is_tagged(seeded: SeededStore) -> None:
    """A missing tag is created, a repeated one counts once, archived features can be tagged, and the author is stored."""
    assert seeded.write(tags.add_to_feature, "web", tag("new", color="#000000")) == tag("new")
    seeded.write(tags.add_to_feature, "web", tag("new"))
    seeded.write(tags.add_to_feature, "old", tag("red", "team"))
    assert seeded.read(tags.tags_of, "web") == [tag("new", color="#FFFFFF")]
    assert seeded.read(tags.tags_of, "old") == [tag("red", "team", color=None)]
    assert seeded.told("feature", "project")[:2] == [("tag-created", None, None), ("feature-tagged", "web", "default")]
    with seeded.store.reading() as tx:
        assert {row.created_by_id for row in tx.db.execute(feature_tags.select())} == {ACTOR.id}


def test_what_cannot_be_tagged(seeded: SeededStore) -> None:
    """A missing feature is reported first; if one tag of a list fails, none is stored."""
    assert seeded.refusal(tags.add_to_feature, "nosuch", tag("x", "a b")) == NO_FEATURE
    assert seeded.refusal(tags.remove_from_feature, "nosuch", "simple", "x") == NO_FEATURE
    assert seeded.refusal(tags.change_tags_of_feature, "nosuch", [tag("xx")], []) == NO_FEATURE
    assert seeded.refusal(tags.change_tags_of_feature, "nosuch", [], [])[2] == [
        "Could not find feature with name nosuch"
    ]
    assert seeded.refusal(tags.change_tags_of_feature, "web", [tag("good"), tag("bad", "nosuch")], [])[0] == 400
    assert seeded.refusal(tags.change_tags_of_feature, "web", [tag("good"), tag("b" * 51)], [])[0] == 400
    assert values(seeded) == []
    assert seeded.read(tags.list_tags) == []


def test_tags_of_a_feature_change(seeded: SeededStore) -> None:
    """Tags are added first, then removed; only actual changes write events."""
    seeded.write(tags.add_to_feature, "web", tag("first"))
    found = seeded.write(
        tags.change_tags_of_feature, "web", [tag("second"), tag("third")], [tag("first"), tag("third"), tag("never")]
    )
    assert [each["value"] for each in found] == ["second"]
    assert seeded.told("before")[-2:] == [("feature-untagged", tag("first")), ("feature-untagged", tag("third"))]
    seeded.write(tags.remove_from_feature, "web", "simple", "second")
    assert values(seeded) == []
    assert seeded.read(tags.find, "simple", "second") == tag("second")


def test_tags_of_several_features_change(seeded: SeededStore) -> None:
    """All features are in the project, or nothing changes."""
    seeded.write(
        tags.change_tags_of_features, "default", ["web", "app", "web"], [tag("a " * 9), tag("bb")], [tag("bb")]
    )
    assert values(seeded) == values(seeded, "app") == ["a " * 9]
    for names in (["web", "nosuch"], ["web", "elsewhere"]):
        assert seeded.refusal(tags.change_tags_of_features, "default", names, [tag("cc")], []) == NO_FEATURE
    assert seeded.refusal(tags.change_tags_of_features, "default", ["web"], [tag("cc", "nosuch")], [])[0] == 400
    seeded.write(tags.change_tags_of_features, "default", [], [tag("dd")], [])
    assert values(seeded) == ["a " * 9]


def test_more_features_than_a_statement_takes_names(seeded: SeededStore) -> None:
    """Long lists of names are read in chunks."""
    names = [f"no-{number}" for number in range(40_000)]
    assert seeded.refusal(tags.change_tags_of_features, "default", names, [tag("aa")], []) == NO_FEATURE


def test_a_tag_type_is_made_and_changed(seeded: SeededStore) -> None:
    """What was given comes back; what is not given stays; nothing to change, and nothing to be changed, is no error."""
    assert seeded.write(tag_types.create, {"name": "squad", "icon": None}) == {"name": "squad", "icon": None}
    seeded.write(tag_types.change, "squad", {"description": "d", "color": "#123456"})
    seeded.write(tag_types.change, "squad", {"icon": "i"})
    seeded.write(tag_types.change, "squad", {})
    seeded.write(tag_types.change, "nosuch", {"icon": "i"})
    expected = {"name": "squad", "description": "d", "icon": "i", "color": "#123456"}
    assert seeded.read(tag_types.find, "squad") == expected
    assert {each["name"] for each in seeded.read(tag_types.list_types)} == {"simple", "team", "squad"}
    assert seeded.told() == [("tag-type-created",), ("tag-type-updated",), ("tag-type-updated",)]


def test_names_of_tag_types(seeded: SeededStore) -> None:
    """A name has 2 to 50 characters that need no escape in a path, and is not in use."""
    for name, problem in (
        ("x", "at least 2"),
        ("x" * 51, "less than or equal to 50"),
        ("a b", "URL friendly"),
        ("", "empty"),
    ):
        status, _, (message,) = seeded.refusal(tag_types.create, {"name": name})
        assert status == 400 and problem in message
    assert seeded.refusal(tag_types.change, "x", {})[0] == 400
    assert seeded.refusal(tag_types.check_new_name, "team")[2] == ["There already exists a tag-type with the name team"]


def test_a_deleted_tag_type_takes_its_tags_along(seeded: SeededStore) -> None:
    """Deleting a tag type deletes its tags, from every feature too."""
    seeded.write(tags.change_tags_of_feature, "web", [tag("red", "team"), tag("kept")], [])
    seeded.write(tag_types.remove, "team")
    assert values(seeded) == ["kept"]
    assert seeded.read(tags.list_tags, "team") == []
    assert seeded.refusal(tag_types.remove, "team") == (404, "NotFoundError", ["Could not find tag-type"])


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
