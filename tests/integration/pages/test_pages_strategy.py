"""The page of a strategy: every operator, values by hundreds, what saving changes, and two people who edit the same."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.engine.operators import DATE, LISTS, NETWORKS, NUMBER, OPERATORS, PATTERN, TEXTS, VERSION
from support.page_forms import PageClient

API = "/api/admin/projects/default/features/a/environments/development/strategies"
LIST = "/ui/flags/a/development/strategies"
VARIANTS = [{"name": "v", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
GIVEN: dict[str, Any] = {
    "features": [{"name": "a"}],
    "segments": [{"name": "first", "constraints": []}, {"name": "second", "constraints": []}],
    "strategyTypes": [{"name": "mine", "parameters": [{"name": "userIds", "type": "list"}]}],
    "contextFields": [{"name": "plan", "stickiness": True, "legalValues": [{"value": "team"}, {"value": "one, two"}]}],
}
SAMPLES = {
    TEXTS: ("team, business\nfree", ["team", "business", "free"]),
    NETWORKS: ("10.0.0.0/8\n10.1.2.3", ["10.0.0.0/8", "10.1.2.3"]),
    NUMBER: (" 18 ", "18"),
    DATE: ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z"),
    VERSION: ("1.2.3", "1.2.3"),
    PATTERN: ("a,(b| c) ", "a,(b| c) "),
}
HOSTILE = '</textarea><script>alert("1")</script>'


def made(pages: PageClient, **wanted: Any) -> dict[str, Any]:
    """Add a strategy by the admin API and return it."""
    answer = pages.client.post(API, {"name": "flexibleRollout", **wanted})
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


def stored(pages: PageClient) -> list[dict[str, Any]]:
    """Return the strategies as the admin API shows them."""
    found: list[dict[str, Any]] = pages.client.get(API).json()
    return found


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator(pages: PageClient, name: str) -> None:
    """A condition with each operator is added by the form, is stored as by the API, and is shown again as it was typed."""
    text, value = SAMPLES[OPERATORS[name].takes]
    listed = OPERATORS[name].takes in LISTS
    added = pages.press(pages.form(pages.get(f"{LIST}/new"), "/new"), "add-condition", title="mine", rollout="25")
    assert added.status == 200
    form = pages.form(added, "/new")
    assert (form.value("title"), form.value("rollout")) == ("mine", "25")
    saved = pages.press(form, "save", c0__field="company", c0__operator=name, c0__values=text)
    assert saved.status == 303 and saved.headers["location"].startswith("/ui/flags/a?undo=")
    [strategy] = stored(pages)
    flags = {"inverted": False, "caseInsensitive": False}
    wanted = {"values": value} if listed else {"values": [], "value": value}
    assert strategy["constraints"] == [{"contextName": "company", "operator": name, **flags, **wanted}]
    assert strategy["parameters"] == {"rollout": "25", "stickiness": "default", "groupId": "a"}
    assert strategy["title"] == "mine"
    form = pages.form(pages.get(f"{LIST}/{strategy['id']}"), strategy["id"])
    assert form.value("c0.values") == ("\n".join(value) if listed else value)
    assert pages.press(form, "save").status == 303
    assert stored(pages) == [strategy]


def test_values_by_hundreds(pages: PageClient) -> None:
    """Pasted values come in any mix of lines and commas, repeats count once; one with a comma is in quotes."""
    form = pages.form(pages.press(pages.form(pages.get(f"{LIST}/new"), "/new"), "add-condition"), "/new")
    pasted = "\r\n".join(f"u{at}, u{at + 1},,u{at}" for at in range(0, 240, 2)) + '\r\n"a, b"'
    assert pages.press(form, "save", c0__field="userId", c0__values=pasted).status == 303
    [strategy] = stored(pages)
    assert strategy["constraints"][0]["values"] == [*(f"u{at}" for at in range(240)), "a, b"]
    form = pages.form(pages.get(f"{LIST}/{strategy['id']}"), strategy["id"])
    assert form.value("c0.values").endswith('u239\n"a, b"')


def test_legal_values_and_order_of_conditions(pages: PageClient) -> None:
    """Legal values of a field are boxes to tick; conditions move and go by buttons, and all that was typed stays."""
    first = pages.press(pages.form(pages.get(f"{LIST}/new"), "/new"), "add-condition")
    second = pages.press(pages.form(first, "/new"), "add-condition", c0__field="plan")
    form = pages.form(second, "/new")
    assert b'<input type="checkbox" name="c0.legal" value="one, two">' in second.body
    third = pages.press(
        form, "condition-down:0", c0__legal=["one, two"], c1__field="userId", c1__inverted="on", c1__values="7"
    )
    form = pages.form(third, "/new")
    assert (form.value("c0.field"), form.value("c0.values"), form.value("c0.inverted")) == ("userId", "7", "on")
    assert (form.value("c1.field"), form.value("c1.legal")) == ("plan", "one, two")
    fourth = pages.press(form, "remove-condition:0")
    assert pages.press(pages.form(fourth, "/new"), "save", segment=["2", "1"]).status == 303
    [strategy] = stored(pages)
    assert [each["values"] for each in strategy["constraints"]] == [["one, two"]]
    assert strategy["segments"] == [2, 1]


def test_what_saving_changes(pages: PageClient) -> None:
    """The preview tells who gets it and who loses it, in exact percent, and warns where all are drawn again; it saves nothing."""
    pages.client.post(f"{API.removesuffix('/strategies')}/on")
    pages.client.delete(f"{API}/{stored(pages)[0]['id']}")
    strategy = made(pages, parameters={"rollout": "10", "stickiness": "userId", "groupId": "a"})
    pages.client.post(f"{API.removesuffix('/strategies')}/on")
    form = pages.form(pages.get(f"{LIST}/{strategy['id']}"), strategy["id"])
    assert form.first_button == ("do", "preview")
    shown = pages.press(form, "preview", rollout="25").body.decode()
    assert "15 % of the users by userId get it." in shown
    assert "No user loses it." in shown
    assert "10 % by userId, group a" in shown
    again = pages.press(form, "preview", rollout="25", group="b").body.decode()
    assert "All users are drawn again" in again
    assert "22.5 % of the users by userId get it." in again
    assert "7.5 % of the users by userId lose it." in again
    last = pages.press(form, "preview", disabled="on").body.decode()
    assert "It is the last active strategy here, so the flag is switched off." in last
    assert stored(pages) == [strategy | {"milestoneId": None}]


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"rollout": "101"}, 400, "The rollout must be a whole number from 0 to 100."),
        ({"rollout": "half"}, 400, "The rollout must be a whole number from 0 to 100."),
        ({"c0__operator": "NOSUCH"}, 400, "operator"),
        ({"segment": ["99"]}, 404, "No segment exists with ID"),
    ],
)
def test_errors_keep_what_was_typed(pages: PageClient, changes: dict[str, Any], status: int, message: str) -> None:
    """What the API refuses is told at the form, with what was typed, and nothing is stored."""
    form = pages.form(pages.press(pages.form(pages.get(f"{LIST}/new"), "/new"), "add-condition"), "/new")
    typed = {"title": HOSTILE, "c0__field": "company", "c0__values": HOSTILE} | changes
    refused = pages.press(form, "save", **typed)
    assert refused.status == status
    assert message in refused.body.decode()
    assert b"<script>alert" not in refused.body
    form = pages.form(refused, "/new")
    assert form.value("title") == HOSTILE
    assert stored(pages) == []


def test_two_people_edit_the_same(pages: PageClient) -> None:
    """The second one is told what the first did, beside what was typed; then mine is saved on purpose, or theirs is taken."""
    strategy = made(pages, title="before", variants=VARIANTS)
    mine = pages.form(pages.get(f"{LIST}/{strategy['id']}"), strategy["id"])
    theirs = pages.form(pages.get(f"{LIST}/{strategy['id']}"), strategy["id"])
    assert pages.press(theirs, "save", rollout="50", title=HOSTILE).status == 303
    conflict = pages.press(mine, "save", rollout="25")
    page = conflict.body.decode()
    assert conflict.status == 409
    assert "Someone else changed this strategy meanwhile" in page
    assert '<td data-label="theirs">50</td><td data-label="yours">25</td>' in page
    assert "<script>alert" not in page
    assert stored(pages)[0]["parameters"]["rollout"] == "50"
    assert f'<a class="button" href="{LIST}/{strategy["id"]}">Take theirs</a>' in page
    anyway = pages.form(conflict, strategy["id"])
    assert anyway.value("rollout") == "25"
    assert pages.press(anyway, "save").status == 303
    [after] = stored(pages)
    assert (after["parameters"]["rollout"], after["title"], after["variants"]) == ("25", "before", VARIANTS)
    assert pages.press(mine, "save").status == 409
    assert pages.post(f"{LIST}/{strategy['id']}/delete", [("base", mine.value("base"))]).status == 409
    assert len(stored(pages)) == 1


def test_long_lists_that_differ(pages: PageClient) -> None:
    """Where both lists begin alike, the page says what differs."""
    users = {"contextName": "userId", "operator": "IN", "values": [f"u{at}" for at in range(9)]}
    strategy = made(pages, constraints=[users])
    mine, theirs = (pages.form(pages.get(f"{LIST}/{strategy['id']}"), strategy["id"]) for _ in range(2))
    assert pages.press(theirs, "save", c0__values=f"{theirs.value('c0.values')}\nx").status == 303
    conflict = pages.press(mine, "save", c0__values=f"{mine.value('c0.values')}\ny")
    assert conflict.status == 409
    assert "1 added (y), 1 removed (x)" in conflict.text


def test_numbers_that_are_none(pages: PageClient) -> None:
    """A number that no form sends is no error of the server."""
    long = "9" * 5000
    for odd in (("conditions", long), ("do", f"condition-up:{long}"), ("segment", "²"), ("base", "é")):
        assert pages.post(f"{LIST}/new", [odd, ("rollout", "5"), ("name", "flexibleRollout")]).status == 200
    assert pages.post("/ui/try", [("environment", "development"), ("why", "9" * 5000 + ":a")]).status == 200


def test_deleted_meanwhile(pages: PageClient) -> None:
    """A strategy that someone deleted is told to be gone; what was typed can be added again."""
    strategy = made(pages)
    form = pages.form(pages.get(f"{LIST}/{strategy['id']}"), strategy["id"])
    pages.client.delete(f"{API}/{strategy['id']}")
    gone = pages.press(form, "save", title="mine")
    assert gone.status == 409
    assert "Someone else deleted this strategy meanwhile" in gone.body.decode()
    assert pages.press(pages.form(gone, "/new"), "save").status == 303
    assert [each["title"] for each in stored(pages)] == ["mine"]
    assert pages.get(f"{LIST}/{strategy['id']}").status == 404


def test_order_and_deletion(pages: PageClient) -> None:
    """Buttons of the flag's page move a strategy; the page of one deletes it."""
    one, two = made(pages, title="one"), made(pages, title="two")
    assert pages.post(f"{LIST}/{two['id']}/move", [("do", "up")]).status == 303
    assert [each["title"] for each in stored(pages)] == ["two", "one"]
    assert pages.post(f"{LIST}/{two['id']}/move", [("do", "down")]).status == 303
    assert pages.post(f"{LIST}/nosuch/move", [("do", "down")]).status == 404
    assert [each["title"] for each in stored(pages)] == ["one", "two"]
    page = pages.get(f"{LIST}/{one['id']}")
    assert pages.press(pages.form(page, "/delete")).status == 303
    assert [each["title"] for each in stored(pages)] == ["two"]


def test_other_types(pages: PageClient) -> None:
    """A strategy of another type shows its parameters as texts."""
    form = pages.form(pages.get(f"{LIST}/new?type=mine"), "/new")
    assert pages.press(form, "save", p__userIds="1,2,3").status == 303
    [strategy] = stored(pages)
    assert (strategy["name"], strategy["parameters"]) == ("mine", {"userIds": "1,2,3"})
    form = pages.form(pages.get(f"{LIST}/{strategy['id']}"), strategy["id"])
    assert form.value("p.userIds") == "1,2,3"
    assert pages.get(f"{LIST}/new?type=nosuch").status == 404
