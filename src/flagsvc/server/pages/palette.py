"""The palette: goes to a flag or a page by its name. It is a page, and a part of it fills the dialog of `palette.js`."""

from __future__ import annotations

from flagsvc.http.answers import Answer
from flagsvc.pages.templates import Section, segment
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.page import SETTINGS, SITE, page
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import favorites
from flagsvc.server.store.resources.feature_search import find_by_name
from flagsvc.server.store.store import Tx

MOST_FLAGS = 8
LONGEST = 200
"""The most characters of a text that count."""
MORE = (Section("Create flag", "/new-flag", "plus"), Section("Create token", "/tokens/new", "plus"))
"""Pages that are no section and no setting."""
OF_SETTINGS = [Section(each.title, each.path, "settings") for pages in SETTINGS.values() for each in pages]
PAGES = {each.path: each for each in (*OF_SETTINGS, *MORE, *SITE.sections)}
"""Path → each page that the palette knows, once."""


def show(call: ApiCall) -> Answer:
    """Return the flags and the pages whose names have every word that was typed; without a word, favorites and all pages."""
    text = (call.first_value("q") or "").strip()[:LONGEST]
    words = text.split()
    with call.store.reading() as tx:
        flags = list_flags(call, tx, words)
    wanted = [each.casefold() for each in words]
    pages = [row._asdict() for row in PAGES.values() if all(each in row.title.casefold() for each in wanted)]
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
