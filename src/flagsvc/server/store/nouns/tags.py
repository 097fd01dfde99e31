"""Tags, and the tags of features; as on the real server's `/api/admin/tags` and `/api/admin/features/:featureName/tags`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select

from flagsvc.server.store.checks import Json, invalid
from flagsvc.server.store.nouns.owners import project_of_feature
from flagsvc.server.store.nouns.tag_types import LONGEST, SHORTEST, check_known
from flagsvc.server.store.refusals import Refusal, not_found
from flagsvc.server.store.schema import feature_tags, features, tag_types, tags
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem, trimmed, url_problem
from flagsvc.server.store.upsert import chunks, upsert

NO_FEATURE = "No feature flag found"


def list_tags(tx: Tx, kind: str | None = None) -> list[Json]:
    """Return the tags, of one type or all, in the order of creation."""
    query = select(tags.c.type, tags.c.value).order_by(tags.c.created_at, tags.c.type, tags.c.value)
    found = tx.db.execute(query if kind is None else query.where(tags.c.type == kind))
    return [{"type": each, "value": value} for each, value in found]


def find(tx: Tx, kind: str, value: str) -> Json:
    """Return a tag. Raises Refusal (404)."""
    if not _exists(tx, kind, value):
        raise not_found(f"No tag with type: [{kind}] and value [{value}]")
    return {"type": kind, "value": value}


def _exists(tx: Tx, kind: str, value: str) -> bool:
    query = select(tags.c.value).where(tags.c.type == kind, tags.c.value == value)
    return tx.db.execute(query).first() is not None


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Make a tag, its value without white space at the ends, and return it.

    Raises Refusal (400, 409). Ours: the real server answers 500 for a type that does not exist.
    """
    tag = _checked({**wanted, "value": trimmed(wanted["value"])})
    if _exists(tx, tag["type"], tag["value"]):
        raise Refusal("NameExistsError", f"A tag of {tag['type']}:{tag['value']} already exists")
    check_known(tx, [tag["type"]])
    tx.db.execute(insert(tags).values(created_at=tx.now, **tag))
    tx.event("tag-created", data=tag)
    return tag


def _checked(tag: Mapping[str, Any]) -> Json:
    """Return type and value of a tag; raise Refusal (400) with everything that is wrong with them."""
    problems = [
        text_problem(tag["value"], "value", shortest=SHORTEST, longest=LONGEST),
        url_problem(tag["type"], "type", shortest=SHORTEST, longest=LONGEST),
    ]
    found = [problem for problem in problems if problem is not None]
    if found:
        raise invalid(*found)
    return _bare(tag)


def _bare(tag: Mapping[str, Any]) -> Json:
    return {"type": tag["type"], "value": tag["value"]}


def remove(tx: Tx, kind: str, value: str) -> None:
    """Delete a tag, also from every feature; of one that does not exist nothing happens."""
    gone = tx.db.execute(delete(tags).where(tags.c.type == kind, tags.c.value == value))
    if gone.rowcount:
        tx.event("tag-deleted", data={"type": kind, "value": value})


def tags_of(tx: Tx, feature: str) -> list[Json]:
    """Return the tags of a feature, archived ones included, with the color of their type. Raises Refusal (404)."""
    if project_of_feature(tx, feature) is None:
        raise not_found(f"Could not find feature with name {feature}")
    query = (
        select(feature_tags.c.type, feature_tags.c.value, tag_types.c.color)
        .outerjoin(tag_types, tag_types.c.name == feature_tags.c.type)
        .where(feature_tags.c.feature == feature)
        .order_by(feature_tags.c.type, feature_tags.c.value)
    )
    return [{"type": row.type, "value": row.value, "color": row.color} for row in tx.db.execute(query)]


def add(tx: Tx, feature: str, tag: Mapping[str, Any]) -> Json:
    """Put a tag on a feature, made where there is none yet, and return it. Raises Refusal (400, 404)."""
    project = _project(tx, feature)
    added = _checked(tag)
    _put(tx, {feature: project}, [added])
    return added


def _project(tx: Tx, feature: str) -> str:
    """Return the project of a feature. Raises Refusal (404)."""
    project = project_of_feature(tx, feature)
    if project is None:
        raise not_found(NO_FEATURE)
    return project


def _put(tx: Tx, projects: Mapping[str, str], added: Sequence[Mapping[str, Any]]) -> None:
    """Put tags on features; `projects` is feature → its project. Raises Refusal (400) for an unknown type."""
    check_known(tx, (tag["type"] for tag in added))
    wanted = _distinct(added)
    fresh = [tag for tag in wanted if not _exists(tx, tag["type"], tag["value"])]
    upsert(tx, tags, [tag | {"created_at": tx.now} for tag in fresh], ())
    for tag in fresh:
        tx.event("tag-created", data=tag)
    by = None if tx.actor is None else tx.actor.id
    rows = [
        tag | {"feature": feature, "created_by_id": by, "created_at": tx.now} for feature in projects for tag in wanted
    ]
    upsert(tx, feature_tags, rows, ())
    for row in rows:
        tx.event("feature-tagged", project=projects[row["feature"]], feature=row["feature"], data=_bare(row))


def _distinct(several: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return tags without repetitions, as type and value."""
    return list({(tag["type"], tag["value"]): _bare(tag) for tag in several}.values())


def _take(tx: Tx, projects: Mapping[str, str], removed: Sequence[Mapping[str, Any]]) -> None:
    """Take tags off features; what a feature does not have is no error."""
    for tag in _distinct(removed):
        for some in chunks(projects):
            mine = (feature_tags.c.type == tag["type"], feature_tags.c.value == tag["value"])
            query = select(feature_tags.c.feature).where(feature_tags.c.feature.in_(some), *mine)
            having = tx.db.execute(query).scalars().all()
            tx.db.execute(delete(feature_tags).where(feature_tags.c.feature.in_(having), *mine))
            for feature in having:
                tx.event("feature-untagged", project=projects[feature], feature=feature, data=tag)


def take(tx: Tx, feature: str, kind: str, value: str) -> None:
    """Take a tag off a feature; one that it does not have is no error. Raises Refusal (404)."""
    _take(tx, {feature: _project(tx, feature)}, [{"type": kind, "value": value}])


def change(
    tx: Tx, feature: str, added: Sequence[Mapping[str, Any]], removed: Sequence[Mapping[str, Any]]
) -> list[Json]:
    """Put tags on a feature, then take tags off, and return those it has. Raises Refusal (400, 404)."""
    if added or removed:
        project = {feature: _project(tx, feature)}
        _put(tx, project, [_checked(tag) for tag in added])
        _take(tx, project, removed)
    return tags_of(tx, feature)


def change_several(
    tx: Tx,
    project: str,
    names: Sequence[str],
    added: Sequence[Mapping[str, Any]],
    removed: Sequence[Mapping[str, Any]],
) -> None:
    """Put tags on features of a project, then take tags off. Raises Refusal (400, 404).

    Ours: the real server answers 500 for a feature that does not exist, and changes features of any project.
    """
    known: set[str] = set()
    for some in chunks(dict.fromkeys(names)):
        query = select(features.c.name).where(features.c.name.in_(some), features.c.project == project)
        known |= set(tx.db.execute(query).scalars())
    if not known.issuperset(names):
        raise not_found(NO_FEATURE)
    projects = dict.fromkeys(names, project)
    _put(tx, projects, added)
    _take(tx, projects, removed)
