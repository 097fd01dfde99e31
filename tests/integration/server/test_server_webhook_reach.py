"""The networks that webhooks may reach: every form of a forbidden address is refused, once, and in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from flagsvc.settings.table import SERVER_OPTIONS
from support.flagservers import AppClient, OurFlagServer, app_client, our_flag_server
from support.receivers import ADDONS, MovingClock, Receiver, add_flags, add_webhook, deliveries, sending, states
from support.waiting import wait_until

pytestmark = pytest.mark.one_database

CLOCK = MovingClock
DEFAULT = next(row.kind.parse(row.default) for row in SERVER_OPTIONS if row.name == "webhookNetworks")
FORMS = ("2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost", "0.0.0.0")
"""Hosts of URLs that lead to loopback."""


@pytest.fixture
def client(sqlite_url: str, clock: MovingClock) -> Iterator[AppClient]:
    """Give a flag server without a sender."""
    with app_client(sqlite_url, clock=clock) as made:
        yield made


@pytest.mark.parametrize("host", FORMS)
def test_no_form_of_an_address_gets_around_the_networks(client: AppClient, receiver: Receiver, host: str) -> None:
    """The address of the connection counts, not the text of the URL. The attempt fails at once and for good."""
    number = add_webhook(client, f"http://{host}:{urlsplit(receiver.url).port}/hook")
    with sending(client, networks=("!loopback",)):
        add_flags(client, "a")
        wait_until(lambda: states(client, number) == ["failed"])
    assert receiver.received == []
    [kept] = deliveries(client, number)
    assert kept["stateDetails"].startswith("the receiver: the address ") and kept["details"]["attempts"] == 1
    assert kept["stateDetails"].endswith(" is not in the networks that webhooks may reach (option webhookNetworks)")


@pytest.mark.parametrize("host", ["169.254.169.254", "0xa9fea9fe"])
def test_by_default_no_credentials_of_a_cloud(client: AppClient, clock: MovingClock, host: str) -> None:
    """The addresses of cloud metadata are refused; nothing is sent again, also hours later."""
    number = add_webhook(client, f"http://{host}/latest/meta-data/")
    with sending(client, networks=DEFAULT):
        add_flags(client, "a")
        wait_until(lambda: states(client, number) == ["failed"])
        clock.ahead += 10_000
        client.post(f"{ADDONS}/{number}/test")
        wait_until(lambda: states(client, number) == ["failed", "failed"])
    assert [each["details"]["attempts"] for each in deliveries(client, number)] == [1, 1]
    assert "webhookNetworks" in client.get(f"{ADDONS}/{number}").json()["deliveries"]["lastError"]


@pytest.mark.parametrize("networks", ["!loopback", ""])
def test_the_option_of_a_process(receiver: Receiver, networks: str) -> None:
    """A server takes the networks of its option; without a value, those of the default."""
    hook = {"provider": "webhook", "enabled": True, "parameters": {"url": receiver.url}, "events": ["feature-created"]}
    with our_flag_server(FLAGSVC_WEBHOOK_NETWORKS=networks) as server:
        server.admin("/addons", hook)
        server.admin("/projects/default/features", {"name": "a"})
        wait_until(lambda: ended(server) is not None)
        assert (ended(server), receiver.types()) == (("failed", []) if networks else ("success", ["feature-created"]))


def ended(server: OurFlagServer) -> str | None:
    """Return how the first delivery ended; None if it has not."""
    sent = json.loads(server.ask("GET", "/admin/addons/1/events").text)["integrationEvents"]
    return next((each["state"] for each in sent if each["state"] != "waiting"), None)
