"""What was changed, who changed it and how: events as sentences, with what was before and after."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from flagsvc.server.api.admin.search import read_number
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.errors import invalid
from flagsvc.server.pages.flags import MAX_PAGE, PAGE_SIZE
from flagsvc.server.pages.page import page
from flagsvc.server.store.event_kinds import ROWS, list_changes
from flagsvc.server.store.resources import environments, events
from flagsvc.server.store.resources.events import EventSearch, read_day
from flagsvc.server.store.undo.table import row_of

EXACT = ("feature", "project", "environment", "type", "groupId")
"""Filters of the address that are one value of the search's filter of the same name."""
DAYS = ("from", "to")
FILTERS = ("q", *EXACT, *DAYS)
"""What the address may have besides the number of the page."""


def show(call: ApiCall) -> ApiAnswer:
    """Return a page of events, the newest first. Without the permission ADMIN these are events of projects only."""
    given = {name: text for name in FILTERS if (text := (call.first_value(name) or "").strip())}
    number = read_number(call.first_value("page"), 1, least=1, most=MAX_PAGE)
    wanted = EventSearch(
        text=given.get("q", ""),
        filters={name: [given[name]] for name in EXACT if name in given},
        since=read_date(given, "from"),
        until=read_date(given, "to"),
        all_projects=call.actor.may("ADMIN"),
        offset=(number - 1) * PAGE_SIZE,
        limit=PAGE_SIZE,
    )
    with call.store.reading() as tx:
        found, total = events.search(tx, wanted)
        places = [each["name"] for each in environments.list_all(tx)]
    data = {
        "events": [show_event(each) for each in found],
        "total": total,
        "page": number,
        "pages": max(1, -(-total // PAGE_SIZE)),
        "filters": {name: given.get(name, "") for name in FILTERS},
        "choices": {
            "environment": [{"value": each, "text": each} for each in places],
            "type": [{"value": each.type, "text": each.label} for each in ROWS],
        },
        "address": urlencode(given),
    }
    return ApiAnswer(data)


def show_event(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event with its words, what it changed, and why it cannot be undone (empty where it can)."""
    row = row_of(event["type"])
    reason = "" if row.subject is not None else row.reason
    return event | {
        "words": plain(event["summary"]),
        "changes": list_changes(event["before"], event["after"]),
        "kept": reason,
    }


def read_date(given: dict[str, str], name: str) -> Any:
    """Return a day of the address; None without one. Raises ApiError (400) for a day that does not exist."""
    if name not in given:
        return None
    try:
        return read_day(given[name])
    except ValueError:
        message = f"The `{name}` of the address must be a day as 2026-01-31, not {given[name][:20]}"
        raise invalid([{"message": message}]) from None


def plain(summary: str) -> str:
    """Return the sentence of an event without the marks around its names."""
    return summary.replace("**", "")


ROUTES = (page("/history", show, "history.html", "What was changed, who changed it and how."),)
