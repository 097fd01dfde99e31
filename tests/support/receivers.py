"""Receivers of webhooks for tests, and the senders of flag servers in this process."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from flagsvc.core.clock import SystemClock
from flagsvc.http.client.answers import Limits
from flagsvc.server.webhooks.reach import Reach
from flagsvc.server.webhooks.sender import Sender
from support.flagservers import USER_SECRET, AppClient
from support.http_servers import Reply, Request, http_server
from support.waiting import wait_until

ADDONS = "/api/admin/addons"
POLL_S = 0.02
LIMITS = Limits(step_s=5.0, total_s=8.0, max_bytes=1024)


class MovingClock(SystemClock):
    """The clock of the machine, some seconds ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@dataclass
class Receiver:
    """A program that takes webhooks.

    `status` and `body` are its answer, and `more` are headers of it. While `open` is not set it does not answer.
    """

    url: str = ""
    status: int = 200
    body: bytes = b""
    more: dict[str, str] = field(default_factory=dict)
    received: list[Request] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)

    def wait_for(self, count: int) -> list[Request]:
        """Return what came, once it is at least so much."""
        wait_until(lambda: len(self.received) >= count, complaint=lambda: f"{len(self.received)} of {count} came")
        return self.received

    def answer(self, request: Request) -> Reply:
        """Keep a request, and answer it once that is allowed."""
        self.received.append(request)
        self.open.wait(30)
        return Reply(self.status, self.body, headers=self.more)

    def types(self) -> list[str]:
        return [each.json()["type"] for each in self.received]


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    receiver = Receiver()
    receiver.open.set()
    with http_server(receiver.answer, tls=tls) as address:
        receiver.url = f"{address}/hook"
        try:
            yield receiver
        finally:
            receiver.open.set()


def add_webhook(
    client: AppClient, url: str, *events: str, more: Mapping[str, Any] | None = None, token: str = USER_SECRET, **parameters: str
) -> int:
    """Create a webhook, and return its id. `more` are further members, `token` is the token of its creator."""
    body = {"provider": "webhook", "enabled": True, "events": events or ("feature-created",)}
    made = client.post(ADDONS, body | {"parameters": {"url": url, **parameters}} | dict(more or {}), token=token)
    assert made.status == 201, made.text
    return int(made.json()["id"])


def add_flags(client: AppClient, *names: str, project: str = "default") -> None:
    for name in names:
        assert client.post(f"/api/admin/projects/{project}/features", {"name": name}).status == 201


def deliveries(client: AppClient, webhook: int) -> list[dict[str, Any]]:
    """Return the deliveries of a webhook, the newest first."""
    answer = client.get(f"{ADDONS}/{webhook}/events?limit=100")
    assert answer.status == 200, answer.text
    return list(answer.json()["integrationEvents"])


def states(client: AppClient, webhook: int) -> list[str]:
    """Return the states of the deliveries of a webhook, the newest first."""
    return [each["state"] for each in deliveries(client, webhook)]


@contextmanager
def sending(*clients: AppClient, networks: Sequence[str] = ()) -> Iterator[list[Sender]]:
    """Send what webhooks of these servers have to send until the block ends. `networks` are those of the option webhookNetworks."""
    with ExitStack() as running:
        senders = []
        for client in clients:
            server = client.server
            reach = Reach(networks)
            sender = Sender(server.store, server.clock, client.log, server.attempts, reach, limits=LIMITS, poll_s=POLL_S)
            sender.start()
            running.callback(sender.close)
            senders.append(sender)
        yield senders
