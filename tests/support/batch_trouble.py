"""What keeps a data set from being imported although a validation says nothing of it, and what else is odd, at random."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
Spoil: TypeAlias = Callable[[Random, Json, Json], None]

BAD_URLS = (
    *("http://", "https://", "", " ", "http://a b", "https://[::1", "//", "http://:80", "x y"),
    *("mailto:x@y.z", "javascript:alert(1)", "JavaScript:1", "ftp://x.example", "data:text/html,x"),
)
"""What is no address, and what only the real server takes for a link."""
LONE = "x\ud800y"


def any_name(random: Random, data: Json) -> str:
    """Return the name of a feature of the data set, or of a new one if it has none."""
    if not data["features"]:
        data["features"].append({"name": "fresh"})
    return str(random.choice(data["features"])["name"])


def add(data: Json, kind: str, entry: Json) -> None:
    """Add an entry to a list that may be left out."""
    data.setdefault(kind, []).append(entry)


def odd_name(random: Random, data: Json, state: Json) -> None:
    """A name that no new feature may have."""
    name = random.choice(("has space", "a/b", "x" * 101, "y" * 255, "z" * 256, "w" * 20_000, "..", "", "ø"))
    data["features"].append({"name": name})


def fixed_variants(random: Random, data: Json, state: Json) -> None:
    """Variants of which none is variable, or whose fixed ones take too much, of the environment or of a strategy."""
    weights = random.choice(((1000,), (500, 500), (700, 700)))
    kinds = ["fix"] * len(weights) + (["variable"] if random.random() < 0.3 else [])
    variants = [
        {"name": f"v{number}", "weight": weight, "weightType": kind, "stickiness": "default"}
        for number, (weight, kind) in enumerate(zip((*weights, 0), kinds, strict=False))
    ]
    name = any_name(random, data)
    if random.random() < 0.5:
        add(data, "featureEnvironments", {"name": name, "featureName": name, "enabled": True, "variants": variants})
    else:
        add(data, "featureStrategies", {"name": "default", "featureName": name, "variants": variants})


def odd_variant(random: Random, data: Json, state: Json) -> None:
    """A variant with a name, a payload or a stickiness that cannot be."""
    odd: Json = random.choice(
        (
            {"name": "has space"},
            {"name": ""},
            {"name": "v" * 101},
            {"payload": {"type": "json", "value": "{"}},
            {"payload": {"type": "string", "value": ""}},
            {"payload": {"type": "number", "value": "abc"}},
            {"stickiness": ""},
        )
    )
    variant = {"name": "v", "weight": 1000, "weightType": "variable", "stickiness": "default"} | odd
    name = any_name(random, data)
    if random.random() < 0.5:
        add(data, "featureEnvironments", {"name": name, "featureName": name, "enabled": True, "variants": [variant]})
    else:
        add(data, "featureStrategies", {"name": "default", "featureName": name, "variants": [variant]})


def tag_of_unknown_type(random: Random, data: Json, state: Json) -> None:
    """A tag whose type, value or feature is not there or cannot be."""
    odd = random.choice(
        ({"tagType": "nosuch"}, {"tagValue": "x"}, {"tagValue": "x" * 51}, {"featureName": "ghost"}, {"tagType": "s"})
    )
    add(data, "featureTags", {"featureName": any_name(random, data), "tagType": "simple", "tagValue": "red"} | odd)


def odd_tag_type(random: Random, data: Json, state: Json) -> None:
    """A new tag type whose name cannot be, used or not."""
    name = random.choice(("t", "has space", "t" * 51))
    data["tagTypes"].append({"name": name})
    if random.random() < 0.6:
        add(data, "featureTags", {"featureName": any_name(random, data), "tagType": name, "tagValue": "red"})


def odd_context_field(random: Random, data: Json, state: Json) -> None:
    """A new context field that cannot be."""
    odd: Json = random.choice(
        (
            {"name": "has space"},
            {"name": ""},
            {"name": "c" * 101},
            {"description": "d" * 251},
            {"legalValues": [{"value": ""}]},
            {"legalValues": [{"value": "v" * 101}]},
            {"legalValues": [{"value": "1"}, {"value": "1"}]},
        )
    )
    add(data, "contextFields", {"name": "fresher"} | odd)


def illegal_value(random: Random, data: Json, state: Json) -> None:
    """A value that its context field may not have, by the server or by the data set itself."""
    fields = [row["name"] for row in state["contextFields"] if row.get("legalValues")]
    name = random.choice([*fields, "mine-alone"])
    if name == "mine-alone":
        add(data, "contextFields", {"name": name, "legalValues": [{"value": "one"}]})
    constraint = {"contextName": name, "operator": "IN", "values": ["nowhere-legal"]}
    if random.random() < 0.3:
        constraint = {"contextName": name, "operator": "NUM_EQ", "value": "77"}
    strategy = {"name": "default", "featureName": any_name(random, data), "constraints": [constraint]}
    data["featureStrategies"].append(strategy)


def odd_constraint(random: Random, data: Json, state: Json) -> None:
    """A constraint whose values do not fit its operator, or too many of them."""
    odd: Json = random.choice(
        (
            {"operator": "NUM_GT", "value": "abc"},
            {"operator": "NUM_GT", "value": "12345678901234567890"},
            {"operator": "DATE_AFTER", "value": "tomorrow"},
            {"operator": "SEMVER_EQ", "value": "1.2"},
            {"operator": "SEMVER_EQ"},
            {"operator": "IN", "values": []},
            {"operator": "IN", "values": [""]},
            {"operator": "IN", "values": ["v" * 101]},
            {"operator": "IN", "values": [str(number) for number in range(251)]},
            {"operator": "REGEX", "value": "("},
            {"contextName": "", "operator": "IN", "values": ["x"]},
        )
    )
    constraints = [{"contextName": "userId"} | odd] * (31 if random.random() < 0.05 else 1)
    data["featureStrategies"].append({"name": "default", "featureName": any_name(random, data), "constraints": constraints})


def undeclared_segment(random: Random, data: Json, state: Json) -> None:
    """A strategy with a segment that the data set does not declare, or with too many."""
    numbers = [77] if random.random() < 0.7 or not data.get("segments") else [data["segments"][0]["id"]] * 6
    data["featureStrategies"].append({"name": "default", "featureName": any_name(random, data), "segments": numbers})


def bad_url(random: Random, data: Json, state: Json) -> None:
    """A link that is no address, or too many, or of a feature that is not there."""
    name = "ghost" if random.random() < 0.2 else any_name(random, data)
    links = [{"url": random.choice(BAD_URLS)}]
    if random.random() < 0.2:
        links = [{"url": f"https://e.com/{number}"} for number in range(11)]
    add(data, "links", {"feature": name, "links": links})


def environment_of_unknown_flag(random: Random, data: Json, state: Json) -> None:
    """An environment of a feature that is not there, is archived, or lives elsewhere."""
    names = ["ghost", *(row["name"] for row in state["features"])]
    name = random.choice(names)
    variants = [{"name": "v", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    entry: Json = {"name": name, "featureName": name, "enabled": random.random() < 0.5}
    add(data, "featureEnvironments", entry | ({"variants": variants} if random.random() < 0.4 else {}))


def strategy_of_unknown_flag(random: Random, data: Json, state: Json) -> None:
    """A strategy of a feature that is not there, or not in the data set."""
    name = random.choice(["ghost", *(row["name"] for row in state["features"])])
    data["featureStrategies"].append({"name": "default", "featureName": name})


def odd_parent(random: Random, data: Json, state: Json) -> None:
    """A parent that is the child itself, in another project, archived, or has a parent."""
    name = any_name(random, data)
    for row in data["features"]:
        row["project"] = "default"
    parents = [name, *(row["name"] for row in state["features"]), *(row["name"] for row in data["features"])]
    add(data, "dependencies", {"feature": name, "dependencies": [{"feature": random.choice(parents)}]})


def archived_here(random: Random, data: Json, state: Json) -> None:
    """A feature that the data set itself archives, and more about it."""
    name = any_name(random, data)
    for row in data["features"]:
        if row["name"] == name:
            row["archived"] = True
    more = random.choice(("featureEnvironments", "links", "featureStrategies", ""))
    if more == "featureEnvironments":
        add(data, more, {"name": name, "featureName": name, "enabled": False})
    if more == "links":
        add(data, more, {"feature": name, "links": [{"url": "e.com"}]})
    if more == "featureStrategies":
        add(data, more, {"name": "default", "featureName": name})


def half_a_pair(random: Random, data: Json, state: Json) -> None:
    """Half a surrogate pair in a text."""
    name = any_name(random, data)
    strategy: Json = {"name": "default", "featureName": name}
    spot = random.randrange(5)
    if spot == 0:
        data["features"][0]["description"] = LONE
    elif spot == 1:
        data["featureStrategies"].append(strategy | {"title": LONE})
    elif spot == 2:
        data["featureStrategies"].append(strategy | {"parameters": {"x": LONE}})
    elif spot == 3:
        constraint = {"contextName": "userId", "operator": "IN", "values": [LONE]}
        data["featureStrategies"].append(strategy | {"constraints": [constraint]})
    else:
        add(data, "segments", {"id": 50, "name": LONE})


def out_of_order(random: Random, data: Json, state: Json) -> None:
    """Strategies whose `sortOrder` differs from the order of the list."""
    name = any_name(random, data)
    orders: list[float] = [*random.sample(range(6), 4)]
    if random.random() < 0.2:
        orders[0] = random.choice((1.5, 3_000_000_000))
    data["featureStrategies"] += [
        {"name": "default", "featureName": name, "title": f"t{order}", "sortOrder": order} for order in orders
    ]


TROUBLES: tuple[Spoil, ...] = (
    odd_name,
    fixed_variants,
    odd_variant,
    tag_of_unknown_type,
    odd_tag_type,
    odd_context_field,
    illegal_value,
    odd_constraint,
    undeclared_segment,
    bad_url,
    environment_of_unknown_flag,
    strategy_of_unknown_flag,
    odd_parent,
    archived_here,
    half_a_pair,
    out_of_order,
    out_of_order,
)


def spoil(random: Random, body: Json, state: Json) -> None:
    """Put one odd thing into a request, seldom two."""
    for trouble in random.sample(TROUBLES, 1 if random.random() < 0.85 else 2):
        trouble(random, body["data"], state)
