"""Import, steps 3 to 6: tag types, tags, context fields and links (import validation 6.3, steps 3 to 6)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import select

from flagsvc.server.store.checks import MAX_LINKS
from flagsvc.server.store.errors import BAD_DATA
from flagsvc.server.store.schema import context_fields, tag_types
from support.batch_scene import Json, Scene, body, feature, linked, scene_of, strategy, tag


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a database with some features."""
    with scene_of(database_url) as found:
        found.seed(
            projects=[{"id": "default", "name": "Default"}, {"id": "other", "name": "Other"}],
            features=[
                {"name": "here", "project": "default"},
                {"name": "too", "project": "default"},
                {"name": "gone", "project": "default", "archived": True},
            ],
            tagTypes=[{"name": "team", "description": "as it was", "icon": ""}],
            contextFields=[{"name": "tier", "description": "as it was", "legalValues": [{"value": "free"}]}],
        )
        yield found


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
    second = [
        tag("here", "new"),
        tag("too", "more"),
        tag("here", "both"),
        {"featureName": "here", "tagValue": "no type"},
    ]
    scene.load(body(features=[feature("here")], featureTags=second))
    assert tags_of(scene, "here") == [("simple", "both"), ("simple", "new")]
    assert tags_of(scene, "too") == [("simple", "kept"), ("simple", "more")]
    assert ("feature-tagged", "here") in scene.events()


def test_a_tag_keeps_its_blanks(scene: Scene) -> None:
    """Blanks count towards the length of a tag, and are stored."""
    scene.load(body(features=[feature("here")], featureTags=[tag("here", " x "), tag("here", "  ")]))
    assert tags_of(scene, "here") == [("simple", "  "), ("simple", " x ")]


TAGS: list[tuple[list[Json], int, list[str]]] = [
    ([tag("nobody", "xx")], 404, ["No feature flag found"]),
    ([tag("here", "x", "t")], 400, ["value", "type"]),
    ([tag("here", "ok"), tag("here", "xx", "nope")], 400, ["Tag type 'nope' does not exist"]),
]


def test_tags_that_cannot_be(scene: Scene) -> None:
    """Each failure has its status and every detail, and stores nothing."""
    for tags, status, words in TAGS:
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
        {
            "name": "region",
            "description": "where",
            "stickiness": True,
            "sortOrder": 99,
            "legalValues": [{"value": "eu"}],
        },
        {"name": "owned", "project": "from"},
        {"name": "tier", "description": "changed"},
    ]
    scene.load(body(contextFields=fields))
    found = {row["name"]: row for row in rows(scene, "context_fields")}
    region = {
        name: found["region"][name] for name in ("description", "stickiness", "sort_order", "project", "legal_values")
    }
    assert region == {
        "description": "where",
        "stickiness": True,
        "sort_order": 0,
        "project": None,
        "legal_values": [{"value": "eu"}],
    }
    assert found["owned"]["project"] == "default"
    assert found["tier"]["description"] == "as it was"


def test_new_legal_values_count_at_once(scene: Scene) -> None:
    """A constraint is checked against the legal values of the same import."""
    fields = [{"name": "region", "legalValues": [{"value": "eu"}]}]

    def using(value: str) -> Json:
        constraint = {"contextName": "region", "operator": "IN", "values": [value]}
        return body(contextFields=fields, featureStrategies=[strategy("here", constraints=[constraint])])

    found = scene.refusal(using("us"))
    assert found.details[0]["message"] == "input values are not specified as a legal value on this context field"
    scene.load(using("eu"))


FIELDS: list[tuple[list[Json], int, str]] = [
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
]


def test_context_fields_that_cannot_be(scene: Scene) -> None:
    """Each failure has its status and message, and stores nothing; a repeated new name is a 409."""
    for fields, status, words in FIELDS:
        found = scene.refusal(body(contextFields=fields))
        assert (found.status, found.details[0]["message"].startswith(words)) == (status, True), fields


def test_a_field_of_a_project_that_is_not_there(scene: Scene) -> None:
    """A context field of a project cannot be imported into a project that does not exist."""
    found = scene.refusal(body(project="nowhere", contextFields=[{"name": "f", "project": "x"}]))
    assert (found.status, found.message) == (404, "Could not find project with id nowhere")


def links_of(scene: Scene, name: str) -> list[tuple[str, str | None]]:
    """Return address and title of a feature's links."""
    return [(each["url"], each["title"]) for entry in scene.export(features=[name])["links"] for each in entry["links"]]


def test_links_are_replaced_where_they_are_named(scene: Scene) -> None:
    """The links of a feature that `links` names are replaced, in order and with normalised addresses; others stay."""
    scene.load(body(links=[linked("here", {"url": "old.com"}), linked("too", {"url": "kept.com"})]))
    wanted = [linked("here", {"url": "b.com/", "title": "b"}, {"url": "a.com?utm_source=x", "title": ""})]
    scene.load(body(features=[feature("too")], links=wanted))
    assert links_of(scene, "here") == [("https://b.com", "b"), ("https://a.com", None)]
    assert links_of(scene, "too") == [("https://kept.com", None)]


def test_an_empty_entry_takes_links_away(scene: Scene) -> None:
    """A feature whose entry has no links loses its links; such an entry may name a missing feature."""
    scene.load(body(links=[linked("here", {"url": "old.com"})]))
    scene.load(body(links=[linked("here"), linked("nobody")]))
    assert links_of(scene, "here") == []


LINKS = [
    (linked("nobody", {"url": "x"}), 404, "Could not find feature with name nobody"),
    (linked("gone", {"url": "x"}), 404, "Could not find feature with name gone"),
    (linked("here", {"url": "http://"}), 400, f"{BAD_DATA}Invalid URL: http://"),
    *(
        (linked("here", {"url": each}), 400, f"{BAD_DATA}Invalid URL: {each} is no address of a web page")
        for each in (
            "javascript:alert(1)",
            " JavaScript:alert(1)",
            "data:text/html,x",
        )
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
]


def test_links_that_cannot_be(scene: Scene) -> None:
    """Each failure has its status and message, and stores nothing."""
    for entry, status, message in LINKS:
        found = scene.refusal(body(features=[feature("new")], links=[linked("too", {"url": "x"}), entry]))
        assert (found.status, found.message) == (status, message)
