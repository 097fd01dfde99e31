"""Our batch operations beside the real server's: the same answers and states, and every deliberate difference still there.

The same requests go to both servers from random states, and the results are compared.
`BATCH_ROUNDS=500` compares from so many states on, `BATCH_SEED=1` from others, `BATCH_PEER=server-8` with the server 8.2.0.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from batch_compare import EXCLUSIONS, Asked, Exclusion, comparable, excluded
from batch_states import KEPT_FIELDS, KINDS, USERS, request, secret, selection, state
from real_batch import RealServer, real_server
from sqlalchemy import delete, update

from flagsvc.cli.batch.checking import Findings
from flagsvc.server.store import schema
from support.flagservers import AppClient, app_client
from support.planting import plant
from support.processes import Answer

AGREED = ("both take it", "both refuse it")
STRICTER = "only the server's own validation is against it"
"""What the real server's validation reports and its import does not look at; the commands go by both."""
BROKEN = ("found nothing, yet the import failed", "found problems, yet the import succeeded")


def has_target(body: Any, given: Any) -> bool:
    """Return whether a state has the project and the environment of a request: the commands end early where it has not."""
    projects = [each["id"] for each in given["projects"] if not each.get("archived")]
    known = isinstance(body, dict) and body.get("project") in projects
    return known and body.get("environment") in ("development", "production")


def verdict(found: Findings | None, imported: int) -> str:
    """Return how what was found and an import's status go together."""
    if found is not None and not found.refused:
        return AGREED[0] if imported == 200 else BROKEN[0]
    if imported != 200:
        return AGREED[1]
    return BROKEN[1] if found is None or found.problems else STRICTER


CLEARED = (schema.dependencies, schema.features, schema.tags, schema.segments, schema.events, schema.tokens, schema.users)


def people() -> dict[str, Any]:
    """Return the part of every state that says who may ask."""
    members = [(name, [{"project": "default", "role": role.lower()}] if role else []) for name, (_, role) in USERS.items()]
    return {
        "users": [{"name": name, "rootRole": USERS[name][0].lower(), "projectRoles": roles} for name, roles in members],
        "tokens": [{"secret": secret("admin"), "type": "admin"}]
        + [{"secret": secret(name), "type": "personal", "user": name} for name in USERS],
    }


class OurServer:
    """A flag server of ours whose state tests set."""

    def __init__(self, client: AppClient) -> None:
        self.client = client

    def become(self, state: Mapping[str, Any]) -> None:
        """Take on a state in the format of the seed file, on top of what a fresh server has."""
        fields, kinds, tags = schema.context_fields, schema.strategy_types, schema.tag_types
        with self.client.server.store.writing(None) as tx:
            for table in CLEARED:
                tx.db.execute(delete(table))
            tx.db.execute(delete(fields).where(fields.c.name.not_in(KEPT_FIELDS)))
            tx.db.execute(update(fields).values(legal_values=[]))
            tx.db.execute(delete(kinds).where(~kinds.c.built_in))
            tx.db.execute(delete(tags).where(tags.c.name != "simple"))
            tx.db.execute(delete(schema.projects).where(schema.projects.c.id != "default"))
            plant(tx, {**people(), **state})

    def ask(self, operation: str, who: str, body: object) -> Answer:
        """Send a request of a batch operation."""
        return self.client.post(f"/api/admin/features-batch/{operation}", body, token=secret(who))

    def get(self, path: str) -> Answer:
        """Ask the admin API for what is at a path."""
        return self.client.get(f"/api/admin{path}", token=secret("admin"))


@contextmanager
def our_server(database: str) -> Iterator[OurServer]:
    """Run our server on a database until the block ends."""
    with app_client(database) as client:
        yield OurServer(client)


STEPS = 3
DEFAULT = {"id": "default", "name": "Default", "environments": ["development", "production"]}
PLAIN: dict[str, Any] = {kind: [] for kind in KINDS} | {"projects": [DEFAULT]}


def importing(**data: Any) -> dict[str, Any]:
    """Return an import into the project `default`."""
    whole = {"features": [{"name": "a"}], "featureStrategies": [], "tagTypes": []} | data
    return {"project": "default", "environment": "development", "data": whole}


FIXED: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (
        PLAIN
        | {"projects": [DEFAULT | {"featureLimit": 0}], "features": [{"name": "old", "project": "default", "archived": True}]},
        importing(),
    ),
    (PLAIN, importing(contextFields=[{"name": "new"}, {"name": "new"}])),
    (PLAIN, importing(featureStrategies=[{"name": "default", "featureName": "a", "segments": [77]}])),
    (PLAIN, importing(featureStrategies=[{"name": "default", "featureName": "a", "parameters": {"x": "\ud800"}}])),
    (PLAIN, importing(featureStrategies=[{"name": "default", "featureName": "a", "sortOrder": 1.5}])),
    (
        PLAIN | {"projects": [DEFAULT, DEFAULT | {"id": "other"}], "features": [{"name": "far", "project": "other"}]},
        importing(
            features=[{"name": "a", "project": "default"}], dependencies=[{"feature": "a", "dependencies": [{"feature": "far"}]}]
        ),
    ),
)
"""States and imports that every run begins with."""


@dataclass
class Tally:
    """What was compared."""

    answers: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    mismatches: list[str] = field(default_factory=list)
    law: Counter[str] = field(default_factory=Counter)
    last: tuple[Answer, ...] = ()
    foretold: bool = True


class Judge:
    """Holds the answer to an import against what was said before it: by the commands of the real server, by ours to a dry run."""

    def __init__(self, real: RealServer, ours: OurServer, who: str, body: Any, given: Any, tally: Tally) -> None:
        self._asked = (real, ours, who, body, given, tally)
        person = tally.foretold and who != "admin" and has_target(body, given)
        self._found = real.findings(who, body) if person else None
        self._judged = person
        self._tried = ours.ask("import/dry-run", who, body)

    def imported(self, theirs: Answer, mine: Answer) -> None:
        """Note whether what was said is what came, and on both sides in which order strategies are."""
        real, ours, who, body, given, tally = self._asked
        if who != "admin" and comparable("import", self._tried) != comparable("import", mine):
            tally.mismatches.append(f"dry run {self._tried}, import {mine}: {json.dumps(body)} in {json.dumps(given)}")
        if self._judged:
            how = verdict(self._found, theirs.status)
            tally.law[how] += 1
            if how in BROKEN:
                tally.mismatches.append(f"{how}: {theirs} {self._found} {json.dumps(body)} in {json.dumps(given)}")
        if theirs.status == mine.status == 200 and not races(body["data"]):
            tally.mismatches += [
                f"strategies of {name} {json.dumps(body)}"
                for name in dict.fromkeys(each["name"] for each in body["data"]["features"] if not each.get("archived"))
                if order_of(real, body, name) != order_of(ours, body, name)
            ]


def races(data: Any) -> bool:
    """Return whether the real server's sort orders depend on what is fast: some say none, others take longer to check."""
    strategies = data["featureStrategies"]
    return any(each.get("sortOrder") is None for each in strategies) and any(
        each.get("constraints") or each.get("segments") or each["name"] == "flexibleRollout" for each in strategies
    )


def order_of(server: OurServer | RealServer, body: Any, feature: str) -> list[tuple[Any, ...]]:
    """Return the strategies of a feature by their sort order; of those with the same one the order is not defined."""
    place = f"/projects/{body['project']}/features/{feature}/environments/{body['environment']}/strategies"
    answer = server.get(place)
    rows = answer.json() if answer.status == 200 else []
    return sorted((row["sortOrder"], row["name"], row.get("title") or "") for row in rows)


def compare(real: RealServer, ours: OurServer, seed: int, rounds: int, *, foretold: bool = True) -> Tally:
    """Compare the servers' answers from `rounds` states on.

    `foretold`: what the commands say of the real server is held against its imports.
    """
    tally = Tally(foretold=foretold)
    for given, body in FIXED:
        real.become(given)
        ours.become(given)
        same(real, ours, "import", "admin2", body, given, tally)
    for number in range(rounds):
        one_round(real, ours, Random(f"{seed}/{number}"), tally)
    return tally


def one_round(real: RealServer, ours: OurServer, random: Random, tally: Tally) -> None:
    """Validate, import and export several times from one state. Ends when the two states differ."""
    given = state(random)
    real.become(given)
    ours.become(given)
    for _ in range(STEPS):
        who, body = request(random, given)
        picked = selection(random)
        target = {"environment": body.get("environment", ""), "project": body.get("project", "")}
        asked: list[tuple[str, str, Any]] = [("validate", who, body), ("import", who, body), ("export", "viewer", picked)]
        asked.append(("export", "admin", target if all(isinstance(each, str) for each in target.values()) else picked))
        judge = Judge(real, ours, who, body, given, tally)
        for operation, by, sent in asked:
            alike = same(real, ours, operation, by, sent, given, tally)
            if operation == "import":
                judge.imported(*tally.last)
            if not alike:
                return


def same(real: RealServer, ours: OurServer, operation: str, who: str, body: Any, given: Any, tally: Tally) -> bool:
    """Ask both the same; note how it went; return whether their states may still be the same."""
    theirs, mine = real.ask(operation, who, body), ours.ask(operation, who, body)
    tally.last = (theirs, mine)
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


ROUNDS = int(os.environ.get("BATCH_ROUNDS", "40"))
SEED = int(os.environ.get("BATCH_SEED", "7"))
PEER = os.environ.get("BATCH_PEER", "server")


@pytest.fixture(scope="module")
def real() -> Iterator[RealServer]:
    """Give the real server."""
    with real_server(PEER) as server:
        yield server


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def tally(request: pytest.FixtureRequest, real: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tally]:
    """Give the results of random states and requests, with ours on either database; PostgreSQL gets a quarter of them."""
    if on_file := request.param == "sqlite":
        database = f"sqlite:///{tmp_path_factory.mktemp('ours') / 'flags.db'}"
    else:
        database = request.getfixturevalue("postgresql_cluster")
    with our_server(database) as ours:
        yield compare(real, ours, SEED, ROUNDS if on_file else ROUNDS // 4, foretold=on_file)


def test_answers_are_those_of_the_real_server(tally: Tally, record_property: Callable[[str, object], None]) -> None:
    """Statuses, lists, messages and exports are the real server's, but for the exclusions."""
    excluded = sum(tally.excluded.values())
    record_property("summary", f"{tally.answers} batch answers compared, {excluded} of them excluded by name")
    assert tally.answers > ROUNDS * (4 if tally.foretold else 1)
    if tally.mismatches:
        pytest.fail(f"{len(tally.mismatches)} mismatches\n" + "\n".join(tally.mismatches[:3]), pytrace=False)


def test_what_the_commands_say_is_what_an_import_does(tally: Tally, record_property: Callable[[str, object], None]) -> None:
    """What `flagsvc validate` finds nothing wrong with is imported by the real server; what it finds problems in is not.

    A dry run of ours answers as the import does: `compare` notes each that does not.
    """
    record_property("summary", f"{sum(tally.law.values())} imports foretold: {dict(tally.law)}")
    assert not [how for how in BROKEN if tally.law[how]]
    assert not tally.foretold or all(tally.law[how] > ROUNDS // 5 for how in AGREED)


@pytest.mark.parametrize("tally", ["sqlite"], indirect=True)
@pytest.mark.parametrize("row", [row for row in EXCLUSIONS if row.sure], ids=lambda row: row.name.replace(" ", "-"))
def test_each_exclusion_still_occurs(tally: Tally, row: Exclusion) -> None:
    """An exclusion that does not occur any more must be removed from the table."""
    assert tally.excluded[row.name]
