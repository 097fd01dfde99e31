"""An export of an import can be imported again, for every valid data set (import validation 6.3; 7)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from flagsvc.http.shapes import check
from flagsvc.server.shapes.batch import IMPORT
from flagsvc.server.store.batch.dataset import read_data_set
from flagsvc.server.store.batch.differences import find_differing
from flagsvc.server.store.batch.exporting import read_flag_states
from flagsvc.server.store.batch.facts import Facts, KnownContextField, KnownFeature
from flagsvc.server.store.batch.planning import carry_out, make_copies
from flagsvc.server.store.batch.rules import find_problems
from flagsvc.server.store.client_features import read_environment_features
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.schema import context_fields
from support.batch_scene import (
    ADMIN,
    HERE,
    Json,
    Scene,
    body,
    depends,
    feature,
    linked,
    place,
    scene_of,
    strategy,
    tag,
    variant,
    without_ids,
)
from support.batch_trouble import spoil
from support.same_inputs import examples

NAMES = ("a", "b", "c-1", "D_d", "e.e")
PARENTS = ("p", "q")
ENVIRONMENTS = ("development", "production")
SEGMENTS = ("vip", "beta")
FIELDS = ("region", "tier", "userId")
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
EXAMPLES = examples(25)


def picks(pool: tuple[str, ...], most: int) -> st.SearchStrategy[list[str]]:
    """Return some different ones of a pool, sorted: of variants the first gets what is left of the whole, and exports sort them."""
    return st.lists(st.sampled_from(pool), max_size=most, unique=True).map(sorted)


def constraints() -> st.SearchStrategy[list[Json]]:
    """Return constraints that fit their operators."""
    of_values = st.fixed_dictionaries(
        {
            "contextName": st.sampled_from(FIELDS),
            "operator": st.sampled_from(("IN", "NOT_IN", "STR_CONTAINS")),
            "values": st.lists(TEXTS, min_size=1, max_size=3),
        },
        optional={"inverted": st.booleans(), "caseInsensitive": st.booleans()},
    )
    of_value = st.fixed_dictionaries(
        {"contextName": st.sampled_from(FIELDS), "operator": st.just("NUM_GT"), "value": st.integers(0, 99).map(str)}
    )
    return st.lists(of_values | of_value, max_size=2)


@st.composite
def features(draw: st.DrawFn) -> tuple[list[Json], list[Json], list[Json]]:
    """Return features with strategies and states."""
    found: tuple[list[Json], list[Json], list[Json]] = ([], [], [])
    for name in [*draw(picks(NAMES, 4)), *PARENTS]:
        more = st.fixed_dictionaries(
            {"project": st.just("from")},
            optional={
                "description": TEXTS | st.none(),
                "type": st.sampled_from(("release", "experiment")),
                "stale": st.booleans(),
                "impressionData": st.booleans(),
            },
        )
        found[0].append(feature(name, **draw(more)))
        found[1].extend(draw(st.lists(strategies(name), max_size=3)))
        variants = [variant(each) for each in draw(picks(("v", "w", "x"), 3))]
        found[2].append(place(name, enabled=draw(st.booleans()), variants=variants))
    return found


def strategies(owner: str) -> st.SearchStrategy[Json]:
    """Return a strategy of a feature."""
    more: dict[str, Any] = {
        "parameters": st.dictionaries(st.sampled_from(("rollout", "stickiness", "groupId", "x")), TEXTS, max_size=3),
        "constraints": constraints(),
        "segments": st.lists(st.integers(0, len(SEGMENTS) - 1), max_size=2, unique=True),
        "title": TEXTS | st.none(),
        "disabled": st.booleans(),
        "variants": picks(("s", "t"), 2).map(lambda names: [variant(name) for name in names]),
        "sortOrder": st.integers(0, 3),
    }
    name = st.sampled_from(("default", "flexibleRollout", "remoteAddress"))
    return st.builds(lambda name, more: strategy(owner, name, **more), name, st.fixed_dictionaries({}, optional=more))


@st.composite
def requests(draw: st.DrawFn) -> Json:
    """Return an import that can be done."""
    flags, used, states = draw(features())
    children = [each["name"] for each in flags if each["name"] not in PARENTS]
    chosen = draw(st.lists(st.sampled_from(children), unique=True) if children else st.just([]))
    return body(
        features=flags,
        featureStrategies=used,
        featureEnvironments=states,
        tagTypes=[{"name": "team", "description": draw(TEXTS)}],
        featureTags=[tag(name, value, "team") for name in chosen for value in draw(picks(("red", "blue"), 2))],
        segments=[{"id": number, "name": name} for number, name in enumerate(SEGMENTS)],
        contextFields=[{"name": "region", "description": "where"}, {"name": "tier", "stickiness": True}],
        dependencies=[depends(name, *draw(picks(PARENTS, 2))) for name in chosen],
        links=[linked(name, {"url": f"example.com/{name}/", "title": draw(TEXTS)}) for name in chosen],
    )


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, Scene]]:
    """Give two databases."""
    folder = tmp_path_factory.mktemp("batch")
    with scene_of(f"sqlite:///{folder}/here.db") as here, scene_of(f"sqlite:///{folder}/there.db") as there:
        yield here, there


def begin(scene: Scene, *others: str, **given: Any) -> Scene:
    """Return a scene that holds nothing but what is given and the segments that data sets use; numbers differ by the others before
    them."""
    scene.renew()
    scene.seed(segments=[{"name": name, "constraints": []} for name in (*others, *SEGMENTS)], **given)
    return scene


def named(exported: Json) -> Json:
    """Return an export with segments by name: their numbers are each server's own."""
    names = {each["id"]: each["name"] for each in exported["segments"]}
    rows = [row | {"segments": [names[each] for each in row["segments"]]} for row in exported["featureStrategies"]]
    found: Json = without_ids(exported | {"featureStrategies": rows})
    return found


@settings(max_examples=EXAMPLES)
@given(request=requests())
def test_an_export_is_what_its_import_exports(servers: tuple[Scene, Scene], request: Json) -> None:
    """What was exported can be imported again, here and into another server, and the export is the same each time.

    The same import again writes events only for its strategies.
    """
    here, there = begin(servers[0]), begin(servers[1], "other")
    here.load(request)
    first, told = here.export(), len(here.events())
    again = {**HERE, "data": first}
    assert here.validate(again)["errors"] == []
    for each in (request, again):
        here.load(each)
        assert named(here.export()) == named(first)
    there.load(again)
    assert named(there.export()) == named(first)
    assert {kind for kind, _ in here.events()[told:]} <= {"feature-strategy-add", "feature-strategy-remove", "features-imported"}


@settings(max_examples=EXAMPLES)
@given(request=requests())
def test_another_environment_gets_the_same(servers: tuple[Scene, Scene], request: Json) -> None:
    """Another environment can import the export of the first, which does not change."""
    here = begin(servers[0])
    here.load(request)
    first = named(here.export())
    here.load({"project": "default", "environment": "production", "data": here.export()})
    assert named(here.export()) == first
    second = named(here.export(environment="production"))
    states = [row | {"environment": "development"} for row in second["featureEnvironments"]]
    assert second | {"featureEnvironments": states} == first


def bodies(scene: Scene, environment: str) -> dict[str, bytes]:
    """Return what clients get of each flag in an environment."""
    with scene.store.reading() as tx:
        return {name: each.body for name, each in read_environment_features(tx, environment).entries.items()}


def differing(scene: Scene) -> set[str]:
    """Return the flags that differ between both environments; reading all of both finds the same flags."""
    with scene.store.reading() as tx:
        found = find_differing(tx, *ENVIRONMENTS)
        one, other = (read_flag_states(tx, (*NAMES, *PARENTS), each) for each in ENVIRONMENTS)
    assert found == {name: True for name in one if one[name] != other[name]}
    return set(found)


@settings(max_examples=EXAMPLES)
@given(first=requests(), second=requests(), source=st.sampled_from(ENVIRONMENTS), data=st.data())
def test_a_copy_makes_flags_the_same(
    servers: tuple[Scene, Scene], first: Json, second: Json, source: str, data: st.DataObject
) -> None:
    """Clients get the same of a copied flag in both environments, what they get where it came from does not change, nor do
    other flags; it does what its preview said, also where that reads the flags again, and nothing is left to copy."""
    here = begin(servers[0])
    here.load({**first, "environment": "development"})
    here.load({**second, "environment": "production"})
    [target] = set(ENVIRONMENTS) - {source}
    before = {each: bodies(here, each) for each in ENVIRONMENTS}
    left = differing(here)
    chosen = data.draw(st.lists(st.sampled_from(sorted(before[source])), min_size=1, unique=True))
    with here.store.dry_run(ADMIN) as tx:
        shown = carry_out(tx, ADMIN, make_copies(tx, chosen, source, [target]))
    with here.store.dry_run(ADMIN) as tx:
        plain = [each._replace(before=None) for each in make_copies(tx, chosen, source, [target])]
        assert carry_out(tx, ADMIN, plain) == shown
    with here.store.writing(ADMIN, "page") as tx:
        done = carry_out(tx, ADMIN, make_copies(tx, chosen, source, [target]))
    assert [each.content() for each in shown] == [each.content() for each in done]
    assert {each.name for plan in done for each in plan.flags} == left & set(chosen)
    after = bodies(here, target)
    assert bodies(here, source) == before[source]
    assert {name: after[name] for name in chosen} == {name: before[source][name] for name in chosen}
    assert {name for name in after if after[name] != before[target][name]} <= set(chosen)
    assert differing(here) == left - set(chosen)
    with here.store.reading() as tx:
        assert make_copies(tx, chosen, source, [target]) == []


STATE: Json = {
    "projects": [
        {"id": "default", "name": "Default", "environments": ["development"]},
        {"id": "other", "name": "Other", "environments": ["development"]},
    ],
    "features": [{"name": "there", "project": "default"}, {"name": "elsewhere", "project": "other"}],
    "contextFields": [{"name": "size", "legalValues": [{"value": "large"}]}],
}


def outcome(act: Callable[[Json], None], request: Json) -> tuple[str, str] | None:
    """Return name and message of the refusal that an import, or the trial of one, meets; None for none."""
    try:
        act(copy.deepcopy(request))
    except CallerError as refusal:
        return refusal.name, refusal.message
    return None


def facts_of(scene: Scene) -> Facts:
    """Return what commands learn of a server in this state."""
    with scene.store.reading() as tx:
        rows = tx.db.execute(select(context_fields.c.name, context_fields.c.legal_values)).all()
    return Facts(
        features={"there": KnownFeature("default"), "elsewhere": KnownFeature("other")},
        environments=frozenset({"development"}),
        tag_types=frozenset({"simple"}),
        context_fields={row.name: KnownContextField(None, {each["value"] for each in row.legal_values or ()}) for row in rows},
    )


@settings(max_examples=EXAMPLES * 2)
@given(request=requests(), seed=st.integers(0, 2**32))
def test_what_is_found_nothing_wrong_with_is_imported_and_nothing_else(
    servers: tuple[Scene, Scene], request: Json, seed: int
) -> None:
    """A trial gives the import's own answer and changes nothing; the checks without a database find a problem where it refuses."""
    here = begin(servers[0], **STATE)
    if seed % 4:
        spoil(Random(seed), request, STATE)
    before = here.dump()
    tried = outcome(here.attempt, request)
    assert here.dump() == before
    problems, unchecked = find_problems(read_data_set(check(IMPORT, copy.deepcopy(request))), facts_of(here))  # type: ignore[arg-type]
    errors = here.validate(copy.deepcopy(request))["errors"]
    assert tried == outcome(here.load, request)
    assert unchecked == []
    assert (not problems and not errors) == (tried is None)
