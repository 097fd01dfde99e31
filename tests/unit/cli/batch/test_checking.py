"""`flagsvc validate` and `import --dry-run` find the problems that make an import fail, on a flagsvc server and on another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli_helpers import Called, Flagsvc
from support.fake_admin import BATCH, EMPTY, TOKEN, Answer, FakeAdmin

VARIANT = {"name": "v", "weight": 1000, "weightType": "fix", "stickiness": "default"}
LEGAL = [{"name": "region", "legalValues": [{"value": "no"}]}]


STRATEGY = "new-checkout: strategy 1 (default)"


def strategies(**given: Any) -> dict[str, Any]:
    """Return data with one strategy."""
    return {"featureStrategies": [{"name": "default", "featureName": "new-checkout", **given}]}


def constrained(field: str, operator: str, **given: Any) -> dict[str, Any]:
    """Return data with one constraint."""
    return strategies(constraints=[{"contextName": field, "operator": operator, **given}])


def switched(name: str, **given: Any) -> dict[str, Any]:
    """Return data with one flag in the environment."""
    return {"featureEnvironments": [{"name": name, "featureName": name, "enabled": True, **given}]}


def children(parent: str) -> dict[str, Any]:
    """Return data in which the flag depends on another one."""
    return {"dependencies": [{"feature": "new-checkout", "dependencies": [{"feature": parent}]}]}


TAG = {"featureName": "new-checkout", "tagType": "team", "tagValue": "red"}
BAD_LINK = {"feature": "new-checkout", "links": [{"url": "http://"}]}
KINDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a name with a space": ({"features": [{"name": "has space"}]}, "has space", "must be URL friendly"),
    "only fixed variants": (
        switched("new-checkout", variants=[VARIANT]),
        "new-checkout: environment variants",
        'There must be at least one "variable" variant',
    ),
    "an unknown tag type": (
        {"featureTags": [TAG]},
        "new-checkout: tag team:red",
        "neither the server nor the data has a tag type `team`",
    ),
    "an illegal value": (
        constrained("region", "IN", values=["se"]),
        f"{STRATEGY}, constraint on region (IN)",
        "not specified as a legal value",
    ),
    "an undeclared segment": (strategies(segments=[7]), STRATEGY, "does not declare the segments it uses: 7"),
    "a bad URL": ({"links": [BAD_LINK]}, "new-checkout: link http://", "Invalid URL: http://"),
    "an unknown flag": (switched("gone"), "gone: environments", "neither the project nor the data has a flag `gone`"),
    "itself as parent": (children("new-checkout"), "new-checkout: parent new-checkout", "a flag cannot depend on itself"),
    "no number": (constrained("age", "NUM_GT", value="abc"), f"{STRATEGY}, constraint on age (NUM_GT)", '"value" must be a number'),
}
"""Nine kinds of data that pass validation but cannot be imported: the data, the place of the error, and the message."""


@pytest.fixture
def call(tmp_path: Path, flagsvc: Flagsvc, admin: FakeAdmin) -> Any:
    """Return a function that runs a command with a file of this data and one valid flag."""

    def run(command: str, data: dict[str, Any], *arguments: str) -> Called:
        path = tmp_path / "flags.json"
        features = [{"name": "new-checkout", "project": "default"}]
        whole = EMPTY | {"features": features} | data
        path.write_text(json.dumps({"project": "default", "environment": "development", "data": whole}))
        env = {"FLAGSVC_URL": admin.url, "FLAGSVC_ADMIN_TOKEN": TOKEN}
        return flagsvc(command, str(path), *arguments, env=env)

    return run


@pytest.fixture
def other(admin: FakeAdmin) -> FakeAdmin:
    """Give a server without dry runs of imports, with one context field that has legal values."""
    del admin.answers[f"{BATCH}/import/dry-run"]
    admin.answers["/api/admin/context"] = Answer(200, LEGAL)
    return admin


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", [("validate",), ("import", "--dry-run"), ("import", "--yes")])
def test_the_nine_kinds_on_another_server(call: Any, other: FakeAdmin, kind: str, command: tuple[str, ...]) -> None:
    """The exit code is 1. The output has the message, then the flag and the place. Nothing is imported."""
    data, place, message = KINDS[kind]
    called = call(command[0], data, *command[1:])
    assert called.code == 1
    lines = called.out.splitlines()
    assert lines[0].startswith("error: ") and message in lines[0]
    assert f"  {place}" in lines
    assert other.sent("import") == []


def test_all_problems_at_once_for_programs(call: Any, other: FakeAdmin) -> None:
    """--json lists every problem with rule, flag and place, and the server's own lists."""
    data: dict[str, Any] = {}
    for kind in ("a bad URL", "no number", "an unknown tag type"):
        data |= KINDS[kind][0]
    called = call("validate", data, "--json")
    result = json.loads(called.out)
    assert called.code == 1
    assert result["errors"] == result["warnings"] == result["permissions"] == result["unchecked"] == []
    assert [(each["rule"], each["flag"]) for each in result["problems"]] == [
        ("tag-type", "new-checkout"),
        ("link", "new-checkout"),
        ("constraint", "new-checkout"),
    ]
    assert result["problems"][2]["place"] == "strategy 1 (default), constraint on age (NUM_GT)"


@pytest.mark.parametrize(
    ("path", "about"),
    [
        ("/api/admin/tag-types", "whether the types of tags exist"),
        ("/api/admin/context", "context fields and their legal values"),
        (f"{BATCH}/export", "the token may not export flags"),
    ],
)
def test_what_the_token_may_not_read_is_not_checked(call: Any, other: FakeAdmin, path: str, about: str) -> None:
    """The output names the checks that were skipped, and the exit code depends on the others."""
    other.answers[path] = Answer(403, {"name": "PermissionError", "message": "no"})
    called = call("validate", {})
    assert called.code == 0
    assert called.out.startswith("not checked: ") and about in called.out


def test_a_server_of_ours_tries_the_import(call: Any, admin: FakeAdmin) -> None:
    """If the server's dry run succeeds, no check runs. If it refuses, the checks explain it; if it fails, there is no verdict."""
    assert call("validate", {}).code == 0
    assert [asked.path for asked in admin.asked if "export" in asked.path or "context" in asked.path] == []
    error = {"name": "BadDataError", "message": "top", "details": [{"message": "this cannot be"}]}
    admin.say("import/dry-run", 400, error)
    called = call("validate", KINDS["a bad URL"][0])
    assert called.code == 1 and "  new-checkout: link http://\n" in called.out and "this cannot be" not in called.out
    called = call("import", {}, "--dry-run")
    assert called.code == 1 and "this cannot be" in called.out
    assert admin.sent("import") == []
    admin.say("import/dry-run", 503, {"message": "maintenance mode"})
    assert call("validate", {}).code == 2


def test_errors_of_the_server_name_the_flags(call: Any, other: FakeAdmin) -> None:
    """An item that is missing on the server is shown with the flags that use it. --json keeps the server's text."""
    data = {"featureStrategies": [{"name": "mine", "featureName": "new-checkout"}]}
    message = "We detected the following custom strategy that needs to be created first:"
    other.say("validate", 200, {"errors": [{"message": message, "affectedItems": ["mine"]}]})
    called = call("validate", data)
    assert called.code == 1 and "  mine (flag new-checkout)\n" in called.out
    assert json.loads(call("validate", data, "--json").out)["errors"][0]["affectedItems"] == ["mine"]


def test_archived_flags_are_no_problem(call: Any, other: FakeAdmin) -> None:
    """The import leaves out archived flags, so their data causes no problem."""
    there = EMPTY | {"features": [{"name": "new-checkout", "project": "default", "archived": True}]}
    other.say("export", 200, there)
    assert call("validate", KINDS["no number"][0]).code == 0


def test_what_other_flags_have_is_looked_up(call: Any, other: FakeAdmin) -> None:
    """A parent must not have a parent, be archived, or be in another project. A flag that is a parent must not have one."""
    flags = [
        {"name": "new-checkout", "project": "default"},
        {"name": "far", "project": "shop"},
        {"name": "old", "project": "default", "archived": True},
        {"name": "middle", "project": "default"},
    ]
    there = EMPTY | {
        "features": flags,
        "featureEnvironments": [{"featureName": each["name"], "name": each["name"], "enabled": True} for each in flags],  # type: ignore[index]
        "dependencies": [{"feature": "middle", "dependencies": [{"feature": "top"}]}],
    }
    other.say("export", 200, there)
    for parent, message in (
        ("far", "`far` is in another project, `shop`"),
        ("old", "there is no active flag `old`"),
        ("middle", "`middle` depends on another flag itself"),
    ):
        called = call("validate", children(parent))
        assert called.code == 1 and message in called.out
    other.answers["/api/admin/projects/default/features/new-checkout"] = Answer(200, {"children": ["leaf"]})
    called = call("validate", children("top"))
    assert called.code == 1 and "other flags depend on `new-checkout`" in called.out
