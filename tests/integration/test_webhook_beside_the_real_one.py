"""The body of a webhook: the event as the list of events has it, on the real server and on ours."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from support.flagservers import app_client
from support.http_servers import Request
from support.processes import postgresql, unleash_server
from support.receivers import add_flags, add_webhook, receiving, sending

pytestmark = pytest.mark.programs
WEBHOOK = "INSERT INTO addons (provider, enabled, parameters, events) VALUES ('webhook', true, %s, '[\"feature-created\"]')"
OWN = ("id", "createdBy", "createdAt", "createdByUserId", "groupId")
"""Members that no two servers have alike."""
OURS_ALONE = {"tokenName", "way", "before", "after", "label", "summary"}


def real_body() -> tuple[Request, Any]:
    """Return what the real server sends of a new flag, and the event as its list has it.

    It reads webhooks once a minute, so it starts again when there is one.
    """
    with postgresql() as url, receiving() as receiver:
        with unleash_server(url):
            pass
        with psycopg.connect(url, autocommit=True) as database:
            database.execute(WEBHOOK, [json.dumps({"url": receiver.url})])
        with unleash_server(url) as server:
            server.admin("/projects/default/features", {"name": "fresh"})
            [received] = receiver.wait_for(1)
            return received, server.admin("/events")["events"][0]


def comparable(event: dict[str, Any]) -> dict[str, Any]:
    """Return what both servers have alike of the event of a new flag."""
    kept = {name: value for name, value in event.items() if name not in OWN and name not in OURS_ALONE}
    return kept | {"data": {name: value for name, value in event["data"].items() if name != "createdAt"}}


def test_the_body_is_the_real_servers(sqlite_url: str) -> None:
    """Ours has every member of the real body with the same value, and more; both say it is JSON."""
    theirs, listed = real_body()
    with app_client(sqlite_url) as client, receiving() as receiver:
        add_webhook(client, receiver.url)
        with sending(client):
            add_flags(client, "fresh")
            [ours] = receiver.wait_for(1)
    assert theirs.json() == listed
    assert comparable(ours.json()) == comparable(theirs.json())
    assert ours.json().keys() - theirs.json().keys() == OURS_ALONE
    assert ours.headers["content-type"] == theirs.headers["content-type"] == "application/json"
