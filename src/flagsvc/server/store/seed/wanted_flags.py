"""Makes flags and their strategies what a seed says (decision 0059). Each change is an event of its own, as by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import select

from flagsvc.core.errors import SeedError
from flagsvc.server.store import schema
from flagsvc.server.store.checks import Json, fill_parameters
from flagsvc.server.store.resources import feature_archive, features, strategies
from flagsvc.server.store.resources.strategies import Placed, StrategyPlace
from flagsvc.server.store.resources.whole_features import read_whole
from flagsvc.server.store.seed.apply import Entry, refused_at, whole_strategy
from flagsvc.server.store.seed.file import Seed
from flagsvc.server.store.store import Tx

METADATA = ("type", "description", "impressionData")
COMPARED = ("name", "title", "disabled", "segments", "variants")


def change_flags(tx: Tx, seed: Seed, new: Collection[str]) -> None:
    """Change the flags of a seed that are not `new`, and their strategies. Raises SeedError.

    A flag that loses its last active strategy in an environment is switched off there, as by the API: else it would be on for all.
    A flag whose entry names `enabled` is on where that says.
    """
    names = [each["name"] for each in seed["features"]] + [each["feature"] for each in seed["strategies"]]
    held = read_whole(tx, features.find_all(tx, list(dict.fromkeys(names))))
    for index, each in enumerate(seed["features"]):
        _check(f"features[{index}]", each, held[each["name"]])
        if each["name"] not in new:
            with refused_at(f"features[{index}]"):
                _change(tx, each, held[each["name"]])
    segments = {row.name: row.id for row in tx.db.execute(select(schema.segments.c.name, schema.segments.c.id))}
    with_states = {each["name"] for each in seed["features"] if "enabled" in each}
    for (feature, environment), entries in _by_place(seed["strategies"]).items():
        if feature not in new:
            place = StrategyPlace(held[feature]["project"], feature, environment)
            there = held[feature]["strategies"].get(environment, [])
            with refused_at(f"strategies of `{feature}` in `{environment}`"):
                _set_strategies(tx, place, [whole_strategy(each, segments) for each in entries], there)
                if feature not in with_states and not all(each["disabled"] for each in there):
                    strategies.switch_off_without_strategies(tx, place)
    for each in seed["features"]:
        _set_states(tx, each, held[each["name"]])


def _check(place: str, entry: Entry, held: Json) -> None:
    """Raise SeedError for a flag of another project, and for an environment that its project does not have."""
    if entry.get("project", held["project"]) != held["project"]:
        raise SeedError([f"{place}.project: the flag is in the project `{held['project']}`, and flags do not move"])
    for name in entry.get("enabled", ()):
        if name not in held["environments"]:
            raise SeedError(
                [f"{place}.enabled: the project `{held['project']}` does not have the environment `{name}`"]
            )


def _change(tx: Tx, entry: Entry, held: Json) -> None:
    """Change what an entry names of a flag, but for its states."""
    name, project = entry["name"], held["project"]
    named = {key: entry[key] for key in METADATA if key in entry}
    if any((value or None) != (held[key] or None) for key, value in named.items()):
        features.change(tx, project, name, held | named)
    if "stale" in entry:
        features.set_stale(tx, project, [name], stale=entry["stale"])
    if entry.get("archived", held["archived"]) != held["archived"]:
        if entry["archived"]:
            feature_archive.archive(tx, project, name)
        else:
            feature_archive.revive(tx, name)


def _set_states(tx: Tx, entry: Entry, held: Json) -> None:
    """Switch a flag on in the environments that its entry names, and off in all others."""
    for environment in held["environments"] if "enabled" in entry else ():
        place = StrategyPlace(held["project"], entry["name"], environment)
        strategies.set_state(tx, place, enabled=environment in entry["enabled"])


def _by_place(entries: Sequence[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Return the strategies of a seed by feature and environment."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for each in entries:
        found.setdefault((each["feature"], each["environment"]), []).append(each)
    return found


def _set_strategies(tx: Tx, place: StrategyPlace, wanted: Sequence[Json], held: Sequence[Json]) -> None:
    """Make the strategies of a flag in an environment the wanted ones, in their order."""
    kept = list(_matches(place, wanted, held))
    there = {each["id"] for each in kept if each is not None}
    strategies.remove_all(tx, [Placed(place, each) for each in held if each["id"] not in there])
    ids = [_put(tx, place, index, *pair) for index, pair in enumerate(zip(wanted, kept, strict=True))]
    _sort(tx, place, dict(zip(ids, wanted, strict=True)))


def _matches(place: StrategyPlace, wanted: Sequence[Json], held: Sequence[Json]) -> Iterator[Json | None]:
    """Yield for each wanted strategy the one that it is or becomes: an equal one, else one of the same type, else None."""
    left = list(held)
    found: list[Json | None] = []
    for each in wanted:
        equal = (other for other in left if _content(place, other) == _content(place, each))
        found.append(next(equal, None))
        left = [other for other in left if other is not found[-1]]
    for each, same in zip(wanted, found, strict=True):
        near = same or next((other for other in left if other["name"] == each["name"]), None)
        left = [other for other in left if other is not near]
        yield near


def _content(place: StrategyPlace, strategy: Json) -> Json:
    """Return what a strategy means: without its id and place, and with the defaults of its parameters."""
    parameters = fill_parameters(strategy["name"], strategy["parameters"], place.feature, "default")
    plain = {name: strategy[name] or None for name in COMPARED}
    return plain | {"parameters": parameters, "constraints": without_defaults(strategy["constraints"])}


def without_defaults(values: Any) -> Any:
    """Return a list without those members of its objects that mean the same as none: empty ones, and those that are false."""
    return [{key: one for key, one in each.items() if one} if isinstance(each, dict) else each for each in values or []]


def _put(tx: Tx, place: StrategyPlace, index: int, wanted: Json, held: Json | None) -> str:
    """Add a strategy, or change one that is different, and return its id."""
    if held is None:
        order = index if wanted["sortOrder"] is None else wanted["sortOrder"]
        held = {"id": str(uuid4()), "position": tx.positions(schema.strategies)[0], "sortOrder": order}
    elif _content(place, wanted) == _content(place, held):
        return str(held["id"])
    strategies.put(tx, [Placed(place, wanted | {key: held[key] for key in ("id", "position", "sortOrder")})])
    return str(held["id"])


def _sort(tx: Tx, place: StrategyPlace, wanted: Mapping[str, Json]) -> None:
    """Sort strategies if their order is not the wanted one, or if one has another sort order than the seed names."""
    named = {name: each["sortOrder"] for name, each in wanted.items() if each["sortOrder"] is not None}
    orders = {name: index for index, name in enumerate(wanted)} | named
    there = strategies.order_of(tx, place)
    moved = there["strategyIds"] != sorted(orders, key=orders.__getitem__)
    if moved or any(there["sortOrders"][name] != order for name, order in named.items()):
        strategies.sort(tx, place, [{"id": name, "sortOrder": order} for name, order in orders.items()])
