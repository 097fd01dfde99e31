"""The variants on the page of a strategy: the form, exact percentages before saving, undo, and two people who edit the same."""

from __future__ import annotations

from typing import Any

import pytest

from support.page_forms import PageClient, PageForm

API = "/api/admin/projects/default/features/a/environments/development/strategies"
LIST = "/ui/flags/a/development/strategies"
GIVEN: dict[str, Any] = {"features": [{"name": "a"}], "contextFields": [{"name": "plan", "stickiness": True}]}
BLUE = {"name": "blue", "weight": 500, "weightType": "variable", "stickiness": "userId"}
RED = BLUE | {"name": "red", "payload": {"type": "string", "value": " two\nlines "}}


def stored(pages: PageClient) -> list[dict[str, Any]]:
    """Return the strategies as the admin API shows them."""
    return list(pages.client.get(API).json())


def made(pages: PageClient, **wanted: Any) -> str:
    """Add a strategy with two variants by the admin API, and return the address of its page."""
    rollout = {"rollout": "50", "stickiness": "userId", "groupId": "a"}
    given = {"name": "flexibleRollout", "parameters": rollout, "variants": [BLUE, RED]} | wanted
    answer = pages.client.post(API, given)
    assert answer.status == 200, answer.text
    return f"{LIST}/{answer.json()['id']}"


def form_of(pages: PageClient, page: str) -> PageForm:
    """Return the form of the page of a strategy."""
    return pages.form(pages.get(page), page)


def test_first_variants(pages: PageClient) -> None:
    """Variants are added, shown with their buckets, and saved as the admin API stores them."""
    form = pages.form(pages.press(pages.form(pages.get(f"{LIST}/new"), "/new"), "add-variant"), "/new")
    form = pages.form(pages.press(form, "add-variant", v0__name="a", v0__type="json", v0__payload='{"a": 1}'), "/new")
    assert form.value("v0.payload") == '{"a": 1}'
    typed: dict[str, Any] = {"v1__name": "b", "v1__fixed": "on", "v1__share": "33.3", "variantStickiness": "plan"}
    shown = pages.press(form, "preview", **typed).text
    assert "a: 66.7 %, buckets 1 to 667 of 1000" in shown and "b: 33.3 %, buckets 668 to 1000 of 1000" in shown
    assert "No user had a variant. Every user who gets the flag gets one now." in shown
    assert stored(pages) == []
    assert pages.press(form, "save", **typed).status == 303
    [strategy] = stored(pages)
    a = {"name": "a", "weight": 667, "weightType": "variable", "stickiness": "plan"}
    b = {"name": "b", "weight": 333, "weightType": "fix", "stickiness": "plan"}
    assert strategy["variants"] == [a | {"payload": {"type": "json", "value": '{"a": 1}'}}, b]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({}, "Every user keeps the variant."),
        ({"v1__fixed": "on", "v1__share": "60"}, "10 % of the users with a variant change from blue to red."),
        ({"group": "other"}, "All users are drawn again: 50 % of them get another variant."),
        ({"variantStickiness": "plan"}, "All users are drawn again: 50 % of them get another variant."),
        ({"variantStickiness": "random"}, "Each request is drawn by chance now"),
        ({"v0__type": "string", "v0__payload": "x"}, "The users of blue get another payload."),
        ({"v1__fixed": "on", "v1__share": "33.33"}, "A share is a number from 0 to 100 with one decimal at most."),
    ],
)
def test_what_saving_changes(pages: PageClient, typed: dict[str, str], sentence: str) -> None:
    """The page says in exact percentages who gets another variant, or what is wrong, and saves nothing."""
    page = made(pages)
    before = stored(pages)
    assert sentence in pages.press(form_of(pages, page), "preview", **typed).text
    assert stored(pages) == before


def test_saving_unchanged_and_undo(pages: PageClient) -> None:
    """Saving what is there changes nothing, also in payloads of several lines; undo brings back what was removed."""
    page = made(pages)
    before = stored(pages)
    assert [each["name"] for each in before[0]["variants"]] == ["blue", "red"]
    assert pages.press(form_of(pages, page), "save").headers["location"] == "/ui/flags/a?undo=nothing"
    assert stored(pages) == before
    less = pages.form(pages.press(form_of(pages, page), "remove-variant:1"), page)
    saved = pages.press(less, "save")
    assert saved.status == 303
    [alone] = stored(pages)
    assert [(each["name"], each["weight"]) for each in alone["variants"]] == [("blue", 1000)]
    action = saved.headers["location"].partition("undo=")[2]
    assert pages.post(f"/ui/history/actions/{action}/undo").status == 303
    assert stored(pages) == before
