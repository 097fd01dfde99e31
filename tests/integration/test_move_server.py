"""`flagsvc move`: a whole server is moved to another, and every SDK gets the same answers there.

Versions with build metadata: ours and 8.2.0 take them, 7.5.1 refuses them, and a move names the flag whose rule fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flagsvc.cli.moving.resources import user_step
from support import flagservers, moving, processes
from support.moving import ENVIRONMENTS, Server

ALL_THERE = "0 changes: "


def moved_whole(source: Server, target: Server, count: int, folder: Path) -> str:
    """Move a server with so many flags and an archived flag into an empty server. A second run says that it has nothing to do."""
    code, out, err = moving.move(source, target, folder=folder)
    assert code == 0, (out, err)
    assert f"environment `production`: {count} new\n" in out and "moved: 1 archived flag of" in out, out
    code, out, err = moving.move(source, target, folder=folder)
    assert code == 0 and ALL_THERE in out and "moved:" not in out, (out, err)
    [segment] = target.admin("/segments")["segments"]
    assert segment["constraints"][0]["values"] == ["eu"]
    assert [row["name"] for row in target.admin("/search/features?archived=IS:true")["features"]] == ["flag-10"]
    return out


@pytest.mark.parametrize(("count", "contexts"), [(24, 25), pytest.param(150, 60, marks=pytest.mark.long)])
def test_there_and_back(tmp_path: Path, count: int, contexts: int) -> None:
    """From the real server to ours, and back when it is empty: each move is whole, users too, and all evaluations agree.

    On the way back the project lacks an environment; then a flag is archived there, and a description goes here.
    """
    with processes.postgresql() as database, processes.unleash_server(database) as first, flagservers.our_flag_server() as second:
        real, ours = moving.real(first), moving.ours(second)
        names = moving.filled(real, count)
        real.admin("/projects/default/features/flag-10", method="DELETE")
        for user in (user_step({"username": "anna", "email": "anna@example.com"}, 2), user_step({"email": "carl@example.com"}, 3)):
            real.admin("/user-admin", user.requests[0].body)
        asked = moving.contexts(contexts)
        before = moving.evaluated(real, names, asked)
        assert "stays behind" not in moved_whole(real, ours, count, tmp_path)
        there = roles_of(ours)
        assert (there["anna"], there["carl@example.com"]) == ("Editor", "Viewer")
        between = moving.evaluated(ours, names, asked)
        moving.emptied(real, names)
        real.admin("/projects/default/environments/production", method="DELETE")
        moved_whole(ours, real, count, tmp_path)
        assert roles_of(real) == roles_of(ours)
        real.admin("/projects/default/archive", {"features": ["flag-11"]})
        [segment] = ours.admin("/segments")["segments"]
        ours.admin(f"/segments/{segment['id']}", {**moving.SEGMENT, "description": None}, "PUT")
        out = moved_again(ours, real, tmp_path, {"flag-10"})
        assert "moved: 1 segment\nmoved: 1 revived flag of project `default`\n" in out, out
        after = moving.evaluated(real, names, asked)
    assert len(before) == 2 * count * contexts and len({answer[1] for answer in before}) > 50, "the order makes a difference"
    assert [moving.differing(before, between), moving.differing(before, after)] == [0, 0]


def roles_of(server: Server) -> dict[str, str]:
    """Return the root role of each user."""
    answer = server.admin("/user-admin")
    roles = {role["id"]: role["name"] for role in answer["rootRoles"]}
    return {user.get("username") or user["email"]: roles[user["rootRole"]] for user in answer["users"]}


GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}, {"id": "small", "name": "Small", "featureLimit": 1}],
    "features": [{"name": f"shop-{number}", "project": "shop"} for number in range(3)],
}


def test_from_ours_to_ours(tmp_path: Path) -> None:
    """All projects are moved, first a part. Objects of the target only stay, and the next run repeats changes of the source."""
    own = [{"name": "only-there", "project": "default"}]
    there = {"projects": GIVEN["projects"][:1], "features": own, "segments": [{"name": "own", "constraints": []}]}
    with flagservers.our_flag_server(given=GIVEN) as first, flagservers.our_flag_server(given=there) as second:
        source, target = moving.ours(first), moving.ours(second)
        moving.filled(source, 12)

        code, out, _ = moving.move(source, target, "--dry-run", folder=tmp_path)
        assert code == 0 and "+ new: project small\n" in out
        chosen = ("--project", "default,shop")
        code, out, _ = moving.move(source, target, *chosen, "--environment", "development", "--dry-run", folder=tmp_path)
        assert code == 0 and out.endswith("nothing was moved: this was a dry run\n")
        assert [row["name"] for row in target.admin("/projects/default/features")["features"]] == ["only-there"]

        code, out, _ = moving.move(source, target, *chosen, "--environment", "production", folder=tmp_path)
        assert code == 0 and "production" in out and "development" not in out
        code, out, _ = moving.move(source, target, *chosen, folder=tmp_path)
        assert code == 0 and "moved: 12 flags into project `default`, environment `development`" in out, out
        assert "project `shop`, environment `development`: 3 same\n" in out
        code, out, _ = moving.move(source, target, *chosen, folder=tmp_path)
        assert code == 0 and ALL_THERE in out
        for environment in ENVIRONMENTS:
            flags, found = by_name(source, environment), by_name(target, environment)
            assert found.pop("only-there") and found == flags
        assert [row["name"] for row in target.admin("/segments")["segments"]] == ["beta testers", "own"]

        turn_around(source, "flag-1")
        code, out, _ = moving.move(source, target, *chosen, folder=tmp_path)
        assert code == 0 and "environment `development`: 1 changed, 11 same\n" in out, out
        code, out, err = moving.move(source, target, folder=tmp_path)
        assert code == 0 and "moved: 1 project\n" in out, (out, err)
        assert "small" in [row["id"] for row in target.admin("/projects")["projects"]]
        code, out, _ = moving.move(source, target, folder=tmp_path)
        assert code == 0 and ALL_THERE in out


def moved_again(source: Server, target: Server, folder: Path, archived: set[str]) -> str:
    """Move twice and return the output of the first run: these flags are archived then, and the second has nothing to do."""
    code, out, err = moving.move(source, target, folder=folder)
    assert code == 0, (out, err)
    code, again, _ = moving.move(source, target, folder=folder)
    assert (code, again.splitlines()[-1]) == (0, f"0 changes: {target.root} has all of it"), again
    rows = target.admin("/search/features?archived=IS:true")["features"]
    assert {row["name"] for row in rows} == archived
    return out


def turn_around(server: Server, name: str) -> None:
    """Let the strategies of a flag in development come in another order."""
    where = f"/projects/default/features/{name}/environments/development/strategies"
    rows = server.admin(where)
    if len(rows) == 1:
        server.admin(where, {"name": "default"})
        return
    body = [{"id": row["id"], "sortOrder": place} for place, row in enumerate(reversed(rows))]
    server.admin(f"{where}/set-sort-order", body)


def by_name(server: Server, environment: str) -> dict[str, Any]:
    """Return what SDKs read of each flag."""
    return {item["name"]: without_numbers(item) for item in server.document(environment)["features"]}


def without_numbers(flag: dict[str, Any]) -> dict[str, Any]:
    """Return a flag of a document without the numbers of segments, which are each server's own."""
    strategies = [item | {"segments": len(item.get("segments") or ())} for item in flag["strategies"]]
    return flag | {"strategies": strategies}


VERSION = {"contextName": "appVersion", "operator": "SEMVER_GT", "values": [], "value": "1.2.3+b"}
DATA: dict[str, Any] = {
    "features": [{"name": name, "project": "default"} for name in ("bad", "child", "good", "segmented")],
    "featureStrategies": [
        {"name": "default", "featureName": "bad"},
        {"name": "default", "featureName": "bad", "constraints": [VERSION], "sortOrder": 1},
        {"name": "default", "featureName": "good"},
        {"name": "default", "featureName": "segmented", "segments": [1]},
    ],
    "featureEnvironments": [{"name": name, "featureName": name, "enabled": True} for name in ("bad", "good", "segmented")],
    "dependencies": [{"feature": "child", "dependencies": [{"feature": "bad", "enabled": True}]}],
    "segments": [{"id": 1, "name": "beta"}],
    "tagTypes": [],
}
PLACE = "bad: environment production: strategy 2 (default), constraint on appVersion (SEMVER_GT)"
SEGMENT = "segmented: environment production: segment beta, constraint on appVersion (SEMVER_GT)"


def filled(server: Server) -> None:
    """Import the flags into a server, which stores versions with build metadata."""
    server.admin("/segments", {"name": "beta", "constraints": [VERSION]})
    server.admin("/features-batch/import", {"project": "default", "environment": "production", "data": DATA})


def flags(server: Server) -> list[str]:
    """Return the names of the flags of a server."""
    return sorted(item["name"] for item in server.admin("/projects/default/features")["features"])


def stored_values(server: Server) -> set[str]:
    """Return the values of the constraints that SDKs read, of strategies and of segments."""
    found = server.document("production")
    rows = [each for flag in found["features"] for each in flag["strategies"]] + found.get("segments", [])
    return {value for row in rows for each in row.get("constraints") or () if (value := each.get("value"))}


def test_to_a_server_that_refuses_them(tmp_path: Path) -> None:
    """The dry run and the run name the same flags. With --skip-failing the others are moved, and exit code 1 stays."""
    with processes.postgresql() as database, processes.unleash_server(database) as first, flagservers.our_flag_server() as second:
        real, ours = moving.real(first), moving.ours(second)
        filled(ours)
        assert stored_values(ours) == {"1.2.3+b"}
        dry = moving.move(ours, real, "--dry-run", folder=tmp_path)
        run = moving.move(ours, real, folder=tmp_path)
        for code, out, err in (dry, run):
            assert code == 1 and "nothing was moved: " in err, (out, err)
            assert PLACE in out and SEGMENT in out and "  child: parent bad\n" in out, out
            assert "The value provided was: 1.2.3+b" in out and out.endswith("cannot be moved: 3 flags\n")
        assert flags(real) == [] and real.admin("/segments")["segments"] == []
        code, out, err = moving.move(ours, real, "--skip-failing", folder=tmp_path)
        assert code == 1 and out.endswith("cannot be moved: 3 flags\n"), (out, err)
        assert flags(real) == ["good"] and real.admin("/segments")["segments"] == []


@pytest.mark.long
def test_between_servers_that_take_them(tmp_path: Path) -> None:
    """From ours to 8.2.0 and from there to another of ours, each flag is there with its version."""
    with (
        processes.postgresql() as database,
        processes.unleash_server(database, "server-8") as first,
        flagservers.our_flag_server() as second,
        flagservers.our_flag_server() as third,
    ):
        real, ours, other = moving.real(first), moving.ours(second), moving.ours(third)
        filled(ours)
        for source, target in ((ours, real), (real, other)):
            code, out, err = moving.move(source, target, "--dry-run", folder=tmp_path)
            assert code == 0, (out, err)
            code, out, err = moving.move(source, target, folder=tmp_path)
            assert code == 0, (out, err)
            assert flags(target) == ["bad", "child", "good", "segmented"] and stored_values(target) == {"1.2.3+b"}
