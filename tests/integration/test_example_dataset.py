"""examples/dataset.json is examples/document.json as a data set: imported, its flags evaluate the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

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


def test_the_same_flags() -> None:
    """Validated without errors, imported, and read as proxies do, the 13 flags come out as those of the document."""
    with flagservers.our_flag_server("--seed", str(EXAMPLES / "demo-seed.yaml"), seeded=False) as server:
        check(server.url)


def check(api: str) -> None:
    """Import the data set into a server with the example seed, and compare its flags with those of the document."""
    data = json.loads((EXAMPLES / "dataset.json").read_text())
    body = {"project": "default", "environment": "development", "data": data}
    url, headers = f"{api}/admin/features-batch", {"Authorization": PERSONAL}
    answers = {
        operation: processes.ask(f"{url}/{operation}", method="POST", headers=headers, body=body)
        for operation in ("validate", "import")
    }
    document = processes.ask(f"{api}/client/features", headers={"Authorization": BACKEND}).json()
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
