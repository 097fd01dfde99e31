"""Events without a project, such as those of users: only webhooks that an administrator changed last send them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, update

from flagsvc.server.store import schema
from flagsvc.server.webhooks.sender import WITHHELD
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, AppClient
from support.receivers import ADDONS, Receiver, add_flags, add_webhook, deliveries, sending, states
from support.waiting import wait_until

EVENTS = ("user-created", "feature-created")


def add_user(client: AppClient, name: str = "new") -> None:
    """Create a user, which is an event without a project."""
    user = {"username": name, "email": f"{name}@example.com", "rootRole": 3, "sendEmail": False}
    answer = client.post("/api/admin/user-admin", user)
    assert answer.status == 201, answer.text


def save(client: AppClient, number: int, token: str | None = None) -> None:
    """Save a webhook without a change."""
    body = client.get(f"{ADDONS}/{number}").json()
    answer = client.put(f"{ADDONS}/{number}", body, **({} if token is None else {"token": token}))
    assert answer.status == 200, answer.text


def sends_all(client: AppClient, number: int) -> Any:
    """Return what the API says of events without a project."""
    return client.get(f"{ADDONS}/{number}").json()["deliveries"]["eventsWithoutProject"]


def queued(client: AppClient, number: int) -> list[str]:
    """Return the types of the events that a webhook has queued, the newest first."""
    return [each["event"]["type"] for each in deliveries(client, number)]


def test_only_an_administrators_webhook_gets_users(client: AppClient, receiver: Receiver) -> None:
    """The webhook of an editor gets the event of a flag, and that of an administrator the event of a user, too."""
    ours = add_webhook(client, f"{receiver.url}/ours", *EVENTS)
    theirs = add_webhook(client, f"{receiver.url}/theirs", *EVENTS, token=EDITOR_SECRET)
    assert (sends_all(client, ours), sends_all(client, theirs)) == (True, False)
    with sending(client):
        add_user(client)
        add_flags(client, "a")
        receiver.wait_for(3)
        wait_until(lambda: {*states(client, ours), *states(client, theirs)} == {"success"})
    came = sorted((each.path.rpartition("/")[2], each.json()["type"]) for each in receiver.received)
    assert came == [("ours", "feature-created"), ("ours", "user-created"), ("theirs", "feature-created")]


def test_who_saved_it_last_counts(client: AppClient) -> None:
    """An editor who saves the webhook of an administrator takes it over, and an administrator who saves it takes it back."""
    number = add_webhook(client, "http://127.0.0.1:1/", "user-created")
    save(client, number, EDITOR_SECRET)
    add_user(client, "one")
    assert queued(client, number) == [] and not sends_all(client, number)
    save(client, number)
    add_user(client, "two")
    assert queued(client, number) == ["user-created"] and sends_all(client, number)


def test_what_waits_does_not_go_to_an_editors_address(client: AppClient, receiver: Receiver) -> None:
    """An event of a user that is queued, and then an editor changes the address: it is given up, and nothing is sent."""
    number = add_webhook(client, "http://127.0.0.1:1/", *EVENTS)
    add_user(client)
    add_flags(client, "a")
    body = client.get(f"{ADDONS}/{number}").json()
    moved = body | {"parameters": {"url": receiver.url}}
    assert client.put(f"{ADDONS}/{number}", moved, token=EDITOR_SECRET).status == 200
    with sending(client):
        wait_until(lambda: states(client, number) == ["success", "failed"])
    assert receiver.types() == ["feature-created"]
    [given_up] = [each for each in deliveries(client, number) if each["state"] == "failed"]
    assert given_up["stateDetails"] == WITHHELD and given_up["details"]["attempts"] == 1


@pytest.mark.parametrize("loses", ["role", "account"])
def test_who_is_no_administrator_any_more(client: AppClient, receiver: Receiver, loses: str) -> None:
    """The role counts that the person has when the event is sent: neither a new event nor a waiting one goes out."""
    number = add_webhook(client, receiver.url, *EVENTS)
    add_user(client, "before")
    with client.server.store.recording() as tx:
        owner = tx.db.execute(schema.addons.select()).one().changed_by_id
        chosen = schema.users.c.id == owner
        if loses == "role":
            tx.db.execute(update(schema.users).where(chosen).values(root_role="editor"))
        else:
            tx.db.execute(delete(schema.users).where(chosen))
    with client.server.store.recording() as tx:
        tx.record_event("user-updated", data={"id": 1, "name": "someone"})
        tx.record_event("feature-created", project="default", feature="a", data={"name": "a"})
    with sending(client):
        wait_until(lambda: states_of(client, number) == ["success", "failed"])
    assert receiver.types() == ["feature-created"]


def states_of(client: AppClient, number: int) -> list[str]:
    """Return the states of deliveries as the database has them, the newest first: the caller of the API may be gone."""
    with client.server.store.reading() as tx:
        query = schema.deliveries.select().where(schema.deliveries.c.addon_id == number)
        return [row.state for row in tx.db.execute(query.order_by(schema.deliveries.c.id.desc()))]


def test_an_admin_token_counts_as_an_administrator(client: AppClient) -> None:
    """A webhook that a program makes with an admin token gets events of users."""
    number = add_webhook(client, "http://127.0.0.1:1/", "user-created", token=ADMIN_SECRET)
    add_user(client)
    assert queued(client, number) == ["user-created"]


def test_a_test_is_sent_by_every_webhook(client: AppClient, receiver: Receiver) -> None:
    """The event of a test has no project, and tells nothing of users."""
    number = add_webhook(client, receiver.url, token=EDITOR_SECRET)
    with sending(client):
        assert client.post(f"{ADDONS}/{number}/test", token=EDITOR_SECRET).status == 202
        receiver.wait_for(1)
    assert receiver.types() == ["webhook-test"]
