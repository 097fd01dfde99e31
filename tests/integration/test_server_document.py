"""The client-features documents beside the real server's: one state in both, the same requests to both, equal documents.

`DIFFERENT` names what differs on purpose; everything else is compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.types.json import Jsonb

from flagsvc.server.store import schema
from support import processes
from support.flagservers import app_client
from support.stored_flags import Flags

DIFFERENT = {
    "meta": "the tag's digest is of the content, not of the query alone, and the revision counts our own changes",
    "order of features": "ours is the order of creation; the real server's is that of a hash join",
    "order of segments in a strategy": "the real server reads them in no order; ours keeps theirs",
    "order of dependencies": "likewise",
    "order of constraints with the segments inlined": "it follows the order of the segments",
    "repeated dependencies, segments and constraints": "the real server repeats them where a feature has several of each",
    "`%` and `_` in namePrefix": "the real server takes them as wildcards of SQL; ours are letters",
    "a tag with two colons": "the real server answers 500; ours takes what follows the first colon as the value",
    "admin tokens": "the real server shows them an environment that nobody has; ours refuses them with 403",
}
SEED = 20261121
GONE = datetime(2026, 1, 1, tzinfo=UTC)
FEATURES = 250
ENVIRONMENTS = ("development", "production")
TOKENS = {
    "all": (["*"], "development"),
    "production": (["*"], "production"),
    "one": (["default"], "development"),
    "two": (["default", "other"], "production"),
    "other": (["other"], "development"),
}
QUERIES = [
    "", "?project=other", "?project=default&project=other", "?project=nosuch", "?project=*", "?namePrefix=flag-1",
    "?namePrefix=Flag", "?namePrefix=nosuch", "?namePrefix=flag-1&project=other", "?tag=simple:red", "?tag=simple:blue&tag=team:a",
    "?tag=simple:red&namePrefix=flag-2", "?tag=nosuch:red", "?environment=production", "?foo=bar", "?project=", "?namePrefix=",
    "?tag=", "?tag=simple", "?tag=&tag=simple:red", "?project=a%20b", "?project=default&project=a%20b", "?project=.",
    "?namePrefix=a&namePrefix=b", "?tag=x&project=a%20b&namePrefix=", "?tag[]=simple:red", "?project[0]=other",
]  # fmt: skip
VERSIONS = ["", "4.1.9", "4.2.0-beta", "4.2.0", "5.1.9", "v5.0.0", "abc", "5", "5.1", "5.1.0+x", "05.1.0", "5.1.0-01", "5.1.0.0"]
OPERATORS = ["IN", "NOT_IN", "STR_CONTAINS", "NUM_GT", "DATE_AFTER", "SEMVER_EQ"]
TAGS = [("simple", "red"), ("simple", "blue"), ("team", "a")]


@dataclass(frozen=True)
class Servers:
    """Both servers with the same flags. `secrets` are tokens by name: the real server's, which ours knows too."""

    real: str
    ours: Any
    secrets: dict[str, str]

    def ask(self, path: str, token: str, spec: str) -> tuple[processes.Answer, processes.Answer]:
        """Send one request to both, the real one first."""
        headers = {"Unleash-Client-Spec": spec} if spec else {}
        secret = self.secrets[token]
        real = processes.ask(f"{self.real}/client/features{path}", headers=headers | {"Authorization": secret})
        return real, self.ours.get(f"/api/client/features{path}", token=secret, headers=headers)


def some(random: Random, values: list[Any], most: int) -> list[Any]:
    """Return some of the values."""
    return random.sample(values, random.randint(0, min(most, len(values))))


def constraint(random: Random) -> dict[str, Any]:
    """Return a constraint."""
    base = {"contextName": random.choice(["userId", "region"]), "operator": random.choice(OPERATORS)}
    more = {"inverted": True, "caseInsensitive": False, "values": ["1", "ü", "</x>"], "value": "2"}
    return base | {name: more[name] for name in some(random, list(more), 4)}


def variant(random: Random, name: str) -> dict[str, Any]:
    """Return a variant."""
    base: dict[str, Any] = {
        "name": name,
        "weight": random.choice([0, 333, 1000]),
        "weightType": "variable",
        "stickiness": "default",
    }
    payload: dict[str, Any] = {"payload": {"type": "json", "value": '{"a": "\\u00e9"}'}}
    overrides: dict[str, Any] = {"overrides": [{"contextName": "userId", "values": ["x"]}]}
    return base | random.choice([{}, payload, overrides, payload | overrides])


def strategy(random: Random, order: int) -> dict[str, Any]:
    """Return a strategy; none of one feature and environment has another's place in their order."""
    parameters = random.choice([{}, {"rollout": "50", "stickiness": "default", "groupId": "g"}, {"n": 5, "flag": True}])
    return {
        "name": random.choice(["default", "flexibleRollout", "nosuch"]),
        "title": random.choice([None, "a title"]),
        "environment": random.choice(ENVIRONMENTS),
        "disabled": random.random() < 0.2,
        "sort_order": order,
        "parameters": parameters,
        "constraints": [constraint(random) for _ in range(random.randint(0, 2))],
        "variants": [variant(random, name) for name in some(random, ["a", "b"], 2)],
        "segments": some(random, ["segment-0", "segment-1", "segment-2"], 3),
    }


def make_flags(random: Random) -> Flags:
    """Return flags of every kind."""
    flags = Flags()
    for number in range(5):
        flags.segment(f"segment-{number}", *(constraint(random) for _ in range(number % 3)))
    names = [f"{random.choice(['flag', 'Flag', 'f.'])}-{number}" for number in range(FEATURES)]
    for name in names:
        orders = random.sample(range(-5, 20), random.randint(0, 4))
        flags.feature(
            name,
            project=random.choice(["default", "default", "other"]),
            on=some(random, list(ENVIRONMENTS), 2),
            description=random.choice([None, "", 'text with "quotes" and ü']),
            type=random.choice(["release", "kill-switch"]),
            stale=random.random() < 0.2,
            impression_data=random.random() < 0.3,
            archived_at=GONE if random.random() < 0.1 else None,
            variants=[variant(random, each) for each in some(random, ["x", "y"], 2)],
            strategies=[strategy(random, order) for order in orders],
            tags=some(random, TAGS, 3),
        )
    for child in names[:60]:
        for parent in random.sample(names[60:], random.randint(1, 2)):
            variants = random.choice([[], ["x", "y"]])
            flags.add(schema.dependencies, child=child, parent=parent, enabled=random.random() < 0.7, variants=variants)
    return flags


REAL: dict[str, tuple[str, dict[str, str]]] = {
    "segments": ("segments", {"id": "id", "name": "name", "constraints": "constraints"}),
    "features": (
        "features",
        {
            "name": "name", "project": "project", "type": "type", "description": "description", "stale": "stale",
            "impression_data": "impression_data", "archived_at": "archived_at",
        },
    ),
    "feature_environments": (
        "feature_environments",
        {"feature": "feature_name", "environment": "environment", "enabled": "enabled", "variants": "variants"},
    ),
    "strategies": (
        "feature_strategies",
        {
            "id": "id", "feature": "feature_name", "environment": "environment", "name": "strategy_name", "title": "title",
            "parameters": "parameters", "constraints": "constraints", "variants": "variants", "disabled": "disabled",
            "sort_order": "sort_order", "project": "project_name",
        },
    ),
    "strategy_segments": ("feature_strategy_segment", {"strategy_id": "feature_strategy_id", "segment_id": "segment_id"}),
    "feature_tags": ("feature_tag", {"feature": "feature_name", "type": "tag_type", "value": "tag_value"}),
    "dependencies": (
        "dependent_features",
        {"child": "child", "parent": "parent", "enabled": "enabled", "variants": "variants"},
    ),
}  # fmt: skip
"""Table of ours → the real server's, and its columns."""


def put_into_real(flags: Flags, database: psycopg.Connection[Any]) -> None:
    """Insert the flags into the real server's database, before it is asked for any."""
    run = database.execute
    run("INSERT INTO projects (id, name) VALUES ('other', 'Other')")
    run("INSERT INTO project_environments (project_id, environment_name) SELECT 'other', name FROM environments")
    run("INSERT INTO tag_types (name) VALUES ('team')")
    for kind, value in TAGS:
        run("INSERT INTO tags (type, value) VALUES (%s, %s)", (kind, value))
    projects = {row["name"]: row["project"] for row in flags.rows[schema.features]}
    for name, (table, columns) in REAL.items():
        for row in flags.rows[schema.METADATA.tables[name]]:
            values = row | ({"project": projects[row["feature"]]} if name == "strategies" else {})
            held = [Jsonb(values[each]) if isinstance(values[each], list | dict) else values[each] for each in columns]
            places = ", ".join(["%s"] * len(held))
            run(f"INSERT INTO {table} ({', '.join(columns.values())}) VALUES ({places})".encode(), held)


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[str, dict[str, str], Flags]]:
    """Give the real server with flags, its address and tokens, and the flags."""
    flags = make_flags(Random(SEED))
    with processes.postgresql() as url, processes.unleash_server(url) as server:
        with psycopg.connect(url, autocommit=True) as database:
            put_into_real(flags, database)
        made = {name: server.admin("/api-tokens", token_body(name, *what)) for name, what in TOKENS.items()}
        yield server.url, {name: each["secret"] for name, each in made.items()}, flags


def token_body(name: str, projects: list[str], environment: str) -> dict[str, Any]:
    """Return what asks for a backend token."""
    return {"type": "backend", "tokenName": name, "projects": projects, "environment": environment}


@pytest.fixture(scope="module")
def servers(shared_url: str, real: tuple[str, dict[str, str], Flags]) -> Iterator[Servers]:
    """Give both servers, ours on each kind of database."""
    url, secrets, flags = real
    tokens = [
        {"type": "backend", "secret": secrets[name], "projects": projects, "environment": environment}
        for name, (projects, environment) in TOKENS.items()
    ]
    given = {"projects": [{"id": "other", "name": "Other"}], "tokens": tokens}
    with app_client(shared_url, given=given) as ours:
        with ours.server.store.writing(None) as tx:
            flags.put(tx)
        yield Servers(url, ours, secrets)


def comparable(document: Any) -> Any:
    """Return an answer without what differs on purpose (`DIFFERENT`)."""
    if not isinstance(document, dict):
        return document
    known = {name: value for name, value in document.items() if name not in ("meta", "id")}
    if "features" in known:
        known["features"] = sorted((unordered(each) for each in known["features"]), key=lambda each: str(each["name"]))
    return unordered(known)


def unordered(feature: dict[str, Any]) -> dict[str, Any]:
    """Return a feature with its unordered lists sorted."""
    known = dict(feature)
    if "dependencies" in known:
        known["dependencies"] = as_set(known["dependencies"])
    if "strategies" in known:
        known["strategies"] = [in_order(each) for each in known["strategies"]]
    return known


def in_order(strategy: dict[str, Any]) -> dict[str, Any]:
    """Return a strategy with its segments and constraints sorted."""
    segments = {"segments": as_set(strategy["segments"])} if "segments" in strategy else {}
    return strategy | segments | {"constraints": as_set(strategy["constraints"])}


def as_set(values: list[Any]) -> list[str]:
    """Return JSON values sorted, each once."""
    return sorted({json.dumps(each, sort_keys=True) for each in values})


def assert_same(real: processes.Answer, ours: processes.Answer, about: object) -> None:
    """Fail unless two answers are the same but for what differs on purpose."""
    assert (ours.status, comparable(ours.json())) == (real.status, comparable(real.json())), about


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("spec", ["", "5.1.9"])
def test_documents_are_equal(servers: Servers, token: str, spec: str) -> None:
    """Every filter, with every token, with and without segments, gives the real server's document or its error."""
    seen = set()
    for query in QUERIES:
        real, ours = servers.ask(query, token, spec)
        assert_same(real, ours, query)
        seen.add((real.status, len(real.json().get("features", ()))))
    assert {status for status, _ in seen} == {200, 400}
    assert len(seen) > 2


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_of_the_client_specification(servers: Servers, version: str) -> None:
    """The header is accepted or refused as by the real server."""
    assert_same(*servers.ask("?project=other", "all", version), version)


def test_features_alone_are_equal(servers: Servers) -> None:
    """A feature asked for by name is the real server's, or its 404."""
    whole = servers.ask("", "production", "5.1.9")[0].json()["features"]
    names = [*(feature["name"] for feature in whole[:40]), "nosuch", "FLAG-1"]
    for name in names:
        for token in ("production", "other"):
            assert_same(*servers.ask(f"/{quote(name)}", token, "5.1.9"), (name, token))


def test_who_has_the_document(servers: Servers) -> None:
    """The tag is of the real server's form, and sent back it gives 304 from both."""
    for url in (servers.real, ""):
        path = f"{url}/client/features" if url else "/api/client/features"
        secret = servers.secrets["all"]

        def get(headers: dict[str, str], path: str = path, url: str = url, secret: str = secret) -> processes.Answer:
            if url:
                return processes.ask(path, headers=headers | {"Authorization": secret})
            answer: processes.Answer = servers.ours.get(path, token=secret, headers=headers)
            return answer

        tag = get({}).headers["etag"]
        assert re.fullmatch(r'"[0-9a-f]{8,16}:\d+:v1"', tag)
        for known in (tag, f"W/{tag}", f'"a", {tag}'):
            answer = get({"If-None-Match": known})
            assert (answer.status, answer.body) == (304, b"")
