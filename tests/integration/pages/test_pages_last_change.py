"""A page that saves nothing because of another change says who made that change, and when."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from flagsvc.server.store.schema import events
from support.flagservers import EDITOR_SECRET, USER_SECRET
from support.page_forms import PageClient, PageForm

F = "/api/admin/projects/default/features"
A = "/projects/default/features/a"
ONE = "/flags/a/development/strategies/{one}"
GIVEN: dict[str, Any] = {
    "features": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
    "contextFields": [{"name": "plan"}, {"name": "city"}],
    "tagTypes": [{"name": "team", "description": "t"}, {"name": "area", "description": "a"}],
    "strategyTypes": [{"name": "hours", "parameters": []}, {"name": "days", "parameters": []}],
    "projects": [{"id": "shop", "name": "Shop"}],
    "segments": [{"name": "first", "constraints": []}, {"name": "second", "constraints": []}],
}


def test_who_may_not_see_a_change_is_not_told_it(pages: PageClient) -> None:
    """Only administrators see events of no project."""
    mine = pages.form(pages.get("/ui/segments/1"), "/segments/1")
    assert pages.client.put("/api/admin/segments/1", {"name": "first", "description": "new", "constraints": []}).status == 204
    hidden = pages.press(mine, "save", token=EDITOR_SECRET)
    assert hidden.status == 409 and "changed the segment" not in hidden.text


VARIANT = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}
BEFORE: tuple[tuple[str, str, Any], ...] = (
    ("PUT", f"{F}/a/variants-batch", {"environments": ["development", "production"], "variants": [VARIANT]}),
    ("POST", f"{F}/a/dependencies", {"feature": "b"}),
    ("POST", f"{F}/c/dependencies", {"feature": "b"}),
    ("POST", f"{F}/a/link", {"url": "https://example.com/1"}),
    ("POST", f"{F}/a/link", {"url": "https://example.com/2"}),
    ("PUT", "/api/admin/projects/default/users/2/roles", {"roles": [5]}),
    *(("POST", f"{F}/a/environments/development/strategies", {"name": "default", "title": each}) for each in ("one", "two")),
)
"""What is done before a page is shown."""


class Case(NamedTuple):
    """A page with the form of an action. After it is shown, `theirs` is done with a token, and then `noise` by an administrator.

    The conflict tells a sentence. Requests have a method, a path below the admin API, and a body. `do` is the button of the form.
    """

    page: str
    action: str
    theirs: tuple[str, Any]
    noise: tuple[str, Any]
    sentence: str
    do: str = ""
    token: str = EDITOR_SECRET


THEIRS, OTHER = {"description": "theirs"}, {"description": "other"}
TEAM, AREA = ("POST /tags", {"type": "team", "value": "blue"}), ("POST /tags", {"type": "area", "value": "red"})
STRATEGIES = f"{A}/environments/development/strategies"
CHANGE_PLAN, CHANGE_CITY = ("PUT /context/plan", THEIRS), ("PUT /context/city", OTHER)
SEGMENT, SECOND = {"name": "first", "constraints": []} | THEIRS, {"name": "second", "constraints": []} | OTHER
CHANGE_SEGMENT, CHANGE_SECOND = ("PUT /segments/1", SEGMENT), ("PUT /segments/2", SECOND)
CHANGE_ONE = (f"PUT {STRATEGIES}/{{one}}", {"name": "default", "title": "x"})
CHANGE_TWO = (f"PUT {STRATEGIES}/{{two}}", {"name": "default", "title": "y"})
SWITCH_ON, CHANGE_FLAG = (f"POST {A}/environments/development/on", None), (f"PUT {A}", {"name": "a"} | THEIRS)
DAYS: tuple[str, Any] = ("PUT /strategies/days", OTHER | {"parameters": []})
DEFAULT, ADA = ("PUT /projects/default", {"name": "D"}), {"name": "Ada"}
ORDER = ("PUT /environments/sort-order", {"development": 9})
OF_A_TYPE, OF_ANOTHER = ((f"PUT /environments/update/{each}", {"type": "test"}) for each in ("development", "production"))
NO_PARENT_OF_C = ("DELETE /projects/default/features/c/dependencies/b", None)
CASES: dict[str, Case] = {
    "strategy": Case(ONE, "{one}", CHANGE_ONE, CHANGE_TWO, "writer changed default of a in development", "save"),
    "removed strategy": Case(ONE, "{one}/delete", CHANGE_ONE, CHANGE_FLAG, "writer changed default of a in development"),
    "strategy that is gone": Case(
        ONE, "{one}", (f"DELETE {STRATEGIES}/{{one}}", None), CHANGE_TWO, "writer removed default of a in development", "save"
    ),
    "flag": Case("/flags/a/edit", "/edit", CHANGE_FLAG, SWITCH_ON, "writer changed the description of a"),
    "segment": Case("/segments/1", "/1", CHANGE_SEGMENT, CHANGE_SECOND, "writer changed the segment first", "save"),
    "deleted segment": Case("/segments/1", "/delete", CHANGE_SEGMENT, CHANGE_SECOND, "writer changed the segment first"),
    "project": Case("/projects/default", "/default", DEFAULT, SWITCH_ON, "boss changed the project default", "", USER_SECRET),
    "user": Case("/people/1", "/1", ("PUT /user-admin/1", ADA), SWITCH_ON, "boss changed the user Ada", "", USER_SECRET),
    "environment": Case(
        "/environments/development",
        "/development",
        OF_A_TYPE,
        OF_ANOTHER,
        "boss changed the environment development",
        "",
        USER_SECRET,
    ),
    "variants": Case(
        "/flags/a/development/variants",
        "/variants",
        (f"PUT {A}/environments/development/variants", [VARIANT | {"name": "red"}]),
        (f"PUT {A}/environments/production/variants", [VARIANT | {"name": "green"}]),
        "writer changed the variants of a in development",
        "save",
    ),
    "parent": Case(
        "/flags/a/parent", "/parent", (f"DELETE {A}/dependencies/b", None), NO_PARENT_OF_C, "writer removed the parent b of a"
    ),
    "removed parent": Case(
        "/flags/a/parent",
        "/parent/b/remove",
        (f"POST {A}/dependencies", {"feature": "b", "enabled": False}),
        NO_PARENT_OF_C,
        "writer made a depend on b",
    ),
    "context field": Case(
        "/context-fields/plan", "/plan", CHANGE_PLAN, CHANGE_CITY, "writer changed the context field plan", "save"
    ),
    "deleted context field": Case(
        "/context-fields/plan", "/delete", CHANGE_PLAN, CHANGE_CITY, "writer changed the context field plan"
    ),
    "tag type": Case("/tag-types/team", "/team", ("PUT /tag-types/team", THEIRS), TEAM, "writer changed the tag type team"),
    "deleted tag type": Case("/tag-types/team", "/delete", TEAM, AREA, "writer created the tag blue"),
    "strategy type": Case(
        "/strategy-types/hours", "/hours", ("POST /strategies/hours/deprecate", None), DAYS, "writer deprecated hours", "save"
    ),
    "deprecated strategy type": Case(
        "/strategy-types/hours",
        "/deprecate",
        ("PUT /strategies/hours", THEIRS | {"parameters": []}),
        ("POST /strategies/days/deprecate", None),
        "writer changed the strategy type hours",
    ),
    "order": Case(
        "/environments", "/production/up", ORDER, OF_ANOTHER, "boss changed the environment development", "", USER_SECRET
    ),
    "roles": Case(
        "/projects/default",
        "/users/2/roles",
        ("PUT /projects/default/users/2/roles", {"roles": [4, 5]}),
        ("POST /projects/default/access", {"roles": [5], "users": [3], "groups": []}),
        "boss changed the roles of a user in default",
        token=USER_SECRET,
    ),
    "taken roles": Case(
        "/projects/default",
        "/users/2/remove",
        ("POST /projects/default/access", {"roles": [4], "users": [2], "groups": []}),
        ("PUT /projects/default/users/3/roles", {"roles": [5]}),
        "boss gave roles in default",
        token=USER_SECRET,
    ),
    "deleted project": Case(
        "/projects/shop",
        "/delete",
        ("DELETE /projects/shop/environments/production", None),
        DEFAULT,
        "boss removed production from the project shop",
        token=USER_SECRET,
    ),
    "link": Case(
        "/flags/a/edit",
        "/links/{first}",
        (f"PUT {A}/link/{{first}}", {"url": "https://example.com/theirs"}),
        (f"PUT {A}/link/{{second}}", {"url": "https://example.com/other"}),
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
    strategies = [each["id"] for each in pages.client.get(f"/api/admin{STRATEGIES}").json()]
    known = dict(zip(("first", "second", "one", "two"), [*links, *strategies], strict=True))
    mine = form_of(pages, f"/ui{case.page.format(**known)}", case.action.format(**known))
    for (request, body), token in ((case.theirs, case.token), (case.noise, USER_SECRET)):
        method, path = request.format(**known).split()
        answer = pages.client.ask(method, f"/api/admin{path}", body, token=token)
        assert answer.status < 300, answer.text
    answer = pages.press(mine, case.do)
    assert answer.status == 409
    told = re.escape(case.sentence) + ', <time datetime="20[^"]+" title="20[^"]+ UTC">just now'
    assert re.search(told, answer.text), answer.text


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
    mine, theirs = (pages.form(pages.get("/ui/segments/1"), "/1") for _ in range(2))
    assert pages.press(theirs, "save", description="x").status == 303
    with pages.client.server.store.writing(None) as tx:
        tx.db.execute(events.delete())
    conflict = pages.press(mine, "save", description="z")
    assert (
        conflict.status == 409 and "Someone else changed this segment meanwhile" in conflict.text and "<time" not in conflict.text
    )
