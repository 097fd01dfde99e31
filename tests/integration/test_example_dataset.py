"""examples/dataset.json is examples/document.json as a data set: imported, its flags evaluate the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.extensions import load_strategies
from support import flagservers, processes

EXAMPLES = processes.ROOT / "examples"
PERSONAL = "user:demo-admin-token"
BACKEND = "*:development.demo-proxy-token"
REGIONS = (None, "eu", "EU-west", "au", "us")
TIMES = (1_793_613_600_000.0, 1_793_649_600_000.0, 1_798_106_400_000.0)  # in and out of opening hours, at Christmas


@dataclass(frozen=True)
class Filled:
    """A flag server that the data set can be imported into: its API and the secrets of a user and of a proxy."""

    api: str
    user: str
    backend: str


def seed() -> dict[str, Any]:
    """Return the example seed."""
    return dict(yaml.safe_load((EXAMPLES / "demo-seed.yaml").read_text()))


@contextmanager
def real() -> Iterator[Filled]:
    """Run the real server with the content of the seed, created by admin calls."""
    with processes.postgresql() as database, processes.unleash_server(database) as server:
        for row in seed()["segments"]:
            server.admin("/segments", row)
        for row in seed()["strategyTypes"]:
            server.admin("/strategies", row)
        yield Filled(server.url, processes.personal_token(server), processes.UPSTREAM_TOKEN)


@contextmanager
def ours() -> Iterator[Filled]:
    """Run our server with the seed as it is."""
    with flagservers.our_flag_server("--seed", str(EXAMPLES / "demo-seed.yaml"), seeded=False) as server:
        yield Filled(server.url, PERSONAL, BACKEND)


def snapshot(document: object) -> Snapshot:
    """Return a document compiled with the example strategies."""
    strategies = load_strategies([EXAMPLES / "custom_strategies.py"])
    options = CompileOptions(custom_strategies=strategies.by_name, code_digest=strategies.digest)
    compiled = compile_document(document, options)
    assert compiled.problems == []
    return compiled.snapshot


def contexts() -> Iterator[Context]:
    """Give contexts that every rule of the example says yes and no to."""
    users = (None, *map(str, range(60)), "a@testers.example", "developer@shop.example")
    for number, user in enumerate(users):
        region, now = REGIONS[number % len(REGIONS)], TIMES[number % len(TIMES)]
        properties = {"appVersion": f"4.{number % 4}.0", "basket": str(number), "tier": "gold" if number % 2 else "none"}
        properties |= {"region": region} if region else {}
        properties |= {"coupon": "ship-it"} if number % 3 else {}
        address = "10.1.2.3" if number % 4 else "203.0.113.7"
        yield Context(
            user_id=user,
            session_id=f"session-{number}",
            remote_address=address,
            environment="development",
            properties=properties,
            now=now,
        )


def fill(server: Filled) -> None:
    """Import the data set.

    Validated without errors, imported, and read as proxies do, the 13 flags come out as those of the document.
    """
    data = json.loads((EXAMPLES / "dataset.json").read_text())
    body = {"project": "default", "environment": "development", "data": data}
    url, headers = f"{server.api}/admin/features-batch", {"Authorization": server.user}
    answers = {
        operation: processes.ask(f"{url}/{operation}", method="POST", headers=headers, body=body)
        for operation in ("validate", "import")
    }
    document = processes.ask(f"{server.api}/client/features", headers={"Authorization": server.backend}).json()
    found = answers["validate"].json()
    assert found["errors"] == found["permissions"] == [] and answers["import"].status == 200, answers
    [warning] = found["warnings"]
    assert warning["affectedItems"] == ["userWithId", "openingHours"]
    own, imported = snapshot(json.loads((EXAMPLES / "document.json").read_text())), snapshot(document)
    seen: set[tuple[str, bool]] = set()
    for context in contexts():
        expected, got = (
            {toggle["name"]: toggle for toggle in json.loads(made.all(context))["toggles"]} for made in (own, imported)
        )
        assert got == expected, context.as_dict()
        seen |= {(name, toggle["enabled"]) for name, toggle in got.items()}
    always = {("dark-mode", True), ("banner-text", True), ("search-backend", True), ("old-reports", False)}
    varying = {name for name, _ in seen} - {name for name, _ in always}
    assert len(imported.names) == 13 and seen == always | {(name, on) for name in varying for on in (True, False)}


@pytest.mark.parametrize("run", [ours, real])
def test_the_same_flags(run: Callable[[], AbstractContextManager[Filled]]) -> None:
    """Our server takes the data set so, as the real one does."""
    with run() as server:
        fill(server)
