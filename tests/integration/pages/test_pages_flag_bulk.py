"""Changing several flags: the preview says what happens to each, one transaction does it, and one undo takes it back."""

from __future__ import annotations

import re
from typing import Any

import pytest

from flagsvc.server.pages.flag_bulk import MOST
from support.flagservers import EDITOR_SECRET, VIEWER_SECRET, AppClient
from support.page_forms import PageClient, Visitor, read_wrong

FLAGS = "/api/admin/projects/default/features"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}],
    "features": [
        {"name": "a", "enabled": ["development", "production"]},
        {"name": "b"},
        {"name": "child"},
        {"name": "gone", "archived": True},
        {"name": "theirs", "project": "shop"},
    ],
    "strategies": [
        {"feature": "a", "environment": "production", "name": "flexibleRollout", "parameters": {"rollout": "25", "groupId": "a"}}
    ],
}
ALL = ["a", "b", "child", "gone", "theirs", "nosuch"]
NOSUCH = "there is no such flag"
PREVIEWS: list[tuple[dict[str, str], str, dict[str, str], dict[str, str]]] = [
    (
        {"do": "archive"},
        "Archive 4 flags?",
        {
            "a": "is archived. It is on in production, development now.",
            "b": "is archived. It is off everywhere.",
            "child": "is archived. It is off everywhere, and no longer depends on b.",
            "theirs": "is archived. It is off everywhere.",
        },
        {"gone": "it is archived already", "nosuch": NOSUCH},
    ),
    (
        {"do": "revive"},
        "Revive gone?",
        {"gone": "is revived, and off everywhere."},
        {**dict.fromkeys(("a", "b", "child", "theirs"), "it is not archived"), "nosuch": NOSUCH},
    ),
    (
        {"do": "tag", "tag": "simple:web"},
        "Add the tag simple:web to 4 flags?",
        dict.fromkeys(("a", "child", "gone", "theirs"), "gets the tag simple:web."),
        {"b": "it has this tag already", "nosuch": NOSUCH},
    ),
    (
        {"do": "untag", "tag": "simple:web"},
        "Remove the tag simple:web from b?",
        {"b": "loses the tag simple:web."},
        {**dict.fromkeys(("a", "child", "gone", "theirs"), "it does not have this tag"), "nosuch": NOSUCH},
    ),
    (
        {"do": "on", "environment": "production"},
        "Switch 3 flags on in production?",
        dict.fromkeys(("b", "child", "theirs"), "becomes on for: everyone."),
        {"a": "it is on already", "gone": "it is archived", "nosuch": NOSUCH},
    ),
    (
        {"do": "off", "environment": "production"},
        "Switch a off in production?",
        {"a": "becomes off. Now it is on for: 25 %."},
        {**dict.fromkeys(("b", "child", "theirs"), "it is off already"), "gone": "it is archived", "nosuch": NOSUCH},
    ),
]
"""Form → the question, what happens to flags, and which are left out and why."""


@pytest.fixture
def client(client: AppClient) -> AppClient:
    """Give a server where b has a tag, and child depends on b."""
    assert client.post("/api/admin/features/b/tags", {"type": "simple", "value": "web"}).status == 201
    assert client.post(f"{FLAGS}/child/dependencies", {"feature": "b"}).status == 200
    return client


def preview(visitor: Visitor, fields: dict[str, Any], names: list[str]) -> Any:
    """Return the data of the preview."""
    answer = visitor.send("/change-flags.json", fields={"flag": names, "back": "/flags?q=x", **fields})
    assert answer.status == 200, answer.text
    return answer.json()


def left_out_of(found: Any) -> dict[str, str]:
    """Return why flags are left out, by name."""
    return {each["name"]: each["obstacle"] for each in found["lines"] if each["obstacle"]}


def confirm(visitor: Visitor, fields: dict[str, Any], names: list[str], base: str) -> Any:
    """Send the form of the preview."""
    place = f"/{fields['environment']}" if "environment" in fields else ""
    sent = {"flag": names, "tag": fields.get("tag", ""), "base": base, "back": "/flags?q=x"}
    return visitor.send(f"/change-flags{place}/{fields['do']}", fields=sent)


def state(client: AppClient) -> Any:
    """Return all flags, archived ones, too, with their tags and switches, without times."""
    found = [client.get(f"/api/admin/search/features?archived=IS:{each}").json()["features"] for each in ("true", "false")]
    return [
        {
            "name": each["name"],
            "archived": each["archivedAt"] is not None,
            "tags": each.get("tags", []),
            "parents": each["dependencyType"],
            "on": [place["name"] for place in each["environments"] if place["enabled"]],
        }
        for part in found
        for each in sorted(part, key=lambda each: str(each["name"]))
    ]


@pytest.mark.parametrize(("fields", "title", "changed", "left_out"), PREVIEWS, ids=lambda each: str(each)[:12])
def test_what_happens(
    client: AppClient, fields: dict[str, str], title: str, changed: dict[str, str], left_out: dict[str, str]
) -> None:
    """The preview says what happens to each flag or why it is left out. Then this happens, and an undo takes all of it back."""
    visitor, before = Visitor(client), state(client)
    found = preview(visitor, fields, ALL)
    assert (found["title"], found["protected"]) == (title, fields.get("environment") == "production")
    assert {each["name"]: each["words"] for each in found["lines"] if each["words"]} == changed
    assert left_out_of(found) == left_out and found["changed"] == len(changed)
    assert state(client) == before
    done = confirm(visitor, fields, ALL, found["base"])
    assert done.status == 303 and done.headers["location"].startswith("/ui/flags?q=x&undo=")
    after = state(client)
    assert [name for name in changed if after.count(next(each for each in before if each["name"] == name))] == []
    action = done.headers["location"].rpartition("=")[2]
    assert visitor.send(f"/history/actions/{action}/undo").status == 303
    assert state(client) == before


def test_a_parent_stays_while_flags_depend_on_it(client: AppClient) -> None:
    """It is left out with the names of those flags; together with them it is archived."""
    found = preview(Visitor(client), {"do": "archive"}, ["b", "a"])
    assert left_out_of(found) == {"b": "child depends on it"}
    assert left_out_of(preview(Visitor(client), {"do": "archive"}, ["b", "child"])) == {}


def test_all_that_fit(client: AppClient) -> None:
    """All flags that fit the filters of the list are changed, on every page of it."""
    found = preview(Visitor(client), {"do": "archive", "all": "q=i+state:active&sort=-name"}, [])
    assert [each["name"] for each in found["lines"]] == ["theirs", "child", "b"], "b has the tag simple:web"


def test_who_may_change_some(client: AppClient) -> None:
    """A flag for which the permission is missing is left out with its name; who may change none is refused."""
    editor = Visitor(client, EDITOR_SECRET)
    found = preview(editor, {"do": "archive"}, ["a", "theirs"])
    assert left_out_of(found) == {"theirs": "it needs DELETE_FEATURE"} and found["changed"] == 1
    assert confirm(editor, {"do": "archive"}, ["a", "theirs"], found["base"]).status == 303
    assert confirm(editor, {"do": "archive"}, ["theirs"], "").status == 403
    page = Visitor(client, VIEWER_SECRET).send("/change-flags", fields={"do": "archive", "flag": ["b"]}).text
    assert "Nothing would change." in page and "it needs DELETE_FEATURE" in page and "<button>Archive" not in page


def test_nothing_happens_unseen(client: AppClient) -> None:
    """If meanwhile something else would happen, nothing is done, and the preview shows it."""
    visitor = Visitor(client)
    base = preview(visitor, {"do": "archive"}, ["a", "b", "child"])["base"]
    assert client.delete(f"{FLAGS}/a").status == 202
    revision = client.server.store.revision()
    answer = confirm(visitor, {"do": "archive"}, ["a", "b", "child"], base)
    assert answer.status == 409 and "Nothing is changed yet" in answer.text and "it is archived already" in answer.text
    base = re.findall(r'name="base" value="([^"]+)"', answer.text)[0]
    assert client.server.store.revision() == revision
    assert confirm(visitor, {"do": "archive"}, ["a", "b", "child"], base).status == 303


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"do": "archive"}, "Tick at least one flag."),
    ({"do": "archive", "flag": [f"f{number}" for number in range(MOST + 1)]}, "501 flags are ticked. At most 500 are"),
    ({"do": "what", "flag": ["a"]}, "There is no change what"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_what_no_flag_can_get(client: AppClient, fields: dict[str, Any], words: str) -> None:
    """A sentence says what is missing, and there is no button to go on."""
    answer = Visitor(client).send("/change-flags", fields=fields)
    assert answer.status == 400 and words in answer.text
    assert 'class="main"' not in answer.text


@pytest.mark.parametrize(
    ("typed", "field", "words", "right"),
    [
        ({"do": "on", "environment": "nowhere"}, "environment", "Choose an environment.", "production"),
        ({"do": "tag", "tag": "web"}, "tag", "Write a tag as its type and its value, such as simple:web.", "simple:web"),
        ({"do": "tag", "tag": "team:web"}, "tag", "There is no tag type team. There are simple.", "simple:web"),
        ({"do": "tag", "tag": "simple:x"}, "tag", "The value of a tag has 2 to 50 characters.", "simple:web"),
    ],
)
def test_a_wrong_field(pages: PageClient, typed: dict[str, str], field: str, words: str, right: str) -> None:
    """It stands on the page with its sentence, and the same flags go on from there."""
    answer = pages.post("/ui/change-flags", [("flag", "a"), ("flag", "b"), ("back", "/flags?q=x"), *typed.items()])
    assert answer.status == 400 and read_wrong(answer) == {field: words}
    form = pages.form(answer, "/change-flags")
    again = pages.press(form, typed["do"], **{field: right})
    assert again.status == 200 and read_wrong(again) == {}
    confirmed = pages.form(again, f"/{typed['do']}")
    assert [value for name, value in confirmed.fields if name == "flag"] == ["a", "b"]
    assert confirmed.value("back") == "/flags?q=x"
