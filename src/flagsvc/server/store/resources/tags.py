"""Tags, and the tags of features; as on the real server's `/api/admin/tags` and `/api/admin/features/:featureName/tags`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, insert, select

from flagsvc.server.store.checks import Json, raise_problems
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.resources.features import add_tags, create_tags
from flagsvc.server.store.resources.projects import project_of_feature
from flagsvc.server.store.resources.tag_types import check_types_exist, put_back_tags, whole_tags
from flagsvc.server.store.schema import feature_tags, features, tag_types, tags
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import strip_whitespace, tag_problems
from flagsvc.server.store.upsert import rows_in

NO_FEATURE = "No feature flag found"
MOST_ADDED = 10_000
"""The most tags that are added at once, those of all features counted."""


def list_tags(tx: Tx, kind: str | None = None) -> list[Json]:
    """Return the tags of one type or all, in order of creation."""
    query = select(tags.c.type, tags.c.value).order_by(tags.c.created_at, tags.c.type, tags.c.value)
    found = tx.db.execute(query if kind is None else query.where(tags.c.type == kind))
    return [{"type": each, "value": value} for each, value in found]


def find(tx: Tx, kind: str, value: str) -> Json:
    """Return a tag. Raises CallerError (404)."""
    if not _exists(tx, kind, value):
        raise not_found(f"No tag with type: [{kind}] and value [{value}]")
    return {"type": kind, "value": value}


def _exists(tx: Tx, kind: str, value: str) -> bool:
    query = select(tags.c.value).where(tags.c.type == kind, tags.c.value == value)
    return tx.db.execute(query).first() is not None


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a tag, whose value loses white space at the ends, and return it.

    Raises CallerError (400, 409). Ours: the real server answers 500 for a type that does not exist.
    """
    tag = _checked({**wanted, "value": strip_whitespace(wanted["value"])})
    _check_new(tx, tag["type"], tag["value"])
    tx.db.execute(insert(tags).values(created_at=tx.now, **tag))
    tx.record_event("tag-created", data=tag)
    return tag


def _check_new(tx: Tx, kind: str, value: str) -> None:
    """Raise CallerError for a tag that exists (409), and for an unknown type (400)."""
    if _exists(tx, kind, value):
        raise CallerError("NameExistsError", f"A tag of {kind}:{value} already exists")
    check_types_exist(tx, [kind])


def _checked(tag: Mapping[str, Any]) -> Json:
    """Return type and value of a tag. Raises CallerError (400) with all their problems."""
    raise_problems(*tag_problems(tag["type"], tag["value"]))
    return _type_and_value(tag)


def _type_and_value(tag: Mapping[str, Any]) -> Json:
    return {"type": tag["type"], "value": tag["value"]}


def remove(tx: Tx, kind: str, value: str) -> None:
    """Delete a tag, also from every feature; a missing tag is not an error."""
    before = find_whole(tx, kind, value)
    if before is None:
        return
    tx.db.execute(delete(tags).where(tags.c.type == kind, tags.c.value == value))
    tx.record_event("tag-deleted", before=before)


def find_whole(tx: Tx, kind: str, value: str) -> Json | None:
    """Return a tag as events hold it; None for one that does not exist."""
    found = tx.db.execute(select(tags).where(tags.c.type == kind, tags.c.value == value)).first()
    return None if found is None else whole_tags(tx, [found])[0]


def put_back(tx: Tx, whole: Mapping[str, Any]) -> None:
    """Create a tag as an event holds it, for the features that had it and exist. Raises CallerError (400, 409)."""
    _check_new(tx, whole["type"], whole["value"])
    put_back_tags(tx, [whole])
    tx.record_event("tag-created", data=find_whole(tx, whole["type"], whole["value"]))


def tags_of(tx: Tx, feature: str) -> list[Json]:
    """Return the tags of a feature, archived or not, with the colors of their types. Raises CallerError (404)."""
    if project_of_feature(tx, feature) is None:
        raise not_found(f"Could not find feature with name {feature}")
    query = (
        select(feature_tags.c.type, feature_tags.c.value, tag_types.c.color)
        .outerjoin(tag_types, tag_types.c.name == feature_tags.c.type)
        .where(feature_tags.c.feature == feature)
        .order_by(feature_tags.c.type, feature_tags.c.value)
    )
    return [{"type": row.type, "value": row.value, "color": row.color} for row in tx.db.execute(query)]


def add_to_feature(tx: Tx, feature: str, tag: Mapping[str, Any]) -> Json:
    """Add a tag to a feature and return it; create the tag if it does not exist. Raises CallerError (400, 404)."""
    project = _project(tx, feature)
    added = _checked(tag)
    _add_tags(tx, {feature: project}, [added])
    return added


def _project(tx: Tx, feature: str) -> str:
    """Return the project of a feature. Raises CallerError (404)."""
    project = project_of_feature(tx, feature)
    if project is None:
        raise not_found(NO_FEATURE)
    return project


def _add_tags(tx: Tx, projects: Mapping[str, str], added: Sequence[Mapping[str, Any]]) -> None:
    """Add tags to features; `projects` maps a feature to its project. Raises CallerError (400) for an unknown type."""
    wanted = _distinct(added)
    create_tags(tx, [(tag["type"], tag["value"]) for tag in wanted])
    if len(projects) * len(wanted) > MOST_ADDED:
        raise bad_data(f"{len(wanted):,} tags for {len(projects):,} features are more than {MOST_ADDED:,} at once")
    before = find_held(tx, projects, wanted)
    given = [(name, tag["type"], tag["value"]) for name in projects for tag in wanted]
    give(tx, projects, [each for each in given if each not in before])


def list_held(tx: Tx, names: Iterable[str]) -> set[tuple[str, str, str]]:
    """Return the tags of features: feature, type, value."""
    query = select(feature_tags.c.feature, feature_tags.c.type, feature_tags.c.value)
    return {(name, kind, value) for name, kind, value in rows_in(tx, query, feature_tags.c.feature, names)}


def find_held(tx: Tx, names: Iterable[str], wanted: Sequence[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
    """Return which features have which of these tags: feature, type, value."""
    asked = {(tag["type"], tag["value"]) for tag in wanted}
    return {each for each in list_held(tx, names if asked else ()) if each[1:] in asked}


def _distinct(several: Iterable[Mapping[str, Any]]) -> list[Json]:
    return list({(tag["type"], tag["value"]): _type_and_value(tag) for tag in several}.values())


def _remove_tags(tx: Tx, projects: Mapping[str, str], removed: Sequence[Mapping[str, Any]]) -> None:
    """Remove tags from features; a tag that a feature does not have is not an error."""
    remove_held(tx, projects, sorted(find_held(tx, projects, _distinct(removed))))


def remove_held(tx: Tx, projects: Mapping[str, str], held: Sequence[tuple[str, str, str]]) -> None:
    """Remove tags from the features that have them: feature, type, value."""
    tag = feature_tags.c
    here = tag.feature == bindparam("name"), tag.type == bindparam("kind"), tag.value == bindparam("text")
    if held:
        rows = [{"name": name, "kind": kind, "text": value} for name, kind, value in held]
        tx.db.execute(delete(feature_tags).where(*here), rows)
    for name, kind, value in held:
        before = {"type": kind, "value": value}
        tx.record_event("feature-untagged", project=projects[name], feature=name, before=before)


def give(tx: Tx, projects: Mapping[str, str], new: Sequence[tuple[str, str, str]]) -> None:
    """Add tags to features that do not have them: feature, type, value. Raises CallerError (400 for an unknown type, 404)."""
    wanted: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, kind, value in new:
        if name not in projects:
            raise not_found(NO_FEATURE)
        wanted[name].append((kind, value))
    add_tags(tx, wanted)
    for name, kind, value in new:
        data = {"type": kind, "value": value}
        tx.record_event("feature-tagged", project=projects[name], feature=name, data=data)


def remove_from_feature(tx: Tx, feature: str, kind: str, value: str) -> None:
    """Remove a tag from a feature. A tag that the feature does not have is no error. Raises CallerError (404)."""
    _remove_tags(tx, {feature: _project(tx, feature)}, [{"type": kind, "value": value}])


def change_tags_of_feature(
    tx: Tx, feature: str, added: Sequence[Mapping[str, Any]], removed: Sequence[Mapping[str, Any]]
) -> list[Json]:
    """Add tags to a feature, then remove tags, and return its tags. Raises CallerError (400, 404)."""
    if added or removed:
        project = {feature: _project(tx, feature)}
        _add_tags(tx, project, [_checked(tag) for tag in added])
        _remove_tags(tx, project, removed)
    return tags_of(tx, feature)


def change_tags_of_features(
    tx: Tx,
    project: str,
    names: Sequence[str],
    added: Sequence[Mapping[str, Any]],
    removed: Sequence[Mapping[str, Any]],
) -> None:
    """Add tags to features of a project, then remove tags. Raises CallerError (400, 404).

    Ours: the real server answers 500 for a feature that does not exist, and changes features of any project.
    """
    query = select(features.c.name).where(features.c.project == project)
    if not {name for (name,) in rows_in(tx, query, features.c.name, names)}.issuperset(names):
        raise not_found(NO_FEATURE)
    projects = dict.fromkeys(names, project)
    _add_tags(tx, projects, added)
    _remove_tags(tx, projects, removed)
