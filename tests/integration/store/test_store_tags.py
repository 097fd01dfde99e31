"""Tags of features: events and authors, bounds, cost.

`test_server_resources_beside_the_real_one.py` compares all operations of tags, of tags of features and of tag types.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import event

from flagsvc.server.store.resources import tags
from flagsvc.server.store.schema import feature_tags
from support.seeded_store import ACTOR, SeededStore

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
