"""What an import would change (import validation 6.3)."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.cli.batch.changes import Change, compare, read_flags

A = {"name": "a"}


def data(**lists: list[Any]) -> dict[str, Any]:
    """Return a data set with these lists and the three required ones."""
    return {"features": [], "featureStrategies": [], "tagTypes": [], **lists}


def change(wanted: dict[str, Any], there: dict[str, Any]) -> Change:
    """Return the change of the only flag, `a`."""
    [found] = compare(wanted, there, None, None).flags
    return found


@pytest.mark.parametrize(
    ("wanted", "there", "details"),
    [
        ({}, {}, []),
        ({"description": ""}, {"description": None}, []),
        ({}, {"type": "release", "stale": False, "archived": False, "project": "p"}, []),
        ({"type": "experiment"}, {"type": "release"}, ["type: `release` → `experiment`"]),
        ({}, {"description": "x", "stale": True}, ["description: `x` → none", "stale: yes → no"]),
        ({"archived": True}, {}, ["archived: no → yes"]),
        ({"impressionData": True}, {"impressionData": False}, ["impressionData: no → yes"]),
    ],
)
def test_metadata(wanted: dict[str, Any], there: dict[str, Any], details: list[str]) -> None:
    """A property that the data set omits is reset to its default."""
    found = change(data(features=[A | wanted]), data(features=[A | there | {"type": there.get("type", "release")}]))
    assert found == ("a", "changed" if details else "same", tuple(details))


FULL = {"rollout": "50", "stickiness": "default", "groupId": "a"}
STRATEGIES: list[tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]] = [
    ([{"name": "default"}], [{"name": "default", "id": "x", "title": None, "disabled": False, "constraints": []}], []),
    ([{"name": "default"}], [], ["strategies: + default"]),
    ([], [{"name": "default"}], ["strategies: - default"]),
    ([{"name": "default", "title": "t"}], [{"name": "default"}], ["strategies: - default, + default"]),
    ([{"name": "default", "disabled": True}], [{"name": "default"}], ["strategies: - default, + default"]),
    ([{"name": "default"}] * 2, [{"name": "default"}], ["strategies: + default"]),
    ([{"name": "one"}, {"name": "two"}], [{"name": "two"}, {"name": "one"}], []),
    (
        [{"name": "flexibleRollout", "parameters": {"rollout": "50"}}],
        [{"name": "flexibleRollout", "parameters": FULL}],
        [],
    ),
    (
        [{"name": "default", "constraints": [{"contextName": "c", "operator": "IN", "values": ["1"]}]}],
        [{"name": "default", "constraints": [
            {"contextName": "c", "operator": "IN", "values": ["1"], "inverted": False, "caseInsensitive": False}
        ]}],
        [],
    ),
    ([{"name": "default", "segments": [1]}], [{"name": "default", "segments": [7]}], []),
    ([{"name": "default", "segments": [2]}], [{"name": "default", "segments": [7]}], ["strategies: - default, + default"]),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "there", "details"), STRATEGIES)
def test_strategies(wanted: list[Any], there: list[Any], details: list[str]) -> None:
    """The import replaces strategies. The comparison ignores ids, compares segments by name, and fills in the server's defaults."""
    found = change(
        data(
            features=[A],
            featureStrategies=[{**item, "featureName": "a"} for item in wanted] + [{"name": "dropped"}],
            segments=[{"id": 1, "name": "eu"}, {"id": 2, "name": "us"}],
        ),
        data(features=[A], featureStrategies=[{**item, "featureName": "a"} for item in there], segments=[{"id": 7, "name": "eu"}]),
    )
    assert list(found.details) == details


def entry(**more: Any) -> dict[str, Any]:
    """Return an entry of featureEnvironments for the flag `a`."""
    return {"name": "a", "featureName": "a", **more}


ORDERS: list[tuple[list[float | None], list[float | None], bool]] = [
    ([0, 1], [0, 1], False),
    ([0, 1], [1, 0], True),
    ([3, 7], [0, 9999], False),
    ([None, None], [1, 0], False),
    ([0, 1], [None, None], False),
    ([0, 0], [1, 0], False),
]


@pytest.mark.parametrize(("wanted", "there", "differs"), ORDERS)
def test_order(wanted: list[float | None], there: list[float | None], differs: bool) -> None:
    """Equal strategies in another order are a change if both orders are known."""

    def of(places: list[float | None]) -> dict[str, Any]:
        named = zip(("one", "two"), places, strict=True)
        items = [{"name": name, "featureName": "a"} | ({} if p is None else {"sortOrder": p}) for name, p in named]
        return data(features=[A], featureStrategies=items)

    found = change(of(wanted), of(there))
    assert found.details == (("strategies: in another order",) if differs else ())


def test_order_with_the_strategy_that_is_added() -> None:
    """The server adds a strategy to an enabled flag that has only disabled ones. This is no change of the order."""
    off = {"name": "default", "featureName": "a", "disabled": True, "sortOrder": 4}
    rest = {"features": [A], "featureEnvironments": [{"name": "a", "featureName": "a", "enabled": True}]}
    added = {"name": "flexibleRollout", "featureName": "a", "sortOrder": 5}
    assert change(data(featureStrategies=[off], **rest), data(featureStrategies=[off, added], **rest)).kind == "same"  # type: ignore[arg-type]


def test_on_and_off() -> None:
    """Only an entry of featureEnvironments switches a flag. The server adds a strategy to a flag that is on without one."""
    there = data(features=[A], featureEnvironments=[entry(enabled=True)])
    own = {"name": "flexibleRollout", "featureName": "a", "parameters": {"rollout": "100", "stickiness": "default", "groupId": "a"}}
    assert change(data(features=[A]), there).kind == "same"
    assert change(data(features=[A], featureEnvironments=[entry(enabled=False)]), there).details == ("on → off",)
    on = data(features=[A], featureEnvironments=[entry(enabled=True)])
    assert change(on, data(features=[A], featureEnvironments=[entry(enabled=False)])).details == (
        "off → on",
        "strategies: + flexibleRollout",
    )
    assert change(on, {**there, "featureStrategies": [own]}).kind == "same"
    off = data(features=[A], featureEnvironments=[entry(enabled=False)])
    assert change(off, data(features=[A])).kind == "same", "a flag that is not in the environment is off there"
    assert "off → on" in change(on, data(features=[A])).details
    dropped = data(features=[A], featureEnvironments=[{"name": "a", "enabled": False}])
    assert change(dropped, there).kind == "same", "an entry without featureName is dropped"


def test_variants() -> None:
    """A non-empty list replaces the variants. An empty list changes nothing."""
    there = data(features=[A], featureEnvironments=[entry(enabled=False, variants=[{"name": "v", "weight": 1000}])])
    for variants, details in (([], ()), ([{"weight": 1000, "name": "v"}], ()), ([{"name": "w"}], ("variants: w",))):
        wanted = data(features=[A], featureEnvironments=[entry(enabled=False, variants=variants)])
        assert change(wanted, there).details == details


def test_tags() -> None:
    """All tags of a listed flag are replaced. A tag without a type is skipped."""
    tags = [{"featureName": "a", "tagType": "simple", "tagValue": value} for value in ("x", "y")]
    wanted = data(features=[A], featureTags=[tags[0], {"featureName": "a", "tagValue": "z"}])
    assert change(wanted, data(features=[A], featureTags=tags[:1])).kind == "same"
    assert change(wanted, data(features=[A], featureTags=tags[1:])).details == ("tags: - simple:y, + simple:x",)


def test_dependencies() -> None:
    """Dependencies are added, never removed, and only for a flag that has a project in the data set."""
    parents = [{"feature": "p", "enabled": False}, {"feature": "q", "variants": ["v"]}, {"feature": "r"}]
    wanted = data(features=[A], dependencies=[{"feature": "a", "dependencies": parents}])
    there = data(features=[A], dependencies=[{"feature": "a", "dependencies": [{"feature": "r", "enabled": True}, A]}])
    there["dependencies"][0]["dependencies"][1] = {"feature": "old"}
    assert change(wanted, there).kind == "same"
    wanted["features"] = [A | {"project": "x"}]
    assert change(wanted, there).details == ("depends on: + p off, + q on with v",)


def test_links() -> None:
    """The links of a flag in `links` are replaced. Any other flag keeps its links."""
    there = data(features=[A], links=[{"feature": "a", "links": [{"id": 1, "url": "https://x", "title": None}]}])
    assert change(data(features=[A]), there).kind == "same"
    same = data(features=[A], links=[{"feature": "a", "links": [{"url": "https://x"}]}])
    assert change(same, there).kind == "same"
    assert change(data(features=[A], links=[{"feature": "a", "links": []}]), there).details == ("links: none",)


def test_kinds() -> None:
    """A flag that is missing on the server is new, with its properties that are no defaults. An archived flag is left out."""
    wanted = data(features=[A | {"description": "d"}, {"name": "b"}])
    found = compare(wanted, data(features=[{"name": "b", "archived": True}]), None, None)
    assert found.flags == (("a", "new", ("description: `d`",)), ("b", "left out", ("it is archived",)))
    assert (found.count("new"), found.count("left out"), found.count("same")) == (1, 1, 0)


def test_a_flag_that_is_not_listed() -> None:
    """For a flag that `features` does not list, strategies and tags are added to the existing ones."""
    wanted = data(
        featureStrategies=[{"name": "default", "featureName": "a"}],
        featureTags=[{"featureName": "a", "tagType": "t", "tagValue": "vv"}],
    )
    there = data(features=[A], featureStrategies=[{"name": "default", "featureName": "a"}])
    assert list(read_flags(wanted)) == ["a"]
    assert change(wanted, there) == ("a", "changed", ("strategies: + default", "tags: + t:vv"))


def test_what_else_is_created() -> None:
    """Missing context fields and used tag types are listed once each. The list is empty if the server's ones are unknown."""
    wanted = data(
        features=[A, {"name": "gone"}],
        contextFields=[{"name": "region"}, {"name": "userId"}, {"name": "region"}],
        tagTypes=[{"name": "team"}, {"name": "simple"}, {"name": "unused"}, {"name": "lost"}],
        featureTags=[
            {"featureName": name, "tagType": kind, "tagValue": "vv"}
            for name, kind in (("a", "team"), ("a", "simple"), ("gone", "lost"))
        ],
    )
    there = data(features=[{"name": "gone", "archived": True}])
    assert compare(wanted, there, {"userId"}, {"simple"}).others == ("context field region", "tag type team")
    assert compare(wanted, there, None, None).others == ()
    names = {f"field {number}" for number in range(20_000)}
    many = data(contextFields=[{"name": name} for name in (*sorted(names), "new")])
    assert compare(many, data(), names, None).others == ("context field new",)  # in a time that grows with the file
