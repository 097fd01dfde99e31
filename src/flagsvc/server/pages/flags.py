"""The list of flags: environments beside each other, in few words, with the search and its filters in the address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from urllib.parse import urlencode

from flagsvc.http.answers import Answer
from flagsvc.pages.templates import line_points
from flagsvc.reasons.chips import join_chips
from flagsvc.server.api.admin.features import TYPES
from flagsvc.server.api.admin.search import read_number
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages import favourites
from flagsvc.server.pages.first_steps import list_steps
from flagsvc.server.pages.flag_search import (
    ADDRESS,
    ARCHIVED,
    PAGE_SIZE,
    SORT,
    SORTS,
    read_query,
    read_search,
)
from flagsvc.server.pages.flag_view import MANY, read_view, show_environments
from flagsvc.server.pages.page import page
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import environments, features, projects, usage
from flagsvc.server.store.resources.feature_views import sentences_of
from flagsvc.server.store.store import Tx

SWITCH = "UPDATE_FEATURE_ENVIRONMENT"
"""The permission that a switch needs."""
OF_FLAG = ("UPDATE_FEATURE", "DELETE_FEATURE")
TICKING = (SWITCH, *OF_FLAG)
"""The permissions of which one lets somebody tick a flag."""
MAX_PAGE = 1_000_000
HEIGHT = 20
"""The height of the line of a flag's usage, in the units of its picture."""
HEADS = {"name": "name", "lastSeenAt": "-lastSeenAt"}
"""Column whose head sorts → the order that a first press gives."""


def read_filters(call: ApiCall, names: Iterable[str]) -> dict[str, str]:
    """Return what the address says of filters, without what is empty."""
    return {name: text for name in names if (text := (call.first_value(name) or "").strip())}


def show(call: ApiCall) -> Answer:
    """Return a page of the list."""
    given = read_filters(call, ADDRESS)
    query, view = read_query(given), read_view(call)
    number = read_number(call.first_value("page"), 1, least=1, most=MAX_PAGE)
    with call.store.reading() as tx:
        known = production_first(environments.list_plain(tx))
        shown = show_environments(view, known)
        found = favourites.search(call, tx, read_search(given, number))
        flags = describe(tx, found["features"], [each["name"] for each in shown])
        data = {
            "flags": add_usage(tx, add_rights(call, flags)),
            "total": found["total"],
            "empty": "" if found["total"] else why_empty(tx, given),
            "page": number,
            "pages": max(1, -(-found["total"] // PAGE_SIZE)),
            "filters": {name: given.get(name, "") for name in ADDRESS},
            "active": [{"words": each.words, "without": each.without} for each in query.filters],
            "problems": query.problems,
            "environments": [{"name": each["name"], "protected": is_protected(each["type"])} for each in shown],
            "offered": [{"name": each["name"], "shown": each in shown} for each in known],
            "dense": {"chosen": view.dense, "used": view.dense or len(shown) > MANY},
            "heads": heads_of(given),
            "may_tick": call.actor.may(SWITCH) or any(each.permission in TICKING for each in call.actor.grants),
            "choices": choices(tx, ARCHIVED),
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
    return "filters" if given.keys() - {SORT} else "archived"


def heads_of(given: Mapping[str, str]) -> dict[str, Json]:
    """Return for each column that sorts the address that a press on its head leads to, and how it sorts now."""
    now = given.get(SORT) or "name"
    found = {}
    for column, first in HEADS.items():
        other = column if first != column else f"-{column}"
        is_sorted = now in (first, other)
        direction = "" if not is_sorted else "descending" if now.startswith("-") else "ascending"
        found[column] = {"address": urlencode({**given, SORT: other if now == first else first}), "sort": direction}
    return found


def describe(tx: Tx, found: list[Json], shown: Sequence[str] | None = None) -> list[Json]:
    """Return features with what they do in each environment; with `shown`, only in these environments."""
    sentences = sentences_of(tx, [each["name"] for each in found], shown)
    for feature in found:
        states = production_first(feature["environments"])
        feature["environments"] = [each for each in states if shown is None or each["name"] in shown]
        feature.setdefault("tags", [])
        for state in feature["environments"]:
            active = [each for each in sentences.get((feature["name"], state["name"]), ()) if not each["disabled"]]
            state["words"] = [each["words"] for each in active]
            state["chips"] = join_chips([each["chips"] for each in active], state["variantCount"])
            state["protected"] = is_protected(state["type"])
    return found


def add_rights(call: ApiCall, found: list[Json]) -> list[Json]:
    """Return features with whether the caller may switch them, in each environment, and change them at all."""
    allowed = cache(call.actor.may)
    for feature in found:
        for state in feature["environments"]:
            state["may_switch"] = allowed(SWITCH, feature["project"], state["name"])
        may_switch = any(each["may_switch"] for each in feature["environments"])
        feature["may_tick"] = may_switch or any(allowed(each, feature["project"]) for each in OF_FLAG)
    return found


def add_usage(tx: Tx, found: list[Json]) -> list[Json]:
    """Return features with how often they were used in each of the last hours, also as a line."""
    hours = usage.sum_by_hour(tx, [each["name"] for each in found])
    for feature in found:
        feature["asked"] = hours.get(feature["name"], [])
        feature["line"] = line_points(feature["asked"], HEIGHT)
    return found


def may(call: ApiCall, permission: str, project: str, environment: str) -> bool:
    return call.actor.may(permission, project=project, environment=environment)


def is_protected(kind: str) -> bool:
    """Return whether pages ask before they switch a flag in an environment of this type."""
    return kind == environments.ASKS_FIRST


def production_first(states: Iterable[Json]) -> list[Json]:
    """Return environments, or states of a flag, as pages order them: those in which pages ask come first."""
    return sorted(states, key=lambda each: not is_protected(each["type"]))


def project_choices(tx: Tx) -> list[dict[str, str]]:
    return [{"value": each["id"], "text": each["name"]} for each in projects.list_names(tx)]


def environment_choices(tx: Tx) -> list[dict[str, str]]:
    return [{"value": each["name"], "text": each["name"]} for each in environments.list_plain(tx)]


def choices(tx: Tx, *states: str) -> dict[str, list[dict[str, str]]]:
    """Return what the filters offer; `states` beside those of active flags."""
    return {
        "project": project_choices(tx),
        "type": [{"value": identity, "text": name} for identity, name, *_ in TYPES],
        "state": [{"value": each, "text": each} for each in ("active", "stale", *states)],
        "sort": [{"value": value, "text": text} for value, text in SORTS.items()],
    }


ROUTES = (page("/flags", show, "flags.html", "The list of flags."),)
