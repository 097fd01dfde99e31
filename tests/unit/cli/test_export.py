"""`flagsvc export`: its requests, its files, its errors, and the order of strategies, which a server's export omits.

The command requests the order and writes it, so that an import restores it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from flagsvc.cli.export import sort_strategies
from support.cli_helpers import Called, Flagsvc
from support.fake_admin import EMPTY, TOKEN, Answer, FakeAdmin

RESULT = EMPTY | {"features": [{"name": "dark-mode", "description": "ünï"}, {"name": "old", "archived": True}]}


@pytest.fixture
def run(tmp_path: Path, flagsvc: Flagsvc, admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> Flagsvc:
    """Return a function that exports from a fake server with two flags, in its own folder."""
    admin.say("export", 200, RESULT)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Called:
        env = {"FLAGSVC_URL": admin.url, "FLAGSVC_ADMIN_TOKEN": TOKEN}
        return flagsvc("export", "--environment", "production", *arguments, env=env)

    return call


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        (("--project", "shop"), {"project": "shop"}),
        (("--features", "dark-mode, old,,old"), {"features": ["dark-mode", "old"]}),
        (("--tag", "web"), {"tag": "web"}),
    ],
)
def test_what_is_asked_for(arguments: tuple[str, ...], query: dict[str, Any], run: Flagsvc, admin: FakeAdmin) -> None:
    """The selection is a project, names or a tag. The data set goes to standard output, the summary to standard error."""
    called = run(*arguments)
    assert (called.code, json.loads(called.out)) == (0, RESULT)
    assert called.err == "flagsvc export: 2 flags written, 1 of them archived\n"
    assert admin.sent("export") == [{"environment": "production", **query}]


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        (("--output", "a.json"), json.loads),
        (("--output", "a.yaml"), yaml.safe_load),
        (("--output", "a.yml"), yaml.safe_load),
        (("--output", "a"), json.loads),
        (("--output", "a.json", "--format", "yaml"), yaml.safe_load),
        (("--output", "a.yaml", "--format", "json"), json.loads),
    ],
)
def test_files(arguments: tuple[str, ...], read: Any, run: Flagsvc, tmp_path: Path) -> None:
    """--format or else the suffix decides the format. No other file stays in the folder."""
    called = run("--project", "shop", *arguments)
    assert (called.code, called.out) == (0, "")
    [path] = tmp_path.iterdir()
    assert path.name == arguments[1] and read(path.read_text()) == RESULT
    assert "ünï" in path.read_text()


def test_an_existing_file(run: Flagsvc, admin: FakeAdmin, tmp_path: Path) -> None:
    """An existing file is replaced only with --force, and keeps its mode. Without --force no request is sent. --force on a symbolic
    link replaces the target file, not the link."""
    path = tmp_path / "a.json"
    path.write_text("mine")
    path.chmod(0o640)
    called = run("--project", "shop", "--output", "a.json")
    assert (called.code, called.err) == (2, "flagsvc export: `a.json` exists: --force replaces it\n")
    assert path.read_text() == "mine" and admin.asked == []
    assert run("--project", "shop", "--output", "a.json", "--force").code == 0
    assert json.loads(path.read_text()) == RESULT and path.stat().st_mode & 0o777 == 0o640
    (tmp_path / "target.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("target.json")
    assert run("--project", "shop", "--output", "link.json", "--force").code == 0
    assert (tmp_path / "link.json").is_symlink() and json.loads((tmp_path / "target.json").read_text()) == RESULT


@pytest.mark.parametrize(
    ("output", "text"), [("none/a.json", "the folder of `none/a.json` does not exist"), (".", "`.` is a folder")]
)
def test_places_to_write(output: str, text: str, run: Flagsvc, admin: FakeAdmin) -> None:
    """A path that cannot be written is reported before any request."""
    called = run("--project", "shop", "--output", output)
    assert (called.code, called.err) == (2, f"flagsvc export: {text}\n")
    assert admin.asked == []


def test_a_failed_write_leaves_nothing(run: Flagsvc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk gives a one-line error. The old file and the folder do not change."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.json").write_text("mine")
    monkeypatch.setattr(os, "fsync", full)
    called = run("--project", "shop", "--output", "a.json", "--force")
    assert (called.code, called.err) == (1, "flagsvc export: cannot write `a.json`: no space left on device\n")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_flags_that_do_not_exist(run: Flagsvc, tmp_path: Path) -> None:
    """An unknown name is an error, and no file is written."""
    called = run("--features", "dark-mode,drak", "--output", "a.json")
    assert (called.code, called.err) == (1, "flagsvc export: nothing was written: the server has no flag `drak`\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "one of the arguments --project --features --tag is required"),
        (("--project", "a", "--tag", "b"), "`--tag`: not allowed with argument --project"),
        (("--features", ","), "`--features`: expected names with commas between"),
        (("--project", "shp"), "the server has no project `shp`; did you mean `shop`?"),
    ],
)
def test_usage(arguments: tuple[str, ...], text: str, run: Flagsvc) -> None:
    """A wrong argument gives a one-line error and exit code 2."""
    called = run(*arguments)
    assert (called.code, called.out, called.err) == (2, "", f"flagsvc export: {text}\n")


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"features": 1},
        {"features": [5]},
        {"features": [{}]},
        {"features": [{"name": {}}]},
        {"features": [], "featureStrategies": [None]},
    ],
)
def test_no_data_set(run: Flagsvc, admin: FakeAdmin, answer: object) -> None:
    """An answer that is no data set is an error, and nothing is written."""
    admin.say("export", 200, answer)
    called = run("--project", "shop")
    assert called.code == 2 and "answers, but not as a flag server does" in called.err


# ---- the order of strategies


def strategy(number: int, flag: str = "checkout", **more: Any) -> dict[str, Any]:
    """Return a strategy of an export."""
    groups = {"groupId": f"g{number}", "rollout": "100"}
    return {"id": f"id-{number}", "name": "flexibleRollout", "featureName": flag, "parameters": groups} | more


EXPORTED = EMPTY | {
    "features": [{"name": "checkout", "project": "shop"}, {"name": "a b/ü", "project": "shop"}, {"name": "one", "project": "shop"}],
    "featureStrategies": [strategy(2), strategy(0), strategy(1), strategy(8, "a b/ü"), strategy(7, "a b/ü"), strategy(9, "one")],
}
FLAGS = "/api/admin/projects/shop/features"
PLACES = {"checkout": [(0, 0), (1, 1), (2, 2)], "a%20b%2F%C3%BC": [(7, 3), (8, 3)]}
"""Flag, escaped for a path → numbers and sort orders of its strategies, in the order of the admin API."""
DOCUMENT = "/api/client/features"


def path_of(flag: str) -> str:
    """Return the path of the strategies of a flag."""
    return f"{FLAGS}/{flag}/environments/production/strategies"


@pytest.fixture
def mixed(run: Flagsvc, admin: FakeAdmin) -> Callable[[], Called]:
    """Return a function that exports a project of a fake server, whose export mixes the strategies of two flags."""
    admin.say("export", 200, EXPORTED)
    for flag, rows in PLACES.items():
        admin.answers[path_of(flag)] = Answer(200, [{"id": f"id-{n}", "sortOrder": order} for n, order in rows])
    return lambda: run("--project", "shop")


def written(called: Called) -> dict[str, list[tuple[str, Any]]]:
    """Return the strategies of a file by flag, each with its sort order."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for item in json.loads(called.out)["featureStrategies"]:
        found.setdefault(item["featureName"], []).append((item["id"], item.get("sortOrder")))
    return found


def test_the_order_is_written(mixed: Callable[[], Called], admin: FakeAdmin) -> None:
    """Strategies are written in order with a sort order. A flag with one strategy needs no request."""
    assert written(mixed()) == {
        "checkout": [("id-0", 0), ("id-1", 1), ("id-2", 2)],
        "a b/ü": [("id-7", 0), ("id-8", 1)],
        "one": [("id-9", 0)],
    }
    asked = [asked.path for asked in admin.asked if asked.path.endswith("/strategies")]
    assert sorted(asked) == sorted(map(path_of, PLACES))


def test_equal_places(mixed: Callable[[], Called], admin: FakeAdmin) -> None:
    """Strategies with equal sort orders get the order that SDKs receive, which differs from the order of the admin API."""
    sent = [{key: strategy(number)[key] for key in ("name", "parameters")} for number in (8, 7)]
    admin.answers[DOCUMENT] = Answer(200, {"features": [{"name": "a b/ü", "strategies": sent}]})
    assert written(mixed())["a b/ü"] == [("id-8", 0), ("id-7", 1)]
    [asked] = [asked for asked in admin.asked if asked.path.startswith(DOCUMENT)]
    assert asked.path == f"{DOCUMENT}?environment=production"


def test_what_may_not_be_read(mixed: Callable[[], Called], admin: FakeAdmin) -> None:
    """If the token may not read strategies, the file has no sort orders. One warning has the number of these flags."""
    for flag in PLACES:
        admin.answers[path_of(flag)] = Answer(403, {"message": "no"})
    called = mixed()
    assert written(called)["checkout"] == [("id-2", None), ("id-0", None), ("id-1", None)]
    assert called.err == (
        "flagsvc export: warning: the server does not tell the order of strategies of 2 flags, and the file does not hold it: "
        "the first strategy that matches decides the variant\n"
        "flagsvc export: 3 flags written\n"
    )


def test_odd_answers(mixed: Callable[[], Called], admin: FakeAdmin) -> None:
    """An invalid answer, or one without a newer strategy, has the same effect as a missing permission."""
    for odd in ({}, [1], [{"id": "id-0"}], [{"id": "id-0", "sortOrder": 1}], [{"id": "id-0", "sortOrder": "x"}]):  # type: ignore[var-annotated]
        admin.answers[path_of("checkout")] = Answer(200, odd)
        called = mixed()
        assert "of 1 flag," in called.err and written(called)["checkout"][0] == ("id-2", None), odd


def test_placed_disabled_and_alike() -> None:
    """With equal sort orders, strategies that SDKs do not receive come last, and equal strategies keep their order."""
    items = [strategy(1, disabled=True), strategy(0), strategy(0, id="twin"), strategy(2)]
    rows = [{"id": item["id"], "sortOrder": 5} for item in items]
    sent = [strategy(2), strategy(0), strategy(0)]
    assert [item["id"] for item in sort_strategies(items, rows, sent)] == ["id-2", "id-0", "twin", "id-1"]
