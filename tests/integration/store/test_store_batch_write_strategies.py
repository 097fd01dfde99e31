"""Import, steps 2, 7, 8 and 9: variants, strategies, states and dependencies (import validation 6.3)."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import pytest
from sqlalchemy import select

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.errors import BAD_DATA
from flagsvc.server.store.schema import strategies
from support.batch_scene import ADMIN, EDITOR, Json, Scene, body, depends, feature, place, scene_of, strategy, variant


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a database with some features."""
    with scene_of(database_url) as found:
        found.seed(
            projects=[
                {"id": "default", "name": "Default", "defaultStickiness": "userId"},
                {"id": "other", "name": "Other"},
                {"id": "narrow", "name": "Narrow", "environments": ["production"]},
            ],
            features=[
                {"name": "here", "project": "default"},
                {"name": "too", "project": "default"},
                {"name": "gone", "project": "default", "archived": True},
                {"name": "there", "project": "other"},
            ],
            strategies=[
                {"feature": name, "environment": environment, "name": "default"}
                for name in ("here", "too")
                for environment in ("development", "production")
            ],
            segments=[{"name": f"s{number}", "constraints": []} for number in range(7)],
        )
        yield found


def strategies_of(scene: Scene, name: str, environment: str = "development") -> list[Json]:
    """Return the strategies of a feature, in their order."""
    return list(scene.export(features=[name], environment=environment)["featureStrategies"])


def state_of(scene: Scene, name: str, environment: str = "development") -> Json:
    """Return a feature's state in an environment."""
    return dict(scene.export(features=[name], environment=environment)["featureEnvironments"][0])


def test_strategies_are_replaced_in_the_environment(scene: Scene) -> None:
    """In the target environment the data set's features lose their old strategies, also if they get no new ones.

    Other environments and features keep their strategies.
    """
    scene.load(body(features=[feature("here")], featureStrategies=[strategy("here", title=name) for name in "xyz"]))
    assert [each["title"] for each in strategies_of(scene, "here")] == ["x", "y", "z"]
    assert [each["title"] for each in strategies_of(scene, "here", "production")] == [None]
    assert len(strategies_of(scene, "too")) == 1
    scene.load(body(features=[feature("here")]))
    assert strategies_of(scene, "here") == []


def test_strategies_of_others_are_added(scene: Scene) -> None:
    """A stored feature that is not in the data set keeps its strategies; the new ones come behind them."""
    scene.load(body(featureStrategies=[strategy("too", title="added")]))
    assert [each["title"] for each in strategies_of(scene, "too")] == [None, "added"]


def test_ids_are_new_and_parameters_complete(scene: Scene) -> None:
    """The data set's ids are not used; missing parameters of a rollout are filled in, with the project's stickiness."""
    wanted = [
        strategy("here", "flexibleRollout", id="mine"),
        strategy("here", "flexibleRollout", parameters={"rollout": 7, "stickiness": "", "groupId": "g"}),
        strategy("here", parameters={"rollout": "1"}),
    ]
    scene.load(body(features=[feature("here")], featureStrategies=wanted))
    found = strategies_of(scene, "here")
    assert "mine" not in [each["id"] for each in found]
    assert [each["parameters"] for each in found] == [
        {"rollout": "100", "stickiness": "userId", "groupId": "here"},
        {"rollout": "7", "stickiness": "userId", "groupId": "g"},
        {"rollout": "1"},
    ]


ORDERS: list[tuple[list[int | None], list[int]]] = [
    ([2, None, None], [2, 3, 3]),
    ([None, 2, None], [0, 2, 3]),
    ([9, None, 2], [9, 10, 2]),
    ([3, None, 5, None], [3, 4, 5, 6]),
    ([None, 5, None, 1], [0, 5, 6, 1]),
    ([-2, None], [-2, -1]),
    ([None, None], [0, 0]),
]
"""Sort orders of strategies as sent (None: absent), and as the real server stores them."""


def test_strategies_without_a_sort_order_stand_behind_those_before(scene: Scene) -> None:
    """A strategy without a sort order comes next after the preceding strategies that have one."""
    table = strategies.c
    for name, (sent, stored) in zip("abcdefg", ORDERS, strict=True):
        wanted = [
            strategy(name, title=str(number), **({} if order is None else {"sortOrder": order}))  # type: ignore[arg-type]
            for number, order in enumerate(sent)
        ]
        scene.load(body(features=[feature(name)], featureStrategies=wanted))
        with scene.store.reading() as tx:
            rows = tx.db.execute(select(table.title, table.sort_order).where(table.feature == name))
            found = {row.title: row.sort_order for row in rows}
        assert [found[str(number)] for number in range(len(sent))] == stored
        shown = [stored[int(each["title"])] for each in strategies_of(scene, name)]
        assert shown == sorted(stored)


def test_more_strategies_than_one_may_add(scene: Scene) -> None:
    """The limit of strategies in the single operation does not apply to an import."""
    scene.load(body(features=[feature("here")], featureStrategies=[strategy("here")] * 31))
    assert len(strategies_of(scene, "here")) == 31


def test_segments_are_translated(scene: Scene) -> None:
    """The data set's segment ids become names, and the names become this server's ids; a repeated one counts once."""
    declared = [{"id": 91, "name": "s5"}, {"id": 92, "name": "s2"}]
    wanted = [strategy("here", segments=[92, 91, 92])]
    scene.load(body(features=[feature("here")], featureStrategies=wanted, segments=declared))
    numbers = {each["name"]: each["id"] for each in scene.export(features=["here"])["segments"]}
    assert strategies_of(scene, "here")[0]["segments"] == [numbers["s2"], numbers["s5"]]


BAD_CONSTRAINT = {"contextName": "userId", "operator": "NUM_GT", "value": "many"}
SIX = [{"id": number, "name": f"s{number}"} for number in range(6)]
STRATEGIES = [
    ([strategy("nobody")], 404, 'There\'s no feature named "nobody" in project "default".'),
    (
        [strategy("there")],
        404,
        'There\'s no feature named "there" in project "default", but there\'s a feature with that name in project "other"',
    ),
    (
        [strategy("here", segments=[1, 7, 8])],
        400,
        f"{BAD_DATA}A strategy of here uses segments that the data does not declare: 7, 8",
    ),
    ([strategy("here", sortOrder=inf)], 400, f"{BAD_DATA[:-2]}. Refer to the `details` list for more information."),
    ([strategy("here", segments=list(range(6)))], 400, f"{BAD_DATA}Strategies may not have more than 5 segments"),
    (
        [strategy("here", variants=[variant("v", weightType="fix")])],
        400,
        f'{BAD_DATA}There must be at least one "variable" variant',
    ),
]


def test_strategies_that_cannot_be(scene: Scene) -> None:
    """Each failure has its status and message, and stores nothing."""
    for wanted, status, message in STRATEGIES:
        found = scene.refusal(body(features=[feature("new")], featureStrategies=wanted, segments=SIX))
        assert (found.status, found.message) == (status, message)


def test_values_of_all_come_before_legal_values_of_any(scene: Scene) -> None:
    """A value of the wrong form is reported before an illegal value of an earlier strategy. Legal values of the import count."""
    fields = [{"name": "tier", "legalValues": [{"value": "free"}]}]
    illegal = {"contextName": "tier", "operator": "IN", "values": ["paid"]}
    wanted = [strategy("here", constraints=[illegal]), strategy("here", constraints=[BAD_CONSTRAINT])]
    found = scene.refusal(body(contextFields=fields, featureStrategies=wanted))
    assert found.details == [{"message": '"value" must be a number. You provided "many".'}]
    found = scene.refusal(body(contextFields=fields, featureStrategies=wanted[:1]))
    assert found.details == [{"message": "input values are not specified as a legal value on this context field"}]
    scene.load(body(contextFields=fields, featureStrategies=[strategy("here", constraints=[illegal | {"values": ["free"]}])]))


def test_an_unknown_environment(scene: Scene) -> None:
    """Strategies, variants and states each have their own error for it; a project may lack an environment that exists."""
    lists = {
        "featureStrategies": ([strategy("here")], 400, f"{BAD_DATA}You have not added the current environment to the project"),
        "featureEnvironments": ([place("here")], 404, "Could not find environment nosuch for feature: here"),
    }
    for name, (entries, status, message) in lists.items():
        found = scene.refusal(body("nosuch", **{name: entries}))  # type: ignore[arg-type]
        assert (found.status, found.message) == (status, message)
    found = scene.refusal(body("nosuch", featureEnvironments=[place("here", variants=[variant("v")])]))
    assert (found.status, found.message) == (404, "Could not find here in nosuch")
    found = scene.refusal(body("development", "narrow", features=[feature("new")], featureEnvironments=[place("new")]))
    assert found.message == "Could not find environment development for feature: new"


def test_variants_are_replaced_and_weighed(scene: Scene) -> None:
    """Variable variants share what fixed ones leave, the first gets the rest; sorted by name; empty lists change nothing."""
    three = [variant("b"), variant("a"), variant("C"), variant("f", weightType="fix", weight=100)]
    scene.load(body(featureEnvironments=[place("here", variants=three)]))
    weights = {each["name"]: each["weight"] for each in state_of(scene, "here")["variants"]}
    assert list(weights.items()) == [("a", 300), ("b", 300), ("C", 300), ("f", 100)]
    scene.load(body(featureEnvironments=[place("here", variants=three[:3])]))
    weights = {each["name"]: each["weight"] for each in state_of(scene, "here")["variants"]}
    assert weights == {"b": 334, "a": 333, "C": 333}
    scene.load(body(features=[feature("here")], featureEnvironments=[place("here", variants=[])]))
    assert len(state_of(scene, "here")["variants"]) == 3
    assert state_of(scene, "here", "production")["variants"] == []


def test_variants_without_a_type_are_left_out(scene: Scene) -> None:
    """A variant that is neither variable nor fixed is not stored; the others are stored as sent."""
    wanted = [{"name": "q", "weight": 3}, {"name": "r", "weight": 3, "weightType": "variable"}]
    scene.load(body(featureEnvironments=[place("here", variants=wanted)]))
    assert state_of(scene, "here")["variants"] == [{"name": "r", "weight": 1000, "weightType": "variable"}]
    found = scene.refusal(body(featureEnvironments=[place("here", variants=wanted[:1])]))
    assert found.message == f'{BAD_DATA}There must be at least one "variable" variant'


def test_states_go_by_name(scene: Scene) -> None:
    """Variants belong to the feature `featureName`, the state to `name`; the entry's own environment is not used."""
    entry = {"name": "too", "featureName": "here", "environment": "production", "enabled": True, "variants": [variant("v")]}
    scene.load(body(featureEnvironments=[entry]))
    assert (state_of(scene, "here")["enabled"], len(state_of(scene, "here")["variants"])) == (False, 1)
    assert (state_of(scene, "too")["enabled"], state_of(scene, "too")["variants"]) == (True, [])
    assert state_of(scene, "too", "production")["enabled"] is False


@pytest.mark.parametrize("before", [[], [strategy("here", disabled=True)]])
def test_what_is_switched_on_has_a_strategy(scene: Scene, before: list[Json]) -> None:
    """If no strategy is active, the default one is added once, however often the feature is named."""
    entries = [place("here", enabled=True), place("here", enabled=False), place("here", enabled=True)]
    scene.load(body(features=[feature("here")], featureStrategies=before, featureEnvironments=entries))
    found = strategies_of(scene, "here")
    assert len(found) == len(before) + 1
    assert found[-1]["name"] == "flexibleRollout"
    assert found[-1]["parameters"] == {"rollout": "100", "stickiness": "default", "groupId": "here"}
    assert state_of(scene, "here")["enabled"] is True


def test_switching_off_and_on(scene: Scene) -> None:
    """An unchanged state writes no event."""
    scene.load(body(featureEnvironments=[place("here", enabled=True), place("too")]))
    scene.load(body(featureEnvironments=[place("here", enabled=True)]))
    scene.load(body(featureEnvironments=[place("here")]))
    told = [each for each in scene.events() if each[0] != "features-imported"]
    assert told == [("feature-environment-enabled", "here"), ("feature-environment-disabled", "here")]


def test_states_that_cannot_be(scene: Scene) -> None:
    """Unknown and archived features, and features of other projects, are not switched; a missing permission is an error."""
    assert scene.refusal(body(featureEnvironments=[place("nobody")])).status == 404
    assert 'in project "other"' in scene.refusal(body(featureEnvironments=[place("there", enabled=True)])).message
    found = scene.refusal(body(features=[feature("here", archived=True)], featureEnvironments=[place("here")]))
    assert (found.status, found.message) == (400, "Cannot perform this operation on archived features")
    may_update = Actor(5, "m", project_roles={"default": ("member",)}, environments=frozenset({"production"}))
    found = scene.refusal(body(features=[feature("new")], featureEnvironments=[place("new", enabled=True)]), may_update)
    assert found.message.endswith('you need the "CREATE_FEATURE_STRATEGY" permission in the "development" environment.')


def dependencies_of(scene: Scene) -> dict[str, list[Json]]:
    """Return the dependencies of the default project, by child."""
    return {each["feature"]: each["dependencies"] for each in scene.export()["dependencies"]}


def test_dependencies_need_a_child_with_a_project(scene: Scene) -> None:
    """A child that is not in the data set, or has no project there, is skipped; its project may be any."""
    wanted = [depends("here", "too"), depends("new", "too"), depends("too", "here")]
    features = [feature("here"), feature("new", project="whatever")]
    scene.load(body(features=features, dependencies=wanted), EDITOR)
    assert dependencies_of(scene) == {"new": [{"feature": "too", "enabled": True, "variants": []}]}


def test_dependencies_are_written(scene: Scene) -> None:
    """One import can create a chain. A parent that must be off has no variants. New parents replace old ones."""
    features = [feature(name, project="x") for name in "abc"]
    off = {"feature": "c", "enabled": False, "variants": ["v"]}
    on = {"feature": "b", "variants": ["v"]}
    scene.load(body(features=features, dependencies=[depends("a", on), depends("b", off)]), ADMIN)
    assert dependencies_of(scene) == {
        "a": [{"feature": "b", "enabled": True, "variants": ["v"]}],
        "b": [{"feature": "c", "enabled": False, "variants": []}],
    }
    scene.load(body(features=features[:1], dependencies=[depends("a", "here", "too")]))
    assert [each["feature"] for each in dependencies_of(scene)["a"]] == ["here", "too"]


def test_dependencies_that_cannot_be(scene: Scene) -> None:
    """Each failure is a 403 with the reason, and stores nothing."""
    scene.load(body(features=[feature("child", project="x")], dependencies=[depends("child", "here")]))
    features = [feature("new", project="x"), feature("here", project="x")]
    for wanted, message in [
        ([depends("new", "too"), depends("here", "here")], "A feature flag cannot depend on itself."),
        ([depends("new", "gone")], "No active feature gone exists"),
        (
            [depends("new", "child")],
            "Transitive dependency detected. Cannot add a dependency to the feature that has parent dependency.",
        ),
        (
            [depends("here", "too")],
            "Transitive dependency detected. Cannot add a dependency to the feature that other features depend on.",
        ),
    ]:
        found = scene.refusal(body(features=features, dependencies=wanted))
        assert (found.name, found.status, found.message) == ("InvalidOperationError", 403, message)


def test_a_parent_in_another_project_is_not_found(scene: Scene) -> None:
    """The 404 names the target project, as version 8.2.0 answers; it is not checked for an archived parent."""
    wanted = body(features=[feature("new", project="x")], dependencies=[depends("new", "there")])
    found = scene.refusal(wanted)
    text = 'Cannot add the dependency. Both the parent and the child feature must belong to project "default".'
    assert (found.name, found.status, found.message) == ("NotFoundError", 404, text)
    assert found.details == [{"message": text}]
