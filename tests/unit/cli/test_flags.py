"""`flagsvc flags`: its requests, its tables and sentences, its errors. tests/integration runs it on flag servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qs, urlsplit

import pytest

from flagsvc.cli.batch.client import PAGE_SIZE
from support.cli_helpers import Called, Flagsvc
from support.fake_admin import TOKEN, Answer, FakeAdmin

SEARCH = "/api/admin/search/features"
FLAG = "/api/admin/projects/shop/features/dark"
Run = Callable[..., Called]


def state(name: str, kind: str = "development", order: int = 1, **given: Any) -> dict[str, Any]:
    """Return the state of a flag in an environment."""
    return {"name": name, "type": kind, "sortOrder": order, "enabled": False, "hasEnabledStrategies": True, **given}


STATES = [state("dev", enabled=True, hasEnabledStrategies=False), state("live", "production", 2, enabled=True)]
DARK: dict[str, Any] = {"name": "dark", "project": "shop", "type": "release", "stale": False, "environments": STATES}
ODD: dict[str, Any] = {**DARK, "name": "a\x1bdark", "stale": True, "environments": [state("qa", order=0)]}
WHOLE: dict[str, Any] = {
    **DARK,
    "description": "night",
    "dependencies": [{"feature": "base", "enabled": True, "variants": []}, {"enabled": True}],
    "environments": [
        {**STATES[0], "strategies": [], "variants": [{"name": "blue", "weight": 1000}]},
        {
            **STATES[1],
            "strategies": [{"name": "userWithId", "parameters": {"userIds": "7"}}, {"name": "default", "constraints": 7}],
        },
    ],
}


@pytest.fixture
def run(flagsvc: Flagsvc, admin: FakeAdmin) -> Run:
    """Return a function that calls `flagsvc flags` on a fake server with two flags."""
    admin.answers[SEARCH] = Answer(200, {"features": [ODD, DARK], "total": 2})
    admin.answers[FLAG] = Answer(200, WHOLE)
    admin.answers["/api/admin/segments"] = Answer(200, {"segments": []})
    for place in ("dev/off", "live/off"):
        admin.answers[f"{FLAG}/environments/{place}"] = Answer(200)
    env = {"FLAGSVC_URL": admin.url, "FLAGSVC_ADMIN_TOKEN": TOKEN}
    return lambda *words: flagsvc("flags", *words, env=env)


def switched(admin: FakeAdmin) -> list[str]:
    """Return the paths of the changes that came."""
    return [asked.path for asked in admin.asked if asked.method == "POST"]


def test_list(run: Run) -> None:
    """Environments are columns in their order; a flag that is not in one has a dash; control characters are escaped."""
    called = run("list")
    assert (called.code, called.err) == (0, "")
    assert called.out.splitlines() == [
        "NAME       PROJECT  TYPE            qa   dev              live",
        "a\\x1bdark  shop     release, stale  off  -                -",
        "dark       shop     release         -    on for everyone  on by strategies",
    ]


def test_filters(run: Run, admin: FakeAdmin) -> None:
    """The options are filters of the search; a tag without a type is of the usual one."""
    assert run("list", "--project", "shop", "--tag", "web", "--state", "archived", "--search", "a,b").code == 0
    asked = parse_qs(urlsplit(admin.asked[-1].path).query)
    wanted = {"project": "IS:shop", "tag": "INCLUDE:simple:web", "archived": "IS:true", "query": "a,b"}
    assert {name: asked[name] for name in wanted} == {name: [text] for name, text in wanted.items()}
    assert run("list", "--tag", "a,b").err == "flagsvc flags list: `--tag`: expected one tag, TYPE:VALUE\n"


def test_every_page_is_read(run: Run, admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search goes on until a page is not full."""
    pages = [Answer(200, {"features": [DARK] * count}) for count in (PAGE_SIZE, PAGE_SIZE, 3)]
    monkeypatch.setattr(admin, "answers", Mock(get=lambda path, default: pages.pop(0) if path == SEARCH else default))
    assert len(json.loads(run("list", "--json").out)) == 2 * PAGE_SIZE + 3


def test_show(run: Run) -> None:
    """Every environment has its sentences; what cannot be read is told, too."""
    called = run("show", "dark")
    assert (called.code, called.err) == (0, "")
    lines = called.out.splitlines()
    assert lines[:4] == ["dark", "  project      shop", "  type         release", "  description  night"]
    assert "toggle base is on and " in lines[4] and lines[5:7] == ["  created      unknown", "  last asked   never"]
    assert lines[8:11] == [
        "dev (development): on",
        "  everyone, because no strategy is active",
        "  variants: blue 100 %, by userId, sessionId or remoteAddress",
    ]
    assert lines[12:14] == ["live (production): on", "  userId is 7"] and lines[14] == "  never: a constraint that is no object"


def test_switch(run: Run, admin: FakeAdmin) -> None:
    """Production needs --yes without a terminal; nothing is sent before, nor where nothing changes."""
    refused = run("off", "dark", "--environment", "live")
    assert (refused.code, refused.out) == (2, "") and refused.err.count("\n") == 1 and "--yes" in refused.err
    assert run("on", "dark", "--environment", "live").out == "`dark` is on in `live` already\n"
    assert switched(admin) == []
    assert run("off", "dark", "--environment", "live", "--yes") == (0, "`dark` is off in `live`\n", "")
    assert run("off", "dark", "--environment", "dev").code == 0
    assert switched(admin) == [f"{FLAG}/environments/{place}/off" for place in ("live", "dev")]


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1)])
def test_the_question(answer: str, code: int, run: Run, admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal the question says who gets the flag."""
    questions: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)

    def ask(question: str) -> str:
        questions.append(question)
        return answer

    monkeypatch.setattr("builtins.input", ask)
    assert run("off", "dark", "--environment", "live").code == code
    assert questions[0].startswith("Switch `dark` off in `live`, for: userId is 7; or never: ")
    assert bool(switched(admin)) == (code == 0)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (403, {"message": 'You need the "X" permission'}, 'may not do this: You need the "X" permission'),
        (404, {"name": "NotFoundError", "message": "No project"}, "the server does not find it: No project"),
    ],
)
def test_answers_without_success(status: int, body: object, message: str, run: Run, admin: FakeAdmin) -> None:
    """Each is one line on standard error, or JSON, and exit code 2."""
    admin.answers[SEARCH] = Answer(status, body)
    for words in (("list",), ("show", "dark"), ("on", "dark", "--environment", "dev")):
        called = run(*words)
        assert (called.code, called.out, called.err.count("\n")) == (2, "", 1)
        assert called.err.startswith(f"flagsvc flags {words[0]}: ") and message in called.err
    assert message in json.loads(run("show", "dark", "--json").out)["error"]["message"]


def test_what_is_not_there(run: Run, admin: FakeAdmin, flagsvc: Flagsvc) -> None:
    """An unknown flag is exit code 1, an unknown environment and a server out of reach are 2."""
    called = run("show", "dusk")
    assert called.code == 1 and "is archived" not in called.err and "the server has no flag `dusk`" in called.err
    called = run("on", "dark", "--environment", "liev")
    assert called.code == 2 and "did you mean `live`?" in called.err
    called = flagsvc("flags", "list", "--url", "http://127.0.0.1:1", "--token", "s3cret")
    assert called.code == 2 and called.err.startswith("flagsvc flags list: cannot reach `http://127.0.0.1:1`: ")


@pytest.mark.parametrize("flag", [{"name": "dark"}, DARK | {"environments": [{"name": "dev"}]}, DARK | {"environments": 7}])
def test_another_server(flag: dict[str, Any], run: Run, admin: FakeAdmin) -> None:
    """Answers of another form are one clear line."""
    admin.answers[SEARCH] = Answer(200, {"features": [flag]})
    called = run("list")
    assert called.code == 2 and "answers, but not as a flag server does" in called.err
    admin.answers |= {SEARCH: Answer(200, {"features": [DARK]}), FLAG: Answer(200, flag)}
    assert run("show", "dark").err == called.err.replace("list", "show")
