"""`flagsvc validate`: every answer of a server is a table or one clear line, and an exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli_helpers import Called, Flagsvc
from support.fake_admin import BATCH, EMPTY, NOTHING, TOKEN, FakeAdmin

DATA = EMPTY | {"features": [{"name": "dark-mode"}, {"name": "new-checkout", "typ": "release"}]}
REQUEST = {"project": "shop", "environment": "production", "data": DATA}


@pytest.fixture
def ask(tmp_path: Path, flagsvc: Flagsvc, admin: FakeAdmin) -> Flagsvc:
    """Return a function that validates a file holding `value`, by default a whole request, with the fake server."""

    def call(*arguments: str, value: Any = REQUEST, env: dict[str, str] | None = None) -> Called:
        path = tmp_path / "flags.json"
        path.write_text(json.dumps(value))
        given = {"FLAGSVC_URL": admin.url, "FLAGSVC_ADMIN_TOKEN": TOKEN} | (env or {})
        return flagsvc("validate", str(path), *arguments, env=given)

    return call


def test_a_clean_answer(ask: Flagsvc, admin: FakeAdmin) -> None:
    """A file without problems gives one line and exit code 0. The server gets the unchanged request and the token."""
    called = ask()
    place = f"project `shop`, environment `production` of {admin.url}"
    assert called == (0, f"2 flags can be imported into {place}: 0 errors, 0 warnings\n", "")
    assert admin.sent("validate") == [REQUEST]
    assert {asked.headers["authorization"] for asked in admin.asked} == {TOKEN}


def test_what_is_given_wins_over_the_file(ask: Flagsvc, admin: FakeAdmin) -> None:
    """--project and --environment override those of a whole request, and complete a data set."""
    assert ask("--project", "default").code == 0
    assert ask("--project", "default", "--environment", "development", value=DATA).code == 0
    assert [(body["project"], body["environment"]) for body in admin.sent("validate")] == [
        ("default", "production"),
        ("default", "development"),
    ]


def test_a_data_set_needs_project_and_environment(ask: Flagsvc, admin: FakeAdmin) -> None:
    """Without a project and an environment, no request is sent."""
    called = ask("--project", "shop", value=DATA)
    assert called.code == 2 and "--environment missing" in called.err
    assert admin.asked == []


ITEMS = {
    "errors": [{"message": "We found these:", "affectedItems": ["one", "two"]}],
    "warnings": [{"message": "Take care:", "affectedItems": ["a [red]b", "c\x1b[2J"]}],
    "permissions": [{"message": "You are missing:", "affectedItems": ["Create feature flags"]}],
}
PLAIN = """\
error: We found these
  one
  two
warning: Take care
  a [red]b
  c\\x1b[2J
missing permission: You are missing
  Create feature flags
2 flags cannot be imported into project `shop`, environment `production` of {url}: 1 error, 1 warning, 1 missing permission
"""


def test_plain_lines_in_a_pipe(ask: Flagsvc, admin: FakeAdmin) -> None:
    """In a pipe every item is on its own line, without colours and control characters. Long lines are not wrapped."""
    admin.say("validate", 200, ITEMS)
    assert ask() == (1, PLAIN.format(url=admin.url), "")
    name = "n" * 250
    admin.say("validate", 200, NOTHING | {"warnings": [{"message": "m " * 200, "affectedItems": [name] * 300}]})
    called = ask(env={"COLUMNS": "40"})
    assert called.out.count(f"  {name}\n") == 300 and called.out.count("\n") == 302


@pytest.mark.parametrize(
    ("lists", "code"),
    [({}, 0), ({"warnings": ITEMS["warnings"]}, 0), ({"errors": ITEMS["errors"]}, 1), ({"permissions": ITEMS["permissions"]}, 1)],
)
def test_exit_codes_of_answers(lists: dict[str, Any], code: int, ask: Flagsvc, admin: FakeAdmin) -> None:
    """Warnings are exit code 0, errors and missing permissions 1. --json prints the server's lists and the own findings."""
    admin.say("validate", 200, NOTHING | lists)
    assert ask().code == code
    called = ask("--json")
    printed = NOTHING | lists | {"problems": [], "unchecked": []}
    assert (called.code, json.loads(called.out), called.err) == (code, printed, "")


def error(name: str, message: str, **more: Any) -> dict[str, Any]:
    """Return an error object of the server."""
    return {"name": name, "message": message, "details": [{"message": message}], **more}


REFUSALS: list[Any] = [
    (302, None, "redirect", "redirects to `https://elsewhere.example/x`, where the token is not sent"),
    (400, error("BadDataError", "Something."), "refused", "the server refused the request: Something"),
    (400, b"<html>", "refused", "the server refused the request: status 400"),
    (401, error("UnauthorizedError", "You must log in."), "unauthorized", "the server does not know the token: give another"),
    (403, {"message": "invalid token: expected a different token type for this endpoint"}, "token-type", "for SDKs and proxies"),
    (403, error("PermissionError", "No."), "forbidden", "the user of the token may not do this: No"),
    (404, b"<pre>Cannot POST</pre>", "no-flag-server", "no flag server's admin API is at `{url}`: check --url"),
    (404, error("NotFoundError", f"({BATCH}/validate) is not there"), "no-flag-server", "no flag server's admin API is at"),
    (404, error("NotFoundError", "No project shop"), "not-found", "the server does not find it: No project shop"),
    (413, {"message": "request entity too large"}, "too-large", "the data set is too large: 269 bytes were sent"),
    (415, error("ContentTypeError", "no"), "media-type", "the server does not take JSON at `{url}`"),
    (418, None, "unexpected", "`{url}` answered with status 418, which a flag server does not send"),
    (429, None, "throttled", "the server asks for fewer requests: try again later"),
    (500, {"message": "boom"}, "server", "the server failed with status 500: boom: try again"),
    (502, b"<html>", "server", "the server failed with status 502: try again"),
    (503, {"message": "Unleash is currently in maintenance mode."}, "maintenance", "the server is in maintenance mode"),
    (200, b"<html>", "no-flag-server", "`{url}` answers, but not as a flag server does: check --url"),
    (200, {"errors": [1]}, "no-flag-server", "answers, but not as a flag server does"),
    (200, [], "no-flag-server", "answers, but not as a flag server does"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "text"), REFUSALS)
def test_refusals(status: int, body: Any, kind: str, text: str, ask: Flagsvc, admin: FakeAdmin) -> None:
    """A failed request gives one line that says what to do, exit code 2, and no token; with --json it is JSON."""
    admin.say("validate", status, body, location="https://elsewhere.example/x?token=t" if status == 302 else "")
    called = ask()
    assert (called.code, called.out) == (2, "")
    assert called.err.startswith("flagsvc validate: ") and called.err.count("\n") == 1
    assert text.format(url=admin.url) in called.err
    assert "s3cret" not in called.err and not called.err.rstrip().endswith(".")
    told = ask("--json")
    assert (told.code, told.err) == (2, "")
    assert json.loads(told.out)["error"] == {
        "kind": kind,
        "status": status,
        "message": called.err.removeprefix("flagsvc validate: ").rstrip("\n"),
    }


def test_no_token(flagsvc: Flagsvc, admin: FakeAdmin, tmp_path: Path) -> None:
    """The message says that the server needs a token."""
    admin.say("validate", 401, error("AuthenticationRequired", "You must log in"))
    (tmp_path / "f.json").write_text(json.dumps(REQUEST))
    called = flagsvc("validate", str(tmp_path / "f.json"), "--url", f"{admin.url}/api/")
    assert called.code == 2 and "the server wants a token: give one with --token-file" in called.err


def test_no_answer(ask: Flagsvc, admin: FakeAdmin) -> None:
    """An unreachable server, and a connection that closes without an answer, are exit code 2."""
    called = ask("--url", "http://127.0.0.1:9")
    assert (called.code, called.err) == (2, "flagsvc validate: cannot reach `http://127.0.0.1:9`: connection refused\n")
    admin.answers[f"{BATCH}/validate"] = "close"
    called = ask()
    assert called.code == 2 and "the connection ended without a whole answer" in called.err


@pytest.mark.parametrize(
    ("named", "text"),
    [
        (("--project", "shp"), "the server has no project `shp`; did you mean `shop`?"),
        (("--environment", "x"), "the server has no environment `x`; there are development, production"),
    ],
)
def test_unknown_project_or_environment(named: tuple[str, str], text: str, ask: Flagsvc, admin: FakeAdmin) -> None:
    """An unknown project or environment is exit code 2: the real server would treat an unknown project as empty."""
    called = ask(*named)
    assert (called.code, called.out, called.err) == (2, "", f"flagsvc validate: {text}\n")
    admin.say("validate", 404, error("NotFoundError", "Not there"))
    assert ask(*named) == called, "our server says so itself, without the nearest name"


def test_a_server_that_lists_nothing(ask: Flagsvc, admin: FakeAdmin) -> None:
    """If the server does not list projects and environments, their names are not checked."""
    for path in ("/api/admin/projects", "/api/admin/environments"):
        del admin.answers[path]
    assert ask("--project", "anything").code == 0


def schema(path: str, message: str) -> dict[str, Any]:
    """Return a 400 of the schema check."""
    return {"name": "BadDataError", "message": "Refer to the details.", "details": [{"path": path, "message": message}]}


TYP = ("/body/data/features/1/typ", "Your request included the `/body/data/features/1/typ` property.")


@pytest.mark.parametrize(
    ("value", "detail", "place", "message"),
    [
        (REQUEST, TYP, "data.features[1].typ (new-checkout)", "Your request included the `data.features[1].typ` property"),
        (DATA, TYP, "features[1].typ (new-checkout)", "Your request included the `features[1].typ` property"),
    ],
)
def test_violations_of_the_schema(
    value: Any, detail: tuple[str, str], place: str, message: str, ask: Flagsvc, admin: FakeAdmin
) -> None:
    """Schema violations concern the file, so the exit code is 1. The output has the item and its place in the file."""
    admin.say("validate", 400, schema(*detail))
    named = ("--project", "shop", "--environment", "production")
    called = ask(*named, value=value)
    assert (called.code, called.err) == (1, "")
    assert called.out.startswith(f"error: {message}\n  {place}\n")
    told = json.loads(ask(*named, "--json", value=value).out)["error"]
    assert (told["kind"], told["status"]) == ("schema", 400)
    assert told["violations"] == [{"place": place, "message": message, "path": detail[0]}]


def test_usage_as_json(ask: Flagsvc) -> None:
    """With --json, an error before the request is JSON too."""
    called = ask("--json", "--url", "ftp://x")
    assert (called.code, called.err) == (2, "")
    assert json.loads(called.out) == {"error": {"kind": "usage", "message": "--url: `ftp://x` is not an http or https URL"}}
