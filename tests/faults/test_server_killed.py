"""An import is complete or absent: after kills at many points, with two imports at once and many writers."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.flagservers import BACKEND_SECRET, USER_SECRET, OurFlagServer, our_flag_server
from support.processes import Answer, ask, scratch
from support.waiting import wait_until

KILLS = 3
LONG_KILLS = 300
FEATURES = 150
WRITERS = 20


@contextmanager
def server(folder: Path, database: str, *, seeded: bool = False) -> Iterator[OurFlagServer]:
    """Run the flag server; a first one on a database has the users of the tests."""
    with our_flag_server("--body-limit", "4000000", database=database, folder=folder, seeded=seeded) as running:
        yield running


def batch(server: OurFlagServer, operation: str, body: object) -> Answer:
    """Call a batch operation."""
    headers = {"Authorization": USER_SECRET}
    url = f"{server.url}/admin/features-batch/{operation}"
    return ask(url, method="POST", headers=headers, body=body, seconds=60.0)


def document(server: OurFlagServer) -> Any:
    """Return what clients get."""
    answer = server.ask("GET", "/client/features", token=BACKEND_SECRET)
    assert answer.status == 200, answer.body
    return answer.json()["features"]


def export(server: OurFlagServer) -> Any:
    """Return the export of the project, without ids and times that each import changes."""
    answer = batch(server, "export", {"environment": "development", "project": "default"})
    assert answer.status == 200, answer.body
    content = answer.json()
    content["featureStrategies"] = sorted(
        json.dumps({name: value for name, value in row.items() if name != "id"}, sort_keys=True)
        for row in content["featureStrategies"]
    )
    return content


def request(version: int, count: int = FEATURES) -> dict[str, Any]:
    """Return an import that gives every feature a description and a strategy of this version."""
    names = [f"feature-{number}" for number in range(count)]
    return {
        "project": "default",
        "environment": "development",
        "data": {
            "features": [{"name": name, "description": f"version {version}"} for name in names],
            "featureStrategies": [{"name": "default", "featureName": name, "title": f"version {version}"} for name in names],
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
        sender.join(60)
        assert not sender.is_alive()
    return bool(answered)


def attempt(running_server: OurFlagServer, body: object, answered: list[bool]) -> None:
    """Import; the call may end without an answer."""
    try:
        answered.append(batch(running_server, "import", body).status == 200)
    except (OSError, HTTPException):
        return


@pytest.mark.parametrize("kills", [KILLS, pytest.param(LONG_KILLS, marks=pytest.mark.long)])
def test_killed_while_importing(database_url: str, kills: int) -> None:
    """After a kill at any moment the state is that before the import or that after it, and the server starts again."""
    random = Random(kills)
    with scratch() as folder:
        with server(folder, database_url, seeded=True) as first:
            states, taken = [], 60.0
            for version in (1, 2):
                started = time.monotonic()
                assert batch(first, "import", request(version)).status == 200
                taken = min(taken, time.monotonic() - started)
                states.append(export(first))
        now, outcomes = 1, Counter[tuple[bool, bool]]()
        for number in range(kills):
            part = random.uniform(0, 2) if number else 0.1  # of the time that an import takes
            answered = killed_at(folder, database_url, part * taken, 2 - now)
            with server(folder, database_url) as again:
                found = export(again)
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
            assert batch(one, "import", request(version)).status == 200
            states.append(export(one))
        statuses = together([lambda version=version: batch(one, "import", request(version)).status for version in (1, 2)])
        assert statuses == [200, 200]
        assert export(one) in states


def test_many_writers(database_url: str) -> None:
    """Twenty writers at once are all served, and nothing of what they wrote is lost."""
    with scratch() as folder, server(folder, database_url, seeded=True) as one:
        path = "/admin/projects/default/features"
        statuses = together([lambda name=f"w-{at}": one.ask("POST", path, {"name": name}).status for at in range(WRITERS)])
        assert statuses == [201] * WRITERS
        assert {row["name"] for row in export(one)["features"]} == {f"w-{at}" for at in range(WRITERS)}


def test_the_database_gone_and_back(postgresql_url: str, outage: Callable[[bool], None]) -> None:
    """Without the database clients are answered from memory, admin calls with a 503; later everything continues by itself."""
    with scratch() as folder, server(folder, postgresql_url, seeded=True) as one:
        assert batch(one, "import", request(1, 5)).status == 200
        before, flags = export(one), document(one)
        outage(True)
        refused = batch(one, "import", request(2, 5))
        assert refused.status == 503 and "retry-after" in refused.headers and b"Traceback" not in refused.body
        assert document(one) == flags
        outage(False)
        wait_until(lambda: batch(one, "validate", request(2, 5)).status == 200)
        assert export(one) == before
        assert batch(one, "import", request(2, 5)).status == 200
        assert document(one) != flags
        assert "Traceback" not in one.program.output()


def together(calls: list[Any]) -> list[Any]:
    """Return the results of calls that are made at once."""
    gate = threading.Barrier(len(calls))
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: (gate.wait(60), call())[1], calls))
