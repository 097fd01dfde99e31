"""A page that saves nothing because of another change says who made that change, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from flagsvc.server.store.schema import events
from support.flagservers import EDITOR_SECRET
from support.page_forms import PageClient, page_client
from support.processes import Answer

STRATEGIES = "/api/admin/projects/default/features/a/environments/development/strategies"
LIST = "/ui/flags/a/development/strategies"
GIVEN: dict[str, Any] = {
    "features": [{"name": "a"}, {"name": "b"}],
    "segments": [{"name": "first", "constraints": []}, {"name": "second", "constraints": []}],
}


@pytest.fixture
def pages(database_url: str) -> Iterator[PageClient]:
    """Give a server with flags and segments, on each kind of database."""
    with page_client(database_url, GIVEN) as client:
        yield client


def require_told(answer: Answer, sentence: str) -> None:
    """Check that a page of a conflict tells a change, and the time of it."""
    assert answer.status == 409
    assert re.search(re.escape(sentence) + ', <time datetime="20[^"]+">20', answer.text), answer.text


def strategies(pages: PageClient) -> tuple[str, str]:
    """Add two strategies, and return the addresses of their pages."""
    given = [pages.client.post(STRATEGIES, {"name": "default", "title": title}).json() for title in ("one", "two")]
    return f"{LIST}/{given[0]['id']}", f"{LIST}/{given[1]['id']}"


def test_a_strategy(pages: PageClient) -> None:
    """The change of this strategy is told, and not a later one of another strategy or flag."""
    page, other = strategies(pages)
    mine = pages.form(pages.get(page), page)
    assert pages.press(pages.form(pages.get(page), page), "save", title="x", token=EDITOR_SECRET).status == 303
    assert pages.press(pages.form(pages.get(other), other), "save", title="y").status == 303
    pages.client.put("/api/admin/projects/default/features/a", {"name": "a", "description": "new"})
    require_told(pages.press(mine, "save", title="z"), "writer changed default of a in development")
    removed = pages.post(f"{page}/delete", [("base", mine.value("base"))])
    require_told(removed, "writer changed default of a in development")
    assert "It was not deleted" in removed.text


def test_a_strategy_that_is_gone(pages: PageClient) -> None:
    """Who deleted it is told."""
    page, _ = strategies(pages)
    mine = pages.form(pages.get(page), page)
    assert pages.client.delete(f"{STRATEGIES}/{page.rpartition('/')[2]}", token=EDITOR_SECRET).status == 200
    require_told(pages.press(mine, "save"), "writer removed default of a in development")


def test_a_flag(pages: PageClient) -> None:
    """The change of this flag is told, and no switch after it."""
    mine = pages.form(pages.get("/ui/flags/a/edit"), "/edit")
    theirs = pages.form(pages.get("/ui/flags/a/edit"), "/edit")
    assert pages.press(theirs, description="theirs", token=EDITOR_SECRET).status == 303
    pages.client.post("/api/admin/projects/default/features/a/environments/development/on")
    require_told(pages.press(mine, description="mine"), "writer changed the description of a")


def test_a_segment(pages: PageClient) -> None:
    """The change of this segment is told, and not that of another one. Only administrators see events of no project."""
    mine = pages.form(pages.get("/ui/segments/1"), "/segments/1")
    theirs = pages.form(pages.get("/ui/segments/1"), "/segments/1")
    other = pages.form(pages.get("/ui/segments/2"), "/segments/2")
    assert pages.press(theirs, "save", description="theirs", token=EDITOR_SECRET).status == 303
    assert pages.press(other, "save", description="other").status == 303
    require_told(pages.press(mine, "save"), "writer changed the segment first")
    removed = pages.post("/ui/segments/1/delete", [("base", mine.value("base"))])
    require_told(removed, "writer changed the segment first")
    hidden = pages.press(mine, "save", token=EDITOR_SECRET)
    assert hidden.status == 409 and "writer changed" not in hidden.text


@pytest.mark.parametrize(
    ("page", "changed", "sentence"),
    [
        ("/ui/projects/default", {"description": "theirs"}, "boss changed the project default"),
        ("/ui/people/1", {"name": "Ada"}, "boss changed the user Ada"),
        ("/ui/environments/development", {"type": "test"}, "boss changed the environment development"),
    ],
)
def test_others(pages: PageClient, page: str, changed: dict[str, Any], sentence: str) -> None:
    """Projects, users and environments tell it, too."""
    mine, theirs = (pages.form(pages.get(page), page) for _ in range(2))
    saved = pages.press(theirs, **changed)
    assert saved.status == 303, saved.text
    require_told(pages.press(mine), sentence)


def test_an_event_that_is_deleted(pages: PageClient) -> None:
    """Without the event, the page shows what differs, and tells nobody's name."""
    page, _ = strategies(pages)
    mine, theirs = (pages.form(pages.get(page), page) for _ in range(2))
    assert pages.press(theirs, "save", title="x", token=EDITOR_SECRET).status == 303
    with pages.client.server.store.writing(None) as tx:
        tx.db.execute(events.delete())
    conflict = pages.press(mine, "save", title="z")
    assert conflict.status == 409 and "Someone else changed this strategy meanwhile" in conflict.text
    assert "writer" not in conflict.text
