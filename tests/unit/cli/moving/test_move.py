"""`flagsvc move`: its requests, its output, and every way it can end."""

from __future__ import annotations

import io
import json

import pytest

from support.cli_helpers import Flagsvc
from support.fake_admin import BATCH, EMPTY, Answer, FakeAdmin
from unit.cli.moving.move_scene import FLAGS, SECRETS, writes


def shown(target: FakeAdmin) -> str:
    """Return the plan that the command shows before it moves anything."""
    return (
        "+ new: segment beta\n"
        f"! stays behind: environment development, which {target.url} does not have\n"
        "project `default`, environment `production`: 2 new\n"
    )


def test_yes(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """--yes shows the changes and makes them. Each server gets its own token. The source is only read."""
    target.answers["/api/admin/segments"] = Answer(201, {"segments": []})
    called = run("--yes")
    assert called.code == 0 and called.out == (
        f"{shown(target)}moved: 1 segment\nmoved: 2 flags into project `default`, environment `production`\n"
    )
    assert writes(target) == [("POST", "/api/admin/segments"), ("POST", f"{BATCH}/import")] and writes(source) == []
    [sent] = target.sent("import")
    assert (sent["project"], sent["environment"]) == ("default", "production")
    assert [item["name"] for item in sent["data"]["features"]] == ["dark-mode", "fresh"]
    assert [item["sortOrder"] for item in sent["data"]["featureStrategies"]] == [0]
    assert {asked.headers["authorization"] for asked in source.asked} == {"user:from-s3cret"}
    assert {asked.headers["authorization"] for asked in target.asked} == {"user:to-s3cret"}
    assert "s3cret" not in called.out + called.err


def test_again(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """If the target has everything, the command says so and sends nothing. It does not say so if something is not moved."""
    target.answers["/api/admin/segments"] = source.answers["/api/admin/segments"]
    target.say("export", 200, FLAGS)
    same = "environment `production`: 2 same\n0 changes: "
    assert run("--yes", "--environment", "production").out.endswith(f"{same}{target.url} has all of it\n")
    called = run("--yes")
    assert called.code == 0 and called.out.startswith("! stays behind: environment development, which ")
    assert called.out.endswith(f"{same}nothing to move, 1 thing stays behind\n")
    source.answers["/api/admin/user-admin"] = Answer(403, {"message": "no"})
    called = run("--yes", "--environment", "production")
    assert called.out.endswith(f"{same}nothing to move, except what the warnings name\n")
    assert writes(target) == []


def test_revived_flags(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """A flag that is archived only on the target is revived before the import. A dry run shows it."""
    target.answers["/api/admin/segments"] = source.answers["/api/admin/segments"]
    old = [flag | {"archived": flag["name"] == "fresh"} for flag in FLAGS["features"]]
    target.say("export", 200, FLAGS | {"features": old})
    called = run("--dry-run")
    assert "1 changed, 1 same\n~ changed: fresh\n  archived: yes → no\n" in called.out and writes(target) == []
    target.answers["/api/admin/projects/default/revive"] = Answer(403, {"message": "no rights"})
    called = run("--yes")
    assert called.code == 1 and "stopped: archived flags of project `default`: the user of the token may not" in called.err
    target.answers["/api/admin/projects/default/revive"] = Answer(200)
    target.asked.clear()
    called = run("--yes")
    assert called.code == 0 and "moved: 1 revived flag of project `default`\nmoved: 1 flag into" in called.out
    assert writes(target) == [("POST", "/api/admin/projects/default/revive"), ("POST", f"{BATCH}/import")]
    [revived] = [asked.body for asked in target.asked if asked.path.endswith("/revive")]
    assert revived == {"features": ["fresh"]}
    assert [item["name"] for item in target.sent("import")[0]["data"]["features"]] == ["fresh"]


def test_dry_run(run: Flagsvc, target: FakeAdmin) -> None:
    """--dry-run shows each flag and changes nothing."""
    called = run("--dry-run", "--yes")
    flags = "+ new: dark-mode\n+ new: fresh\n  off → on\n  strategies: + default\n"
    assert (called.code, called.out) == (0, f"{shown(target)}{flags}nothing was moved: this was a dry run\n")
    assert writes(target) == []


@pytest.mark.parametrize(("text", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_asking(text: str, code: int, run: Flagsvc, target: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal the command asks. Elsewhere the exit code is 2, and the message names --yes."""
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    elsewhere = run()
    assert (elsewhere.code, writes(target)) == (2, []) and "--yes goes on without asking" in elsewhere.err
    stream = io.StringIO(text)
    stream.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", stream)
    called = run()
    assert called.code == code and "Move this? [y/N] " in called.out and bool(writes(target)) == (code == 0)


REFUSED = {"name": "BadDataError", "message": "m", "details": [{"message": "something is wrong"}]}


@pytest.mark.parametrize(
    ("path", "answer", "code", "text"),
    [
        (
            f"{BATCH}/import",
            Answer(400, REFUSED),
            1,
            "flag `dark-mode` of project `default`, environment `production`: the server ",
        ),
        (f"{BATCH}/import", Answer(403, REFUSED), 1, "flags of project `default`, environment `production`: the user of the token"),
        (f"{BATCH}/import", Answer(500, {"message": "oh"}), 2, "the server failed with status 500: oh"),
        (f"{BATCH}/import", "close", 2, "cannot reach"),
    ],
)
def test_a_run_that_stops(
    path: str, answer: Answer | str, code: int, text: str, run: Flagsvc, source: FakeAdmin, target: FakeAdmin
) -> None:
    """The error has the reason, and the next run continues."""
    target.answers["/api/admin/segments"] = source.answers["/api/admin/segments"]
    usual, target.answers[path] = target.answers[path], answer
    called = run("--yes")
    assert called.code == code and text in called.err and called.err.startswith("flagsvc move: stopped: "), called
    assert "what was moved before this stays; the next run goes on from there" in called.err
    target.answers[path] = usual
    assert run("--yes").code == 0 and len(target.sent("import")) >= 1


def test_archived_flags(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """Archived flags are imported disabled and without parents, then archived. An archived flag on the target is the same."""
    source.answers["/api/admin/search/features"] = Answer(200, {"features": [{"name": "fresh"}]})
    old = FLAGS | {
        "features": [FLAGS["features"][1] | {"archived": True}],
        "dependencies": [{"feature": "fresh", "dependencies": [{"feature": "dark-mode"}]}],
    }
    source.say("export", 200, old)
    target.answers["/api/admin/segments"] = source.answers["/api/admin/segments"]
    target.answers["/api/admin/projects/default/archive"] = Answer(202)
    called = run("--yes")
    [sent] = target.sent("import")
    assert {item["archived"] for item in sent["data"]["features"]} == {False}
    assert {item["enabled"] for item in sent["data"]["featureEnvironments"]} == {False} and sent["data"]["dependencies"] == []
    assert target.asked[-1].body == {"features": ["fresh"]} and called.out.endswith("moved: 1 archived flag of project `default`\n")
    target.say("export", 200, old)
    assert run("--yes", "--environment", "production").out.endswith(f"1 same\n0 changes: {target.url} has all of it\n")


def test_projects(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """A missing project is created if the server's API can. Otherwise the command fails before any change."""
    projects = {"projects": [{"id": "default"}, {"id": "shop", "name": "Shop", "description": "s"}]}
    source.answers["/api/admin/projects"] = Answer(200, projects)
    called = run("--yes")
    assert (called.code, writes(target)[1:]) == (2, []) and called.err == (
        f"flagsvc move: `{target.url}` has no project `shop` and cannot create projects over its API: create it there, or "
        "choose projects with --project, or name one with --to-project\n"
    )
    called = run("--project", "shop", "--to-project", "default", "--yes")
    assert called.code == 0 and target.sent("import")[0]["project"] == "default"
    target.answers["/api/admin/projects/validate"] = Answer(200)
    called = run("--project", "shop", "--yes")
    [made] = [asked for asked in target.asked if (asked.method, asked.path) == ("POST", "/api/admin/projects")]
    assert made.body == {"id": "shop", "name": "Shop", "description": "s"} and "+ new: project shop\n" in called.out


def test_environments_of_a_project(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """An environment that only the source's project has is added. A project without any is reported and not moved."""
    where = "/api/admin/environments/project/default"
    linked, not_linked = (Answer(200, {"environments": [{"name": "production", "visible": visible}]}) for visible in (True, False))
    source.answers[where], target.answers[where] = linked, not_linked
    called = run("--dry-run")
    assert called.code == 0 and "+ new: project environment production of default\n" in called.out
    target.answers["/api/admin/segments"] = source.answers["/api/admin/segments"]
    target.answers["/api/admin/projects/default/environments"] = Answer(403, {"message": "no rights"})
    called = run("--yes")
    assert called.code == 1 and called.err.startswith(
        "flagsvc move: stopped: project environment `production of default`: the user of the token may not do this: no rights"
    )
    target.answers["/api/admin/projects/default/environments"] = Answer(200)
    target.asked.clear()
    assert "moved: 1 project environment\n" in run("--yes").out
    where_added = "/api/admin/projects/default/environments"
    assert writes(target)[0] == ("POST", where_added)
    assert [asked.body for asked in target.asked if asked.path == where_added] == [{"environment": "production"}]
    source.answers[where] = not_linked
    called = run("--dry-run")
    assert called.code == 0 and "! stays behind: project default, which has none of these environments\n" in called.out


def test_a_flag_elsewhere(run: Flagsvc, target: FakeAdmin, source: FakeAdmin) -> None:
    """A flag that is in another project on the target, or too large for one request, is an error before any change."""
    there = [{"name": "fresh", "project": "shop"}]
    target.say("export", 200, EMPTY | {"features": there})
    called = run("--yes")
    assert (called.code, writes(target)) == (2, [])
    assert called.err.endswith("has flags of `default` in other projects: `fresh` (in `shop`)\n")
    target.say("export", 200, EMPTY)
    source.say("export", 200, EMPTY | {"features": [{"name": "big", "project": "default", "description": "x" * 512_000}]})
    called = run("--yes")
    assert (called.code, writes(target)) == (1, [])
    assert called.err.startswith("flagsvc move: the request for flag `big` has 512") and len(called.err) < 200


@pytest.mark.parametrize(
    ("arguments", "env", "code", "text"),
    [
        (("--environment", "prodction"), SECRETS, 2, "`{source}` has no environment `prodction`; did you mean `production`?"),
        (("--environment", "development"), SECRETS, 2, "`{target}` has no environment `development`; there are production, qa"),
        (("--project", "defalt"), SECRETS, 2, "`{source}` has no project `defalt`; did you mean `default`?"),
        (("--from-token-file", "none"), SECRETS, 2, "--from-token-file: cannot read `none`: no such file or directory"),
        ((), SECRETS | {"FLAGSVC_TO_TOKEN": "*:*.admin"}, 1, "with --to-token-file, FLAGSVC_TO_TOKEN or --to-token"),
        (("--url", "x"), SECRETS, 2, "unknown option `--url`"),
    ],
)
def test_usage(
    arguments: tuple[str, ...], env: dict[str, str], code: int, text: str, run: Flagsvc, source: FakeAdmin, target: FakeAdmin
) -> None:
    """A wrong argument gives a one-line error and changes nothing."""
    target.answers["/api/admin/user"] = Answer(200, {"user": {"type": "admin"} if "*" in env["FLAGSVC_TO_TOKEN"] else {"id": 1}})
    called = run("--dry-run", *arguments, env=env)
    assert (called.code, called.err.count("\n")) == (code, 1)
    assert text.format(source=source.url, target=target.url) in called.err
    assert writes(target) == []


def test_a_body_that_is_too_large(run: Flagsvc, target: FakeAdmin) -> None:
    """The error says to raise the limit, and does not name --features, which `move` does not have."""
    target.answers["/api/admin/segments"] = Answer(201, {"segments": []})
    target.say("import", 413)
    called = run("--yes")
    assert called.code == 2 and "raise the limit of TO, or of a reverse proxy in front of it; what was moved" in called.err
    assert "--features" not in called.err


def test_users(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """Missing users are created last, so that a rate limit for users delays no flag."""
    users = [{"username": name, "rootRole": 1} for name in ("anna", "bo\x1b[31m")]
    source.answers["/api/admin/user-admin"] = Answer(200, {"users": users, "rootRoles": [{"id": 1, "name": "Admin"}]})
    own = {"users": [], "rootRoles": [{"id": 3, "name": "Admin"}]}
    target.answers["/api/admin/user-admin"] = Answer(200, own)
    called = run("--yes")
    assert "+ new: user anna\n+ new: user bo" in called.out and "\x1b" not in called.out
    assert called.out.endswith("moved: 2 users\n") and called.code == 0
    assert [(asked.path, asked.body["rootRole"]) for asked in target.asked[-2:]] == [("/api/admin/user-admin", 3)] * 2


def test_users_that_cannot_be_read(run: Flagsvc, source: FakeAdmin) -> None:
    """If the token may not read users, the command warns in one line and continues without users."""
    source.answers["/api/admin/user-admin"] = Answer(403, {"message": "no"})
    called = run("--dry-run")
    assert called.code == 0 and called.err == (
        f"flagsvc move: warning: users are not moved: `{source.url}` does not list them over its API, or not for this token\n"
    )


def test_the_same_server(flagsvc: Flagsvc, source: FakeAdmin) -> None:
    """A move into the same server, an invalid or missing URL, and a missing --to-ca-file are exit code 2."""
    called = flagsvc("move", source.url, f"{source.url}/api/", env=SECRETS)
    assert called == (2, "", f"flagsvc move: FROM and TO are the same server: `{source.url}`\n")
    called = flagsvc("move", "nowhere", source.url, env=SECRETS)
    assert called.err == "flagsvc move: FROM: `nowhere` is not an http or https URL\n"
    called = flagsvc("move", "", source.url, env=SECRETS)
    assert called == (2, "", "flagsvc move: FROM: the address of the flag server is missing\n")
    called = flagsvc("move", source.url, "https://localhost:9", "--to-ca-file", "none", env=SECRETS)
    assert called == (2, "", "flagsvc move: --to-ca-file: cannot read `none`: no such file or directory\n")


def test_a_server_that_wants_a_token(run: Flagsvc, source: FakeAdmin) -> None:
    """The error names the token options of the server that refused the request, or the server whose answer is no list."""
    source.answers["/api/admin/projects"] = Answer(401, {"message": "no"})
    assert "give another with --from-token-file, FLAGSVC_FROM_TOKEN or --from-token\n" in run().err
    called = run(env={"FLAGSVC_TO_TOKEN": "user:x"})
    assert called.code == 2 and "the server wants a token: give one with --from-token-file" in called.err
    source.answers["/api/admin/projects"] = Answer(200, {"projects": 1})
    assert run().err == f"flagsvc move: `{source.url}` answers, but not as a flag server does: check FROM\n"


def test_pieces(run: Flagsvc, source: FakeAdmin, target: FakeAdmin) -> None:
    """Many flags are sent in several requests, each below 512,000 bytes."""
    flags = [{"name": f"f{number}", "project": "default", "description": "x" * 1000} for number in range(700)]
    source.say("export", 200, EMPTY | {"features": flags})
    target.answers["/api/admin/segments"] = source.answers["/api/admin/segments"]
    called = run("--yes")
    assert called.out.endswith("moved: 700 flags into project `default`, environment `production` in 7 pieces\n")
    sent = target.sent("import")
    assert [item["name"] for each in sent for item in each["data"]["features"]] == [item["name"] for item in flags]
    assert all(len(json.dumps(each, separators=(",", ":"))) < 512_000 for each in sent)
    assert target.sent("validate") == sent
