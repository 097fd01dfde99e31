"""The page that imports flags: the validation's findings, what changes before and after, and an import of what was shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.batch_scene import feature, place, strategy, variant
from support.flagservers import ADMIN_SECRET, VIEWER_SECRET
from support.page_forms import HOSTILE, PageClient

FEATURES = "/api/admin/projects/default/features"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "default", "name": "Default"}, {"id": "other", "name": HOSTILE}],
    "features": [{"name": "a", "description": "old"}, {"name": "gone", "archived": True}, {"name": "theirs", "project": "other"}],
    "segments": [{"name": "beta", "constraints": []}],
}
QUARTER = {"rollout": "25", "stickiness": "userId", "groupId": "a"}


def data_set(*features: Any, **more: Any) -> str:
    """Return the text of a data set."""
    return json.dumps({"features": features, "featureStrategies": [], "tagTypes": [], **more})


GOOD = data_set(
    feature("a", description="new"),
    feature("b", type="experiment"),
    featureStrategies=[strategy("a", "flexibleRollout", parameters=QUARTER)],
    featureEnvironments=[place("a", enabled=True), place("b", variants=[variant("x")])],
    featureTags=[{"featureName": "b", "tagType": "team", "tagValue": "shop"}],
    tagTypes=[{"name": "team"}],
)


def preview(pages: PageClient, text: str, **more: Any) -> Any:
    """Show what an import of a text into `development` changes, and return the answer."""
    form = pages.form(pages.get("/ui/import?project=default&environment=development"), "/import")
    return pages.press(form, "preview", text=text, **more)


def found(pages: PageClient, text: str, token: str = VIEWER_SECRET) -> Any:
    """Return what the page's data says of an import of a text into `development`."""
    fields = [("project", "default"), ("environment", "development"), ("text", text)]
    return pages.post("/ui/import.json", fields, token=token).json()


def test_an_import(pages: PageClient) -> None:
    """The page shows each flag before and after; nothing changes until the button; all events are one action."""
    shown = preview(pages, GOOD)
    assert shown.status == 200
    assert "1 new, 1 changed" in " ".join(shown.text.split())
    assert "<mark>25 % by userId</mark>" in shown.text
    assert "<mark>description: old</mark>" in shown.text and "<mark>description: new</mark>" in shown.text
    assert "There is no such flag." in shown.text and "The tag type team is created." in shown.text
    assert pages.client.get(f"{FEATURES}/b").status == 404
    done = pages.press(pages.form(shown, "/import"), "save")
    assert done.status == 303 and done.headers["location"].startswith("/ui/history?undo=")
    flag = pages.client.get(f"{FEATURES}/a/environments/development").json()
    assert (flag["enabled"], flag["strategies"][0]["parameters"]) == (True, QUARTER)
    action = done.headers["location"].rpartition("=")[2]
    events = pages.client.get(f"/api/admin/search/events?groupId=IS:{action}").json()["events"]
    assert "features-imported" in [each["type"] for each in events] and len(events) > 5
    assert {each["way"] for each in events} == {"import"}


def test_a_file(pages: PageClient) -> None:
    """A file comes instead of the text, with a byte order mark too; a button that imports shows it first."""
    form = pages.form(pages.get("/ui/import?project=default&environment=development"), "/import")
    shown = pages.press(form, "preview", text="", file=f"\ufeff{GOOD}")
    form = pages.form(shown, "/import")
    assert json.loads(form.value("text")) == json.loads(GOOD)
    other = pages.press(form, "save", file=data_set(feature("c")))
    assert other.status == 200 and "1 new" in other.text
    assert pages.press(pages.form(other, "/import"), "save").status == 303
    assert [pages.client.get(f"{FEATURES}/{name}").status for name in "bc"] == [404, 200]


def test_what_changed_meanwhile(pages: PageClient) -> None:
    """If the import no longer changes what was shown, nothing is imported and it is shown again; other changes do not matter."""
    first = pages.form(preview(pages, GOOD), "/import")
    pages.client.post("/api/admin/projects/default/features", {"name": "unrelated"})
    assert pages.client.ask("PUT", f"{FEATURES}/a", {"name": "a", "description": "third"}).status == 200
    again = pages.press(first, "save")
    assert again.status == 409 and "nothing is imported yet" in again.text
    assert "<mark>description: third</mark>" in again.text
    assert pages.client.get(f"{FEATURES}/b").status == 404
    pages.client.post("/api/admin/projects/default/features", {"name": "unrelated-too"})
    assert pages.press(pages.form(again, "/import"), "save").status == 303
    assert pages.press(first, "save", base="").status == 409


def test_errors_stop_it(pages: PageClient) -> None:
    """Errors and warnings are shown with their flags, and no button imports; a form that was made up does not either."""
    text = data_set(feature("theirs"), feature("gone"), featureStrategies=[strategy("theirs", "custom")])
    shown = preview(pages, text)
    assert all(words in shown.text for words in ("theirs (in project other)", "<li>custom</li>", "<li>gone</li>"))
    form = pages.form(shown, "/import")
    assert form.buttons == [("do", "preview")]
    fields = [*form.fields, ("do", "save")]
    assert pages.post_parts(form.action, fields).status == 400


def test_it_finds_what_the_validation_finds(pages: PageClient) -> None:
    """The page has the errors, the warnings and the missing permissions that the API answers."""
    text = data_set(feature("theirs"), feature("gone"), featureStrategies=[strategy("theirs", "custom")])
    body = {"project": "default", "environment": "development", "data": json.loads(text)}
    wanted = pages.client.post("/api/admin/features-batch/validate", body, token=VIEWER_SECRET).json()
    plan = found(pages, text)["found"]["plans"][0]
    assert wanted["errors"] and wanted["permissions"] and {name: plan[name] for name in wanted} == wanted


def test_an_archived_flag_is_left_out(pages: PageClient) -> None:
    """The plan says so, beside the warning."""
    told = found(pages, data_set(feature("gone"), feature("a", description="old")), token=ADMIN_SECRET)
    assert told["found"]["plans"][0]["counts"] == {"new": 0, "changed": 0, "same": 1, "left out": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "In the text, `/data` must be object."),
        (data_set(feature(HOSTILE)), "A name has only letters"),
        (data_set(feature("a\0b")), "must not contain a NUL"),
        (data_set(feature("half\ud800")), "A name has only letters"),
        (json.dumps({"data": json.loads(GOOD), "more": 1}), "must NOT have additional properties"),
    ],
)
def test_what_is_no_data_set(pages: PageClient, text: str, message: str) -> None:
    """The message is at the form, which keeps what was typed."""
    shown = preview(pages, text)
    assert shown.status == 400
    form = pages.form(shown, "/import")
    assert form.value("text") == text
    assert message in found(pages, text, ADMIN_SECRET)["problems"][0]
    assert "<script>alert" not in shown.text


def test_who_may_not(pages: PageClient) -> None:
    """A viewer sees which permissions are missing, and no button; an admin token sees all and imports nothing, as in the API."""
    form = pages.form(pages.get("/ui/import"), "/import")
    shown = pages.press(form, "preview", text=GOOD, token=VIEWER_SECRET, environment="development", project="default")
    assert "<li>Update feature flags</li>" in shown.text and "<li>Create feature flags</li>" in shown.text
    form = pages.form(shown, "/import")
    assert form.buttons == [("do", "preview")]
    assert pages.post_parts(form.action, [*form.fields, ("do", "save")], token=VIEWER_SECRET).status == 400
    form = pages.form(preview(pages, GOOD), "/import")
    refused = pages.press(form, "save", token=ADMIN_SECRET)
    assert refused.status == 400 and "admin token" in refused.text
    assert pages.client.get(f"{FEATURES}/b").status == 404


def test_a_whole_request(pages: PageClient) -> None:
    """The data of a request counts. The form says project and environment."""
    text = json.dumps({"project": "other", "environment": "production", "data": json.loads(GOOD)})
    plan = found(pages, text, ADMIN_SECRET)["found"]["plans"][0]
    assert (plan["project"], plan["environment"], plan["protected"]) == ("default", "development", False)
