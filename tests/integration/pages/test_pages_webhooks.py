"""Webhooks on pages: list, make, change, switch, test and delete; two people; rights; no secret in a page; recipes."""

from __future__ import annotations

import html
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flagsvc.server.webhooks.provider import EVENT_TYPES
from flagsvc.server.webhooks.reach import Reach
from flagsvc.server.webhooks.recipes import RECIPES
from flagsvc.server.webhooks.trials import Trials
from support.flagservers import EDITOR_SECRET, USER_SECRET
from support.page_forms import HOSTILE, PageClient
from support.receivers import ADDONS, add_flags, add_webhook, receiving, sending, states
from support.waiting import wait_until

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
    assert pages.form(page, "/new-webhook").value("events") == "feature-environment-enabled"
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


def test_a_bad_one(pages: PageClient) -> None:
    """The form comes back with what was typed, but for what may be secret."""
    form = pages.form(pages.get("/ui/new-webhook"), "/new-webhook")
    refused = pages.press(form, "save", url=URL, **SECRETS, description=HOSTILE, customHeaders="secret-value")
    assert refused.status == 400 and "must be a JSON object" in refused.text
    assert "secret" not in refused.text.replace("signingSecret", "").replace("Signing secret", "").replace("is secret again", "")
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
    conflict = pages.press(mine, "save", description="mine", bodyTemplate="my template", signingSecret="secret-of-mine-now")
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
    assert "Only administrators see" in editor.text and "cart" not in editor.text and "with the status 500" in editor.text


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


def tried(pages: PageClient, path: str, token: str = USER_SECRET, **typed: Any) -> tuple[str, str]:
    """Type into the form of a webhook and send a test of it; return how it came out and the page."""
    form = pages.form(pages.get(path), path.removeprefix("/ui"))
    answer = pages.post(f"{path}/try", form.filled(typed), token=token)
    assert answer.status == 200, answer.text
    return answer.text.partition('<div id="tried" role="status">')[2].partition("</form>")[0], answer.text


@pytest.mark.parametrize(
    ("status", "body", "word", "shown"),
    [
        (200, b"ok", "Delivered", "<code>ok</code>"),
        (400, b"invalid_payload\x00 \n<script>", "Not delivered", "<code>invalid_payload &lt;script&gt;</code>"),
        (302, b"", "Not delivered", "redirects are not followed"),
        (200, b"x" * 190 + SECRETS["authorization"].encode() + b"y" * 9, "Delivered", f"<code>{'x' * 190}*****yyyyy</code>"),
        (200, b"/hook is what you asked for", "Delivered", "<code>***** is what you asked for</code>"),
    ],
)
def test_a_test_before_saving(pages: PageClient, status: int, body: bytes, word: str, shown: str) -> None:
    """What is typed is sent once and not stored. The page says how it came out, and no secret, also none that comes back."""
    with receiving() as receiver:
        receiver.status, receiver.body = status, body
        found, page = tried(
            pages, "/ui/new-webhook", url=receiver.url, **SECRETS, bodyTemplate="{{event.type}} at {{event.createdBy}}"
        )
        [sent] = receiver.received
    assert sent.body == b"webhook-test at boss" and sent.headers["authorization"] == SECRETS["authorization"]
    assert "webhook-signature" in sent.headers
    assert f"{word}: the receiver answered with the status {status}" in found and shown in found
    assert not any(each in page for each in (receiver.url, *SECRETS.values()))
    assert pages.data("/ui/webhooks")["webhooks"] == []


def test_a_test_of_a_stored_one(pages: PageClient) -> None:
    """The mask stands for what is stored, and nothing that is stored changes: no setting, no delivery, no event."""
    with receiving() as receiver:
        add_webhook(pages.client, receiver.url, authorization=SECRETS["authorization"])
        before, events = stored(pages), pages.client.get("/api/admin/events").json()["totalEvents"]
        found, _ = tried(pages, ONE, description="typed", contentType="text/plain", bodyTemplate="now")
        [sent] = receiver.received
    assert "Delivered" in found and sent.body == b"now" and sent.headers["authorization"] == SECRETS["authorization"]
    assert stored(pages) == before and pages.data(ONE)["sent"] == []
    assert pages.client.get("/api/admin/events").json()["totalEvents"] == events


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"url": ""}, "Give an address, with http:// or https://."),
        ({"url": "http://127.0.0.1:1/secret-path"}, "the receiver: "),
        ({"url": "http://[::ffff:169.254.169.254]/"}, "is not in the networks that webhooks may reach"),
        ({"url": "http://127.0.0.1:1/", "bodyTemplate": "{{#event}}"}, "has no end"),
    ],
)
def test_a_test_that_sends_nothing(pages: PageClient, typed: dict[str, str], words: str) -> None:
    """The reason is in words, without the address. The networks that webhooks may reach count."""
    trials = pages.client.server.trials
    object.__setattr__(pages.client.server, "trials", Trials(Reach(["!linklocal"])))
    found, page = tried(pages, "/ui/new-webhook", **typed)
    object.__setattr__(pages.client.server, "trials", trials)
    assert "Not delivered: " in found and words in html.unescape(found) and "secret-path" not in page


def test_only_administrators_see_an_answer(pages: PageClient) -> None:
    """An editor gets the status alone, so that no webhook reads what the network of the server answers."""
    with receiving() as receiver:
        receiver.body = b"internal"
        assert "internal" in tried(pages, "/ui/new-webhook", url=receiver.url)[0]
        found, page = tried(pages, "/ui/new-webhook", EDITOR_SECRET, url=receiver.url)
    assert "with the status 200" in found and "internal" not in page


def test_few_tests_at_once(pages: PageClient) -> None:
    """A receiver that does not answer holds up two tests, and no page: a third test is refused in words, at once."""
    with receiving() as receiver, ThreadPoolExecutor(2) as threads:
        receiver.open.clear()
        waiting = [threads.submit(tried, pages, "/ui/new-webhook", url=receiver.url) for _ in range(2)]
        receiver.wait_for(2)
        assert "others send tests just now" in tried(pages, "/ui/new-webhook", url=receiver.url)[0]
        receiver.open.set()
        assert all("Delivered" in each.result()[0] for each in waiting)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe(pages: PageClient, name: str) -> None:
    """The form begins with what the chat needs, and its body is JSON for every event, also with odd texts of people."""
    path = f"/ui/new-webhook?for={name}"
    page = pages.get(path)
    form = pages.form(page, "/new-webhook")
    assert form.value("contentType") == "application/json" and RECIPES[name].url in html.unescape(page.text)
    with receiving() as receiver:
        events = ["feature-created", "feature-metadata-updated"]
        assert pages.press(form, "save", description=HOSTILE, url=receiver.url, events=events).status == 303
        with sending(pages.client):
            add_flags(pages.client, "cart")
            pages.client.put("/api/admin/projects/default/features/cart", {"name": "cart", "description": 'a "b" \\ {{c}}'})
            bodies = [each.json() for each in receiver.wait_for(2)]
    assert all("boss" in json.dumps(each) and "cart" in json.dumps(each) for each in bodies)


def test_every_type_of_events_has_a_group(pages: PageClient) -> None:
    """Every type of events of this server is in exactly one group; a type of another server is among the others."""
    made(pages, events=["feature-created", "change-request-created"])
    groups = {each["title"]: [kind["value"] for kind in each["kinds"]] for each in pages.data(ONE)["groups"]}
    assert sorted(kind for kinds in groups.values() for kind in kinds) == sorted((*EVENT_TYPES, "change-request-created"))
    assert groups.pop("Others") == ["change-request-created"] and min(len(kinds) for kinds in groups.values()) > 1
