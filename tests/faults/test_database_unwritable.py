"""A flag server whose SQLite database takes no changes: another user's file, a full disk, a file that was moved (decision 0023).

Root may write everything. So where this process is root's, the server runs without that right, on files of another user.
"""

from __future__ import annotations

import json
import os
import pwd
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from flagsvc.server.store.engines import make_engine
from flagsvc.server.store.migrate import known_versions, upgrade
from flagsvc.server.store.writability import NOT_WRITTEN
from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, USER_SECRET, OurFlagServer, app_client, our_flag_server
from support.needs import missing, program
from support.processes import Answer, ask, clean_environment, flagsvc, free_port, scratch
from support.waiting import wait_until

AGAIN = "the database can be written again"
FEATURES = "/admin/projects/default/features"
DISK_KB = 4096
NO_RIGHT = "this user may not write the file and its folder, or they are on a read-only file system"
USED = {"appName": "shop", "bucket": {"start": 1, "stop": 2, "toggles": {"first": {"yes": 1, "no": 0}}}}
DATA_SET = {
    "features": [{"name": "imported", "project": "default"}],
    "featureStrategies": [],
    "featureEnvironments": [],
    "tagTypes": [],
}
IMPORT = {"project": "default", "environment": "development", "data": DATA_SET}


def create(server: OurFlagServer, name: str, description: str = "") -> Answer:
    """Ask to make a flag."""
    return server.ask("POST", FEATURES, {"name": name, "description": description})


def names(server: OurFlagServer) -> set[str]:
    """Return the flags that SDKs get."""
    found = server.ask("GET", "/client/features", token=BACKEND_SECRET)
    assert found.status == 200
    return {each["name"] for each in found.json()["features"]}


def readiness(server: OurFlagServer) -> dict[str, object]:
    """Return the body of /ready, which is 200."""
    answer = ask(f"{server.root}/ready")
    assert answer.status == 200
    return dict(answer.json())


def wait_until_writable(server: OurFlagServer) -> None:
    """Wait until readiness says that changes are taken."""
    wait_until(lambda: readiness(server) == {"health": "GOOD"}, 30, lambda: server.program.output())


def check_refusals(server: OurFlagServer, word: str, why: str) -> None:
    """Check what a server says whose database takes no changes: SDKs get flags, and every change gets one clear answer."""
    assert "first" in names(server)
    assert readiness(server) == {"health": "GOOD", "writable": False, "reason": word}
    assert ask(f"{server.root}/readyz").text == f"ready, read-only: {word}"
    assert "flagsvc_database_writable 0.0" in ask(f"{server.root}/metrics").text
    latest = server.ask("GET", "/admin/events").json()["events"][0]["id"]
    for number in range(2):
        for path, body in (
            (FEATURES, {"name": f"refused-{number}"}),
            ("/admin/features-batch/import", IMPORT),
            (f"/admin/events/{latest}/undo", None),
        ):
            answer = server.ask("POST", path, body)
            assert (answer.status, answer.json()["name"]) == (503, "DatabaseUnwritableError"), (path, answer.body)
            assert answer.json()["message"] == f"The database cannot be written: {why}. Nothing was changed."
            assert answer.headers["retry-after"] == "5"
        for path, token in (("/client/metrics", BACKEND_SECRET), ("/frontend/client/metrics", FRONTEND_SECRET)):
            answer = server.ask("POST", path, USED, token=token)
            assert answer.status == 503 and why in answer.text
    page = ask(
        f"{server.root}/ui/sign-in",
        method="POST",
        headers={"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"},
        body=urlencode({"token": USER_SECRET, "next": ""}).encode(),
    )
    assert page.status == 503 and f"The database cannot be written: {why}" in page.text
    output = server.program.output()
    assert "Traceback" not in output and "an unexpected error" not in output and "is away" not in output
    (told,) = said(server, NOT_WRITTEN)
    assert told["reason"] == why and told["todo"] and "flags.db" in told["database"]
    loud = [line for line in map(json.loads, output.splitlines()) if line["level"] in ("warn", "error")]
    assert [line["message"] for line in loud if "interpreted" not in line["message"]] == [NOT_WRITTEN]


def fill(database: Path) -> None:
    """Make a database with a flag, as its owner."""
    with app_client(str(database)) as client:
        assert client.post(f"/api{FEATURES}", {"name": "first"}).status == 201
        assert client.post(f"/api{FEATURES}/first/environments/development/on").status == 200


@contextmanager
def server_of(database: Path, before: Sequence[object] = ()) -> Iterator[OurFlagServer]:
    """Run a server on a database that was filled; its log is JSON."""
    options: dict[str, Any] = {"JSON_LOGGER": "true", "LOG_LEVEL": "info"}
    with scratch() as home, our_flag_server(database=str(database), folder=home, seeded=False, before=before, **options) as server:
        yield server


def said(server: OurFlagServer, message: str) -> list[dict[str, Any]]:
    """Return the lines of the log with a message."""
    return [line for line in map(json.loads, server.program.output().splitlines()) if line["message"] == message]


def without_override() -> list[object]:
    """Return what starts a program that may write only what its user may write."""
    if os.geteuid() != 0:
        return []
    words = [program("setpriv"), "--bounding-set=-dac_override,-dac_read_search", "--"]
    if subprocess.run([*words, sys.executable, "-c", ""], capture_output=True, timeout=20, check=False).returncode != 0:
        missing("this process of root cannot give up the right to write every file")
    return [*words]


def protect(*paths: Path) -> Callable[[], None]:
    """Take the right to write files and folders from programs of `without_override`; return what gives it back."""
    before = {path: path.stat() for path in paths}
    for path in paths:
        path.chmod(before[path].st_mode & 0o555 | 0o444)
        if os.geteuid() == 0:
            os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)

    def give_back() -> None:
        for path, found in before.items():
            os.chown(path, found.st_uid, -1)
            path.chmod(found.st_mode)

    return give_back


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder with a database, which can be removed whatever a test does to it."""
    made = tmp_path / "data"
    made.mkdir()
    fill(made / "flags.db")
    yield made
    if os.geteuid() != 0:
        made.chmod(0o755)


@pytest.mark.parametrize("files", [pytest.param(("flags.db",), marks=pytest.mark.long), ("flags.db", "")])
def test_a_file_of_another_user(folder: Path, files: tuple[str, ...]) -> None:
    """The start says so and goes on, reads go on, changes are refused; once the file can be written, all works by itself."""
    give_back = protect(*(folder / name for name in files))
    with server_of(folder / "flags.db", before=without_override()) as server:
        assert len(said(server, NOT_WRITTEN)) == 1, "at the start, before any change is tried"
        check_refusals(server, "file", NO_RIGHT)
        give_back()
        wait_until_writable(server)
        assert create(server, "second").status == 201
        assert len(said(server, AGAIN)) == 1
        assert "flagsvc_database_writable 1.0" in ask(f"{server.root}/metrics").text


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Give a small file system of its own; skip where none can be mounted."""
    disk = folder / "disk"
    disk.mkdir()
    command = [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", f"size={DISK_KB}k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        missing("no file system can be mounted here (that takes root and `mount`)")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], timeout=20, check=True)


def test_a_read_only_file_system_that_another_program_writes(tmp_path: Path) -> None:
    """A server on a read-only mount serves the file, and what another program writes there meanwhile."""
    with small_disk(tmp_path) as disk:
        fill(disk / "flags.db")
        view = tmp_path / "view"
        view.mkdir()
        subprocess.run(["mount", "--bind", str(disk), str(view)], timeout=20, check=True)
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", str(view)], timeout=20, check=True)
            with server_of(view / "flags.db") as server:
                check_refusals(server, "file", NO_RIGHT)
                with server_of(disk / "flags.db") as other:
                    assert create(other, "second").status == 201
                    wait_until(lambda: "second" in names(server), 30)
                wait_until(lambda: names(server) == {"first", "second"}, 30)
        finally:
            subprocess.run(["umount", "-l", str(view)], timeout=20, check=True)


def fill_disk(disk: Path) -> Callable[[], None]:
    """Fill a file system; return what makes room."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
    return ballast.unlink


def create_until_refused(server: OurFlagServer) -> set[str]:
    """Make flags until one is refused; return those that were acknowledged."""
    made: set[str] = set()
    for number in range(500):
        answer = create(server, f"flag-{number}", "x" * 20_000)
        if answer.status != 201:
            assert (answer.status, answer.json()["name"]) == (503, "DatabaseUnwritableError"), answer.body
            return made
        made.add(f"flag-{number}")
    raise AssertionError("the disk did not get full")


def check_full(server: OurFlagServer, make_room: Callable[[], object]) -> set[str]:
    """Check a server whose disk gets full, and then has room again; return all flags that were acknowledged."""
    made = create_until_refused(server) | {"first"}
    assert names(server) == made
    assert server.ask("POST", "/client/metrics", USED, token=BACKEND_SECRET).status in (202, 503)
    make_room()
    wait_until_writable(server)
    assert create(server, "last", "x" * 20_000).status == 201
    output = server.program.output()
    assert "Traceback" not in output and "an unexpected error" not in output
    assert len(said(server, NOT_WRITTEN)) == 1
    return made | {"last"}


def test_a_full_disk(tmp_path: Path) -> None:
    """Changes are refused while a disk is full, and go on by themselves; each acknowledged one is there after a kill."""
    with small_disk(tmp_path) as disk:
        fill(disk / "flags.db")
        with server_of(disk / "flags.db") as server:
            make_room = fill_disk(disk)
            made = check_full(server, make_room)
            server.program.stop(signal.SIGKILL)
        with server_of(disk / "flags.db") as server:
            assert names(server) == made


@pytest.mark.long
def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """A limit, as of a quota, is the same: the server goes on once it is lifted."""
    fill(tmp_path / "flags.db")
    with server_of(tmp_path / "flags.db") as server:
        number, (_, most) = server.program.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(number, resource.RLIMIT_FSIZE, (400_000, most))
        made = check_full(server, lambda: resource.prlimit(number, resource.RLIMIT_FSIZE, (most, most)))
    with server_of(tmp_path / "flags.db") as server:
        assert names(server) == made


MOVES: dict[str, Callable[[Path], object]] = {
    "removed, as by somebody who cleans up": Path.unlink,
    "renamed": lambda path: path.rename(path.with_name("old.db")),
    "replaced by a copy, as by `cp` and `mv`": lambda path: shutil.copyfile(path, path.with_name("copy.db")).replace(path),
    "without its log": lambda path: path.with_name("flags.db-wal").unlink(),
    "without the index of its log": lambda path: path.with_name("flags.db-shm").unlink(),
}
SEEN = ("replaced by a copy, as by `cp` and `mv`", "without its log")
"""The moves of a usual run: one of the file, and one of what is beside it."""
MOVED = "its file, or the log beside it, was removed or replaced while the server runs"


@pytest.mark.parametrize("move", [each if each in SEEN else pytest.param(each, marks=pytest.mark.long) for each in MOVES])
def test_a_file_that_is_moved_while_the_server_runs(tmp_path: Path, move: str) -> None:
    """No change is acknowledged that a restart would not find. The log says once what to do, and no new file is made."""
    database = tmp_path / "flags.db"
    fill(database)
    with server_of(database) as server:
        assert create(server, "second").status == 201
        MOVES[move](database)
        before = sorted(path.name for path in tmp_path.iterdir())
        assert create(server, "lost").status == 503
        check_refusals(server, "moved", MOVED)
        assert sorted(path.name for path in tmp_path.iterdir()) == before
    if move.startswith("without"):
        with server_of(database) as server:
            assert names(server) == {"first", "second"}


def test_a_file_that_comes_back(tmp_path: Path) -> None:
    """The move is noticed without a change; the same file at its place again is taken again."""
    database = tmp_path / "flags.db"
    fill(database)
    with server_of(database) as server:
        MOVES["renamed"](database)
        wait_until(lambda: readiness(server).get("reason") == "moved", 30, lambda: server.program.output())
        (tmp_path / "old.db").rename(database)
        wait_until_writable(server)
        assert create(server, "second").status == 201
    with server_of(database) as server:
        assert names(server) == {"first", "second"}


def command(database: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command on a database."""
    with scratch() as home:
        env = clean_environment(home) | {"FLAGSVC_DATABASE_URL": str(database)}
        line = [str(each) for each in (*without_override(), *flagsvc(), "server", *words)]
        return subprocess.run(line, env=env, cwd=home, capture_output=True, text=True, check=False, timeout=60)


def test_commands_on_a_file_of_another_user(folder: Path, tmp_path: Path) -> None:
    """A command that changes something ends with 1 and one sentence; a backup needs no right to write."""
    database = folder / "flags.db"
    (tmp_path / "seed.json").write_text('{"features": [{"name": "seeded"}]}')
    assert command(database, "backup", tmp_path / "flags.backup").returncode == 0
    protect(database, folder)
    for words in (
        ("user", "create", "somebody"),
        ("token", "create", "mine", "--user", "boss"),
        ("sign-in-link", "boss"),
        ("seed", "apply", tmp_path / "seed.json"),
        ("restore", tmp_path / "flags.backup", "--replace"),
    ):
        done = command(database, *words)
        assert done.returncode == 1, (words, done)
        assert done.stderr.count("\n") == 1 and f"the database cannot be written: {NO_RIGHT}" in done.stderr
    assert command(database, "backup", tmp_path / "again.backup").returncode == 0


def test_an_older_schema_that_cannot_be_migrated(tmp_path: Path) -> None:
    """The start ends with an error that says what is in the way and what to do."""
    database = tmp_path / "flags.db"
    engine = make_engine(str(database))
    with engine.connect().execution_options(flagsvc_writing=True) as db, db.begin():
        upgrade(db, known_versions()[1])
    engine.dispose()
    protect(database)
    done = command(database, "--port", free_port(), "--host", "127.0.0.1")
    assert done.returncode == 1
    assert f"the database has the older schema `{known_versions()[1]}`" in done.stderr
    assert f"cannot be written: {NO_RIGHT}" in done.stderr and "Traceback" not in done.stderr
