"""Webhooks of the flag server: what is delivered, retried, given up and kept; several servers; slow receivers."""

from __future__ import annotations

import json
import signal
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import delete

from flagsvc.server.application import delete_ended_deliveries, delete_old_events
from flagsvc.server.store import outbox, schema
from flagsvc.server.store.outbox import KEPT, LEASE_S, claim, count_waiting, find_due
from flagsvc.server.store.store import store_events
from flagsvc.server.webhooks.sender import MOST_ATTEMPTS, PAUSES_S
from support.flagservers import EDITOR_SECRET, VIEWER_SECRET, AppClient, app_client, our_flag_server
from support.pki import Authority
from support.receivers import ADDONS, MovingClock, Receiver, add_flags, add_webhook, deliveries, receiving, sending, states
from support.waiting import wait_until

GIVEN: dict[str, Any] = {"projects": [{"id": "other", "name": "Other", "environments": ["development", "production"]}]}
CLOCK = MovingClock
SECRETS = {
    "url": "secret-of-the-path",
    "authorization": "secret-of-the-header",
    "customHeaders": "secret-of-more",
    "signingSecret": "secret-of-the-signature",
}


def has_ended(client: AppClient, attempts: int) -> bool:
    """Return whether so many attempts have ended without success, and the last one is stored."""
    counted = client.server.attempts.read()
    kept = [each["details"] for each in deliveries(client, 1)]
    ended = counted["retried"] + counted["failed"]
    return ended == attempts == kept[0]["attempts"] and bool(kept[0]["status"] == 500)


def test_an_event_arrives_as_the_list_of_events_has_it(client: AppClient, receiver: Receiver) -> None:
    """The body is the event of the admin API with its words, and each event has an id of its own."""
    number = add_webhook(client, receiver.url, "feature-created", "feature-archived", authorization="Bearer s")
    with sending(client):
        add_flags(client, "a")
        client.delete("/api/admin/projects/default/features/a")
        # two attempts run at once, so the later event may come first
        first, second = sorted(receiver.wait_for(2), key=lambda each: each.json()["id"])
        wait_until(lambda: states(client, number) == ["success"] * 2)
    listed = client.get("/api/admin/search/events").json()["events"]
    by_number = {each["id"]: each for each in listed}
    assert [each.json() for each in (first, second)] == [by_number[each.json()["id"]] for each in (first, second)]
    assert [each.json()["type"] for each in (first, second)] == ["feature-created", "feature-archived"]
    assert first.headers["authorization"] == "Bearer s" and first.headers["content-type"] == "application/json"
    assert first.headers["webhook-id"] != second.headers["webhook-id"]
    assert client.server.attempts.read() == {"delivered": 2, "retried": 0, "failed": 0}


def test_filters(client: AppClient, receiver: Receiver) -> None:
    """Only events of the named types, projects and environments are queued."""
    switched = ("feature-environment-enabled",)
    add_webhook(client, f"{receiver.url}/type", "feature-archived")
    add_webhook(client, f"{receiver.url}/project", more={"projects": ["other"]})
    add_webhook(client, f"{receiver.url}/environment", *switched, more={"environments": ["production"]})
    with sending(client):
        add_flags(client, "a")
        add_flags(client, "b", project="other")
        for place in ("development", "production"):
            client.post(f"/api/admin/projects/default/features/a/environments/{place}/on")
        client.delete("/api/admin/projects/default/features/a")
        receiver.wait_for(3)
    came = {each.path.rpartition("/")[2]: each.json() for each in receiver.received}
    assert len(receiver.received) == 3
    assert came["type"]["type"] == "feature-archived" and came["project"]["featureName"] == "b"
    assert came["environment"]["environment"] == "production"


def test_a_disabled_webhook_keeps_what_waits(client: AppClient, receiver: Receiver) -> None:
    """Events of the time before are sent when it is enabled again; events of the pause are not sent."""
    number = add_webhook(client, receiver.url)
    add_flags(client, "before")
    body = client.get(f"{ADDONS}/{number}").json()
    assert client.put(f"{ADDONS}/{number}", body | {"enabled": False}).status == 200
    add_flags(client, "meanwhile")
    with sending(client):
        assert client.post(f"{ADDONS}/{number}/test").status == 202
        receiver.wait_for(1)
        assert receiver.types() == ["webhook-test"]
        assert client.put(f"{ADDONS}/{number}", body).status == 200
        receiver.wait_for(2)
    assert [each.json()["featureName"] for each in receiver.received] == [None, "before"]


def test_a_failure_is_tried_again(client: AppClient, receiver: Receiver, clock: MovingClock) -> None:
    """The same event comes again with the same id and a new time, after a pause; then it counts as delivered."""
    number = add_webhook(client, receiver.url, signingSecret="0123456789abcdef")
    receiver.status = 503
    with sending(client):
        add_flags(client, "a")
        receiver.wait_for(1)
        wait_until(lambda: deliveries(client, number)[0]["details"]["status"] == 503)
        kept = deliveries(client, number)[0]
        assert kept["state"] == "waiting" and kept["stateDetails"] == "the receiver answered with the status 503"
        receiver.status = 204
        clock.ahead += PAUSES_S[0] * 1.2
        first, second = receiver.wait_for(2)
        wait_until(lambda: states(client, number) == ["success"])
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]
    assert client.server.attempts.read() == {"delivered": 1, "retried": 1, "failed": 0}
    assert client.get(f"{ADDONS}/{number}").json()["deliveries"]["lastError"] is None


def test_a_failure_is_given_up_and_kept(client: AppClient, receiver: Receiver, clock: MovingClock) -> None:
    """After the last pause the delivery has failed for good; it is shown, counted and logged, and nothing comes any more."""
    number = add_webhook(client, receiver.url)
    receiver.status = 500
    with sending(client):
        add_flags(client, "a")
        for attempts, pause in enumerate((*PAUSES_S, 0.0), 1):
            receiver.wait_for(attempts)
            wait_until(partial(has_ended, client, attempts))
            clock.ahead += pause * 1.2
        wait_until(lambda: states(client, number) == ["failed"])
    [kept] = deliveries(client, number)
    assert kept["details"]["attempts"] == MOST_ATTEMPTS == len(receiver.received)
    assert client.server.attempts.read() == {"delivered": 0, "retried": len(PAUSES_S), "failed": 1}
    progress = client.get(f"{ADDONS}/{number}").json()["deliveries"]
    assert progress["lastError"] == "the receiver answered with the status 500" and progress["lastFailureAt"]
    [line] = [line for line in client.log.lines if line.event == "a webhook has given up an event"]
    assert line.fields["webhook"] == number and line.fields["error"] == progress["lastError"]


def test_a_receiver_that_wants_a_pause_gets_it(client: AppClient, receiver: Receiver) -> None:
    """Its Retry-After moves the next attempt."""
    number = add_webhook(client, receiver.url)
    receiver.status, receiver.more = 429, {"Retry-After": "1800"}
    with sending(client):
        add_flags(client, "a")
        receiver.wait_for(1)
        wait_until(lambda: deliveries(client, number)[0]["details"]["status"] == 429)
    with client.server.store.reading() as tx:
        row = tx.db.execute(schema.deliveries.select()).one()
        assert row.due_at - tx.now > timedelta(minutes=29)


def test_a_redirect_is_not_followed(client: AppClient, receiver: Receiver) -> None:
    """The event and its headers go to the configured address only."""
    with receiving() as elsewhere:
        receiver.status, receiver.more = 307, {"Location": elsewhere.url}
        number = add_webhook(client, receiver.url, authorization="Bearer s")
        with sending(client):
            client.post(f"{ADDONS}/{number}/test")
            wait_until(lambda: states(client, number) == ["failed"])
        assert elsewhere.received == []
    words = deliveries(client, number)[0]["stateDetails"]
    assert words == "the receiver answered with the status 307, and redirects are not followed"


def test_a_certificate_is_checked(client: AppClient) -> None:
    """A receiver whose authority is not known gets nothing."""
    with receiving(Authority().server()) as receiver, sending(client):
        number = add_webhook(client, f"{receiver.url}/secret-path")
        client.post(f"{ADDONS}/{number}/test")
        wait_until(lambda: states(client, number) == ["failed"])
        assert receiver.received == []
    words = deliveries(client, number)[0]["stateDetails"]
    assert words.startswith("the receiver: ") and "certificate" in words and "127.0.0.1" not in words


def test_what_is_rolled_back_is_not_sent(client: AppClient) -> None:
    """The queue is filled by the transaction of the change."""
    number = add_webhook(client, "http://127.0.0.1:1/")
    with client.server.store.dry_run(None) as tx:
        tx.record_event("feature-created", project="default", feature="never", data={"name": "never"})
        store_events(tx.db, tx.pending_events)
        assert count_waiting(tx.db, number) == 1
    assert deliveries(client, number) == []


def test_a_restart_loses_nothing(client: AppClient, receiver: Receiver) -> None:
    """Events from before the start are sent; an attempt that the end stops is given back, and made again with the same id."""
    number = add_webhook(client, receiver.url)
    add_flags(client, "a")
    receiver.open.clear()
    with sending(client):
        receiver.wait_for(1)
    assert [each["details"]["attempts"] for each in deliveries(client, number)] == [0]
    receiver.open.set()
    with sending(client):
        first, second = receiver.wait_for(2)
        wait_until(lambda: states(client, number) == ["success"])
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


def test_a_server_that_dies_loses_nothing(client: AppClient, receiver: Receiver, clock: MovingClock) -> None:
    """What a server had claimed comes up again when its time has passed, and not before."""
    number = add_webhook(client, receiver.url)
    add_flags(client, "a")
    with client.server.store.recording() as tx:
        assert len(claim(tx.db, number, tx.now, 10)) == 1
        assert claim(tx.db, number, tx.now, 10) == []
    with sending(client):
        client.post(f"{ADDONS}/{number}/test")
        receiver.wait_for(1)
        assert receiver.types() == ["webhook-test"]
        clock.ahead += LEASE_S + 1
        receiver.wait_for(2)
    assert receiver.types() == ["webhook-test", "feature-created"]


def test_what_is_due_at_this_moment(client: AppClient) -> None:
    """A delivery can be claimed from the moment on at which its webhook is found due."""
    number = add_webhook(client, "http://127.0.0.1:1/")
    add_flags(client, "a")
    with client.server.store.recording() as tx:
        [before] = claim(tx.db, number, tx.now, 10)
        due = tx.now + timedelta(seconds=LEASE_S)
        assert find_due(tx.db, due - timedelta(milliseconds=1)) == []
        assert find_due(tx.db, due) == [number]
        [again] = claim(tx.db, number, due, 10)
    assert (again.uid, again.attempts) == (before.uid, 2)


def test_two_servers_deliver_each_event_once(client: AppClient, receiver: Receiver, database_url: str) -> None:
    """Servers on one database share the queue: each event of either comes once."""
    number = add_webhook(client, receiver.url)
    names = [f"f{place}" for place in range(30)]
    with app_client(database_url, seeded=False) as other, sending(client, other):
        for one, two in zip(names[::2], names[1::2], strict=True):
            add_flags(client, one)
            add_flags(other, two)
        receiver.wait_for(len(names))
        wait_until(lambda: set(states(client, number)) == {"success"})
        done = [each.server.attempts.read()["delivered"] for each in (client, other)]
    assert sorted(each.json()["featureName"] for each in receiver.received) == sorted(names)
    assert sum(done) == len(names)


def test_events_that_wait_are_not_deleted(client: AppClient, receiver: Receiver) -> None:
    """The cleanup of old events leaves what is still to be sent; an event that is gone anyway ends its delivery."""
    number = add_webhook(client, receiver.url)
    add_flags(client, "a")
    with client.server.store.recording() as tx:
        tx.now += timedelta(days=2)
        delete_old_events(tx, 1)
    assert [each["event"]["featureName"] for each in deliveries(client, number)] == ["a"]
    with client.server.store.recording() as tx:
        tx.db.execute(delete(schema.events))
    with sending(client):
        wait_until(lambda: states(client, number) == ["failed"])
    assert deliveries(client, number)[0]["stateDetails"] == "the event is deleted" and receiver.received == []


def test_old_deliveries_are_deleted(client: AppClient, receiver: Receiver) -> None:
    """The last ones of each webhook and state stay."""
    number = add_webhook(client, receiver.url)
    with client.server.store.recording() as tx:
        rows = [outbox.new_delivery(number, tx.now) | {"state": state} for state in ("success", "failed") * (KEPT + 5)]
        tx.db.execute(schema.deliveries.insert(), rows)
        tx.db.execute(schema.deliveries.insert(), [outbox.new_delivery(number, tx.now)])
        delete_ended_deliveries(tx)
        left = tx.db.execute(schema.deliveries.select()).all()
    assert sorted(row.state for row in left) == ["failed"] * KEPT + ["success"] * KEPT + ["waiting"]
    assert min(row.id for row in left) > 10


def test_no_answer_page_event_or_log_has_a_secret(client: AppClient, receiver: Receiver) -> None:
    """Sensitive parameters are masked everywhere, also in the answer that creates them, and the receiver gets them."""
    url = f"{receiver.url}/{SECRETS['url']}"
    headers = json.dumps({"X-Key": SECRETS["customHeaders"]})
    given = {"authorization": SECRETS["authorization"], "signingSecret": SECRETS["signingSecret"]}
    body = {"provider": "webhook", "enabled": True, "events": ["feature-created"]}
    body |= {"parameters": {"url": url, "customHeaders": headers, **given}}
    made = client.post(ADDONS, body)
    number = made.json()["id"]
    changed = client.put(f"{ADDONS}/{number}", made.json() | {"description": "d"})
    receiver.status = 500
    with sending(client):
        add_flags(client, "a")
        [came] = receiver.wait_for(1)
        wait_until(lambda: client.server.attempts.read()["retried"] == 1)
    assert came.path.endswith(SECRETS["url"]) and came.headers["authorization"] == SECRETS["authorization"]
    assert came.headers["x-key"] == SECRETS["customHeaders"]
    paths = (ADDONS, f"{ADDONS}/{number}", f"{ADDONS}/{number}/events", "/api/admin/events", "/ui/history.json")
    shown = [client.get(path) for path in (*paths, "/ui/webhooks", f"/ui/webhooks/{number}", f"/ui/webhooks/{number}.json")]
    assert all(each.status == 200 for each in shown)
    texts = [made.text, changed.text, *(each.text for each in shown), json.dumps(client.log.lines, default=str)]
    assert not [(secret, text) for secret in SECRETS.values() for text in texts if secret in text]


@pytest.mark.parametrize(
    ("method", "path", "who"),
    [
        ("POST", ADDONS, VIEWER_SECRET),
        ("PUT", f"{ADDONS}/1", VIEWER_SECRET),
        ("DELETE", f"{ADDONS}/1", VIEWER_SECRET),
        ("POST", f"{ADDONS}/1/test", VIEWER_SECRET),
        ("GET", f"{ADDONS}/1/events", VIEWER_SECRET),
        ("GET", f"{ADDONS}/1/events", EDITOR_SECRET),
    ],
)
def test_rights(client: AppClient, method: str, path: str, who: str) -> None:
    """A viewer changes nothing, and only administrators read what was sent."""
    add_webhook(client, "http://127.0.0.1:1/")
    body = None if method in ("GET", "DELETE") or path.endswith("test") else client.get(f"{ADDONS}/1").json()
    assert client.ask(method, path, body, token=who).status == 403


def test_processes(database_url: str, receiver: Receiver, clock: MovingClock) -> None:
    """A server sends by itself; a server that is killed in an attempt leaves the event to the next server."""
    hook = {"provider": "webhook", "enabled": True, "parameters": {"url": receiver.url}, "events": ["feature-created"]}
    with our_flag_server(database=database_url) as server:
        server.admin("/addons", hook)
        server.admin("/projects/default/features", {"name": "one"})
        receiver.wait_for(1)
        receiver.open.clear()
        server.admin("/projects/default/features", {"name": "two"})
        receiver.wait_for(2)
        server.program.stop(signal.SIGKILL)
    receiver.open.set()
    with app_client(database_url, clock=clock, seeded=False) as client, sending(client):
        clock.ahead += LEASE_S + 1
        receiver.wait_for(3)
        wait_until(lambda: states(client, 1) == ["success"] * 2)
    assert [each.json()["featureName"] for each in receiver.received] == ["one", "two", "two"]
