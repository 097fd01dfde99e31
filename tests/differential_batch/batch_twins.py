"""The same requests to both servers, from random states on, and what became of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from batch_compare import Asked, comparable, excluded
from batch_states import request, selection, state

from processes import Answer

STEPS = 3


KINDS = ("projects", "features", "strategies", "contextFields", "segments", "strategyTypes", "tagTypes")
DEFAULT = {"id": "default", "name": "Default", "environments": ["development", "production"]}
PLAIN: dict[str, Any] = {kind: [] for kind in KINDS} | {"projects": [DEFAULT]}


def importing(**data: Any) -> dict[str, Any]:
    """Return an import into the project `default`."""
    whole = {"features": [{"name": "a"}], "featureStrategies": [], "tagTypes": []} | data
    return {"project": "default", "environment": "development", "data": whole}


FIXED: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (
        PLAIN
        | {
            "projects": [DEFAULT | {"featureLimit": 0}],
            "features": [{"name": "old", "project": "default", "archived": True}],
        },
        importing(),
    ),
    (PLAIN, importing(contextFields=[{"name": "new"}, {"name": "new"}])),
    (PLAIN, importing(featureStrategies=[{"name": "default", "featureName": "a", "segments": [77]}])),
)
"""States and imports that every run begins with."""


class Server(Protocol):
    """A flag server whose state is set, and which is asked."""

    def become(self, state: Mapping[str, Any]) -> None:
        """Take on a state in the format of the seed file."""

    def ask(self, operation: str, who: str, body: object) -> Answer:
        """Send a request of a batch operation as one of the users, or with the admin token."""


@dataclass
class Tally:
    """What was compared."""

    answers: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    mismatches: list[str] = field(default_factory=list)


def compare(
    real: Server, ours: Server, seed: int, rounds: int, told: Callable[[int], None] = lambda number: None
) -> Tally:
    """Compare the servers' answers from `rounds` states on; `told` hears of each round."""
    tally = Tally()
    for given, body in FIXED:
        real.become(given)
        ours.become(given)
        same(real, ours, "import", "admin2", body, given, tally)
    for number in range(rounds):
        told(number)
        one_round(real, ours, Random(f"{seed}/{number}"), tally)
    return tally


def one_round(real: Server, ours: Server, random: Random, tally: Tally) -> None:
    """From one state on: validate, import, export, some times; ends where the two states part."""
    given = state(random)
    real.become(given)
    ours.become(given)
    for _ in range(STEPS):
        who, body = request(random, given)
        picked = selection(random)
        target = {"environment": body.get("environment", ""), "project": body.get("project", "")}
        asked: list[tuple[str, str, Any]] = [
            ("validate", who, body),
            ("import", who, body),
            ("export", "viewer", picked),
        ]
        asked.append(("export", "admin", target if all(isinstance(each, str) for each in target.values()) else picked))
        if not all(same(real, ours, operation, by, sent, given, tally) for operation, by, sent in asked):
            return


def same(real: Server, ours: Server, operation: str, who: str, body: Any, given: Any, tally: Tally) -> bool:
    """Ask both the same; note how it went; return whether their states may still be the same."""
    theirs, mine = real.ask(operation, who, body), ours.ask(operation, who, body)
    tally.answers += 1
    tally.statuses[f"{operation} {theirs.status}"] += 1
    if comparable(operation, theirs) == comparable(operation, mine):
        return True
    name = excluded(Asked(given, operation, body, theirs, mine))
    if name:
        tally.excluded[name] += 1
        return operation != "import" or (theirs.status == 200) == (mine.status == 200)
    tally.mismatches.append(
        f"{operation} by {who}\n  state {json.dumps(given)}\n  sent  {json.dumps(body)}\n"
        f"  real  {comparable(operation, theirs)}\n  ours  {comparable(operation, mine)}"
    )
    return False
