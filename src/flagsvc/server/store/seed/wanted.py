"""Makes a database what a seed says: a seed file as the wanted state (decision 0030).

What the seed does not name stays: entries, and keys of entries. Null clears a value that may be missing. A list that an entry
names is whole. A plan is the same work in a transaction that is rolled back. Each change of a flag is an event of its own, as by
hand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import select

from flagsvc.core.errors import SeedError
from flagsvc.server.shapes.features import DESCRIPTION
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import Json, fill_parameters
from flagsvc.server.store.event_kinds import kind_of, words_of
from flagsvc.server.store.event_views import list_changes
from flagsvc.server.store.keyring import PERSONAL
from flagsvc.server.store.resources import api_tokens, feature_archive, features, strategies
from flagsvc.server.store.resources.maintenance import is_in_maintenance, set_maintenance
from flagsvc.server.store.resources.project_access import NUMBERS, replace
from flagsvc.server.store.resources.strategies import Placed, StrategyPlace
from flagsvc.server.store.resources.users import ADMINISTRATOR, LAST_ADMINISTRATOR, SEED_NAME
from flagsvc.server.store.resources.whole_features import read_whole
from flagsvc.server.store.seed.apply import (
    PLACES,
    WRITTEN,
    Entry,
    read_user_ids,
    refused_at,
    set_environments,
    token_row,
    whole_strategy,
    write_change_requests,
    write_others,
    write_places,
)
from flagsvc.server.store.seed.file import Seed
from flagsvc.server.store.seed.keys import IDENTITY
from flagsvc.server.store.seed.once import COLUMNS, missing, name_of, remember_seed
from flagsvc.server.store.store import Store, Tx

MEMBERS = {"archived": "archivedAt"}
"""Key of an entry → the member that it sets, where they have different names."""
BY = "the seed"
"""Who makes the changes, in the sentences of a plan."""


class Change(NamedTuple):
    """A change that a seed makes: a sentence, and the members of what it changes with their values before and after."""

    words: str
    members: list[dict[str, Any]]


def plan_seed(store: Store, seed: Seed, actor: Actor) -> list[Change]:
    """Return the changes that a seed would make, and make none. Raises SeedError for what the database does not allow."""
    with store.dry_run(actor) as tx:
        make_wanted(tx, seed)
        return [describe(event) for event in tx.pending_events]


def apply_wanted(store: Store, seed: Seed, actor: Actor) -> list[Change]:
    """Make the changes of a seed in one transaction, and return them. Without changes there is no new revision.

    Raises SeedError for what the database does not allow; then nothing has changed.
    """
    if not plan_seed(store, seed, actor):
        return []
    with store.writing(actor, "seed") as tx:
        make_wanted(tx, seed)
        remember_seed(tx, seed.digest)
        return [describe(event) for event in tx.pending_events]


def describe(event: Mapping[str, Any]) -> Change:
    """Return an event that a transaction will store as a change."""
    place = {name: event[name] for name in ("feature", "environment", "project")} | {"by": BY}
    before, data = event["before"], event["data"]
    words = words_of(kind_of(event["type"]), place, before, data)
    return Change(words.replace("**", "").removeprefix(f"{BY} "), list_changes(before, data))


def make_wanted(tx: Tx, seed: Seed) -> None:
    """Make the database what a seed says. Raises SeedError."""
    rest = missing(tx, seed)
    administrators = _administrators(tx)
    write_places(tx, rest)
    _change_entries(tx, seed, rest, PLACES)
    for index, each in _existing("projects", seed, rest):
        with refused_at(f"projects[{index}].environments"):
            if "environments" in each:
                set_environments(tx, each["id"], each["environments"])
    write_others(tx, rest)
    _change_entries(tx, seed, rest, [name for name in WRITTEN if name not in PLACES])
    numbers = read_user_ids(tx)
    for index, each in _existing("tokens", seed, rest):
        _change_token(tx, index, token_row(tx, each, numbers), each)
    write_change_requests(tx, seed)
    for index, each in _existing("users", seed, rest):
        with refused_at(f"users[{index}].projectRoles"):
            _set_roles(tx, each)
    _keep_an_administrator(tx, seed, administrators)
    change_flags(tx, seed, {each["name"] for each in rest["features"]})
    if seed.maintenance not in (None, is_in_maintenance(tx)):
        set_maintenance(tx, bool(seed.maintenance))


def _existing(section: str, seed: Seed, rest: Seed) -> Iterable[tuple[int, Entry]]:
    """Return the entries of a section that the database had, with their place in the file."""
    new = {id(each) for each in rest[section]}
    return [(index, each) for index, each in enumerate(seed[section]) if id(each) not in new]


def _change_entries(tx: Tx, seed: Seed, rest: Seed, names: Iterable[str]) -> None:
    """Change the entries of sections that the database has. Raises SeedError."""
    for name in names:
        for index, each in _existing(name, seed, rest):
            _change_entry(tx, name, index, each)


def _change_entry(tx: Tx, section: str, index: int, entry: Entry) -> None:
    """Set the members that an entry names and that have another value."""
    writer, whole = WRITTEN[section]
    key = tx.db.execute(select(writer.table.c[writer.key]).where(COLUMNS[section] == name_of(section, entry))).scalar_one()
    held, wanted = writer.read(tx, [key])[key], whole(tx, entry, 0)
    named = {MEMBERS.get(name, name) for name in entry} - {IDENTITY[section], "environments"}
    changed = {name: wanted[name] for name in named & wanted.keys() if not is_same(name, wanted[name], held.get(name))}
    if section == "users" and "username" not in held and changed.get("email", "") is None:
        raise SeedError([f"users[{index}].email: the user has no user name, so the address cannot be cleared"])
    if changed:
        with refused_at(f"{section}[{index}]{'.project' if 'project' in changed else ''}"):
            writer.put(tx, {writer.key: key} | changed, tell=dict)


def is_same(name: str, wanted: Any, held: Any) -> bool:
    """Return whether two values of a member mean the same: none and the empty text do, and any two times of archiving."""
    if isinstance(wanted, list):
        return bool(without_defaults(wanted) == without_defaults(held))
    if name == "archivedAt":
        return (wanted is None) == (held is None)
    return wanted == held or (wanted in (None, "") and held in (None, ""))


def _change_token(tx: Tx, index: int, wanted: Json, entry: Entry) -> None:
    """Set the columns that the entry of a token names. Raises SeedError for another type or user, and for a personal token."""
    row = tx.db.execute(select(schema.tokens).where(schema.tokens.c.hash == wanted["hash"])).one()
    held = row._mapping
    columns = {"name": "name", "environment": "environment", "projects": "projects", "expiresAt": "expires_at"}
    named = [column for key, column in columns.items() if key in entry]
    changed = {name: wanted[name] for name in named if not is_same(name, wanted[name], held[name])}
    if any(wanted[name] != held[name] for name in ("kind", "user_id")) or (changed and row.kind == PERSONAL):
        text = f"the {row.kind} token with this secret cannot become this one: use a new secret"
        raise SeedError([f"tokens[{index}]: {text}"])
    if changed:
        api_tokens.change(tx, row, changed)


def _set_roles(tx: Tx, entry: Entry) -> None:
    """Give a user the roles that the entry names, and no other ones."""
    if "projectRoles" not in entry:
        return
    user = read_user_ids(tx)[entry["name"]]
    held = tx.db.execute(select(schema.project_roles.c.project).where(schema.project_roles.c.user_id == user)).scalars()
    wanted: dict[str, set[int]] = {project: set() for project in held}
    for each in entry["projectRoles"] or []:
        wanted.setdefault(each["project"], set()).add(NUMBERS[each["role"]])
    for project, roles in sorted(wanted.items()):
        replace(tx, project, user, sorted(roles))


def _administrators(tx: Tx) -> set[str]:
    """Return the names of the administrators, as a seed names users."""
    return set(tx.db.execute(select(SEED_NAME).where(schema.users.c.root_role == ADMINISTRATOR)).scalars())


def _keep_an_administrator(tx: Tx, seed: Seed, before: Set[str]) -> None:
    """Raise SeedError if there was an administrator and none is left. A file may give the role to another user."""
    if before and not _administrators(tx):
        lost = [index for index, each in enumerate(seed["users"]) if each["name"] in before]
        raise SeedError([f"users[{index}].rootRole: {LAST_ADMINISTRATOR}" for index in lost])


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
            raise SeedError([f"{place}.enabled: the project `{held['project']}` does not have the environment `{name}`"])


def _change(tx: Tx, entry: Entry, held: Json) -> None:
    """Change what an entry names of a flag, but for its states."""
    name, project = entry["name"], held["project"]
    named = {key: entry[key] for key in DESCRIPTION.keys() & entry.keys() - {"stale"}}
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
    """Yield for each wanted strategy the strategy to change: an equal one, else one of the same type, else None."""
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
    """Add a strategy, or change a different one, and return its id."""
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
