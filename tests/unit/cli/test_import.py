"""`flagsvc import`: validates, shows the changes, asks and imports. The tests cover every way it can end."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from support.cli_helpers import Called, Flagsvc
from support.fake_admin import BATCH, EMPTY, NOTHING, TOKEN, Answer, FakeAdmin

DATA = EMPTY | {
    "features": [{"name": "dark-mode", "description": "night"}, {"name": "fresh"}, {"name": "gone"}, {"name": "same"}],
    "featureStrategies": [{"name": "default", "featureName": "fresh"}],
    "featureEnvironments": [
        {"name": "dark-mode", "featureName": "dark-mode", "enabled": False},
        {"name": "fresh", "featureName": "fresh", "enabled": True},
    ],
    "contextFields": [{"name": "userId"}, {"name": "region"}],
    "featureTags": [
        {"featureName": "fresh", "tagType": "team", "tagValue": "web"},
        {"featureName": "gone", "tagType": "lost", "tagValue": "web"},
    ],
    "tagTypes": [{"name": "team"}, {"name": "lost"}, {"name": "unused"}],
}
THERE = EMPTY | {
    "features": [{"name": "dark-mode"}, {"name": "gone", "archived": True}, {"name": "same", "type": "release"}],
    "featureStrategies": [{"name": "userWithId", "featureName": "dark-mode"}],
    "featureEnvironments": [{"name": "dark-mode", "featureName": "dark-mode", "enabled": True}],
}
REQUEST = {"project": "shop", "environment": "production", "data": DATA}
SHOWN = """\
~ changed: dark-mode
  description: none → `night`
  on → off
  strategies: - userWithId
+ new: fresh
  off → on
  strategies: + default
  tags: + team:web
- left out: gone
  it is archived
+ new: context field region
+ new: tag type team
4 flags into project `shop`, environment `production` of {url}: 1 new, 1 changed, 1 same, 1 left out
"""


@pytest.fixture
def run(tmp_path: Path, flagsvc: Flagsvc, admin: FakeAdmin) -> Flagsvc:
    """Return a function that imports the request into the fake server, which holds the flags of `THERE`."""
    admin.say("export", 200, THERE)
    path = tmp_path / "flags.json"
    path.write_text(json.dumps(REQUEST))

    def call(*arguments: str, file: str = str(path)) -> Called:
        env = {"FLAGSVC_URL": admin.url, "FLAGSVC_ADMIN_TOKEN": TOKEN}
        return flagsvc("import", file, *arguments, env=env)

    return call


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Make standard input a terminal on which `text` is typed."""
    stream = io.StringIO(text)
    stream.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", stream)


def test_yes(run: Flagsvc, admin: FakeAdmin) -> None:
    """--yes shows the changes and imports. The request is the content of the file."""
    called = run("--yes")
    assert (called.code, called.err) == (0, "")
    assert called.out == SHOWN.format(url=admin.url) + "imported: 1 new, 1 changed, 1 same, 1 left out\n"
    assert admin.sent("import") == [REQUEST]
    assert admin.sent("export") == [{"environment": "production", "features": ["dark-mode", "fresh", "gone", "same"]}]


def test_dry_run(run: Flagsvc, admin: FakeAdmin) -> None:
    """--dry-run shows the same and imports nothing, also with --yes."""
    for more in ((), ("--yes",)):
        called = run("--dry-run", *more)
        assert called == (0, SHOWN.format(url=admin.url) + "nothing was imported: this was a dry run\n", "")
    assert admin.sent("import") == []


@pytest.mark.parametrize(("text", "code"), [("y\n", 0), ("YES\n", 0), (" y \n", 0), ("n\n", 1), ("\n", 1), ("", 1), ("yikes\n", 1)])
def test_asking(text: str, code: int, run: Flagsvc, admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal the command asks. Only `y` or `yes` imports."""
    typed(monkeypatch, text)
    called = run()
    assert called.code == code and "Import this? [y/N] " in called.out
    assert len(admin.sent("import")) == (1 if code == 0 else 0)
    assert code == 0 or called.out.endswith("nothing was imported\n")


def test_no_terminal(run: Flagsvc, admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal and without --yes, the command shows the changes and names the options to use. The exit code is 2."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    called = run()
    assert called.code == 2 and called.out == SHOWN.format(url=admin.url)
    assert called.err == (
        "flagsvc import: nothing was imported: there is no terminal to ask at: --yes goes on without asking, --dry-run only shows\n"
    )
    assert admin.sent("import") == []


def test_standard_input_cannot_answer(run: Flagsvc, admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the file on standard input, the command cannot ask for confirmation."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(REQUEST).encode())))
    assert run(file="-").code == 2
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(REQUEST).encode())))
    assert run("--yes", file="-").code == 0
    assert len(admin.sent("import")) == 1


@pytest.mark.parametrize("key", ["errors", "permissions"])
def test_what_the_server_would_refuse(key: str, run: Flagsvc, admin: FakeAdmin) -> None:
    """With errors or missing permissions, the command does not compare or import."""
    admin.say("validate", 200, NOTHING | {key: [{"message": "Bad:", "affectedItems": ["one"]}]})
    called = run("--yes")
    assert called.code == 1 and called.out.endswith("  one\nnothing was imported: the server would refuse it\n")
    assert admin.sent("import") == admin.sent("export") == []


@pytest.mark.parametrize(
    ("user", "token", "told"),
    [
        (Answer(200, {"user": {"type": "admin", "username": "a"}}), TOKEN, True),
        (Answer(200, {"user": {"id": 7}}), "*:*.looks-like-one", False),
        (Answer(404), "*:*.admin", True),
        (Answer(404), "bearer  default:development.admin", True),
        (Answer(404), "user:a.b", False),
        (Answer(404), "0123456789abcdef", False),
    ],
)
def test_an_admin_token(user: Answer, token: str, told: bool, run: Flagsvc, admin: FakeAdmin) -> None:
    """An admin token, which can validate but not import, is reported before the command asks for confirmation."""
    admin.answers["/api/admin/user"] = user
    called = run("--yes", "--token", token)
    assert called.code == (1 if told else 0)
    assert ("this is an admin token, which belongs to no user" in called.err) is told
    assert len(admin.sent("import")) == (0 if told else 1)
    assert token not in called.err + called.out


@pytest.mark.parametrize(
    ("status", "body", "code", "text"),
    [
        (400, {"name": "BadDataError", "message": "x", "details": [{"message": "A is not supported."}]}, 1, "A is not supported"),
        (403, {"name": "PermissionError", "message": "You lack it."}, 1, "the user of the token may not do this: You lack it"),
        (404, {"name": "NotFoundError", "message": "No such."}, 1, "the server does not find it: No such"),
        (409, {"name": "NameExistsError", "message": "It exists."}, 1, "the server refused the request: It exists"),
        (413, {}, 2, "the data set is too large"),
        (401, {}, 2, "the server does not know the token"),
        (500, {}, 2, "it may have been imported or not: --dry-run shows what is there now"),
    ],
)
def test_refusals(status: int, body: Any, code: int, text: str, run: Flagsvc, admin: FakeAdmin) -> None:
    """An error that the server finds only during the import is reported; exit code 1 if it concerns the data."""
    admin.say("import", status, body)
    called = run("--yes")
    assert called.code == code and text in called.err and "imported: " not in called.out
    assert ("nothing was imported: " in called.err) is (code == 1)


def test_no_answer(run: Flagsvc, admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer, and after Ctrl-C, the result is unknown, and the message says so."""
    admin.answers[f"{BATCH}/import"] = "close"
    called = run("--yes")
    assert called.code == 2 and "it may have been imported or not" in called.err

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flagsvc.cli.batch.client.AdminClient.import_", stop)
    called = run("--yes")
    assert called.code == 130 and "stopped: it may have been imported or not" in called.err


def test_a_data_set_without_flags(run: Flagsvc, admin: FakeAdmin, tmp_path: Path) -> None:
    """The command requests no export for an empty list of names, which would mean all flags."""
    path = tmp_path / "none.json"
    path.write_text(json.dumps(EMPTY))
    called = run("--yes", "--project", "shop", "--environment", "production", file=str(path))
    assert called.code == 0 and called.out.endswith("no flags\nimported: no flags\n")
    assert admin.sent("export") == [] and len(admin.sent("import")) == 1


def test_another_order_is_a_change(run: Flagsvc, admin: FakeAdmin, tmp_path: Path) -> None:
    """If the file has the order of strategies, the command reads the target's order and shows a difference."""
    items = [{"name": name, "featureName": "same", "id": name} for name in ("one", "two")]
    said = [item | {"sortOrder": place} for place, item in enumerate(items)]
    for number, there in enumerate(([0, 1], [1, 0])):
        data = EMPTY | {"features": [{"name": "same"}], "featureStrategies": said}
        path = tmp_path / "ordered.json"
        path.write_text(json.dumps(REQUEST | {"data": data}))
        flags = [{"name": "same", "type": "release", "project": "shop"}]
        admin.say("export", 200, EMPTY | {"features": flags, "featureStrategies": items})
        rows = [{"id": item["id"], "sortOrder": place} for item, place in zip(items, there, strict=True)]
        where = "/api/admin/projects/shop/features/same/environments/production/strategies"
        admin.answers[where] = Answer(200, rows)
        called = run("--dry-run", file=str(path))
        assert ("strategies: in another order" in called.out) == bool(number), called.out
