"""Searches all features, with filters, order and pages (the real server's /api/admin/search/features)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Row, and_, exists, func, or_, select, tuple_

from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources.favorites import is_favorite
from flagsvc.server.store.resources.feature_views import counts_of, created_by, list_overviews
from flagsvc.server.store.resources.users import names_of
from flagsvc.server.store.schema import (
    dependencies,
    feature_environments,
    feature_tags,
    features,
    segments,
    strategies,
    strategy_segments,
)
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import split_list
from flagsvc.server.store.timestamps import format_time
from flagsvc.server.store.upsert import count_rows, rows_in

Condition: TypeAlias = ColumnElement[bool]
DEFAULT_LIMIT = 50
MAX_LIMIT = 100
MAX_VALUES = 100
"""The most values of one filter."""
NUMBER = re.compile(r"-?\d{1,9}", re.ASCII)
SEEN = feature_environments.c
LAST_SEEN = select(func.max(SEEN.last_seen_at)).where(SEEN.feature == features.c.name).scalar_subquery()
"""When a client asked for a feature last, in any environment."""
SORTS: dict[str, Any] = {
    "name": features.c.name,
    "type": features.c.type,
    "project": features.c.project,
    "stale": features.c.stale,
    "impressionData": features.c.impression_data,
    "createdAt": features.c.created_at,
    "archivedAt": features.c.archived_at,
    "lastSeenAt": LAST_SEEN,
}
"""The sort keys; any other key sorts by creation."""


@dataclass(frozen=True)
class FeatureSearch:
    """A search. `filters` maps a parameter to its text, `OPERATOR:value,value`; `words` are substrings of texts.

    A feature has any of the words, or all with `all_words`. With `unseen_days` it finds only features that no client has asked
    for in so many days. With `first_of`, the favorites of that user come first.
    """

    words: Sequence[str] = ()
    all_words: bool = False
    filters: Mapping[str, str] | None = None
    archived: bool = False
    unseen_days: int = 0
    sort_by: str = ""
    descending: bool = False
    offset: int = 0
    limit: int = DEFAULT_LIMIT
    first_of: int | None = None


def search(tx: Tx, wanted: FeatureSearch) -> Json:
    """Return a page of features, and the number of features on all pages."""
    conditions = list(_conditions(tx, wanted))
    total = count_rows(tx, features, *conditions)
    query = select(features).where(*conditions).order_by(*_order(wanted))
    rows = tx.db.execute(query.offset(wanted.offset).limit(wanted.limit)).all()
    return {"features": _to_json(tx, rows), "total": total}


def list_names(tx: Tx, wanted: FeatureSearch) -> list[str]:
    """Return the names of the features on all pages of a search, in its order."""
    query = select(features.c.name).where(*_conditions(tx, wanted)).order_by(*_order(wanted))
    return list(tx.db.execute(query).scalars())


def find_by_name(tx: Tx, words: Sequence[str], most: int, first_of: int | None) -> list[tuple[str, str]]:
    """Return name and project of active features whose names contain every word, in any letter case.

    The favorites of the user `first_of` come first, then the names that begin with the first word.
    """
    query = select(features.c.name, features.c.project).where(features.c.archived_at.is_(None))
    query = query.where(*(contains(tx, features.c.name, word) for word in words))
    first = () if first_of is None else (is_favorite(first_of).desc(),)
    begins = [features.c.name.istartswith(word, autoescape=True).desc() for word in words[:1]]
    return [(row.name, row.project) for row in tx.db.execute(query.order_by(*first, *begins, features.c.name).limit(most))]


def _order(wanted: FeatureSearch) -> tuple[Any, ...]:
    column = SORTS.get(wanted.sort_by, features.c.position)
    first = () if wanted.first_of is None else (is_favorite(wanted.first_of).desc(),)
    order = column.desc() if wanted.descending else column.asc()
    if column is LAST_SEEN:  # databases order NULL differently: a feature without any request is the longest unused
        order = order.nulls_last() if wanted.descending else order.nulls_first()
    return *first, order, features.c.position


def _conditions(tx: Tx, wanted: FeatureSearch) -> Iterable[Condition]:
    archived = features.c.archived_at
    yield archived.is_not(None) if wanted.archived else archived.is_(None)
    if wanted.unseen_days:
        since = tx.now - timedelta(days=wanted.unseen_days)
        yield ~exists().where(SEEN.feature == features.c.name, SEEN.last_seen_at > since)
    if wanted.words:
        together = and_ if wanted.all_words else or_
        yield together(*(_contains_word(tx, word) for word in wanted.words))
    for name, text in (wanted.filters or {}).items():
        operator, _, values = text.partition(":")
        yield _condition(name, operator, split_list(values, name, MAX_VALUES))


def contains(tx: Tx, column: ColumnElement[str], text: str) -> Condition:
    """Return the condition that a column contains a text, in any letter case. LIKE takes 30 times as long for the worst texts."""
    find = func.instr if tx.db.dialect.name == "sqlite" else func.strpos
    return find(func.lower(column), func.lower(text)) > 0


def _contains_word(tx: Tx, word: str) -> Condition:
    """Return the condition that a feature's name, description or tag contains a word."""
    tag = feature_tags.c.type + ":" + feature_tags.c.value
    tagged = exists().where(feature_tags.c.feature == features.c.name, contains(tx, tag, word))
    texts = (features.c.name, features.c.description)
    return or_(*(contains(tx, column, word) for column in texts), tagged)


def _has_tag(values: Sequence[str]) -> Condition:
    tags = [(kind, text) for kind, _, text in (value.partition(":") for value in values)]
    here = feature_tags.c.feature == features.c.name
    return exists().where(here, tuple_(feature_tags.c.type, feature_tags.c.value).in_(tags))


USED_SEGMENTS = strategies.join(strategy_segments, strategy_segments.c.strategy_id == strategies.c.id).join(
    segments, segments.c.id == strategy_segments.c.segment_id
)
"""The segments of strategies."""


def _has_segment(values: Sequence[str]) -> Condition:
    here = strategies.c.feature == features.c.name, segments.c.name.in_(values)
    return select(strategies.c.id).select_from(USED_SEGMENTS).where(*here).exists()


def _created_by(values: Sequence[str]) -> Condition:
    return features.c.created_by_id.in_([int(value) for value in values if NUMBER.fullmatch(value)])


def _is_stale(values: Sequence[str]) -> Condition:
    return features.c.stale.in_([value == "stale" for value in values if value in ("stale", "active")])


FilterCondition: TypeAlias = Callable[[Sequence[str]], Condition]
FILTERS: dict[str, FilterCondition] = {
    "project": features.c.project.in_,
    "type": features.c.type.in_,
    "state": _is_stale,
    "createdBy": _created_by,
    "tag": _has_tag,
    "segment": _has_segment,
}
"""Parameter → the condition that a feature has one of several values."""


ANY, ALL, NONE, NOT_ALL = (False, False), (True, False), (False, True), (True, True)
"""Whether a feature must have every value, and whether the opposite is wanted."""
SEARCH_OPERATORS = {
    "IS": ANY,
    "IS_ANY_OF": ANY,
    "IS_NOT": NONE,
    "IS_NONE_OF": NONE,
    "INCLUDE": ANY,
    "INCLUDE_ANY_OF": ANY,
    "INCLUDE_ALL_OF": ALL,
    "DO_NOT_INCLUDE": NONE,
    "EXCLUDE_IF_ANY_OF": NONE,
    "EXCLUDE_ALL": NOT_ALL,
}


def _condition(name: str, operator: str, values: Sequence[str]) -> Condition:
    """Return the condition of a filter of FILTERS."""
    every, negated = SEARCH_OPERATORS[operator]
    found = and_(*(FILTERS[name]([value]) for value in values)) if every else FILTERS[name](values)
    return ~found if negated else found


def _to_json(tx: Tx, rows: Sequence[Row[Any]]) -> list[Json]:
    names = [row.name for row in rows]
    known = names_of(tx, (row.created_by_id for row in rows if row.created_by_id is not None))
    kinds, used = _dependency_types(tx, names), _segments_of(tx, names)
    counts = counts_of(tx, names)
    return [
        overview
        | {
            "project": row.project,
            "archivedAt": format_time(row.archived_at),
            "dependencyType": kinds.get(row.name),
            "environments": [
                {**each, **counts[row.name, each["name"]], "changeRequestIds": []} for each in overview["environments"]
            ],
            "segments": used.get(row.name, []),
        }
        | created_by(row, known)
        for row, overview in zip(rows, list_overviews(tx, rows), strict=True)
    ]


def _dependency_types(tx: Tx, names: Sequence[str]) -> dict[str, str]:
    """Return for features whether they are a parent or a child; those that are neither have no entry."""
    found: dict[str, str] = {}
    for kind, column in (("child", dependencies.c.child), ("parent", dependencies.c.parent)):
        found |= {name: kind for (name,) in rows_in(tx, select(column), column, names)}
    return found


def _segments_of(tx: Tx, names: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    query = select(strategies.c.feature, segments.c.name).select_from(USED_SEGMENTS)
    query = query.distinct().order_by(segments.c.name)
    for feature, name in rows_in(tx, query, strategies.c.feature, names):
        found[feature].append(name)
    return found
