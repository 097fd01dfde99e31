"""The page of a strategy: every operator, values by hundreds, what saving changes, and two people who edit the same."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.engine.operators import DATE, LISTS, NETWORKS, NUMBER, OPERATORS, PATTERN, TEXTS, VERSION
from support.page_forms import PageClient

API = "/api/admin/projects/default/features/a/environments/development/strategies"
LIST = "/ui/flags/a/development/strategies"
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
    return dict(answer.json())


def stored(pages: PageClient) -> list[dict[str, Any]]:
    """Return the strategies as the admin API shows them."""
    return list(pages.client.get(API).json())


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


def test_legal_values_and_order_of_conditions(pages: PageClient) -> None:
    """Legal values of a field are boxes to tick; conditions move and go by buttons, and all that was typed stays."""
    first = pages.press(pages.form(pages.get(f"{LIST}/new"), "/new"), "add-condition")
    second = pages.press(pages.form(first, "/new"), "add-condition", c0__field="plan")
    form = pages.form(second, "/new")
    assert b'<input type="checkbox" name="c0.legal" value="one, two">' in second.body
    third = pages.press(form, "condition-down:0", c0__legal=["one, two"], c1__field="userId", c1__inverted="on", c1__values="7")
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
    strategy = made(pages, parameters={"rollout": "10", "stickiness": "userId", "groupId": "a"})
    pages.client.post(f"{API.removesuffix('/strategies')}/on")
    form = pages.form(pages.get(f"{LIST}/{strategy['id']}"), strategy["id"])
    assert form.buttons[0] == ("do", "preview")
    shown = pages.press(form, "preview", rollout="25").body.decode()
    assert "15 % of the users by userId get it." in shown
    assert "No user loses it." in shown
    assert "10 % by userId" in shown
    again = pages.press(form, "preview", rollout="25", group="b").body.decode()
    assert "All users are drawn again" in again
    assert "22.5 % of the users by userId get it." in again
    assert "7.5 % of the users by userId lose it." in again
    assert stored(pages) == [strategy | {"milestoneId": None}]


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
    """A number or an override that no form sends is no error of the server."""
    long = "9" * 5000
    odd = [("conditions", long), ("do", f"condition-up:{long}"), ("segment", "²"), ("base", "é")]
    odd += [("variants", long), ("do", f"remove-variant:{long}"), ("v0.values", "x")]
    for each in odd:
        fields = [("variants", "1"), ("rollout", "5"), ("name", "flexibleRollout"), each]
        assert pages.post(f"{LIST}/new", fields).status == 200
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
