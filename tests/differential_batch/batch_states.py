"""Random states of a flag server and random data sets for its batch import (import validation 2; 3; 4; 5; 6).

Names come from small pools, so that imports often meet existing objects. Everything depends on the given `Random` alone.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeAlias

from support.batch_trouble import spoil
from support.processes import ADMIN_TOKEN

Json: TypeAlias = dict[str, Any]

PROJECTS = ("default", "other", "shelved")
ENVIRONMENTS = ("development", "production")
FEATURES = ("a", "b", "c", "d-1", "E", "f.f", "g_g", "parent")
ODD_NAMES = ("has space", "", "Ünï", "x" * 101, "..", "a/b", "~1", "tab\t", "emoji😀", "1e3")
BUILT_IN = ("default", "flexibleRollout", "remoteAddress", "applicationHostname")
CUSTOM = ("mine", "yours", "old-one")
UNKNOWN = ("userWithId", "gradualRolloutRandom", "Default", "nobody")
FIELDS = ("country", "region", "tier", "appName", "fresh-field")
VALUES = ("no", "se", "dk", "1", "")
SEGMENTS = ("vip", "beta", "VIP", "owned", "unseen")
TAG_TYPES = ("simple", "team", "new-type")
TAG_VALUES = ("blue", "red", "one two", "x", " padded ")
LOOK_AROUND = ("(?=[a-z])[a-z.-]+", "(?!a)\\w+", "[a-z]+(?<=[a-e])", "([a-z])\\1*", "(?=.*[a-z])(?!.*--).+")
PATTERNS = ("[a-z]+", "a|b", "[a-z]-\\d", "(", "[a-zA-Z._-]+", "^a$", "\\w+", *LOOK_AROUND)
OPERATORS = ("IN", "NOT_IN", "STR_CONTAINS", "NUM_GT", "DATE_AFTER", "SEMVER_EQ")
TOKENS = ("admin", "viewer", "editor", "admin2", "member", "owner")
KINDS = ("projects", "features", "strategies", "contextFields", "segments", "strategyTypes", "tagTypes")
"""The parts of a state, in the order in which they are made."""
KEPT_FIELDS = ("environment", "userId", "appName", "currentTime", "sessionId")
USERS = {
    "viewer": ("Viewer", None),
    "editor": ("Editor", None),
    "admin2": ("Admin", None),
    "member": ("Viewer", "Member"),
    "owner": ("Viewer", "Owner"),
}
"""User → root role, and role in the project `default`."""


def secret(who: str) -> str:
    """Return the token that `who` asks with."""
    return ADMIN_TOKEN if who == "admin" else f"user:{who}-secret"


def some(random: Random, pool: tuple[Any, ...], most: int) -> list[Any]:
    """Return up to `most` picks, repeats possible."""
    return [random.choice(pool) for _ in range(random.randint(0, most))]


def distinct(random: Random, pool: tuple[Any, ...], most: int) -> list[Any]:
    """Return up to `most` picks without repeats."""
    return random.sample(pool, random.randint(0, min(most, len(pool))))


def perhaps(random: Random, share: float, **members: Any) -> Json:
    """Return each of the members with a probability of `share`."""
    return {name: value for name, value in members.items() if random.random() < share}


def legal_values(random: Random) -> list[Json]:
    """Return legal values of a context field."""
    return [{"value": each} for each in distinct(random, VALUES[:-1], 3)]


def state(random: Random) -> Json:
    """Return a state in the format of the seed file: the additions to a new database."""
    features = [
        {"name": name, "project": random.choice(PROJECTS)} | perhaps(random, 0.25, archived=True)
        for name in distinct(random, FEATURES, 6)
    ]
    return {
        "projects": [project(random, name) for name in PROJECTS],
        "features": features,
        "strategies": [
            {"feature": random.choice(features)["name"], "environment": random.choice(ENVIRONMENTS), "name": "default"}
            for _ in range(random.randint(0, 3) if features else 0)
        ],
        "contextFields": [
            {"name": name}
            | perhaps(random, 0.7, legalValues=legal_values(random))
            | perhaps(random, 0.3, project=random.choice(PROJECTS[:2]))
            for name in distinct(random, FIELDS[:3], 3)
        ],
        "segments": [
            {"name": name, "constraints": []} | perhaps(random, 0.3, project=random.choice(PROJECTS[:2]))
            for name in distinct(random, SEGMENTS[:4], 4)
        ],
        "strategyTypes": [
            {"name": name, "description": "", "parameters": []} | perhaps(random, 0.2, deprecated=True)
            for name in distinct(random, CUSTOM, 3)
        ],
        "tagTypes": [{"name": "team", "description": "", "icon": ""}] if random.random() < 0.5 else [],
    }


def project(random: Random, name: str) -> Json:
    """Return a project; the last one is archived."""
    rules = perhaps(random, 0.2, featureLimit=random.randint(0, 4))
    if random.random() < 0.2:
        rules["featureNaming"] = {"pattern": random.choice(PATTERNS)} | perhaps(random, 0.5, example="abc-1", description="letters")
    shelved = {"archived": True} if name == PROJECTS[-1] else {}
    return (
        {"id": name, "name": name, "environments": list(ENVIRONMENTS[: 1 if name == PROJECTS[1] and random.random() < 0.15 else 2])}
        | rules
        | shelved
    )


def constraint(random: Random) -> Json:
    """Return a constraint, which mostly fits its operator."""
    operator = random.choice(OPERATORS)
    value = {"NUM_GT": "5", "DATE_AFTER": "2024-01-02T03:04:05Z", "SEMVER_EQ": "1.2.3"}.get(operator)
    if random.random() < 0.06:
        value = "odd"
    given = {"values": some(random, VALUES[:4], 2)} if value is None else {"values": [], "value": value}
    name = random.choice(("userId", "appName", "country", "nowhere"))
    return {"contextName": name, "operator": operator} | given | perhaps(random, 0.3, inverted=True, caseInsensitive=True)


def strategy_variants(random: Random) -> list[Json]:
    """Return variants of a strategy."""
    return [
        {"name": name, "weight": 500, "weightType": "variable", "stickiness": "default"}
        | perhaps(random, 0.4, payload={"type": "string", "value": name})
        for name in distinct(random, ("v1", "v2"), 2)
    ]


def strategy(random: Random, features: list[str]) -> Json:
    """Return an entry of featureStrategies."""
    pool = BUILT_IN * 4 + CUSTOM + (UNKNOWN if random.random() < 0.15 else ())
    parameters = random.choice(({}, {"rollout": "50"}, {"rollout": "7", "stickiness": "userId", "groupId": "g"}, {"x": 1}))
    owner = random.choice(features) if features and random.random() < 0.93 else random.choice(FEATURES)
    return (
        {"name": random.choice(pool)}
        | ({"featureName": owner} if random.random() < 0.93 else {})
        | perhaps(random, 0.7, parameters=parameters)
        | perhaps(random, 0.5, constraints=[constraint(random) for _ in range(random.randint(0, 2))])
        | perhaps(random, 0.3, variants=strategy_variants(random))
        | perhaps(random, 0.4, sortOrder=random.randint(-2, 5))
        | perhaps(random, 0.2, title="a title", disabled=random.random() < 0.5)
        | perhaps(random, 0.1, id="11111111-2222-3333-4444-555555555555")
    )


def variants(random: Random) -> list[Json]:
    """Return environment variants; once in a while they cannot be stored."""
    names = distinct(random, ("v1", "v2", "v3"), 3)
    if random.random() < 0.05:
        names += names[:1]
    kind = "fix" if random.random() < 0.05 else "variable"
    return [
        {"name": name, "weight": 1000 // len(names), "weightType": kind, "stickiness": "default"}
        | perhaps(random, 0.3, payload={"type": "string", "value": "p"}, overrides=[])
        for name in names
    ]


def environment(random: Random, name: str) -> Json:
    """Return an entry of featureEnvironments."""
    return (
        {"name": name, "enabled": random.random() < 0.5}
        | ({"featureName": name} if random.random() < 0.95 else {})
        | perhaps(random, 0.6, environment=random.choice(ENVIRONMENTS))
        | perhaps(random, 0.4, variants=variants(random))
    )


def feature(random: Random, name: str) -> Json:
    """Return an entry of features."""
    return {"name": name} | perhaps(
        random,
        0.35,
        type=random.choice(("release", "experiment", "kill-switch")),
        description=random.choice(("", "words", None)),
        stale=random.random() < 0.5,
        impressionData=random.random() < 0.5,
        project=random.choice(PROJECTS[:2]),
        archived=random.random() < 0.3,
    )


def data_set(random: Random, segment_ids: int = 0) -> Json:
    """Return a data set. Most of one can be imported, some of each kind cannot."""
    names = distinct(random, FEATURES, 4)
    if random.random() < 0.06:
        names.append(random.choice(ODD_NAMES))
    if names and random.random() < 0.05:
        names.append(names[0])
    declared = [{"id": number + 1, "name": name} for number, name in enumerate(distinct(random, SEGMENTS[:3], 2))]
    if random.random() < 0.05:
        declared.append({"id": 9, "name": SEGMENTS[-1]})
    strategies = [strategy(random, names) for _ in range(random.randint(0, 4))]
    for each in strategies:
        if declared and random.random() < 0.4:
            each["segments"] = [random.choice(declared)["id"]]
    types = distinct(random, TAG_TYPES, 3)
    return (
        {
            "features": [feature(random, name) for name in names],
            "featureStrategies": strategies,
            "tagTypes": [{"name": name} | perhaps(random, 0.5, description="d", icon="i") for name in types],
        }
        | perhaps(
            random,
            0.5,
            featureEnvironments=[environment(random, name) for name in names if random.random() < 0.7],
            contextFields=[
                {"name": name} | perhaps(random, 0.7, legalValues=legal_values(random)) | perhaps(random, 0.3, description="d")
                for name in distinct(random, FIELDS, 2)
            ],
            featureTags=[tag(random, name, types) for name in names if random.random() < 0.6],
            dependencies=[dependency(random, name) for name in names if random.random() < 0.3],
            links=[link(random, name) for name in names if random.random() < 0.3],
        )
        | ({"segments": declared} if declared else {})
    )


def tag(random: Random, name: str, types: list[str]) -> Json:
    """Return an entry of featureTags, mostly of a type that the data set declares."""
    kind = random.choice(types) if types and random.random() < 0.93 else random.choice(TAG_TYPES)
    value = random.choice(TAG_VALUES) if random.random() < 0.3 else random.choice(TAG_VALUES[:3])
    return {"featureName": name, "tagValue": value} | ({"tagType": kind} if random.random() < 0.97 else {})


def dependency(random: Random, name: str) -> Json:
    """Return an entry of dependencies."""
    return {
        "feature": name,
        "dependencies": [
            {"feature": parent} | perhaps(random, 0.4, enabled=random.random() < 0.5, variants=["v1"])
            for parent in distinct(random, ("parent", "a", "gone") if random.random() < 0.2 else ("parent",), 2)
        ],
    }


def link(random: Random, name: str) -> Json:
    """Return an entry of links."""
    urls = ("https://example.com/x?b=2&a=1", "example.com", "http://example.com:80/a/../b/", "https://e.com/?utm_source=q")
    return {
        "feature": name,
        "links": [{"url": random.choice(urls)} | perhaps(random, 0.5, title="t") for _ in range(random.randint(0, 2))],
    }


def broken(random: Random, body: Json) -> Json:
    """Return a request of which one place is of the wrong type, missing or too much."""
    place: Any = body
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = random.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and random.random() < 0.85:
            place = place[key]
            continue
        kind = random.random()
        if kind < 0.6:
            place[key] = random.choice((None, 5, 1.5, "text", True, [], {}, [1], {"x": 1}, "", 1e21, "2024-01-01"))
        elif kind < 0.8 and isinstance(place, dict):
            del place[key]
        elif isinstance(place, dict):
            place["surplus"] = 1
        return body


def tamed(random: Random, body: Json, state: Json) -> None:
    """Take out of a request what the state cannot take, so that its import often succeeds; what is wrong by itself stays."""
    data, project = body["data"], body["project"]
    foreign = {row["name"] for row in state["features"] if row["project"] != project or row.get("archived")}
    known = {row["name"] for row in state["strategyTypes"]} | set(BUILT_IN)
    free = {row["name"] for row in state["segments"] if row.get("project", project) == project}
    stored = {row["name"] for row in state["contextFields"]} | {"appName"}
    data["features"] = [row for row in data["features"] if row["name"] not in foreign]
    names = {row["name"] for row in data["features"]}
    for row in data["featureStrategies"]:
        row["name"] = row["name"] if row["name"] in known else "default"
    data["featureStrategies"] = [row for row in data["featureStrategies"] if row.get("featureName") in names]
    data["segments"] = [row for row in data.get("segments", []) if row["name"] in free]
    ids = {row["id"] for row in data["segments"]}
    for row in data["featureStrategies"]:
        row["segments"] = [each for each in row.get("segments", []) if each in ids]
        if random.random() < 0.02:
            row["segments"].append(77)
    data["contextFields"] = [row for row in data.get("contextFields", []) if row["name"] not in stored]
    if data["contextFields"] and random.random() < 0.05:
        data["contextFields"] *= 2
    for kind, member in (
        ("featureEnvironments", "name"),
        ("featureTags", "featureName"),
        ("dependencies", "feature"),
        ("links", "feature"),
    ):
        data[kind] = [row for row in data.get(kind, []) if row[member] in names]
    for row in data["dependencies"]:
        row["dependencies"] = [each for each in row["dependencies"] if each["feature"] in names - {row["feature"]}]


def request(random: Random, state: Json) -> tuple[str, Json]:
    """Return the caller and a request of the import operations."""
    where = "nowhere" if random.random() < 0.03 else random.choice(PROJECTS[:2] if random.random() < 0.97 else PROJECTS)
    there = "nosuch" if random.random() < 0.03 else random.choice(ENVIRONMENTS)
    body = {"project": where, "environment": there, "data": data_set(random)}
    who = random.choice(TOKENS) if random.random() < 0.4 else "admin2"
    if random.random() < 0.75:
        tamed(random, body, state)
    if random.random() < 0.3:
        spoil(random, body, state)
    return who, broken(random, body) if random.random() < 0.12 else body


def selection(random: Random) -> Json:
    """Return a request of the export operation."""
    by = random.choice(
        (
            {"project": random.choice(PROJECTS)},
            {"features": distinct(random, FEATURES, 3)},
            {"tag": random.choice((*TAG_VALUES, "", "team:blue"))},
            {"features": [], "project": "default"},
            {},
        )
    )
    return {"environment": random.choice((*ENVIRONMENTS, "", "nosuch"))} | by | perhaps(random, 0.2, downloadFile=True, more=1)
