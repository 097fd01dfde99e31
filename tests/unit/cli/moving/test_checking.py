"""Before a move the command finds each flag that the other server would refuse; --skip-failing moves the others."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.cli.move import SKIP_HINT
from support.cli_helpers import Flagsvc
from support.fake_admin import BATCH, EMPTY, Answer, FakeAdmin
from unit.cli.moving.move_scene import writes

CONSTRAINTS = "/api/admin/constraints/validate"
VERSION = {"contextName": "appVersion", "operator": "SEMVER_GT", "value": "1.2.3+b", "values": []}
MESSAGE = "the provided value is not a valid semver format. The value provided was: 1.2.3+b"
REFUSAL = {"name": "BadDataError", "message": "m", "details": [{"message": MESSAGE}]}
PLACE = "environment production: strategy 2 (default), constraint on appVersion (SEMVER_GT)"
NOTHING_MOVED = f"flagsvc move: nothing was moved: {SKIP_HINT}\n"
NO_ITEMS: dict[str, Any] = {"errors": [], "warnings": [], "permissions": []}


def flags(**more: object) -> dict[str, Any]:
    """Return flags of which `bad` has a version with build metadata, `child` depends on it, and `good` on nothing."""
    strategies = [
        {"name": "default", "featureName": "bad", "id": "1", "sortOrder": 0},
        {"name": "default", "featureName": "bad", "id": "2", "sortOrder": 1, "constraints": [VERSION]},
    ]
    return (
        EMPTY
        | {
            "features": [{"name": name, "type": "release", "project": "default"} for name in ("bad", "child", "good")],
            "featureStrategies": strategies,
            "dependencies": [{"feature": "child", "dependencies": [{"feature": "bad"}]}],
        }
        | more
    )


@pytest.fixture(autouse=True)
def refusing(source: FakeAdmin, target: FakeAdmin) -> None:
    """Let the target refuse the values of constraints, and neither try an import nor take one with `bad` in it."""
    source.say("export", 200, flags())
    target.answers[CONSTRAINTS] = Answer(400, REFUSAL)
    del target.answers[f"{BATCH}/import/dry-run"]
    target.answers["/api/admin/segments"] = source.answers["/api/admin/segments"]


def test_the_dry_run(run: Flagsvc, target: FakeAdmin) -> None:
    """A dry run names the flag, the environment, the strategy and the constraint, and ends with 1. Nothing is changed."""
    called = run("--dry-run")
    assert called.code == 1 and f"\n  bad: {PLACE}\n" in called.out and called.err == NOTHING_MOVED, called
    assert MESSAGE in called.out and "error: its parent cannot be moved\n  child: parent bad\n" in called.out
    assert called.out.endswith("cannot be moved: 2 flags\n") and writes(target) == []


def test_without_the_option(run: Flagsvc, target: FakeAdmin) -> None:
    """A run finds the same, and moves nothing."""
    called, dry = run("--yes"), run("--dry-run")
    assert called.code == 1 and called.err == NOTHING_MOVED and writes(target) == []
    assert [line for line in called.out.splitlines() if "bad" in line] == [f"  bad: {PLACE}", "  child: parent bad"]
    assert dry.out.endswith(called.out[called.out.index("error: ") :])


def test_with_the_option(run: Flagsvc, target: FakeAdmin) -> None:
    """The other flags are moved. Flags that are left out, and children of new flags among them, are listed at the end."""
    called = run("--yes", "--skip-failing")
    assert called.code == 1 and called.err == "", called
    assert "environment `production`: 1 new\n" in called.out and "moved: 1 flag into project" in called.out
    assert called.out.endswith("child: parent bad\ncannot be moved: 2 flags\n")
    [sent] = target.sent("import")
    assert [item["name"] for item in sent["data"]["features"]] == ["good"]
    assert sent["data"]["featureStrategies"] == [] and sent["data"]["dependencies"] == []
    called = run("--dry-run", "--skip-failing")
    assert called.code == 1 and called.out.endswith("flags\nnothing was moved: this was a dry run\n")


def test_a_parent_that_is_there(run: Flagsvc, target: FakeAdmin) -> None:
    """The child of a flag that the target has is moved without its parent."""
    target.say("export", 200, EMPTY | {"features": flags()["features"][:1]})
    called = run("--yes", "--skip-failing")
    assert called.code == 1 and called.out.endswith("cannot be moved: 1 flag\n")
    assert [item["name"] for item in target.sent("import")[0]["data"]["features"]] == ["child", "good"]


def test_what_can_be_moved(run: Flagsvc, target: FakeAdmin) -> None:
    """Where the target takes the values, all is moved. A question has a field without legal values, and is asked once."""
    target.answers[CONSTRAINTS] = Answer(204)
    called = run("--yes", "--skip-failing")
    assert called.code == 0 and "cannot be moved" not in called.out
    [asked] = [asked.body for asked in target.asked if asked.path == CONSTRAINTS]
    assert (asked["operator"], asked["value"], asked["contextName"]) == ("SEMVER_GT", "1.2.3+b", "flagsvc-move")


@pytest.mark.parametrize("answer", [Answer(403, {"message": "no"}), None])
def test_a_server_that_does_not_say(answer: Answer | None, run: Flagsvc, target: FakeAdmin) -> None:
    """A server without such a check is asked by the imports; a refused piece is divided until its flag is known."""
    del target.answers[CONSTRAINTS]
    if answer is not None:
        target.answers[CONSTRAINTS] = answer
    assert run("--dry-run").code == 0
    target.say("import", 400, REFUSAL)
    called = run("--yes")
    assert called.code == 1 and called.err.startswith("flagsvc move: stopped: flag `bad` of project `default`, ")
    assert MESSAGE in called.err
    assert [len(each["data"]["features"]) for each in target.sent("import")] == [3, 1]
    target.asked.clear()
    called = run("--yes", "--skip-failing")
    assert called.code == 1 and called.out.endswith("cannot be moved: 3 flags\n"), called
    assert [len(each["data"]["features"]) for each in target.sent("import")] == [3, 1, 2, 1, 1]
    assert "\n  bad: environment production\n" in called.out


def test_a_segment(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """A segment that the target would refuse is left out with the flags that use it."""
    segments = [{"id": 1, "name": "beta", "constraints": [VERSION]}, {"id": 2, "name": "ok", "constraints": []}]
    source.answers["/api/admin/segments"] = Answer(200, {"segments": segments})
    target.answers["/api/admin/segments"] = Answer(200, {"segments": []})
    data = flags(
        featureStrategies=[{"name": "default", "featureName": "bad", "id": "1", "segments": [1]}],
        segments=[{"id": 1, "name": "beta"}],
    )
    source.say("export", 200, data)
    called = run("--yes", "--skip-failing")
    where = "segment beta, constraint on appVersion (SEMVER_GT)"
    assert called.code == 1 and f"\n  {where}\n  bad: environment production: {where}\n" in called.out, called
    assert [asked.body["name"] for asked in target.asked if asked.path == "/api/admin/segments" and asked.body] == ["ok"]
    assert [item["name"] for item in target.sent("import")[0]["data"]["features"]] == ["good"]


def validation(message: str, *items: str, permissions: bool = False) -> Answer:
    """Return a validation with one item."""
    return Answer(200, NO_ITEMS | {"permissions" if permissions else "errors": [{"message": message, "affectedItems": items}]})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (validation("You cannot do this:", "good (in project x)"), "error: You cannot do this\n  good: environment production\n"),
        (
            validation("custom strategy that needs to be created first:", "default"),
            "\n  bad: environment production: strategy type default\n",
        ),
        (validation("dependencies that need to be created first:", "bad"), "\n  child: environment production: flag bad\n"),
    ],
)
def test_the_validation(answer: Answer, told: str, run: Flagsvc, target: FakeAdmin) -> None:
    """What the server's validation finds of flags is named with the flags."""
    target.answers |= {CONSTRAINTS: Answer(204), f"{BATCH}/validate": answer}
    called = run("--dry-run")
    assert called.code == 1 and told in called.out and called.err == NOTHING_MOVED, called


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (validation("We detected you want to create 3 features", *()), "We detected you want to create 3 features"),
        (validation("missing:", "Create feature flags", permissions=True), "missing: Create feature flags"),
        (Answer(400, REFUSAL), MESSAGE),
    ],
)
def test_what_concerns_no_flag(answer: Answer, told: str, run: Flagsvc, target: FakeAdmin) -> None:
    """A limit or a permission that is missing ends the command, with --skip-failing, too."""
    target.answers[f"{BATCH}/validate"] = answer
    for option in ("--yes", "--dry-run", "--skip-failing"):
        called = run(option)
        assert called.code == 1 and called.err.startswith("flagsvc move: nothing was moved: the server would refuse it: ")
        assert told in called.err and writes(target) == []


def test_what_the_steps_make(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """Strategy types, context fields, legal values, tag types and segments of the plan count as there."""
    field = {"name": "appVersion", "legalValues": [{"value": "1.2.3+b"}]}
    source.answers["/api/admin/context"] = Answer(200, [field])
    target.answers["/api/admin/context"] = Answer(200, [field | {"legalValues": [{"value": "1.0.0"}]}])
    source.answers["/api/admin/tag-types"] = Answer(200, {"tagTypes": [{"name": "team"}]})
    source.answers["/api/admin/strategies"] = Answer(200, {"strategies": [{"name": "default", "parameters": []}]})
    source.say("export", 200, flags(featureTags=[{"featureName": "bad", "tagType": "team", "tagValue": "blue"}]))
    target.answers |= {CONSTRAINTS: Answer(204), f"{BATCH}/validate": validation("custom strategy that needs", "default")}
    called = run("--dry-run")
    assert called.code == 0 and called.err == "", called
    source.answers["/api/admin/tag-types"] = Answer(200, {"tagTypes": []})
    called = run("--dry-run")
    assert called.code == 1 and "bad: environment production: tag team:blue" in called.out


def test_archived_flags_that_are_refused(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """A flag that was revived, and that the import refuses, is archived again."""
    target.answers |= {CONSTRAINTS: Answer(204), "/api/admin/projects/default/revive": Answer(200)}
    target.answers["/api/admin/projects/default/archive"] = Answer(200)
    source.say("export", 200, flags(dependencies=[]))
    target.say("export", 200, EMPTY | {"features": [{**flags()["features"][0], "archived": True}]})
    target.say("import", 400, REFUSAL)
    called = run("--yes", "--skip-failing")
    assert called.code == 1 and called.out.endswith("cannot be moved: 3 flags\n"), called
    sent = [(asked.path.rpartition("/")[2], asked.body) for asked in target.asked if "/projects/default/" in asked.path]
    assert [each for each in sent if each[0] in ("revive", "archive")] == [
        ("revive", {"features": ["bad"]}),
        ("archive", {"features": ["bad"]}),
    ]


def test_violations_of_the_form(run: Flagsvc, target: FakeAdmin) -> None:
    """A violation of the form is named with the flag. The server names one at a time, so it is asked again without the flag."""
    detail = {"path": "/body/data/featureStrategies/0/name", "message": "The `x` property must be y."}
    target.answers |= {CONSTRAINTS: Answer(204)}
    target.say("validate", 400, {"name": "BadDataError", "message": "m", "details": [detail]})
    called = run("--dry-run")
    assert called.code == 1 and "The `x` property must be y" in called.err + called.out, called
    assert [len(each["data"]["features"]) for each in target.sent("validate")] == [3, 2]
