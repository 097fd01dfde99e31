"""An import is complete or absent: after kills at many points, with a full disk, with two imports at once and many writers."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.processes import Answer, Program, answers, ask, flagsvc, free_port, running, scratch
from support.waiting import wait_until

USER = "user:fault-secret"
CLIENT = "*:development.fault-secret"
SEED = {
    "users": [{"name": "fault", "rootRole": "admin"}],
    "tokens": [{"secret": USER, "type": "personal", "user": "fault"}, {"secret": CLIENT, "type": "backend"}],
}
KILLS = 3
LONG_KILLS = 300
FEATURES = 150
WRITERS = 20


class Server:
    """A running flag server."""

    def __init__(self, url: str, program: Program) -> None:
        self.url = url
        self.program = program

    def ask(self, method: str, path: str, body: object = None, seconds: float = 60.0) -> Answer:
        """Call the admin API."""
        return ask(
            f"{self.url}/api/admin{path}", method=method, headers={"Authorization": USER}, body=body, seconds=seconds
        )

    def batch(self, operation: str, body: object) -> Answer:
        """Call a batch operation."""
        return self.ask("POST", f"/features-batch/{operation}", body)

    def document(self) -> Any:
        """Return what clients get."""
        answer = ask(f"{self.url}/api/client/features", headers={"Authorization": CLIENT})
        assert answer.status == 200, answer.body
        return answer.json()["features"]

    def export(self) -> Any:
        """Return the export of the project, without ids and times that each import changes."""
        answer = self.batch("export", {"environment": "development", "project": "default"})
        assert answer.status == 200, answer.body
        content = answer.json()
        content["featureStrategies"] = sorted(
            json.dumps({name: value for name, value in row.items() if name != "id"}, sort_keys=True)
            for row in content["featureStrategies"]
        )
        return content


@contextmanager
def server(folder: Path, database: str, *, seeded: bool = False, prefix: tuple[str, ...] = ()) -> Iterator[Server]:
    """Run the flag server; a first one on a database has the user of these tests."""
    port = free_port()
    command: list[object] = [
        *prefix,
        *flagsvc(),
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--database",
        database,
        "--body-limit",
        4_000_000,
    ]
    if seeded:
        (folder / "seed.json").write_text(json.dumps(SEED))
        command += ["--seed", folder / "seed.json"]
    with running(f"flag-server-{port}", command, env={"HOME": str(folder)}, folder=folder) as program:
        program.wait(lambda: answers(f"http://127.0.0.1:{port}/health"), "ready", 60)
        yield Server(f"http://127.0.0.1:{port}", program)


def request(version: int, count: int = FEATURES) -> dict[str, Any]:
    """Return an import that gives every feature a description and a strategy of this version."""
    names = [f"feature-{number}" for number in range(count)]
    return {
        "project": "default",
        "environment": "development",
        "data": {
            "features": [{"name": name, "description": f"version {version}"} for name in names],
            "featureStrategies": [
                {"name": "default", "featureName": name, "title": f"version {version}"} for name in names
            ],
            "featureEnvironments": [{"name": name, "enabled": bool(version % 2)} for name in names],
            "featureTags": [{"featureName": name, "tagType": "simple", "tagValue": f"v{version}"} for name in names],
            "tagTypes": [{"name": "simple"}],
        },
    }


def killed_at(folder: Path, database: str, delay: float, version: int) -> bool:
    """Kill the server `delay` seconds after an import began; return whether the import was answered."""
    answered: list[bool] = []
    with server(folder, database) as running_server:
        sender = threading.Thread(target=attempt, args=(running_server, request(version), answered))
        sender.start()
        deadline = time.monotonic() + delay
        while time.monotonic() < deadline:  # the very moment is the point
            time.sleep(0)
        running_server.program.process.send_signal(signal.SIGKILL)
        running_server.program.process.wait()
        ended(sender)
    return bool(answered)


def attempt(running_server: Server, body: object, answered: list[bool]) -> None:
    """Import; the call may end without an answer."""
    try:
        answered.append(running_server.batch("import", body).status == 200)
    except (OSError, HTTPException):
        return


def ended(thread: threading.Thread) -> None:
    """Wait for a thread to end."""
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("kills", [KILLS, pytest.param(LONG_KILLS, marks=pytest.mark.long)])
def test_killed_while_importing(database_url: str, kills: int) -> None:
    """After a kill at any moment the state is that before the import or that after it, and the server starts again."""
    random = Random(kills)
    with scratch() as folder:
        with server(folder, database_url, seeded=True) as first:
            states, taken = [], 60.0
            for version in (1, 2):
                started = time.monotonic()
                assert first.batch("import", request(version)).status == 200
                taken = min(taken, time.monotonic() - started)
                states.append(first.export())
        now, outcomes = 1, Counter[tuple[bool, bool]]()
        for _ in range(kills):
            answered = killed_at(folder, database_url, random.uniform(0, 2 * taken), 2 - now)
            with server(folder, database_url) as again:
                found = again.export()
            assert found in states
            outcomes[answered, states.index(found) != now] += 1
            now = states.index(found)
        assert not outcomes[True, False], "an import that was answered is there"
        assert outcomes[False, False], "some were killed before they were done"
        print(f"{kills} kills: (answered, imported) {dict(outcomes)}")


def test_two_imports_at_once(database_url: str) -> None:
    """Two imports run one after the other: both are answered, and the state is exactly the result of one import."""
    with scratch() as folder, server(folder, database_url, seeded=True) as one:
        states = []
        for version in (1, 2):
            assert one.batch("import", request(version)).status == 200
            states.append(one.export())
        statuses = together(
            [lambda version=version: one.batch("import", request(version)).status for version in (1, 2)]
        )
        assert statuses == [200, 200]
        assert one.export() in states


def test_many_writers(database_url: str) -> None:
    """Twenty writers at once are all served, and nothing of what they wrote is lost."""
    with scratch() as folder, server(folder, database_url, seeded=True) as one:
        path = "/projects/default/features"
        statuses = together(
            [lambda name=f"w-{at}": one.ask("POST", path, {"name": name}).status for at in range(WRITERS)]
        )
        assert statuses == [201] * WRITERS
        assert {row["name"] for row in one.export()["features"]} == {f"w-{at}" for at in range(WRITERS)}


def test_a_full_disk(sqlite_url: str, tmp_path: Path) -> None:
    """An import that does not fit on the disk is refused as a whole, old data stays, and reads succeed."""
    with scratch() as folder:
        with server(folder, sqlite_url, seeded=True) as one:
            assert one.batch("import", request(1, 5)).status == 200
            before = one.export()
        blocks = max(path.stat().st_size for path in tmp_path.glob("flags*")) // 512 + 256
        with server(folder, sqlite_url, prefix=("sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh")) as full:
            refused = full.batch("import", request(2, 3000))
            assert refused.status in (500, 503) and b"Traceback" not in refused.body, refused.body
            assert full.export() == before
        with server(folder, sqlite_url) as again:
            assert again.export() == before
            assert again.batch("import", request(2, 3000)).status == 200


def test_the_database_gone_and_back(postgresql_url: str, outage: Callable[[bool], None]) -> None:
    """Without the database clients are answered from memory, admin calls with a 503; later everything continues by itself."""
    with scratch() as folder, server(folder, postgresql_url, seeded=True) as one:
        assert one.batch("import", request(1, 5)).status == 200
        before, document = one.export(), one.document()
        outage(True)
        refused = one.batch("import", request(2, 5))
        assert refused.status == 503 and "retry-after" in refused.headers and b"Traceback" not in refused.body
        assert one.document() == document
        outage(False)
        wait_until(lambda: one.batch("validate", request(2, 5)).status == 200)
        assert one.export() == before
        assert one.batch("import", request(2, 5)).status == 200
        assert one.document() != document
        assert "Traceback" not in one.program.output()


def together(calls: list[Any]) -> list[Any]:
    """Return the results of calls that are made at once."""
    results: list[Any] = [None] * len(calls)
    gate = threading.Barrier(len(calls))

    def run(at: int) -> None:
        gate.wait()
        results[at] = calls[at]()

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        ended(thread)
    return results
