"""The list of flags: all environments beside each other, in words, with search and filters in the address."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from flagsvc.http.answers import Answer
from flagsvc.pages.templates import line_points
from flagsvc.server.api.admin.features import TYPES
from flagsvc.server.api.admin.search import read_number
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages import favourites
from flagsvc.server.pages.first_steps import list_steps
from flagsvc.server.pages.page import page
from flagsvc.server.store.resources import environments, features, projects, usage
from flagsvc.server.store.resources.feature_search import FeatureSearch
from flagsvc.server.store.resources.feature_views import sentences_of
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import split_words

SWITCH = "UPDATE_FEATURE_ENVIRONMENT"
"""The permission that a switch needs."""
PAGE_SIZE = 50
MAX_PAGE = 1_000_000
HEIGHT = 20
"""The height of the line of a flag's usage, in the units of its picture."""
PLAIN_FILTERS = ("project", "type", "state")
"""Filters of the address that are one value of the search's filter of the same name."""
FILTERS = ("q", *PLAIN_FILTERS, "tag", "archived", "unseen", "sort", "order")
"""What the address may have besides the number of the page."""
SORTS = ("name", "type", "project", "createdAt", "lastSeenAt")


def read_filters(call: ApiCall, names: Iterable[str]) -> dict[str, str]:
    """Return what the address says of filters, without what is empty."""
    return {name: text for name in names if (text := (call.first_value(name) or "").strip())}


def show(call: ApiCall) -> Answer:
    """Return a page of the list."""
    given = read_filters(call, FILTERS)
    number = read_number(call.first_value("page"), 1, least=1, most=MAX_PAGE)
    with call.store.reading() as tx:
        found = favourites.search(call, tx, read_search(given, number))
        data = {
            "flags": add_usage(tx, add_rights(call, describe(tx, found["features"]))),
            "total": found["total"],
            "empty": "" if found["total"] else why_empty(tx, given),
            "page": number,
            "pages": max(1, -(-found["total"] // PAGE_SIZE)),
            "filters": {name: given.get(name, "") for name in FILTERS},
            "environments": [
                {"name": each["name"], "protected": is_protected(each["type"])} for each in environments.list_plain(tx)
            ],
            "choices": choices(tx),
            "first_steps": list_steps(call, tx),
            "favourites": found["favourites_first"],
        }
    place = given | ({"page": str(number)} if number > 1 else {})
    back = "/flags" + ("?" if place else "") + urlencode(place)
    return Answer(data | {"address": urlencode(given), "back": back, "hours": usage.SHOW_HOURS})


def why_empty(tx: Tx, given: dict[str, str]) -> str:
    """Return why the list is empty: the `server` has no flags, all of them are `archived`, or none fits the `filters`."""
    if not features.has_any(tx):
        return "server"
    return "filters" if given else "archived"


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


def describe(tx: Tx, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return features with their words in each environment."""
    words = sentences_of(tx, [each["name"] for each in found])
    for feature in found:
        feature.setdefault("tags", [])
        for state in feature["environments"]:
            strategies = words.get((feature["name"], state["name"]), [])
            state["words"] = [each["words"] for each in strategies if not each["disabled"]]
            state["protected"] = is_protected(state["type"])
    return found


def add_rights(call: ApiCall, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return features with whether the caller may switch them, in each environment."""
    for feature in found:
        for state in feature["environments"]:
            state["may_switch"] = may(call, SWITCH, feature["project"], state["name"])
    return found


def add_usage(tx: Tx, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return features with how often they were asked for: in each of the last hours, as a line, and on and off in this hour."""
    hours = usage.sum_by_hour(tx, [each["name"] for each in found])
    for feature in found:
        feature["asked"] = hours.get(feature["name"], [])
        feature["line"] = line_points(feature["asked"], HEIGHT)
        feature |= {answer: sum([each[answer] for each in feature["environments"]]) for answer in ("yes", "no")}
    return found


def may(call: ApiCall, permission: str, project: str, environment: str) -> bool:
    return call.actor.may(permission, project=project, environment=environment)


def is_protected(kind: str) -> bool:
    """Return whether pages ask before they switch a flag in an environment of this type."""
    return kind == environments.ASKS_FIRST


def project_choices(tx: Tx) -> list[dict[str, str]]:
    return [{"value": each["id"], "text": each["name"]} for each in projects.list_names(tx)]


def environment_choices(tx: Tx) -> list[dict[str, str]]:
    return [{"value": each["name"], "text": each["name"]} for each in environments.list_plain(tx)]


def choices(tx: Tx) -> dict[str, list[dict[str, str]]]:
    """Return what the filters offer."""
    return {
        "project": project_choices(tx),
        "type": [{"value": identity, "text": name} for identity, name, *_ in TYPES],
        "state": [{"value": "active", "text": "active"}, {"value": "stale", "text": "stale"}],
    }


ROUTES = (page("/flags", show, "flags.html", "The list of flags."),)
