"""The steps of an import, and the state that they share (import validation 6.3)."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Row, func, select

from flagsvc.server.shapes.features import DESCRIPTION
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.dataset import (
    DataSet,
    Json,
    RequestedDependency,
    find_repeated,
    list_requested_dependencies,
)
from flagsvc.server.store.batch.facts import CheckedDataSet, Facts, KnownFeature, TargetProject
from flagsvc.server.store.batch.rules import context_field_problems
from flagsvc.server.store.checks import (
    ExternalLink,
    check_name,
    check_segment_count,
    default_strategy,
    fill_parameters,
    make_link,
    prepare_imported_variants,
    prepare_variants,
    raise_problems,
)
from flagsvc.server.store.constraints import check_legal_values, check_limits, check_values
from flagsvc.server.store.errors import CallerError, bad_data, not_found, permission_refusal
from flagsvc.server.store.members import column_of
from flagsvc.server.store.resources import context_fields, tags
from flagsvc.server.store.resources.dependencies import (
    TRANSITIVE,
    invalid_operation,
    parents_of_all,
    replace,
    stored_parent,
)
from flagsvc.server.store.resources.feature_environments import FeatureState, read_states, save_variants, set_states
from flagsvc.server.store.resources.features import (
    NO_FLAG,
    describe,
    feature_columns,
    find_all,
    insert_all,
    metadata,
    no_feature,
    not_active,
)
from flagsvc.server.store.resources.links import add_links, links_of, record_links, remove_links
from flagsvc.server.store.resources.strategies import (
    Placed,
    StrategyPlace,
    add,
    as_integer_if_whole,
    new_whole,
    read_legal_values,
    read_sort_order,
    remove_all,
    wholes_of,
)
from flagsvc.server.store.resources.tag_types import FIELDS, WRITER
from flagsvc.server.store.resources.tag_types import check_name as check_name_of_type
from flagsvc.server.store.schema import CHANGE_REQUESTS, dependencies, state, strategies, tag_types
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import tag_problems
from flagsvc.server.store.upsert import rows_in


@dataclass
class ImportWork:
    """A running import: the cleaned data set, the database's facts before it, and the actor.

    `features` are all those that the data set names, as stored after the first step.
    """

    tx: Tx
    actor: Actor
    data: DataSet
    known: Facts
    features: dict[str, KnownFeature] = field(default_factory=dict)

    @property
    def project(self) -> TargetProject:
        """The target project; one with default values where it does not exist."""
        return self.known.project or TargetProject(self.data.project)

    def load_features(self) -> None:
        """Read every feature that the data set names."""
        self.features = read_features(self.tx, self.data.all_names)

    def require(self, name: str) -> KnownFeature:
        """Return a feature of the target project. Raises CallerError (404) if the project does not have it."""
        stored = self.features.get(name)
        if stored is None or stored.project != self.data.project:
            raise no_feature(name, self.data.project, None if stored is None else stored.project)
        return stored

    def place_of(self, feature: str) -> StrategyPlace:
        """Return the place of a feature in the target environment."""
        return StrategyPlace(self.data.project, feature, self.data.environment)

    def record_event(self, kind: str, feature: str, *, before: Any = None, data: Any = None) -> None:
        self.tx.record_event(kind, project=self.data.project, feature=feature, before=before, data=data)


SKIP_PERMISSION = "SKIP_CHANGE_REQUEST"


def read_features(tx: Tx, names: Iterable[str]) -> dict[str, KnownFeature]:
    """Return the stored features of these names, in order of creation."""
    rows = find_all(tx, list(names))
    return {row.name: KnownFeature(row.project, archived=row.archived_at is not None) for row in rows}


def check_change_request_not_required(tx: Tx, actor: Actor | None, project: str, environment: str | None = None) -> None:
    """Raise CallerError (403) if changes need a change request and the actor may not skip it; `None` never may.

    Without an environment, any environment of the project counts.
    """
    places = tx.db.execute(select(state.c.value).where(state.c.key == CHANGE_REQUESTS)).scalar() or []
    required = any(each["project"] == project and (environment is None or each["environment"] == environment) for each in places)
    if required and (actor is None or not actor.may(SKIP_PERMISSION, project, environment)):
        raise permission_refusal([SKIP_PERMISSION])


LIMIT_REACHED = "You have reached the maximum number of feature flags for this project."


def write_features(work: ImportWork) -> None:
    """Change the features of the project; create new ones in all its environments. Raises CallerError (400, 403, 404, 409)."""
    before = {row.name: row for row in find_all(work.tx, CheckedDataSet(work.data, work.known).overwritten)}
    changed, created = _split_changed_and_created(work, before)
    changed = {name: values for name, values in changed.items() if _differs(before[name], values)}
    describe(work.tx, {name: _changed_columns(work, values) for name, values in changed.items()})
    insert_all(work.tx, [_new_feature(work, name, values) for name, values in created.items()])
    for row in find_all(work.tx, list(created)):
        work.record_event("feature-created", row.name, data=metadata(row))


def _split_changed_and_created(work: ImportWork, before: dict[str, Row[Any]]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the features to change and those to create, by name. The first feature that fails a check raises."""
    changed: dict[str, Json] = {}
    created: dict[str, Json] = {}
    active = work.project.active
    for wanted in work.data.features:
        name = wanted["name"]
        if name in before:
            active -= _is_active(changed.get(name, {})) - _is_active(feature_columns(wanted))
            changed[name] = feature_columns(wanted)
        else:
            _check_new(work, name, created, active)
            created[name] = feature_columns(wanted)
            active += _is_active(created[name])
    return changed, created


def _is_active(values: Json) -> bool:
    return not values.get("archived")


def _check_new(work: ImportWork, name: str, created: dict[str, Json], active: int) -> None:
    """Raise CallerError if the project cannot have a new feature of this name; `active` counts its active features so far."""
    check_name(name)
    if name in created:
        kind = "A" if _is_active(created[name]) else "An archived"
        raise CallerError("NameExistsError", f"{kind} flag with that name already exists")
    work.project.naming.check(name)
    limit = work.project.limit
    if limit is not None and active >= limit:
        raise CallerError("InvalidOperationError", LIMIT_REACHED)
    if work.known.project is None or work.project.archived:
        raise not_active(work.data.project)


def _differs(row: Row[Any], values: Json) -> bool:
    held = {name: getattr(row, name) for name in values if name != "archived"}
    return values != held | {"archived": row.archived_at is not None}


def _changed_columns(work: ImportWork, values: Json) -> Json:
    kept = {name: value for name, value in values.items() if name != "archived"}
    return kept | {"archived_at": None if _is_active(values) else work.tx.now}


def _new_feature(work: ImportWork, name: str, values: Json) -> Json:
    described = {name: values[column_of(name)] for name in DESCRIPTION}
    return described | {"name": name, "project": work.data.project, "archived": values["archived"]}


MOST_PARENTS: Final = 200_000
"""The most parents that the events of an import hold together: each event of a new parent holds all parents of its child."""
OTHER_PROJECT = 'Cannot add the dependency. Both the parent and the child feature must belong to project "{}".'


def write_dependencies(work: ImportWork) -> None:
    """Write the dependencies whose children are in the data set with a project; others are skipped.

    All are checked against the state before, so one import can create a chain. Raises CallerError (403, 404).
    """
    requested = list_requested_dependencies(work.data)
    parents = Counter(child for child, _ in {(each.child, each.requirement["feature"]) for each in requested})
    if sum(parents[each.child] for each in requested) > MOST_PARENTS:
        raise bad_data("The dependencies have too many parents for one feature: each event of one holds all of them.")
    for project in dict.fromkeys(each.project for each in requested):
        check_change_request_not_required(work.tx, work.actor, project)
    _check_dependencies(work, requested)
    children: dict[str, list[Json]] = {}
    for child, _, requirement in requested:
        children.setdefault(child, []).append(stored_parent(requirement))
    before = parents_of_all(work.tx, children)
    replace(work.tx, children)
    after = parents_of_all(work.tx, children)
    for child, _, requirement in requested:
        if stored_parent(requirement) not in before[child]:
            data = requirement | {"dependencies": after[child]}
            work.record_event("feature-dependency-added", child, before={"dependencies": before[child]}, data=data)


def _check_dependencies(work: ImportWork, requested: list[RequestedDependency]) -> None:
    """Raise CallerError (403, 404) for the first dependency that cannot be created."""
    if any(each.child == each.requirement["feature"] for each in requested):
        raise invalid_operation("A feature flag cannot depend on itself.")
    depended_on = _find_in_column(work, "parent", [each.child for each in requested])
    depending = _find_in_column(work, "child", [each.requirement["feature"] for each in requested])
    for each in requested:
        parent = work.features.get(each.requirement["feature"])
        if each.child in depended_on:
            raise invalid_operation(f"{TRANSITIVE}other features depend on.")
        if each.requirement["feature"] in depending:
            raise invalid_operation(f"{TRANSITIVE}has parent dependency.")
        if parent is None or parent.archived:
            raise invalid_operation(f"No active feature {each.requirement['feature']} exists")
        if parent.project != work.features[each.child].project:
            raise not_found(OTHER_PROJECT.format(work.data.project))


def _find_in_column(work: ImportWork, column: str, names: list[str]) -> set[str]:
    which = dependencies.c[column]
    return {name for (name,) in rows_in(work.tx, select(which), which, names)}


def write_strategies(work: ImportWork) -> None:
    """Replace the strategies of the data set's features, and add those of other features. Raises CallerError (400, 403, 404)."""
    here = strategies.c.environment == work.data.environment
    held = [Placed(work.place_of(row.feature), whole) for row, whole in wholes_of(work.tx, work.data.names, here)]
    remove_all(work.tx, sorted(held, key=lambda each: int(each.whole["position"])))
    if work.data.strategies:
        check_change_request_not_required(work.tx, None, work.data.project, work.data.environment)
        insert_strategies(work, work.data.strategies)


def insert_strategies(work: ImportWork, wanted: Sequence[Json]) -> None:
    """Add strategies, each to the feature of its `featureName`, in bulk. Raises CallerError (400, 404)."""
    if not wanted:
        return
    for each in wanted:
        work.require(each["featureName"])
    wholes = _strategies(work, wanted)
    for whole, used in zip(wholes, _segments(work, wanted), strict=True):
        check_segment_count(used)
        whole["segments"] = used
    if not work.known.environment:
        raise bad_data("You have not added the current environment to the project")
    places = [work.place_of(each["featureName"]) for each in wanted]
    add(work.tx, list(map(Placed, places, wholes)))


def _segments(work: ImportWork, wanted: Sequence[Json]) -> list[list[int]]:
    """Return the ids of the segments of each strategy on this server. Raises CallerError (400) for an undeclared one."""
    names = {each["id"]: each["name"] for each in work.data.segments}
    found: list[list[int]] = []
    for each in wanted:
        numbers = each.get("segments") or []
        unknown = [number for number in numbers if number not in names]
        if unknown:
            name, which = each["featureName"], ", ".join(str(as_integer_if_whole(number)) for number in unknown)
            raise bad_data(f"A strategy of {name} uses segments that the data does not declare: {which}")
        found.append([work.known.segments[names[number]].id for number in numbers])
    return found


def _strategies(work: ImportWork, wanted: Sequence[Json]) -> list[Json]:
    """Return the checked strategies. Like the real server, check the values of all, then whether they are legal."""
    legal = read_legal_values(
        work.tx, (constraint["contextName"] for each in wanted for constraint in each.get("constraints") or ())
    )
    last = _read_last_orders(work, [each["featureName"] for each in wanted])
    positions = work.tx.positions(strategies, len(wanted))
    wholes = [_strategy(work, each, _sort_order_of(each, last), position) for position, each in zip(positions, wanted, strict=True)]
    for whole in wholes:
        check_legal_values(whole["constraints"], legal)
        whole["variants"] = prepare_variants(whole["variants"])
    return wholes


def _strategy(work: ImportWork, wanted: Json, order: float, position: int) -> Json:
    constraints = wanted.get("constraints") or []
    check_limits(constraints)
    feature = wanted["featureName"]
    columns = {
        "parameters": fill_parameters(wanted["name"], wanted.get("parameters"), feature, work.project.stickiness),
        "constraints": check_values(constraints),
        "variants": wanted.get("variants") or [],
    }
    return new_whole(wanted, columns, (), order=order, position=position)


def _read_last_orders(work: ImportWork, names: Sequence[str]) -> dict[str, float]:
    """Return the highest sort order of each feature that has strategies."""
    here = strategies.c.environment == work.data.environment
    query = select(strategies.c.feature, func.max(strategies.c.sort_order)).group_by(strategies.c.feature)
    return {row[0]: row[1] for row in rows_in(work.tx, query.where(here), strategies.c.feature, names)}


def _sort_order_of(wanted: Json, last: dict[str, float]) -> float:
    """Return the sort order of a strategy: its own, or else the next one after the strategies that have one; update `last`.

    As on the real server, strategies without a sort order all get the same one, after the existing strategies.
    """
    before = last.get(wanted["featureName"])
    order = read_sort_order(wanted, 0.0 if before is None or before != int(before) else before + 1)
    if wanted.get("sortOrder") is not None:
        last[wanted["featureName"]] = order if before is None else max(before, order)
    return order


CREATE_STRATEGY = "CREATE_FEATURE_STRATEGY"


def write_variants(work: ImportWork) -> None:
    """Replace the variants of the features that the data set gives some. Raises CallerError (400, 404)."""
    wanted = {each["featureName"]: prepare_imported_variants(each["variants"]) for each in work.data.with_variants()}
    states = read_states(work.tx, work.data.environment, wanted)
    held = {name: each.variants for name, each in states.items()}
    changed = {name: variants for name, variants in wanted.items() if name not in held or variants != held[name]}
    save_variants(work.tx, {work.place_of(name): each for name, each in changed.items()})


def write_states(work: ImportWork) -> None:
    """Switch features on and off. A feature without an active strategy gets the default one. Raises CallerError (400, 403, 404).

    An entry's `name` is its feature. Where two entries of a feature differ, it is switched on.
    """
    wanted: dict[str, bool] = {}
    for each in work.data.environments:
        wanted[each["name"]] = wanted.get(each["name"], False) or each["enabled"]
    if not wanted:
        return
    check_change_request_not_required(work.tx, work.actor, work.data.project, work.data.environment)
    states = read_states(work.tx, work.data.environment, wanted)
    active_strategies = _read_active_strategies(work, wanted)
    _check_states(work, wanted, states, active_strategies)
    without_strategy = [name for name, on in wanted.items() if on and not any(active_strategies.get(name, ()))]
    insert_strategies(work, [default_strategy(name) | {"featureName": name} for name in without_strategy])
    set_states(work.tx, {work.place_of(name): on for name, on in wanted.items()})


def _read_active_strategies(work: ImportWork, names: Iterable[str]) -> dict[str, list[bool]]:
    """Return for each strategy in the environment whether it is active, by feature."""
    query = select(strategies.c.feature, strategies.c.disabled).where(strategies.c.environment == work.data.environment)
    found: dict[str, list[bool]] = {}
    for row in rows_in(work.tx, query, strategies.c.feature, names):
        found.setdefault(row.feature, []).append(not row.disabled)
    return found


def _check_states(
    work: ImportWork, wanted: dict[str, bool], states: dict[str, FeatureState], active_strategies: dict[str, list[bool]]
) -> None:
    """Raise CallerError for the first feature that cannot be switched. Like the real server, each check runs over all features."""
    project, environment = work.data.project, work.data.environment
    may_create = work.actor.may(CREATE_STRATEGY, project, environment)
    if not may_create and any(on and name in states and name not in active_strategies for name, on in wanted.items()):
        raise permission_refusal([CREATE_STRATEGY], environment)
    for name in wanted:
        work.require(name)
    for name in wanted:
        if name not in states:
            raise not_found(f"Could not find environment {environment} for feature: {name}")
    if any(work.features[name].archived for name in wanted):
        message = "Cannot perform this operation on archived features"
        raise CallerError("ArchivedFeatureError", message, status=400)


def write_tag_types(work: ImportWork) -> None:
    """Create the new tag types; the last entry of a repeated one counts. Raises CallerError (400)."""
    new = {each["name"]: each for each in work.data.tag_types if each["name"] not in work.known.tag_types}
    for each in new.values():
        check_name_of_type(each["name"])
    wholes = ({name: each.get(name) for name in FIELDS} for each in new.values())
    WRITER.put(work.tx, *wholes, tell=lambda whole: new[whole["name"]])


def write_tags(work: ImportWork) -> None:
    """Replace the tags of every feature of the data set. Raises CallerError (400, 404)."""
    wanted = [each for each in work.data.tags if each.get("tagType")]
    types = set(work.tx.db.execute(select(tag_types.c.name)).scalars())
    for each in wanted:
        _check_tag(work, each, types)
    found = dict.fromkeys((each["featureName"], each["tagType"], each["tagValue"]) for each in wanted)
    names = dict.fromkeys([*work.data.names, *(name for name, _, _ in found)])
    before, replaced = tags.list_held(work.tx, names), set(work.data.names)
    projects = dict.fromkeys(names, work.data.project)
    tags.give(work.tx, projects, [each for each in found if each not in before])
    tags.remove_held(work.tx, projects, sorted(each for each in before - found.keys() if each[0] in replaced))


def _check_tag(work: ImportWork, tag: Json, types: set[str]) -> None:
    if tag["featureName"] not in work.features:
        raise not_found(NO_FLAG)
    kind, value = tag["tagType"], tag["tagValue"]
    raise_problems(*tag_problems(kind, value))
    if kind not in types:
        raise bad_data(f"Tag type '{kind}' does not exist")


def write_context_fields(work: ImportWork) -> None:
    """Create the new context fields. Raises CallerError (400, 404, 409)."""
    new = [each for each in work.data.context_fields if each["name"] not in work.known.context_fields]
    for each in new:
        raise_problems(next(context_field_problems(each), None))
    twice = find_repeated([each["name"] for each in new])
    if twice:
        raise CallerError("NameExistsError", f"The data has more than one context field of the name {twice[0]}")
    if work.known.project is None and any(each.get("project") for each in new):
        raise not_found(f"Could not find project with id {work.data.project}")
    members = ("name", "description", "stickiness", "legalValues")
    IMPORTED_FIELDS.put(
        work.tx,
        *(
            {name: each[name] for name in members if name in each} | {"project": work.data.project if each.get("project") else None}
            for each in new
        ),
    )


IMPORTED_FIELDS: Final = dataclasses.replace(context_fields.WRITER, place=lambda whole: {"project": whole.get("project")})
"""The writer of context fields; its events name the project, because the import belongs to it."""


def write_links(work: ImportWork) -> None:
    """Replace the links of every feature that `links` names, if they differ. Raises CallerError (400, 403, 404)."""
    before = links_of(work.tx, (each["feature"] for each in work.data.links))
    wanted: dict[str, list[ExternalLink]] = defaultdict(list)
    for each in _read_links(work):
        wanted[each.feature].append(each)
    named = dict.fromkeys(each["feature"] for each in work.data.links)
    changed = [
        name
        for name in named
        if [(each["url"], each["title"]) for each in before.get(name, [])] != [(each.url, each.title) for each in wanted[name]]
    ]
    remove_links(work.tx, changed)
    add_links(work.tx, [each for name in changed for each in wanted[name]])
    after = links_of(work.tx, changed)
    for name in changed:
        record_links(work.tx, work.data.project, name, before.get(name, []), after.get(name, []))


def _read_links(work: ImportWork) -> list[ExternalLink]:
    found: list[ExternalLink] = []
    counts: Counter[str] = Counter()
    for entry in work.data.links:
        name = entry["feature"]
        for each in entry["links"]:
            stored = work.features.get(name)
            if stored is None or stored.archived:
                raise not_found(f"Could not find feature with name {name}")
            found.append(make_link(name, each["url"], each.get("title"), counts[name]))
            counts[name] += 1
    return found


STEPS: tuple[Callable[[ImportWork], None], ...] = (
    write_features,
    ImportWork.load_features,
    write_variants,
    write_tag_types,
    write_tags,
    write_context_fields,
    write_links,
    write_strategies,
    write_states,
    write_dependencies,
)
"""The steps of an import, in order (import validation 6.3)."""
