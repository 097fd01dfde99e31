"""The list of flags: all environments beside each other, in words, with search and filters in the address."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from flagsvc.server.api.admin.feature_types import TYPES
from flagsvc.server.api.admin.search import read_number
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.page import page
from flagsvc.server.store.resources import environments, feature_search, projects
from flagsvc.server.store.resources.feature_search import FeatureSearch
from flagsvc.server.store.resources.flag_sentences import sentences_of
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import split_words

PAGE_SIZE = 50
MAX_PAGE = 1_000_000
PLAIN_FILTERS = ("project", "type", "state")
"""Filters of the address that are one value of the search's filter of the same name."""
FILTERS = ("q", *PLAIN_FILTERS, "tag", "archived", "unseen", "sort", "order")
"""What the address may have besides the number of the page."""
SORTS = ("name", "type", "project", "createdAt", "lastSeenAt")


def show(call: ApiCall) -> ApiAnswer:
    """Return a page of the list."""
    given = {name: text for name in FILTERS if (text := (call.first_value(name) or "").strip())}
    number = read_number(call.first_value("page"), 1, least=1, most=MAX_PAGE)
    with call.store.reading() as tx:
        found = feature_search.search(tx, read_search(given, number))
        data = {
            "flags": describe(tx, found["features"]),
            "total": found["total"],
            "page": number,
            "pages": max(1, -(-found["total"] // PAGE_SIZE)),
            "filters": {name: given.get(name, "") for name in FILTERS},
            "environments": [
                {"name": each["name"], "protected": is_protected(each["type"])} for each in environments.list_all(tx)
            ],
            "choices": choices(tx),
        }
    return ApiAnswer(data | {"address": urlencode(given)})


def read_search(given: dict[str, str], number: int) -> FeatureSearch:
    """Return the search for the filters of an address. `number` counts pages from 1."""
    filters = {name: f"IS:{given[name]}" for name in PLAIN_FILTERS if name in given}
    if "tag" in given:
        filters["tag"] = f"INCLUDE:{given['tag']}"
    sort = given.get("sort", "")
    return FeatureSearch(
        words=split_words(given.get("q", "")),
        filters=filters,
        archived=given.get("archived") == "true",
        unseen_days=read_number(given.get("unseen"), 0, least=0, most=36_500),
        sort_by=sort if sort in SORTS else "name",
        descending=given.get("order") == "desc",
        offset=(number - 1) * PAGE_SIZE,
        limit=PAGE_SIZE,
    )


def describe(tx: Tx, features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return features with their words in each environment."""
    words = sentences_of(tx, [each["name"] for each in features])
    for feature in features:
        feature.setdefault("tags", [])
        for state in feature["environments"]:
            strategies = words.get((feature["name"], state["name"]), [])
            state["words"] = [each["words"] for each in strategies if not each["disabled"]]
            state["protected"] = is_protected(state["type"])
    return features


def is_protected(kind: str) -> bool:
    """Return whether pages ask before they switch a flag in an environment of this type."""
    return kind == environments.ASKS_FIRST


def choices(tx: Tx) -> dict[str, list[dict[str, str]]]:
    """Return what the filters offer."""
    return {
        "project": [{"value": each["id"], "text": each["name"]} for each in projects.list_all(tx)],
        "type": [{"value": identity, "text": name} for identity, name, *_ in TYPES],
        "state": [{"value": "active", "text": "active"}, {"value": "stale", "text": "stale"}],
    }


ROUTES = (page("/flags", show, "flags.html", "The list of flags."),)
