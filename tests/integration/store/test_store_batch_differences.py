"""Which flags differ between two environments: what flags are decides, not how the database holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import update

from flagsvc.server.store.batch.differences import DifferingFlags, find_differing
from flagsvc.server.store.batch.exporting import read_flag_states
from flagsvc.server.store.schema import feature_environments, strategies
from support.batch_scene import Scene, body, feature, place, scene_of, strategy, variant

ENVIRONMENTS = ("development", "production")
CONSTRAINT = {"contextName": "plan", "operator": "IN", "values": ["team"]}
ONE = strategy("a", "flexibleRollout", title="one", parameters={"rollout": "25", "stickiness": "userId", "groupId": "a"})
TWO = strategy("a", constraints=[CONSTRAINT], segments=[1])
DATA: dict[str, Any] = {
    "features": [feature("a")],
    "featureStrategies": [ONE, TWO],
    "featureEnvironments": [place("a", enabled=True, variants=[variant("x")])],
    "segments": [{"id": 1, "name": "beta"}],
}


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a flag that is the same in both environments, on each kind of database."""
    with scene_of(database_url) as found:
        found.seed(segments=[{"name": "beta", "constraints": []}, {"name": "other", "constraints": []}])
        for environment in ENVIRONMENTS:
            found.load(body(environment, **DATA))
        yield found


def differing(scene: Scene) -> dict[str, bool]:
    """Return the flags that differ; reading all that they are must say the same."""
    with scene.store.reading() as tx:
        found = find_differing(tx, *ENVIRONMENTS)
        one, other = (read_flag_states(tx, ["a"], each)["a"] for each in ENVIRONMENTS)
    assert (found == {"a": True}) == (one != other)
    return found


def test_what_differs(scene: Scene) -> None:
    """Each part of a flag counts, and the order of its strategies; the same again is no difference."""
    assert differing(scene) == {}
    for changes in [
        {"featureStrategies": [TWO, ONE]},
        {"featureStrategies": [ONE]},
        {"featureStrategies": [ONE, ONE]},
        {"featureStrategies": [ONE | {"title": "two"}, TWO]},
        {"featureStrategies": [ONE | {"disabled": True}, TWO]},
        {"featureStrategies": [ONE | {"parameters": {**ONE["parameters"], "rollout": "26"}}, TWO]},
        {"featureStrategies": [ONE | {"variants": [variant("y")]}, TWO]},
        {"featureStrategies": [ONE, TWO | {"constraints": [CONSTRAINT | {"inverted": True}]}]},
        {"featureStrategies": [ONE, TWO | {"segments": []}]},
        {"featureStrategies": [ONE | {"segments": [1]}, TWO | {"segments": []}]},
        {"segments": [{"id": 1, "name": "other"}]},
        {"featureEnvironments": [place("a", enabled=False, variants=[variant("x")])]},
        {"featureEnvironments": [place("a", enabled=True, variants=[variant("y")])]},
    ]:
        scene.load(body("production", **DATA | changes))
        assert differing(scene) == {"a": True}, changes
        scene.load(body("production", **DATA))
        assert differing(scene) == {}


def test_another_text_is_no_difference(scene: Scene) -> None:
    """Members in another order, and what a constraint or a title leaves out, say the same."""
    said = [{"values": ["team"], "inverted": False, "operator": "IN", "caseInsensitive": False, "contextName": "plan"}]
    turned = dict(reversed(ONE["parameters"].items()))
    here = strategies.c.environment == "production"
    with scene.store.writing(None) as tx:
        tx.db.execute(update(strategies).where(here, strategies.c.title == "one").values(parameters=turned))
        tx.db.execute(update(strategies).where(here, strategies.c.title.is_(None)).values(constraints=said, title=""))
    assert differing(scene) == {}


def test_a_flag_in_one_environment_only(scene: Scene) -> None:
    """It differs, and differs otherwise than a flag of both environments."""
    with scene.store.writing(None) as tx:
        tx.db.execute(feature_environments.delete().where(feature_environments.c.environment == "production"))
        assert find_differing(tx, *ENVIRONMENTS) == {"a": False}
        assert find_differing(tx, *reversed(ENVIRONMENTS)) == {"a": False}


def test_what_is_kept(scene: Scene) -> None:
    """The flags that differ are found once for each state of the flags, and a reader of an older state gets what it sees."""
    kept = DifferingFlags()

    def find(*pair: str) -> dict[str, bool]:
        with scene.store.reading() as tx:
            return kept.find(tx, *pair)

    assert find(*ENVIRONMENTS) == {}
    assert scene.counted(lambda: find(*ENVIRONMENTS)) < scene.counted(lambda: find(*reversed(ENVIRONMENTS)))
    with scene.store.reading() as old:
        assert kept.find(old, *ENVIRONMENTS) == {}
        scene.load(body("production", **DATA | {"featureStrategies": [ONE]}))
        assert find(*ENVIRONMENTS) == find(*reversed(ENVIRONMENTS)) == {"a": True}
        assert kept.find(old, *ENVIRONMENTS) == {}
    assert find(*ENVIRONMENTS) == {"a": True}
