"""Bounds of webhooks: the queue, the attempts at once and of one delivery, templates, slow receivers.

Events without a project, such as those of users: only webhooks that an administrator changed last send them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update

from flagsvc.server.store import outbox, schema
from flagsvc.server.store.outbox import LEASE_S
from flagsvc.server.webhooks import sender
from flagsvc.server.webhooks.sender import MOST_AT_ONCE, MOST_ATTEMPTS, PAUSES_S, WITHHELD
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, USER_SECRET, AppClient
from support.receivers import ADDONS, MovingClock, Receiver, add_flags, add_webhook, deliveries, receiving, sending, states
from support.waiting import wait_until

pytestmark = pytest.mark.one_database

CLOCK = MovingClock


def test_a_slow_receiver_delays_nothing_else(client: AppClient, receiver: Receiver) -> None:
    """While a receiver does not answer, changes and other webhooks go on, and it gets only a few requests at a time."""
    with receiving() as slow:
        slow.open.clear()
        add_webhook(client, slow.url)
        add_webhook(client, receiver.url)
        with sending(client):
            add_flags(client, *(f"f{place}" for place in range(6)))
            receiver.wait_for(6)
            assert len(slow.wait_for(1)) <= MOST_AT_ONCE
            slow.open.set()
            slow.wait_for(6)


def test_the_queue_is_bounded(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events for which there is no room are counted, and what waits stays."""
    monkeypatch.setattr(outbox, "MOST_WAITING", 2)
    number = add_webhook(client, "http://127.0.0.1:1/")
    add_flags(client, "a", "b", "c")
    progress = client.get(f"{ADDONS}/{number}").json()["deliveries"]
    assert (progress["waiting"], progress["dropped"]) == (2, 1)
    assert [each["event"]["featureName"] for each in deliveries(client, number)] == ["b", "a"]


def store_template(client: AppClient, number: int, text: str) -> None:
    """Store a template as a server of an older version may have stored the template."""
    with client.server.store.recording() as tx:
        parameters = {"url": "http://127.0.0.1:1/", "bodyTemplate": text}
        tx.db.execute(update(schema.addons).where(schema.addons.c.id == number).values(parameters=parameters))


HOSTILE = {
    "no end": ("{{" + " " * 4000, "has no end"),
    "a long comment": ("{{! a" + " " * 150_000 + "b}}x", "at most 65536 characters"),
    "sections without text": ("{{#event.tags}}" * 20 + "{{/event.tags}}" * 20, "more than 100000 steps"),
    "too much": ("{{#event.tags}}x{{/event.tags}}" + "{{{eventJson}}}" * 4000, "more than 1048576 characters"),
}


@pytest.mark.parametrize(("text", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_template_costs_its_own_webhook(
    client: AppClient, receiver: Receiver, clock: MovingClock, text: str, reason: str
) -> None:
    """A stored template that cannot be read, or takes too many steps, is given up at once and for good; other webhooks go on."""
    number = add_webhook(client, receiver.url)
    add_webhook(client, receiver.url)
    store_template(client, number, text)
    tags = [{"type": "simple", "value": f"tag{place}"} for place in range(10)]
    add_flags(client, "a")
    client.put("/api/admin/projects/default/tags", {"features": ["a"], "tags": {"addedTags": tags, "removedTags": []}})
    client.delete("/api/admin/projects/default/features/a")
    with client.server.store.recording() as tx:
        tx.db.execute(update(schema.events).values(tags=tags))
    with sending(client):
        wait_until(lambda: set(states(client, number)) == {"failed"})
        clock.ahead += LEASE_S + PAUSES_S[0]
        receiver.wait_for(len(states(client, number)))
    kept = deliveries(client, number)
    assert all(reason in each["stateDetails"] for each in kept) and {each["details"]["attempts"] for each in kept} == {1}


def test_attempts_that_never_end_are_given_up(client: AppClient, receiver: Receiver) -> None:
    """A delivery whose attempts have all ended with their server is not claimed for ever: it fails without a request."""
    number = add_webhook(client, receiver.url)
    add_flags(client, "a")
    with client.server.store.recording() as tx:
        tx.db.execute(update(schema.deliveries).values(attempts=MOST_ATTEMPTS))
    with sending(client):
        wait_until(lambda: states(client, number) == ["failed"])
    assert receiver.received == []
    assert deliveries(client, number)[0]["stateDetails"] == "no attempt came to an end before the server ended"


def test_attempts_of_all_webhooks_are_bounded(
    client: AppClient, receiver: Receiver, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only so many attempts run at the same time. Then comes what has been due longest, not the webhook made first."""
    monkeypatch.setattr(sender, "MOST_TOGETHER", 3)
    numbers = [add_webhook(client, f"{receiver.url}/{place}", "feature-archived") for place in range(4)]
    late = [client.post(f"{ADDONS}/{number}/test").status for number in numbers[1:] for _ in range(2)]
    assert set(late) == {202}
    with client.server.store.recording() as tx:
        tx.db.execute(update(schema.deliveries).values(due_at=tx.now + timedelta(seconds=1)))
    client.post(f"{ADDONS}/{numbers[0]}/test")
    clock.ahead += 2
    receiver.open.clear()
    with sending(client):
        receiver.wait_for(3)
        assert [each["details"]["attempts"] for each in deliveries(client, numbers[0])] == [1]
        attempts = [each["details"]["attempts"] for number in numbers for each in deliveries(client, number)]
        assert sum(attempts) == 3
        receiver.open.set()
        receiver.wait_for(7)


EVENTS = ("user-created", "feature-created")


def add_user(client: AppClient, name: str = "new") -> None:
    """Create a user, which is an event without a project."""
    user = {"username": name, "email": f"{name}@example.com", "rootRole": 3, "sendEmail": False}
    answer = client.post("/api/admin/user-admin", user)
    assert answer.status == 201, answer.text


def save(client: AppClient, number: int, token: str) -> None:
    """Save a webhook without a change."""
    answer = client.put(f"{ADDONS}/{number}", client.get(f"{ADDONS}/{number}").json(), token=token)
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
    """An editor who saves the webhook of an administrator takes it over; an administrator, or an admin token, takes it back."""
    number = add_webhook(client, "http://127.0.0.1:1/", "user-created")
    for place, token in enumerate((USER_SECRET, ADMIN_SECRET), 1):
        save(client, number, EDITOR_SECRET)
        add_user(client, f"not-told-{place}")
        assert len(queued(client, number)) == place - 1 and not sends_all(client, number)
        save(client, number, token)
        add_user(client, f"told-{place}")
        assert queued(client, number) == ["user-created"] * place and sends_all(client, number)


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


def test_a_test_is_sent_by_every_webhook(client: AppClient, receiver: Receiver) -> None:
    """The event of a test has no project, and tells nothing of users."""
    number = add_webhook(client, receiver.url, token=EDITOR_SECRET)
    with sending(client):
        assert client.post(f"{ADDONS}/{number}/test", token=EDITOR_SECRET).status == 202
        receiver.wait_for(1)
    assert receiver.types() == ["webhook-test"]
