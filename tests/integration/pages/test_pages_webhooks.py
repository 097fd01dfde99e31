"""Webhooks on pages: list, make, change, switch, test and delete; two people; rights; no secret in a page."""

from __future__ import annotations

from typing import Any

import pytest

from support.flagservers import EDITOR_SECRET
from support.page_forms import PageClient
from support.receivers import ADDONS, add_flags, add_webhook, receiving, sending, states
from support.waiting import wait_until

HOSTILE = "<script>alert(1)</script>\"'&"
ONE = "/ui/webhooks/1"
URL = "https://hooks.example.com/secret-path"
SECRETS = {"authorization": "Bearer secret-value", "signingSecret": "secret-of-the-signature"}
PLAIN = {"description": HOSTILE, "contentType": "text/plain", "bodyTemplate": "line one\n{{event.type}}"}


def stored(pages: PageClient) -> Any:
    """Return the first webhook as the admin API shows it."""
    return pages.client.get(f"{ADDONS}/1").json()


def made(pages: PageClient, **more: Any) -> int:
    """Make a webhook by the API, and return its number."""
    return add_webhook(pages.client, URL, more={"description": "For the chat"} | more, **SECRETS)


def test_making_one(pages: PageClient) -> None:
    """The form makes a webhook of what was typed and ticked; no text of it becomes HTML."""
    page = pages.get("/ui/new-webhook")
    assert pages.form(page).value("events") == "feature-environment-enabled"
    form = pages.form(page, "/new-webhook")
    ticked: dict[str, Any] = {
        "events": ["feature-created", "feature-archived"],
        "projects": ["default"],
        "environments": ["production"],
    }
    told = pages.press(form, "save", url=URL, **SECRETS, **PLAIN, **ticked)
    assert told.status == 303 and "You created the webhook" in pages.get(told.headers["location"]).text
    found = stored(pages)
    assert {name: found[name] for name in ticked} == ticked and found["enabled"] is True
    masked = dict.fromkeys(("url", *SECRETS), "*****")
    assert found["parameters"] == masked | {name: PLAIN[name] for name in ("contentType", "bodyTemplate")}
    for path in ("/ui/webhooks", ONE):
        assert "<script>alert" not in pages.get(path).text and "&lt;script&gt;" in pages.get(path).text
    assert pages.get("/ui/webhooks/99").status == 404 and pages.get("/ui/webhooks/x").status == 400
    assert '/ui/webhooks"' in pages.get("/ui/settings").text


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"url": ""}, "Give an address, with http:// or https://."),
        ({"customHeaders": "secret-value"}, "must be a JSON object"),
    ],
)
def test_a_bad_one(pages: PageClient, typed: dict[str, str], words: str) -> None:
    """The form comes back with the reason and with what was typed, but for what may be secret."""
    form = pages.form(pages.get("/ui/new-webhook"), "/new-webhook")
    refused = pages.press(form, "save", **{"url": URL, **SECRETS, "description": HOSTILE, **typed})
    assert refused.status == 400 and words in refused.text
    assert "secret" not in refused.text.replace("signingSecret", "").replace("Signing secret", "").replace(
        "is secret again", ""
    )
    again = pages.form(refused, "/new-webhook")
    assert (again.value("description"), again.value("authorization"), again.value("url")) == (HOSTILE, "", "")


def test_changing_one(pages: PageClient) -> None:
    """What the form shows as a mask stays; what is emptied goes; of two people the second sees what the first did."""
    made(pages)
    mine, theirs = (pages.form(pages.get(ONE), "/webhooks/1") for _ in range(2))
    assert mine.value("url") == mine.value("authorization") == "*****"
    assert "Nothing was different" in pages.get(pages.press(mine, "save").headers["location"]).text
    told = pages.press(theirs, "save", description="theirs", authorization="")
    assert "You changed the webhook" in pages.get(told.headers["location"]).text
    assert stored(pages)["parameters"].keys() == {"url", "signingSecret"}
    conflict = pages.press(
        mine, "save", description="mine", bodyTemplate="my template", signingSecret="secret-of-mine-now"
    )
    assert conflict.status == 409 and "theirs" in conflict.text and "my template" in conflict.text
    assert "secret-of-mine" not in conflict.text and "boss changed the webhook theirs" in conflict.text
    assert pages.press(pages.form(conflict, "/webhooks/1"), "save").status == 303
    assert stored(pages)["description"] == "mine"


def test_a_change_of_a_secret_alone_is_seen(pages: PageClient) -> None:
    """A form from before another person's change of a secret is not saved unseen, although both look the same."""
    made(pages)
    mine, theirs = (pages.form(pages.get(ONE), "/webhooks/1") for _ in range(2))
    assert pages.press(theirs, "save", authorization="Bearer other").status == 303
    assert pages.press(mine, "save", description="mine").status == 409


def test_events_of_other_servers_stay(pages: PageClient) -> None:
    """A type of events that never happens here is kept, and is shown as such."""
    made(pages, events=["feature-created", "change-request-created"], projects=["*", "gone"])
    page = pages.get(ONE)
    assert "never happens here" in page.text
    assert pages.press(pages.form(page, "/webhooks/1"), "save", description="d").status == 303
    assert stored(pages)["events"] == ["feature-created", "change-request-created"]
    assert sorted(stored(pages)["projects"]) == ["*", "gone"]


def test_switching_testing_and_deliveries(pages: PageClient) -> None:
    """A button switches it off and on, one sends a test, and an administrator sees what became of it."""
    with receiving() as receiver:
        number = add_webhook(pages.client, receiver.url)
        with sending(pages.client):
            assert pages.press(pages.form(pages.get(ONE), "/switch"), to="off").status == 303
            assert stored(pages)["enabled"] is False and "Switch on" in pages.get(ONE).text
            told = pages.press(pages.form(pages.get(ONE), "/test"))
            assert "A test is on its way" in pages.get(told.headers["location"]).text
            receiver.wait_for(1)
            wait_until(lambda: states(pages.client, number) == ["success"])
            assert pages.press(pages.form(pages.get(ONE), "/switch"), to="on").status == 303
            receiver.status = 500
            add_flags(pages.client, "cart")
            wait_until(lambda: "with the status 500" in pages.get(ONE).text)
    page = pages.get(ONE)
    assert "boss tests this webhook" in page.text and "boss created the flag cart in default" in page.text
    assert [each["state"] for each in pages.data(ONE)["sent"]] == ["waiting", "success"]
    listed = pages.data("/ui/webhooks")["webhooks"][0]["deliveries"]
    assert listed["lastSuccessAt"] and listed["lastError"] == "the receiver answered with the status 500"
    editor = pages.get(ONE, token=EDITOR_SECRET)
    assert (
        "Only administrators see" in editor.text and "cart" not in editor.text and "with the status 500" in editor.text
    )


def test_deleting_one(pages: PageClient) -> None:
    """It goes with what waits, unless someone changed the webhook meanwhile; the change cannot be undone, and the page says why."""
    made(pages)
    old = pages.form(pages.get(ONE), "/delete")
    assert pages.press(pages.form(pages.get(ONE), "/webhooks/1"), "save", description="d").status == 303
    assert pages.press(old).status == 409
    told = pages.press(pages.form(pages.get(ONE), "/delete"))
    page = pages.get(told.headers["location"]).text
    assert "You deleted the webhook" in page and "which no event has" in page
    assert pages.client.get(f"{ADDONS}/1").status == 404


def test_rights(pages: PageClient) -> None:
    """An editor may all. The page says that an editor's webhook sends no events without a project."""
    made(pages)
    assert "sent, because an administrator changed this webhook last" in pages.get(ONE).text
    form = pages.form(pages.get(ONE, token=EDITOR_SECRET), "/webhooks/1")
    assert pages.press(form, "save", description="d", token=EDITOR_SECRET).status == 303
    assert "not sent: an administrator must save this webhook first" in pages.get(ONE).text
    assert pages.press(pages.form(pages.get(ONE), "/webhooks/1"), "save").status == 303
    assert "sent, because an administrator changed this webhook last" in pages.get(ONE).text
