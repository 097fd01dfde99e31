"""The palette: goes to a flag or a page by its name. It is a page, and a part of it fills the dialog of `palette.js`."""

from __future__ import annotations

from flagsvc.http.answers import Answer
from flagsvc.pages.templates import Section, segment
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.routes import OPERATIONS
from flagsvc.server.pages.page import SITE, page, settings_of
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import favorites
from flagsvc.server.store.resources.feature_search import find_by_name
from flagsvc.server.store.store import Tx

MOST_FLAGS = 8
LONGEST = 200
"""The most characters of a text that count."""
MORE = {
    "createFeature": Section("Create flag", "/new-flag", "plus"),
    "createApiToken": Section("Create token", "/tokens/new", "plus"),
}
"""Operation of the admin API → the page of its form, which is no section and no setting."""


def list_pages(actor: Actor) -> list[Section]:
    """Return each page that the palette knows, once, without what an actor may never do."""
    settings = [Section(each.title, each.path, "settings") for pages in settings_of(actor).values() for each in pages]
    more = [each for operation, each in MORE.items() if any(map(actor.may_ever, permissions_of(operation)))]
    return list({each.path: each for each in (*settings, *more, *SITE.sections)}.values())


def permissions_of(operation: str) -> tuple[str, ...]:
    """Return the permissions of which an operation of the admin API needs one."""
    needed = OPERATIONS[operation].permission
    return (needed,) if isinstance(needed, str) else needed


def show(call: ApiCall) -> Answer:
    """Return the flags and the pages whose names have every word that was typed; without a word, favorites and all pages."""
    text = (call.first_value("q") or "").strip()[:LONGEST]
    words = text.split()
    with call.store.reading() as tx:
        flags = list_flags(call, tx, words)
    wanted = [each.casefold() for each in words]
    pages = [
        {"title": row.title, "path": row.path, "icon": row.icon}
        for row in list_pages(call.actor)
        if all(each in row.title.casefold() for each in wanted)
    ]
    return Answer({"q": text, "flags": flags, "pages": pages, "part": call.first_value("part") is not None})


def list_flags(call: ApiCall, tx: Tx, words: list[str]) -> list[Json]:
    """Return flags by their names, the favorites of the caller first; without a word, only the favorites."""
    starred = favorites.names_of(tx, call.actor)
    found = find_by_name(tx, words, MOST_FLAGS, call.actor.id if starred else None)
    return [
        {"name": name, "project": project, "favorite": name in starred, "path": f"/flags/{segment(name)}"}
        for name, project in found
        if words or name in starred
    ]


ROUTES = (page("/palette", show, "palette.html", "Flags and pages by their names."),)
