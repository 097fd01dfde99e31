"""10,000 mixed changes from four servers on one database behind PgBouncer in transaction mode."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from support import flagservers
from support.databases import fresh_database, pgbouncer

SERVERS, WRITERS, FLAGS = 4, 8, 250
"""Each writer makes FLAGS flags with five changes each."""
SEEN_S = 1.5
"""The most seconds until 99 of 100 changes are seen by another server."""
FEATURES = "/projects/default/features"


@dataclass
class Outcome:
    """What the writers met: statuses by kind of change, flags by their last state, seconds until another server saw a change."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    kept: dict[str, bool] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


def write(servers: list[flagservers.OurFlagServer], writer: int) -> Outcome:
    """Make flags, each change at the next server, and see at another server when one has arrived."""
    outcome = Outcome()
    for number in range(FLAGS):
        name = f"flag-{writer}-{number}"
        development = f"{FEATURES}/{name}/environments/development"
        changes = [
            ("create", "POST", FEATURES, {"name": name, "impressionData": number % 2 == 0}),
            ("strategy", "POST", f"{development}/strategies", {"name": "flexibleRollout", "parameters": {"rollout": "50"}}),
            ("on", "POST", f"{development}/on", None),
            ("tag", "POST", f"/features/{name}/tags", {"type": "simple", "value": f"tag-{number % 7}"}),
            ("describe", "PATCH", f"{FEATURES}/{name}", [{"op": "replace", "path": "/description", "value": name}]),
        ]
        if number % 5 == 0:
            changes[-1] = ("archive", "DELETE", f"{FEATURES}/{name}", None)
        for step, (kind, method, path, body) in enumerate(changes):
            answer = servers[(writer + number + step) % SERVERS].ask(method, f"/admin{path}", body)
            outcome.statuses[kind, answer.status] += 1
            if kind == "on":
                outcome.seconds.append(seen(servers[(writer + number) % SERVERS], name))
        outcome.kept[name] = number % 5 != 0
    return outcome


def seen(server: flagservers.OurFlagServer, name: str) -> float:
    """Return the seconds until SDKs of a server get a flag that is on."""
    since = time.monotonic()
    while time.monotonic() - since < 60:
        answer = server.ask("GET", f"/client/features/{name}", token=flagservers.BACKEND_SECRET)
        if answer.status == 200 and answer.json()["enabled"]:
            break
    return time.monotonic() - since


@pytest.mark.long
def test_ten_thousand_changes_behind_a_pooler(postgresql_cluster: str) -> None:
    """No change fails, no acknowledged change is lost, and every server sees all of them soon."""
    with ExitStack() as made:
        pooler = made.enter_context(pgbouncer(postgresql_cluster))
        url = pooler.database(made.enter_context(fresh_database(postgresql_cluster)))
        servers = [made.enter_context(flagservers.our_flag_server(database=url)) for _ in range(SERVERS)]
        began = time.monotonic()
        with ThreadPoolExecutor(WRITERS) as threads:
            outcomes = list(threads.map(lambda writer: write(servers, writer), range(WRITERS)))
        took = time.monotonic() - began
        statuses = sum((each.statuses for each in outcomes), Counter[tuple[str, int]]())
        seconds = sorted(second for each in outcomes for second in each.seconds)
        slow = seconds[len(seconds) * 99 // 100]
        print(
            f"{statuses.total()} changes in {took:.0f} s; {dict(statuses)}; seen: median {seconds[len(seconds) // 2]:.2f} s,"
            f" p99 {slow:.2f} s, most {seconds[-1]:.2f} s"
        )
        assert {status for _, status in statuses} <= {200, 201, 202}
        kept = {name for each in outcomes for name, there in each.kept.items() if there}
        for server in servers:
            found = {each["name"]: each for each in server.admin(FEATURES)["features"]}
            assert set(found) == kept
            assert all(each["description"] == name for name, each in found.items())
        assert slow <= SEEN_S
