"""`/api/admin/search/features`: searches features of all projects, with filters, order and pages."""

from __future__ import annotations

import re

from flagsvc.http.answers import Answer
from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Enum, Shape, String, check
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.shapes import feature_bodies as shapes
from flagsvc.server.store.resources import favorites, feature_search
from flagsvc.server.store.resources.feature_search import DEFAULT_LIMIT, MAX_LIMIT, FeatureSearch
from flagsvc.server.store.texts import split_words

IS = "^(IS|IS_NOT|IS_ANY_OF|IS_NONE_OF):(.*?)(,([a-zA-Z0-9_]+))*$"
LISTS = "(INCLUDE|DO_NOT_INCLUDE|INCLUDE_ALL_OF|INCLUDE_ANY_OF|EXCLUDE_IF_ANY_OF|EXCLUDE_ALL)"
PATTERNS: dict[str, str] = {
    **dict.fromkeys(("project", "state", "type", "createdBy"), IS),
    "tag": rf"^{LISTS}:([^:,]+:.+?)(,\s*[^:,]+:.+?)*$",
    "segment": f"^{LISTS}:(.*?)(,([a-zA-Z0-9_]+))*$",
    "archived": "^IS:(true|false)$",
}
"""Parameter → the pattern of its text."""
SHAPES: dict[str, Shape] = {name: String(pattern=pattern) for name, pattern in PATTERNS.items()} | {
    "sortOrder": Enum("asc", "desc")
}
"""Parameter → its shape."""
MAX_OFFSET = 2**31
NUMBER = re.compile(r"\s*\+?\d{1,18}", re.ASCII)


def search(call: ApiCall) -> Answer:
    """Answer a page of features."""
    given = {name: text for name in SHAPES if (text := call.first_value(name)) is not None}
    for name, text in given.items():
        check(SHAPES[name], text, f"/query/{name}")
    wanted = FeatureSearch(
        words=split_words(call.first_value("query") or ""),
        filters={name: text for name, text in given.items() if name in feature_search.FILTERS},
        archived=given.get("archived") == "IS:true",
        sort_by=call.first_value("sortBy") or "",
        descending=given.get("sortOrder") == "desc",
        offset=read_number(call.first_value("offset"), 0, least=0, most=MAX_OFFSET),
        limit=read_number(call.first_value("limit"), DEFAULT_LIMIT, least=1, most=MAX_LIMIT),
        first_of=call.actor.id if call.first_value("favoritesFirst") == "true" and call.actor.is_user else None,
    )
    with call.store.reading() as tx:
        found = feature_search.search(tx, wanted)
        favorites.mark(tx, call.actor, found["features"])
    return Answer(found)


def read_number(text: str | None, default: int, *, least: int, most: int) -> int:
    """Return the number at the beginning of a text; `default` without one, or for one out of bounds."""
    found = NUMBER.match(text or "")
    value = int(found[0]) if found else default
    return value if least <= value <= most else default


FILTER = "`OPERATOR:value,value`, the operator {}."
ROUTES = (
    Route(
        path="/api/admin/search/features",
        handler=search,
        operation="searchFeatures",
        summary="Search features",
        tag="Search",
        query=(
            Parameter("query", "Only features with one of these words, separated by commas, in name, description or a tag."),
            *(Parameter(name, FILTER.format("IS, IS_NOT, …")) for name in ("project", "state", "type", "createdBy")),
            *(Parameter(name, FILTER.format("INCLUDE, EXCLUDE_ALL, …")) for name in ("tag", "segment")),
            Parameter("archived", "`IS:true`: only archived features, else only active ones."),
            Parameter("sortBy", "name, type, project, stale, impressionData, createdAt or archivedAt."),
            Parameter("sortOrder", "asc or desc."),
            Parameter("favoritesFirst", "`true`: the favorites of the caller come first."),
            Parameter("offset", "How many features to skip."),
            Parameter("limit", f"How many features to return, {DEFAULT_LIMIT} by default, {MAX_LIMIT} at most."),
        ),
        result=shapes.SEARCH_RESULT,
    ),
)
