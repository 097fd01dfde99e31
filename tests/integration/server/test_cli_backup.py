"""`flagsvc server backup` and `restore` as commands: files, pipes, refusals, and a server that runs meanwhile."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from flagsvc.core.clock import SystemClock
from flagsvc.server.store.backup import lines
from flagsvc.server.store.store import Store, open_store
from flagsvc.testing import RecordingLog
from support.backups import SECRET, backup_of, fill, lines_of, remade, rows_of, with_value
from support.cli_helpers import Called, Flagsvc
from support.flagservers import BACKEND_SECRET, USER_SECRET, our_flag_server
from support.processes import ROOT, ask
from support.waiting import wait_until

pytestmark = pytest.mark.one_database


@pytest.fixture
def store(store: Store) -> Store:
    """Give a database with something in every table, open as a server has it."""
    fill(store)
    return store


def test_a_file(store: Store, run: Flagsvc, tmp_path: Path) -> None:
    """A backup is for its owner alone, replaces no file without --force, and comes back into a new database."""
    file, target = tmp_path / "flags.backup", tmp_path / "new.db"
    called = run("backup", file)
    total = len(rows_of(io.BytesIO(file.read_bytes())))
    assert called == Called(0, "", f"flagsvc server backup: 3 flags and {total} rows in all written to `{file}`\n")
    assert file.stat().st_mode & 0o777 == 0o600
    assert run("backup", file) == Called(2, "", f"flagsvc server backup: `{file}` exists: --force replaces it\n")
    file.chmod(0o644)
    assert run("backup", file, "--force").code == 0
    assert file.stat().st_mode & 0o777 == 0o600 and sorted(tmp_path.glob(".*")) == []
    called = run("restore", file, "--database", target)
    assert called.code == 0 and called.out.startswith(f"restored 3 flags and {total} rows in all, as of 20")
    made = open_store(str(target), SystemClock(), RecordingLog())
    assert rows_of(backup_of(made)) == rows_of(io.BytesIO(file.read_bytes()))
    made.close()


def test_pipes(store: Store, database_url: str, tmp_path: Path) -> None:
    """`-` is standard output, and standard input: one command feeds the other. What is no backup is not read to its end."""
    command = f"{sys.executable} -m flagsvc server"
    line = f"{command} backup - | {command} restore - --database {tmp_path / 'new.db'}"
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "FLAGSVC_DATABASE_URL": database_url}
    done = subprocess.run(["sh", "-ec", line], env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("restored 3 flags"), done.stderr
    line = f"{command} restore - < /dev/zero; cat /dev/zero | {command} restore -"
    done = subprocess.run(["sh", "-c", line], env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stderr.count("this is no backup of flagsvc") == 2, done.stderr


def test_no_terminal(store: Store, run: Flagsvc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup is not printed on a terminal."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    called = run("backup", "-")
    assert (called.code, called.out) == (2, "") and "a backup is not for a terminal: name a file" in called.err


def test_refusals(store: Store, run: Flagsvc, tmp_path: Path) -> None:
    """A database in use, a damaged file, and one of a newer version: one line, exit code 2, and nothing changes."""
    file, before = tmp_path / "flags.backup", rows_of(backup_of(store))
    run("backup", file)
    whole = file.read_bytes()
    newer = lines_of(io.BytesIO(whole))
    newer[0]["schema"] = "9999"
    altered = lines_of(io.BytesIO(whole))
    altered[0]["sequences"]["nothing"] = 1
    cases = {
        "the database is in use, it has 3 features": whole,
        "the backup is not whole": whole[:-20],
        "this is no backup of flagsvc: it is not compressed with gzip": b"{}",
        "its lines have another digest than its last line says": gzip.compress(gzip.decompress(whole).replace(b"cart", b"card")),
        "the backup has the schema `9999`": remade(newer).getvalue(),
        "`sequences` has a table without numbers: `nothing`": remade(altered).getvalue(),
    }
    for message, content in cases.items():
        file.write_bytes(content)
        called = run("restore", file)
        assert (called.code, called.out) == (2, "") and message in called.err and called.err.count("\n") == 1
    target = tmp_path / "never.db"
    called = run("restore", file, "--database", target)
    assert called.code == 2 and not target.exists()
    assert run("restore", tmp_path / "nothing").err.endswith("nothing` cannot be read: no such file or directory\n")
    assert rows_of(backup_of(store)) == before


def test_a_value_that_the_server_does_not_write(store: Store, run: Flagsvc, tmp_path: Path) -> None:
    """A line tells the place and the expected value. A webhook that is refused comes back disabled, with a line as well."""
    file, before = tmp_path / "flags.backup", rows_of(backup_of(store))
    file.write_bytes(remade(with_value("strategies", constraints=5)(lines_of(backup_of(store)))).getvalue())
    called = run("restore", file, "--replace")
    assert (called.code, called.out) == (2, "") and rows_of(backup_of(store)) == before
    expected = r"flagsvc server restore: line \d+ of the backup: expected a list as `constraints` of the table `strategies`\n"
    assert re.fullmatch(expected, called.err), called.err
    parameters = {"url": "ftp://s3cret.example"}
    file.write_bytes(remade(with_value("addons", parameters=parameters)(lines_of(backup_of(store)))).getvalue())
    called = run("restore", file, "--replace")
    assert called.code == 0 and "s3cret" not in called.err
    assert ": the webhook 1 is disabled now: " in called.err and called.err.count("\n") == 1


def test_a_header_is_printed_escaped(store: Store, run: Flagsvc, tmp_path: Path) -> None:
    """No text of a file reaches the terminal as it is."""
    file = tmp_path / "flags.backup"
    found = lines_of(backup_of(store))
    found[0]["created"] = "2025-06-15\x1b12:00:00+00:00"
    file.write_bytes(remade(found).getvalue())
    called = run("restore", file, "--replace")
    assert called.code == 0 and called.out.endswith("as of 2025-06-15\\x1b12:00 UTC\n")


def test_a_row_that_is_too_long(store: Store, run: Flagsvc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup that could not be restored is refused with exit code 2, and leaves no file."""
    file = tmp_path / "flags.backup"
    monkeypatch.setattr(lines, "LONGEST", 300)
    called = run("backup", file)
    assert (called.code, called.out) == (2, "") and "the most that a backup takes" in called.err
    assert called.err.count("\n") == 1 and not file.exists()


def test_databases_that_cannot_be_used(store: Store, run: Flagsvc, tmp_path: Path) -> None:
    """Without a database there is no backup, and no file of one."""
    file = tmp_path / "flags.backup"
    called = run("backup", file, "--database", tmp_path / "nothing.db")
    assert called.code == 1 and "does not exist" in called.err and not file.exists()
    (tmp_path / "empty.db").touch()
    called = run("backup", file, "--database", tmp_path / "empty.db")
    assert called.code == 1 and "the database is empty" in called.err and not file.exists()


@pytest.mark.parametrize("words", [("restore", "-"), ("backup", "-")])
def test_the_extra_is_missing(words: tuple[str, ...], run: Flagsvc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the database library the answer is one line that says what to install."""
    monkeypatch.setattr("flagsvc.core.extras.find_spec", lambda name: None)
    called = run(*words)
    assert called.code == 2 and "'.[server]'" in called.err


def test_while_a_server_runs(database_url: str, tmp_path: Path, run: Flagsvc) -> None:
    """A proxy that polls gets the flags of the backup without a restart, and tokens made later do not work any more."""
    file = tmp_path / "flags.backup"
    with our_flag_server(database=database_url, folder=tmp_path) as server:

        def poll(etag: str = "") -> SimpleNamespace:
            headers = {"Authorization": BACKEND_SECRET, "If-None-Match": etag}
            answer = ask(f"{server.url}/client/features", headers=headers)
            names = [each["name"] for each in json.loads(answer.body)["features"]] if answer.body else None
            return SimpleNamespace(status=answer.status, etag=answer.headers["etag"], names=names)

        server.admin("/projects/default/features", {"name": "kept"})
        server.admin("/projects/default/features/kept/environments/development/on", method="POST")
        assert run("backup", file).code == 0
        server.admin("/projects/default/features", {"name": "later"})
        later = server.admin("/user/tokens", {"description": "later", "expiresAt": "2099-01-01T00:00:00Z"})["secret"]
        seen = poll()
        assert (seen.names, poll(seen.etag).status) == (["kept", "later"], 304)
        assert run("restore", file, "--replace").code == 0
        wait_until(lambda: poll(seen.etag).names == ["kept"])
        wait_until(lambda: server.ask("GET", "/admin/user", token=later).status == 401)
        assert server.ask("GET", "/admin/user", token=USER_SECRET).status == 200
        server.admin("/projects/default/features", {"name": "after"})
        wait_until(lambda: poll().names == ["kept", "after"])
        assert SECRET not in server.program.output()
