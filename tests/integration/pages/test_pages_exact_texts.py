"""Texts that browsers change, carriage returns and blanks at the ends, survive every form that is saved without touching them."""

from __future__ import annotations

from typing import Any

import pytest

from support.page_forms import PageClient

PROJECT = "/api/admin/projects/default"
STRATEGIES = f"{PROJECT}/features/a/environments/development/strategies"
ODD = " a\rb\r\nc\t"
VALUES = [ODD, "a\rb", "a\nb", " ", 'say "\r"', r"C:\run", r'\"x"', "x" * 99 + ","]
PLAIN = {"inverted": False, "caseInsensitive": False}
GIVEN: dict[str, Any] = {
    "features": [{"name": "a", "description": ODD}],
    "projects": [{"id": "default", "name": ODD, "description": ODD}],
    "segments": [
        {
            "name": "beta",
            "description": ODD,
            "constraints": [
                PLAIN | {"contextName": "userId", "operator": "IN", "values": VALUES},
                PLAIN | {"contextName": "plan", "operator": "IN", "values": [" d ", ODD, "b\r"]},
                PLAIN | {"contextName": "userId", "operator": "STR_CONTAINS", "values": ["x\r"], "inverted": True},
                PLAIN | {"contextName": "userId", "operator": "REGEX", "values": [], "value": ODD},
            ],
        }
    ],
    "strategyTypes": [{"name": "mine", "description": ODD, "parameters": [{"name": "p", "type": "string"}]}],
    "tagTypes": [{"name": "team", "description": ODD}],
    "contextFields": [
        {"name": "plan", "description": ODD, "legalValues": [{"value": each, "description": ODD} for each in (" d ", ODD, "b\r")]}
    ],
}
VARIANT: dict[str, Any] = {"name": "v", "weight": 1000, "weightType": "variable", "stickiness": "default"}
OVERRIDDEN = VARIANT | {"payload": {"type": "string", "value": ODD}, "overrides": [{"contextName": "userId", "values": VALUES}]}
STRATEGY = {
    "name": "mine",
    "title": ODD,
    "parameters": {"p": ODD},
    "constraints": [PLAIN | {"contextName": "userId", "operator": "NOT_IN", "values": VALUES}],
    "variants": [VARIANT | {"payload": {"type": "string", "value": ODD}}],
}
HOOK = {"provider": "webhook", "description": ODD, "enabled": False, "events": ["feature-created"]}
PAGES = {
    "a flag": ("/ui/flags/a/edit", "/a/edit", f"{PROJECT}/features/a"),
    "a segment": ("/ui/segments/1", "/1", "/api/admin/segments/1"),
    "a project": ("/ui/projects/default", "/default", f"{PROJECT}/overview"),
    "a context field": ("/ui/context-fields/plan", "/plan", "/api/admin/context/plan"),
    "a strategy type": ("/ui/strategy-types/mine", "/mine", "/api/admin/strategies/mine"),
    "a tag type": ("/ui/tag-types/team", "/team", "/api/admin/tag-types/team"),
    "a strategy": ("/ui/flags/a/development/strategies/{strategy}", "{strategy}", f"{STRATEGIES}/{{strategy}}"),
    "variants": ("/ui/flags/a/development/variants", "/variants", f"{PROJECT}/features/a/environments/development/variants"),
    "a webhook": ("/ui/webhooks/1", "/1", "/api/admin/addons/1"),
}
"""Kind → its page, the end of the form's address, and where the admin API shows it."""


def content(pages: PageClient, path: str) -> dict[str, Any]:
    """Return what the admin API shows, without times of changes."""
    answer = pages.client.get(path)
    assert answer.status == 200, answer.body
    return {name: each for name, each in answer.json().items() if "At" not in name}


@pytest.mark.parametrize("kind", PAGES)
def test_saved_without_a_change(pages: PageClient, kind: str) -> None:
    """Unchanged texts are stored unchanged."""
    strategy = pages.client.post(STRATEGIES, STRATEGY).json()["id"]
    variants = {"environments": ["development"], "variants": [OVERRIDDEN]}
    assert pages.client.put(f"{PROJECT}/features/a/variants-batch", variants).status == 200
    parameters = {"url": "http://127.0.0.1:9/", "bodyTemplate": ODD}
    assert pages.client.post("/api/admin/addons", HOOK | {"parameters": parameters}).status == 201
    page, end, api = (each.format(strategy=strategy) for each in PAGES[kind])
    before = content(pages, api)
    form = pages.form(pages.get(page), end)
    saved = pages.press(form, "save" if ("do", "save") in form.buttons else "")
    assert saved.status == 303, saved.text.partition('class="problem"')[2][:500]
    assert content(pages, api) == before


def test_a_segment_with_another_change(pages: PageClient) -> None:
    """A preview in between, a new value in the same list and another name leave all other texts as they were."""
    before = content(pages, "/api/admin/segments/1")
    shown = pages.press(pages.form(pages.get("/ui/segments/1"), "/1"), "preview", name="gamma")
    form = pages.form(shown, "/1")
    typed = form.value("c0.values") + "\nnew"
    assert pages.press(form, "save", c0__values=typed).status == 303
    after = content(pages, "/api/admin/segments/1")
    assert after["constraints"][0].pop("values") == [*before["constraints"][0].pop("values"), "new"]
    assert after == before | {"name": "gamma"}


def test_a_tag(pages: PageClient) -> None:
    """A tag whose value ends in blanks can be taken away."""
    tag = {"featureName": "a", "tagType": "team", "tagValue": "shop "}
    data = {"features": [{"name": "a"}], "featureStrategies": [], "tagTypes": [], "featureTags": [tag]}
    body = {"project": "default", "environment": "development", "data": data}
    assert pages.client.post("/api/admin/features-batch/import", body).status == 200
    form = pages.form(pages.get("/ui/flags/a/edit"), "/tags")
    assert pages.press(form, "remove:team:shop ").status == 303
    assert pages.client.get("/api/admin/features/a/tags").json()["tags"] == []


def test_a_link(pages: PageClient) -> None:
    """The title of a link comes through, and blanks that a person removes are gone."""
    assert pages.client.post(f"{PROJECT}/features/a/link", {"url": "https://a.example", "title": ODD}).status == 204
    [link] = pages.client.get(f"{PROJECT}/features/a").json()["links"]
    end = f"/links/{link['id']}"
    for typed, title in (({}, ODD), ({"title": "abc"}, "abc")):
        assert pages.press(pages.form(pages.get("/ui/flags/a/edit"), end), **typed).status == 303
        assert [each["title"] for each in pages.client.get(f"{PROJECT}/features/a").json()["links"]] == [title]
