"""What was changed, who changed it and how: events as sentences, with what was before and after, and as JSON lines.

A page that saves nothing because someone else changed the same meanwhile says who that was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from flagsvc.core.direction import isolate_marked
from flagsvc.http.answers import Answer, encode
from flagsvc.pages.headers import PAGE_HEADERS
from flagsvc.server.api.admin.events import ID
from flagsvc.server.api.admin.search import read_number
from flagsvc.server.api.authorization import PAGES
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.errors import invalid
from flagsvc.server.pages.edits import Look
from flagsvc.server.pages.flag_search import PAGE_SIZE
from flagsvc.server.pages.flags import MAX_PAGE, environment_choices, read_filters
from flagsvc.server.pages.page import page, raw
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_kinds import ROWS, WHOLE_ACTION, Undo, kind_of
from flagsvc.server.store.event_views import WAYS, Side, list_changes
from flagsvc.server.store.resources import events
from flagsvc.server.store.resources.events import EventSearch, read_day
from flagsvc.server.store.store import Tx

EXACT = ("feature", "project", "environment", "type", "way", "groupId")
"""Filters of the address that are one value of the search's filter of the same name."""
ACTOR, BEFORE = "createdBy", "before"
DAYS = ("from", "to")
LAST = "last"
RANGES: Final = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
"""What LAST may be. It counts where no day is given."""
FILTERS = ("q", *EXACT, ACTOR, *DAYS, LAST)
"""What the address may have besides the number of the page."""
WORDS: Final = {
    "feature": "flag",
    "project": "project",
    "environment": "environment",
    "type": "what",
    ACTOR: "who",
    "way": "how",
    "groupId": "done together",
    "from": "from",
    "to": "to",
}
"""Filter → what the page calls it."""
LAST_EVENTS: Final = 10_000
"""The events whose authors the filter offers: to look at all of 100,000 takes 80 ms."""
LINES: Final = "/history.jsonl"
MOST_LINES: Final = 10_000
MOST_BYTES: Final = 16 * 2**20
"""The most events in a file of them, and the size after which it takes no further one."""


def show(call: ApiCall) -> Answer:
    """Return a page of events, the newest first. Without the permission ADMIN these are events of projects only."""
    given = read_given(call)
    number = read_number(call.first_value("page"), 1, least=1, most=MAX_PAGE)
    wanted = replace(read_search(call, given), offset=(number - 1) * PAGE_SIZE, limit=PAGE_SIZE)
    with call.store.reading() as tx:
        found, total = events.search(tx, wanted)
        kinds = events.count_kinds(tx, {each["groupId"] for each in found if "groupId" in each})
        offered = choices(tx, given)
    data = {
        "events": [show_event(call.actor, each, kinds.get(each.get("groupId", ""), {each["type"]: 1})) for each in found],
        "total": total,
        "page": number,
        "pages": max(1, -(-total // PAGE_SIZE)),
        "most_lines": MOST_LINES,
        "filters": {name: given.get(name, "") for name in FILTERS},
        "choices": offered,
        "active": list(describe_filters(given, offered)),
        "address": urlencode(given),
        "ranges": [describe_range(given, each) for each in RANGES],
    }
    return Answer(data)


def read_given(call: ApiCall) -> dict[str, str]:
    """Return the filters of the address that count."""
    given = read_filters(call, FILTERS)
    return without(given, LAST) if any(each in given for each in DAYS) else given


def without(given: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in given.items() if name not in names}


def describe_range(given: dict[str, str], name: str) -> Json:
    """Return the filters for the last hour, day or week, as an address, and whether they are chosen."""
    address = urlencode(without(given, *DAYS) | {LAST: name})
    return {"name": name, "address": address, "chosen": given.get(LAST) == name}


def describe_filters(given: dict[str, str], offered: dict[str, list[dict[str, str]]]) -> Iterator[Json]:
    """Give the filters that are on: each in words, and the address without it."""
    texts = {(name, each["value"]): each["text"] for name, rows in offered.items() for each in rows}
    for name, word in WORDS.items():
        if name in given:
            yield {"words": f"{word}: {texts.get((name, given[name]), given[name])}", "without": urlencode(without(given, name))}


def read_search(call: ApiCall, given: dict[str, str]) -> EventSearch:
    """Return the search for filters. Raises ApiError (400) for one that means nothing."""
    filters: dict[str, Sequence[str | int]] = {name: [given[name]] for name in EXACT if name in given}
    actor = read_id(given.get(ACTOR, ""), ACTOR)
    return EventSearch(
        text=given.get("q", ""),
        filters=filters | ({} if actor is None else {ACTOR: [actor]}),
        since=read_range(call, given) or read_date(given, "from"),
        until=read_date(given, "to"),
        all_projects=call.actor.may("ADMIN"),
    )


def choices(tx: Tx, given: dict[str, str]) -> dict[str, list[dict[str, str]]]:
    """Return what the filters offer: of the users those who made one of the last events, and the one of the address."""
    authors = {str(each["id"]): each["name"] for each in events.list_creators(tx, LAST_EVENTS)}
    if ACTOR in given:
        authors.setdefault(given[ACTOR], f"user {given[ACTOR]}")
    return {
        "environment": environment_choices(tx),
        "type": [{"value": each.type, "text": each.label} for each in ROWS],
        ACTOR: [{"value": number, "text": name} for number, name in authors.items()],
        "way": [{"value": each, "text": each} for each in WAYS],
    }


def export(call: ApiCall) -> Answer:
    """Return the newest events that fit the filters, a line of JSON for each. A header links to the rest, if there is one."""
    given = read_given(call)
    wanted = replace(read_search(call, given), before=read_id(call.first_value(BEFORE) or "", BEFORE))
    lines: list[bytes] = []
    size, last, more = 0, 0, False
    with call.store.reading() as tx:
        for event in events.walk(tx, wanted):
            more = len(lines) == MOST_LINES or size >= MOST_BYTES
            if more:
                break
            lines.append(encode(event) + b"\n")
            size, last = size + len(lines[-1]), event["id"]
    following = f'<{call.root}{PAGES}{LINES}?{urlencode(given | {BEFORE: str(last)})}>; rel="next"'
    name = (b"content-disposition", b'attachment; filename="history.jsonl"')
    link = [(b"link", following.encode())] * more
    return Answer(b"".join(lines), headers=(*PAGE_HEADERS, name, *link))


def show_event(actor: Actor, event: dict[str, Any], kinds: Mapping[str, int]) -> dict[str, Any]:
    """Return an event with its words, what it changed, and why it cannot be undone (empty where it can).

    `kinds` counts the events that were done `together` with it, by type. `may_undo` tells that a role of the actor allows the
    undo of the event somewhere, and `may_undo_all` that of all of them.
    """
    kind = kind_of(event["type"])
    may_undo_all = all(may_ever_undo(actor, each) for each in kinds)
    return event | {
        "words": isolate_marked(event["summary"]),
        "changes": list_changes(event["before"], event["after"]),
        "kept": kind.undo if isinstance(kind.undo, str) else "",
        "together": sum(kinds.values()),
        "may_undo": may_undo_all if kind.subject is WHOLE_ACTION else may_ever_undo(actor, event["type"]),
        "may_undo_all": may_undo_all,
    }


def may_ever_undo(actor: Actor, kind: str) -> bool:
    """Return whether a kind of events can be undone, and a role of the actor allows it somewhere."""
    undo = kind_of(kind).undo
    return isinstance(undo, Undo) and (not undo.permissions or any(map(actor.may_ever, undo.permissions)))


def read_range(call: ApiCall, given: dict[str, str]) -> datetime | None:
    """Return when the last hour, day or week began; None without such a filter. Raises ApiError (400) for any other."""
    if LAST not in given:
        return None
    if given[LAST] not in RANGES:
        raise unreadable(LAST, "hour, day or week", given[LAST])
    return call.store.now() - RANGES[given[LAST]]


def read_date(given: dict[str, str], name: str) -> Any:
    """Return a day of the address; None without one. Raises ApiError (400) for a day that does not exist."""
    if name not in given:
        return None
    try:
        return read_day(given[name])
    except ValueError:
        raise unreadable(name, "a day as 2026-01-31", given[name]) from None


def read_id(text: str, name: str) -> int | None:
    """Return a number of the address; None for an empty text. Raises ApiError (400) for what is none."""
    if text and not ID.fullmatch(text):
        raise unreadable(name, "a whole number", text)
    return int(text) if text else None


def unreadable(name: str, wanted: str, given: str) -> Exception:
    """Return the error (400) for a filter that means nothing."""
    return invalid([{"message": f"The `{name}` of the address must be {wanted}, not {given[:20]}"}])


ROUTES = (
    page("/history", show, "history.html", "What was changed, who changed it and how."),
    raw(LINES, export, "The events that fit the filters, as JSON lines.", "application/jsonl"),
)


Identity: TypeAlias = str | int | None
Part: TypeAlias = Callable[[Json, Identity], object]


def _whole(side: Json, identity: Identity) -> object:
    return side


def _named_by(*members: str) -> Part:
    """Return what takes a side of an event whose member has the identity as its value; nothing of any other one."""
    return lambda side, identity: side if identity in [side.get(each) for each in members] else None


def _order(side: Json, identity: Identity) -> object:
    return side.get("sortOrder")


def _roles(side: Json, identity: Identity) -> object:
    return [each.get("roles") for each in side.get("users", [side]) if each.get("userId") == identity]


def _link(side: Json, identity: Identity) -> object:
    return [each for each in side.get("links", ()) if each["id"] == identity]


THINGS: Final[Mapping[str, Part]] = {
    "strategy": _named_by("id"),
    "link": _link,
    "segment": _named_by("id"),
    "context field": _named_by("name"),
    "tag type": _named_by("name"),
    "tag type with its tags": _named_by("name", "type"),
    "strategy type": _named_by("name"),
    "roles": _roles,
    "user": _named_by("id"),
    "webhook": _named_by("id"),
    "order": _order,
}
"""Thing on a page → what takes it from a side of an event. An event whose two sides have the same part did not change it."""


def last_change(call: ApiCall, tx: Tx, look: Look, name: str, identity: Identity = None, **place: str) -> Json | None:
    """Return the last change of a thing, as kinds of events name it in `changes`: its `words`, and `at`, when it was.

    `identity` is the id or the name of the thing, `place` its feature, environment or project. None where the page tells of no
    change, where the event is deleted by its age, and where the caller may not see it: events of no project need the permission
    ADMIN.
    """
    if not (look.conflict or look.by_whom):
        return None
    part = THINGS.get(name, _whole)

    def changes(before: Side, after: Side) -> bool:
        return part(dict(before or {}), identity) != part(dict(after or {}), identity)

    types = [each.type for each in ROWS if name in each.changes]
    found = events.find_last(tx, types, changes, **place)
    if found is None or (found["project"] is None and not call.actor.may("ADMIN")):
        return None
    return {"words": isolate_marked(found["summary"]), "at": found["createdAt"]}
