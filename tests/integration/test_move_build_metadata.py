"""Versions with build metadata: ours and 8.2.0 take them, 7.5.1 refuses them, and a move names the flag whose rule fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support import flagservers, moving, processes
from support.moving import Server

VERSION = {"contextName": "appVersion", "operator": "SEMVER_GT", "values": [], "value": "1.2.3+b"}
DATA: dict[str, Any] = {
    "features": [{"name": name, "project": "default"} for name in ("bad", "child", "good", "segmented")],
    "featureStrategies": [
        {"name": "default", "featureName": "bad"},
        {"name": "default", "featureName": "bad", "constraints": [VERSION], "sortOrder": 1},
        {"name": "default", "featureName": "good"},
        {"name": "default", "featureName": "segmented", "segments": [1]},
    ],
    "featureEnvironments": [
        {"name": name, "featureName": name, "enabled": True} for name in ("bad", "good", "segmented")
    ],
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
    with (
        processes.postgresql() as database,
        processes.unleash_server(database) as first,
        flagservers.our_flag_server() as second,
    ):
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
