"""A page that saves nothing because of another change says who made that change, and when."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from flagsvc.server.store.schema import events
from support.flagservers import EDITOR_SECRET, USER_SECRET
from support.page_forms import PageClient, PageForm
from support.processes import Answer

STRATEGIES = "/api/admin/projects/default/features/a/environments/development/strategies"
LIST = "/ui/flags/a/development/strategies"
GIVEN: dict[str, Any] = {
    "features": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
    "contextFields": [{"name": "plan"}, {"name": "city"}],
    "tagTypes": [{"name": "team", "description": "t"}, {"name": "area", "description": "a"}],
    "strategyTypes": [{"name": "hours", "parameters": []}, {"name": "days", "parameters": []}],
    "projects": [{"id": "shop", "name": "Shop"}],
    "segments": [{"name": "first", "constraints": []}, {"name": "second", "constraints": []}],
}


def require_told(answer: Answer, sentence: str) -> None:
    """Check that a page of a conflict tells a change, and the time of it."""
    assert answer.status == 409
    assert re.search(re.escape(sentence) + ', <time datetime="20[^"]+" title="20[^"]+ UTC">just now', answer.text), answer.text


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
    """The change of this segment is told, and no change of another segment. Only administrators see events of no project."""
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


F = "/api/admin/projects/default/features"
VARIANT = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}
BEFORE: tuple[tuple[str, str, Any], ...] = (
    ("PUT", f"{F}/a/variants-batch", {"environments": ["development", "production"], "variants": [VARIANT]}),
    ("POST", f"{F}/a/dependencies", {"feature": "b"}),
    ("POST", f"{F}/c/dependencies", {"feature": "b"}),
    ("POST", f"{F}/a/link", {"url": "https://example.com/1"}),
    ("POST", f"{F}/a/link", {"url": "https://example.com/2"}),
    ("PUT", "/api/admin/projects/default/users/2/roles", {"roles": [5]}),
)
"""What is done before a page is shown."""


class Case(NamedTuple):
    """A page with the form of an action. After it is shown, `theirs` is done with a token, and then `noise` by an administrator.

    The conflict tells a sentence. Requests have a method, a path below the admin API, and a body. `do` is the button of the form.
    """

    page: str
    action: str
    theirs: tuple[str, str, Any]
    noise: tuple[str, str, Any]
    sentence: str
    do: str = ""
    token: str = EDITOR_SECRET


VARIANTS = "environments/{}/variants"
CASES: dict[str, Case] = {
    "variants": Case(
        "/flags/a/development/variants",
        "/variants",
        ("PUT", f"/projects/default/features/a/{VARIANTS.format('development')}", [VARIANT | {"name": "red"}]),
        ("PUT", f"/projects/default/features/a/{VARIANTS.format('production')}", [VARIANT | {"name": "green"}]),
        "writer changed the variants of a in development",
        "save",
    ),
    "parent": Case(
        "/flags/a/parent",
        "/parent",
        ("DELETE", "/projects/default/features/a/dependencies/b", None),
        ("DELETE", "/projects/default/features/c/dependencies/b", None),
        "writer removed the parent b of a",
    ),
    "removed parent": Case(
        "/flags/a/parent",
        "/parent/b/remove",
        ("POST", "/projects/default/features/a/dependencies", {"feature": "b", "enabled": False}),
        ("DELETE", "/projects/default/features/c/dependencies/b", None),
        "writer made a depend on b",
    ),
    "context field": Case(
        "/context-fields/plan",
        "/plan",
        ("PUT", "/context/plan", {"description": "theirs"}),
        ("PUT", "/context/city", {"description": "other"}),
        "writer changed the context field plan",
        "save",
    ),
    "deleted context field": Case(
        "/context-fields/plan",
        "/delete",
        ("PUT", "/context/plan", {"description": "theirs"}),
        ("PUT", "/context/city", {"description": "other"}),
        "writer changed the context field plan",
    ),
    "tag type": Case(
        "/tag-types/team",
        "/team",
        ("PUT", "/tag-types/team", {"description": "theirs"}),
        ("POST", "/tags", {"type": "team", "value": "blue"}),
        "writer changed the tag type team",
    ),
    "deleted tag type": Case(
        "/tag-types/team",
        "/delete",
        ("POST", "/tags", {"type": "team", "value": "blue"}),
        ("POST", "/tags", {"type": "area", "value": "red"}),
        "writer created the tag blue",
    ),
    "strategy type": Case(
        "/strategy-types/hours",
        "/hours",
        ("POST", "/strategies/hours/deprecate", None),
        ("PUT", "/strategies/days", {"description": "other", "parameters": []}),
        "writer deprecated hours",
        "save",
    ),
    "deprecated strategy type": Case(
        "/strategy-types/hours",
        "/deprecate",
        ("PUT", "/strategies/hours", {"description": "theirs", "parameters": []}),
        ("POST", "/strategies/days/deprecate", None),
        "writer changed the strategy type hours",
    ),
    "order": Case(
        "/environments",
        "/production/up",
        ("PUT", "/environments/sort-order", {"development": 9}),
        ("PUT", "/environments/update/production", {"type": "test"}),
        "boss changed the environment development",
        token=USER_SECRET,
    ),
    "roles": Case(
        "/projects/default",
        "/users/2/roles",
        ("PUT", "/projects/default/users/2/roles", {"roles": [4, 5]}),
        ("POST", "/projects/default/access", {"roles": [5], "users": [3], "groups": []}),
        "boss changed the roles of a user in default",
        token=USER_SECRET,
    ),
    "taken roles": Case(
        "/projects/default",
        "/users/2/remove",
        ("POST", "/projects/default/access", {"roles": [4], "users": [2], "groups": []}),
        ("PUT", "/projects/default/users/3/roles", {"roles": [5]}),
        "boss gave roles in default",
        token=USER_SECRET,
    ),
    "deleted project": Case(
        "/projects/shop",
        "/delete",
        ("DELETE", "/projects/shop/environments/production", None),
        ("PUT", "/projects/default", {"name": "Other"}),
        "boss removed production from the project shop",
        token=USER_SECRET,
    ),
    "link": Case(
        "/flags/a/edit",
        "/links/{first}",
        ("PUT", "/projects/default/features/a/link/{first}", {"url": "https://example.com/theirs"}),
        ("PUT", "/projects/default/features/a/link/{second}", {"url": "https://example.com/other"}),
        "writer changed the link https://example.com/theirs of a",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_form(pages: PageClient, name: str) -> None:
    """Each form with a conflict tells the change of what it changes, and not a later one of something beside it."""
    case = CASES[name]
    for method, path, body in BEFORE:
        assert pages.client.ask(method, path, body).status < 300, path
    links = [each["id"] for each in pages.client.get(f"{F}/a").json()["links"]]
    known = dict(zip(("first", "second"), links, strict=True))
    mine = form_of(pages, f"/ui{case.page}", case.action.format(**known))
    for (method, path, body), token in ((case.theirs, case.token), (case.noise, USER_SECRET)):
        answer = pages.client.ask(method, f"/api/admin{path.format(**known)}", body, token=token)
        assert answer.status < 300, answer.text
    require_told(pages.press(mine, case.do), case.sentence)


def form_of(pages: PageClient, page: str, action: str) -> PageForm:
    """Return the form of a page for an action. A button that sends a form elsewhere sends the fields of its form."""
    shown = pages.get(page)
    if action.endswith("/remove") and "/users/" in action:
        form = pages.form(shown, action.replace("/remove", "/roles"))
        return replace(form, action=f"{page}{action}")
    return pages.form(shown, action)


def test_numbers_of_an_environment_name_no_one(pages: PageClient) -> None:
    """What a project has in an environment is changed by much: flags, tokens. The page tells none of it as the change."""
    mine = pages.form(pages.get("/ui/projects/default"), "/environments/development/remove")
    assert pages.client.post(f"{F}/a/environments/development/on", token=EDITOR_SECRET).status == 200
    conflict = pages.press(mine)
    assert conflict.status == 409 and "someone changed" in conflict.text and "<time" not in conflict.text


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
