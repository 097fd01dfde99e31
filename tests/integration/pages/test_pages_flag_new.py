"""Creating a flag by forms alone: off everywhere, or on for some users in some environments, where production asks first."""

from __future__ import annotations

from typing import Any

import pytest

from support.flagservers import VIEWER_SECRET
from support.page_forms import HOSTILE, PageClient, PageForm, read_wrong
from support.processes import Answer

FLAG = "/api/admin/projects/default/features/mine"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "other", "name": HOSTILE}],
    "features": [{"name": "taken"}],
    "contextFields": [{"name": "country", "legalValues": [{"value": "DE"}, {"value": "FR"}]}, {"name": "region"}],
}
SOME: dict[str, Any] = {"name": "mine", "rollout": "25", "c0__field": "country", "c0__legal": ["FR", "DE"]}


def form_of(pages: PageClient, answer: Answer | None = None) -> PageForm:
    return pages.form(answer or pages.get("/ui/new-flag?project=default"), "/new-flag")


def exists(pages: PageClient) -> bool:
    return pages.client.get(FLAG).status == 200


def test_off_everywhere(pages: PageClient) -> None:
    """A flag is created in the chosen project, and is off everywhere. Enter in a field does the same as the button."""
    page = pages.get("/ui/new-flag?project=other")
    assert "<script>alert" not in page.text
    form = pages.form(page, "/projects/other/new-flag")
    assert form.buttons[0] == ("do", "save")
    made = pages.press(form, "save", name="mine", description=HOSTILE, type="experiment", impressionData="on")
    assert made.status == 303 and made.headers["location"].startswith("/ui/flags/mine?undo=")
    flag = pages.client.get("/api/admin/projects/other/features/mine").json()
    assert (flag["description"], flag["type"], flag["impressionData"]) == (HOSTILE, "experiment", True)
    assert not any(each["enabled"] or each["strategies"] for each in flag["environments"])
    assert "You created the flag mine in " in pages.get(made.headers["location"]).text


def test_on_for_some_where_nothing_asks(pages: PageClient) -> None:
    """The flag is on with its strategy at once, and one undo takes all of it back."""
    form = pages.press(form_of(pages), "add-condition", **SOME | {"on": "development"})
    typed = {"c1__field": "region", "c1__values": "eu, us"}
    made = pages.press(pages.form(form, "/new-flag"), "save", **typed)
    assert made.status == 303
    found = {each["name"]: each for each in pages.client.get(FLAG).json()["environments"]}
    [strategy] = found["development"]["strategies"]
    assert strategy["parameters"] == {"rollout": "25", "stickiness": "default", "groupId": "mine"}
    assert [(each["contextName"], sorted(each["values"])) for each in strategy["constraints"]] == [
        ("country", ["DE", "FR"]),
        ("region", ["eu", "us"]),
    ]
    assert [each["enabled"] for each in found.values()] == [each == "development" for each in found]
    assert not found["production"]["strategies"]
    pages.undo(made)
    assert not exists(pages)


def test_production_asks_first(pages: PageClient) -> None:
    """The page says for whom the flag becomes on. It asks again about something else, and not about another description."""
    asked = pages.press(form_of(pages), "save", **SOME | {"on": "production"})
    assert asked.status == 200 and not exists(pages)
    assert "It becomes on there at once for: 25 %" in asked.text and "switch it on in production?" in asked.text
    again = pages.press(form_of(pages, asked), "save", rollout="50")
    assert again.status == 200 and not exists(pages)
    assert pages.press(form_of(pages, again), "save", description="words").status == 303
    assert pages.client.get(f"{FLAG}/environments/production").json()["enabled"]


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ({"rollout": "25"}, {"on": "Tick where the flag is on"}),
        ({"c0__field": "region", "c0__values": "eu"}, {"on": "Tick where the flag is on"}),
        ({"on": "production", "rollout": ""}, {"rollout": "A rollout is"}),
        ({"on": "production", "c0__field": "region"}, {"c0.values": "Give"}),
        ({"on": "production", "c0__field": "contry", "c0__values": "x"}, {"c0.field": "There is no context field `contry`."}),
        ({"on": "elsewhere"}, {"on": "Tick some of these"}),
        ({"on": "production", "name": "taken"}, {"name": "Another flag has this name."}),
    ],
)
def test_wrong_fields(pages: PageClient, typed: dict[str, Any], wrong: dict[str, str]) -> None:
    """What is wrong stands at its field before anything is asked, and nothing is created."""
    answer = pages.press(form_of(pages), "save", **{"name": "mine"} | typed)
    found = read_wrong(answer)
    assert found.keys() == wrong.keys() and all(found[name].startswith(text) for name, text in wrong.items()), found
    assert "Create and switch on" not in answer.text and not exists(pages)


def test_rights(pages: PageClient) -> None:
    """Who may not switch a flag on is offered no environment, and can send none."""
    assert pages.data("/ui/new-flag", token=VIEWER_SECRET)["environments"] == []
    sent = [("do", "save"), ("name", "mine"), ("on", "development")]
    assert pages.post("/ui/projects/default/new-flag", sent, token=VIEWER_SECRET).status == 403
    assert not exists(pages)
