"""Import, steps 1 and 3 to 6: features, tag types, tags, context fields and links (import validation 6.3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import select

from flagsvc.server.store.checks import MAX_LINKS
from flagsvc.server.store.errors import BAD_DATA
from flagsvc.server.store.schema import context_fields, features, tag_types
from support.batch_scene import EDITOR, Json, Scene, body, feature, linked, scene_of, tag

NAMING = {"pattern": "[a-z-]+", "example": "dark-mode", "description": "small letters"}


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a database with some features and projects."""
    with scene_of(database_url) as found:
        found.seed(
            projects=[
                {"id": "default", "name": "Default"},
                {"id": "named", "name": "Named", "featureNaming": NAMING},
                {"id": "frozen", "name": "Frozen", "featureNaming": {"pattern": "(?=a)(a|aa)+[bc]"}},
                {"id": "deep", "name": "Deep", "featureNaming": {"pattern": "(" * 5_000}},
                {"id": "small", "name": "Small", "featureLimit": 2},
                {"id": "narrow", "name": "Narrow", "environments": ["production"]},
                {"id": "shelved", "name": "Shelved", "archived": True},
            ],
            features=[
                *({"name": name, "project": "default"} for name in ("here", "too")),
                {"name": "gone", "project": "default", "archived": True},
                {"name": "OLD", "project": "named"},
            ],
            tagTypes=[{"name": "team", "description": "as it was", "icon": ""}],
            contextFields=[{"name": "tier", "description": "as it was", "legalValues": [{"value": "free"}]}],
        )
        yield found


def shown(scene: Scene, name: str) -> Json:
    """Return a feature in the form of an export."""
    return dict(scene.export(features=[name])["features"][0])


RICH = {"type": "experiment", "description": "words", "stale": True, "impressionData": True}
PLAIN = {"type": "release", "description": None, "stale": False, "impressionData": False, "archived": False}


def test_a_feature_is_created_in_the_target(scene: Scene) -> None:
    """The feature is created in the target project, not in the entry's; in each environment of that project alone, and off."""
    ignored = {"project": "other", "createdAt": "2020-01-01T00:00:00Z", "environments": [{"name": "production", "enabled": True}]}
    scene.load(body(features=[feature("new", **RICH, **ignored)]), EDITOR)
    assert shown(scene, "new") == {"name": "new", "project": "default", **RICH, "archived": False}
    states = scene.export(features=["new"], environment="")["featureEnvironments"]
    assert [(each["environment"], each["enabled"]) for each in states] == [("development", False), ("production", False)]
    with scene.store.reading() as tx:
        row = tx.db.execute(select(features).where(features.c.name == "new")).one()
        assert row.created_by == "writer"
        assert row.created_at.year > 2020
    scene.load(body("production", "narrow", features=[feature("narrow-new")]))
    states = scene.export(features=["narrow-new"], environment="")["featureEnvironments"]
    assert [each["environment"] for each in states] == ["production"]


def test_what_is_absent_is_set_back(scene: Scene) -> None:
    """An entry with only a name resets all other members; an empty description becomes null."""
    scene.load(body(features=[feature("here", **RICH)]))
    assert shown(scene, "here") == {"name": "here", "project": "default", **RICH, "archived": False}
    scene.load(body(features=[feature("here")]))
    assert shown(scene, "here") == {"name": "here", "project": "default", **PLAIN}
    scene.load(body(features=[feature("here", description="")]))
    assert shown(scene, "here")["description"] is None


@pytest.mark.parametrize("name", ["here", "new"])
def test_archived_entries_archive(scene: Scene, name: str) -> None:
    """The entry archives an existing feature, or creates an archived one; a later import does not change the feature."""
    scene.load(body(features=[feature(name, archived=True)]))
    assert shown(scene, name)["archived"] is True
    scene.load(body(features=[feature(name, description="x")]))
    assert shown(scene, name)["description"] is None


def test_of_an_existing_feature_the_last_entry_counts(scene: Scene) -> None:
    """Two entries for one stored feature are allowed, and the last one is used."""
    scene.load(body(features=[feature("here", description="first"), feature("here", type="experiment")]))
    assert shown(scene, "here") == {"name": "here", "project": "default"} | PLAIN | {"type": "experiment"}
    assert scene.events() == [("feature-metadata-updated", "here"), ("features-imported", None)]


def test_others_stay(scene: Scene) -> None:
    """Other features do not change, and unchanged features write no events."""
    before = shown(scene, "OLD")
    scene.load(body(features=[feature("here"), feature("new")]))
    assert shown(scene, "OLD") == before
    assert scene.events() == [("feature-created", "new"), ("features-imported", None)]


def test_existing_names_need_not_match_the_pattern(scene: Scene) -> None:
    """Only the names of new features must match the naming pattern."""
    scene.load(body(project="named", features=[feature("OLD", description="x"), feature("new")]))
    assert shown(scene, "OLD")["description"] == "x"


TAKEN = "A flag with that name already exists"
FULL = "You have reached the maximum number of feature flags for this project."
PATTERN = (
    'The feature flag name "New" does not match the project\'s naming pattern: "[a-z-]+". Here\'s an example of a name that '
    'does match the pattern: "dark-mode"." The pattern\'s description is: "small letters"'
)
REFUSED: list[tuple[str, list[Json], int, str, str]] = [
    ("default", [feature("has space")], 400, "BadDataError", '"name" must be URL friendly. You provided "has space".'),
    ("default", [feature("new", type="")], 400, "BadDataError", '"type" is not allowed to be empty.'),
    ("default", [feature("here", type="")], 400, "BadDataError", '"type" is not allowed to be empty.'),
    ("default", [feature("ok"), feature("new"), feature("new")], 409, "NameExistsError", TAKEN),
    (
        "default",
        [feature("new", archived=True), feature("new")],
        409,
        "NameExistsError",
        "An archived flag with that name already exists",
    ),
    ("named", [feature("fine"), feature("New")], 400, "PatternError", "The flag name does not match the pattern."),
    ("small", [feature("one"), feature("two"), feature("three")], 403, "InvalidOperationError", FULL),
    ("nowhere", [feature("new")], 404, "NotFoundError", "Active project with id nowhere does not exist"),
    ("shelved", [feature("new")], 404, "NotFoundError", "Active project with id shelved does not exist"),
]


def test_what_cannot_be_created(scene: Scene) -> None:
    """Each failure has its status, name and message, and stores nothing."""
    for project, wanted, status, name, message in REFUSED:
        found = scene.refusal(body(project=project, features=wanted))
        assert (found.status, found.name, found.details) == (status, name, [{"message": message}]), wanted


def test_the_pattern_is_told_with_its_example(scene: Scene) -> None:
    """The main message names the pattern."""
    assert scene.refusal(body(project="named", features=[feature("New")])).message == PATTERN


def test_archived_features_do_not_count_for_the_limit(scene: Scene) -> None:
    """Features up to the limit are accepted, and archived ones do not count."""
    scene.load(body(project="small", features=[feature("gone", archived=True), feature("one"), feature("two")]))
    assert scene.refusal(body(project="small", features=[feature("three")])).message == FULL
    scene.load(body(project="small", features=[feature("one", archived=True), feature("three")]))
    assert [each["name"] for each in scene.export(project="small")["features"]] == ["three", "two"]


def test_nothing_is_checked_without_new_features(scene: Scene) -> None:
    """Empty data is imported, even for a project that is archived or missing."""
    for project in ("nowhere", "shelved"):
        scene.load(body(project=project))


def test_a_pattern_that_would_not_end_refuses_the_import(scene: Scene) -> None:
    """A name that cannot be checked is not imported. The answer says why and what to do; the time counts for the whole request."""
    names = [f"a{'a' * size}" for size in range(60, 90)]
    refusal = scene.refusal(body(project="frozen", features=[feature(name) for name in names]))
    assert (refusal.name, refusal.status) == ("PatternError", 400)
    assert refusal.details == [{"message": refusal.message}]
    assert refusal.message == (
        f'The feature flag name "{names[0]}" cannot be checked against the project\'s naming pattern "(?=a)(a|aa)+[bc]": '
        "it takes too long. To create this feature flag, use shorter names or fewer features at once, or have the "
        "pattern made simpler: it has repetition within repetition, look-ahead, look-behind or large counts."
    )


def test_a_pattern_that_is_too_large_refuses_the_import(scene: Scene) -> None:
    """The answer names the part of the pattern that is too large, its place, and its beginning."""
    refusal = scene.refusal(body(project="deep", features=[feature("a")]))
    assert refusal.message == (
        f'The feature flag name "a" cannot be checked against the project\'s naming pattern "{"(" * 200}…": '
        "its groups are nested more than 50 deep, at character 51. To create this feature flag, have the pattern made simpler."
    )


def rows(scene: Scene, table: str) -> list[Json]:
    """Return the rows of a table by name."""
    which = {"tag_types": tag_types, "context_fields": context_fields}[table]
    with scene.store.reading() as tx:
        return [dict(row._mapping) for row in tx.db.execute(select(which).order_by(which.c.name))]


def tags_of(scene: Scene, name: str) -> list[tuple[str, str]]:
    """Return type and value of a feature's tags."""
    return [(each["tagType"], each["tagValue"]) for each in scene.export(features=[name])["featureTags"]]


def test_tag_types_are_created_when_a_tag_uses_them(scene: Scene) -> None:
    """A used tag type is created, from the last entry of its name; an unused one is not, and an existing one does not change."""
    types = [
        {"name": "area", "description": "first"},
        {"name": "area", "description": "last", "icon": "A", "color": "#00ff00"},
        {"name": "team", "description": "changed"},
        {"name": "unused"},
    ]
    tags = [tag("here", "web", "area"), tag("here", "blue", "team")]
    scene.load(body(features=[feature("here")], tagTypes=types, featureTags=tags))
    found = {row["name"]: row["description"] for row in rows(scene, "tag_types")}
    assert found["area"] == "last"
    assert found["team"] == "as it was"
    assert "unused" not in found


def test_tags_are_replaced(scene: Scene) -> None:
    """The data set's features lose all their tags and get the given ones; other features keep theirs, and may get more."""
    first = [tag("here", "old"), tag("too", "kept"), tag("here", "both")]
    scene.load(body(features=[feature("here"), feature("too")], featureTags=first))
    second = [tag("here", "new"), tag("too", "more"), tag("here", "both"), {"featureName": "here", "tagValue": "no type"}]
    scene.load(body(features=[feature("here")], featureTags=second))
    assert tags_of(scene, "here") == [("simple", "both"), ("simple", "new")]
    assert tags_of(scene, "too") == [("simple", "kept"), ("simple", "more")]
    assert ("feature-tagged", "here") in scene.events()


def test_a_tag_keeps_its_blanks(scene: Scene) -> None:
    """Blanks count towards the length of a tag, and are stored."""
    scene.load(body(features=[feature("here")], featureTags=[tag("here", " x "), tag("here", "  ")]))
    assert tags_of(scene, "here") == [("simple", "  "), ("simple", " x ")]


def test_tags_that_cannot_be(scene: Scene) -> None:
    """Each failure has its status and every detail, and stores nothing."""
    for tags, status, words in [
        ([tag("nobody", "xx")], 404, ["No feature flag found"]),
        ([tag("here", "x", "t")], 400, ["value", "type"]),
        ([tag("here", "ok"), tag("here", "xx", "nope")], 400, ["Tag type 'nope' does not exist"]),
    ]:
        found = scene.refusal(body(features=[feature("here"), feature("new")], featureTags=tags))
        assert found.status == status
        for detail, word in zip(found.details, words, strict=True):
            assert word in detail["message"]


def test_tag_types_that_cannot_be(scene: Scene) -> None:
    """The name of a tag type is URL-friendly and of 2 to 50 characters."""
    for name in ("t", "a b", "x" * 51):
        tags = [{"featureName": "here", "tagType": name, "tagValue": "xx"}]
        found = scene.refusal(body(features=[feature("here")], tagTypes=[{"name": name}], featureTags=tags))
        assert (found.status, found.details[0]["message"].startswith('"name" ')) == (400, True)


def test_context_fields_are_created(scene: Scene) -> None:
    """A new field is created, without its sort order; a project's field becomes the target's; an existing one does not change."""
    fields = [
        {"name": "region", "description": "where", "stickiness": True, "sortOrder": 99, "legalValues": [{"value": "eu"}]},
        {"name": "owned", "project": "from"},
        {"name": "tier", "description": "changed"},
    ]
    scene.load(body(contextFields=fields))
    found = {row["name"]: row for row in rows(scene, "context_fields")}
    region = {name: found["region"][name] for name in ("description", "stickiness", "sort_order", "project", "legal_values")}
    assert region == {
        "description": "where",
        "stickiness": True,
        "sort_order": 0,
        "project": None,
        "legal_values": [{"value": "eu"}],
    }
    assert found["owned"]["project"] == "default"
    assert found["tier"]["description"] == "as it was"


def test_context_fields_that_cannot_be(scene: Scene) -> None:
    """Each failure has its status and message, and stores nothing; a repeated new name is a 409.

    A context field of a project cannot be imported into a project that does not exist.
    """
    for fields, status, words in [
        ([{"name": "a b"}], 400, '"name" must be URL friendly. You provided "a b".'),
        ([{"name": ""}], 400, '"name" is not allowed to be empty.'),
        ([{"name": "f", "description": "x" * 251}], 400, '"description" length must be less than or equal to 250'),
        ([{"name": "f", "legalValues": [{"value": ""}]}], 400, '"legalValues[0].value" is not allowed to be empty.'),
        (
            [{"name": "f", "legalValues": [{"value": "x"}, {"value": "x"}]}],
            400,
            '"legalValues[1]" contains a duplicate value. You provided {"value":"x"}.',
        ),
        ([{"name": "f"}, {"name": "g"}, {"name": "f"}], 409, "The data has more than one context field of the name f"),
    ]:
        found = scene.refusal(body(contextFields=fields))
        assert (found.status, found.details[0]["message"].startswith(words)) == (status, True), fields
    found = scene.refusal(body(project="nowhere", contextFields=[{"name": "f", "project": "x"}]))
    assert (found.status, found.message) == (404, "Could not find project with id nowhere")


def links_of(scene: Scene, name: str) -> list[tuple[str, str | None]]:
    """Return address and title of a feature's links."""
    return [(each["url"], each["title"]) for entry in scene.export(features=[name])["links"] for each in entry["links"]]


def test_links_are_replaced_where_they_are_named(scene: Scene) -> None:
    """The links of a feature that `links` names are replaced, in order and with normalised addresses; others stay.

    A feature whose entry has no links loses its links; such an entry may name a missing feature.
    """
    scene.load(body(links=[linked("here", {"url": "old.com"}), linked("too", {"url": "kept.com"})]))
    wanted = [linked("here", {"url": "b.com/", "title": "b"}, {"url": "a.com?utm_source=x", "title": ""})]
    scene.load(body(features=[feature("too")], links=wanted))
    assert links_of(scene, "here") == [("https://b.com", "b"), ("https://a.com", None)]
    assert links_of(scene, "too") == [("https://kept.com", None)]
    scene.load(body(links=[linked("here", {"url": "old.com"})]))
    scene.load(body(links=[linked("here"), linked("nobody")]))
    assert links_of(scene, "here") == []


def test_links_that_cannot_be(scene: Scene) -> None:
    """Each failure has its status and message, and stores nothing."""
    for entry, status, message in [
        (linked("nobody", {"url": "x"}), 404, "Could not find feature with name nobody"),
        (linked("gone", {"url": "x"}), 404, "Could not find feature with name gone"),
        (linked("here", {"url": "http://"}), 400, f"{BAD_DATA}Invalid URL: http://"),
        *(
            (linked("here", {"url": each}), 400, f"{BAD_DATA}Invalid URL: {each} is no address of a web page")
            for each in ("javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,x")
        ),
        (
            linked("here", {"url": f"https://e.com/{'x' * 10_000}"}),
            400,
            f"{BAD_DATA}The url of a link must not have more than 10000 characters",
        ),
        (
            linked("here", {"url": "https://e.com", "title": "x" * 10_001}),
            400,
            f"{BAD_DATA}The title of a link must not have more than 10000 characters",
        ),
        (
            linked("here", *({"url": f"x.com/{number}"} for number in range(MAX_LINKS + 1))),
            403,
            "Too many links (10) exist for this feature",
        ),
    ]:
        found = scene.refusal(body(features=[feature("new")], links=[linked("too", {"url": "x"}), entry]))
        assert (found.status, found.message) == (status, message)
