"""A token that a command or another server has just made: a running server knows it at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from threading import Event, current_thread

import pytest
from sqlalchemy import select

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import DatabaseError
from flagsvc.server.api.authorization import SESSION
from flagsvc.server.api.pipeline import OPEN_BODY_LIMIT
from flagsvc.server.store import revision_listener
from flagsvc.server.store.keyring import LINK, MOST_S, KeyRenewal
from flagsvc.server.store.resources.sessions import open_session
from flagsvc.server.store.schema import users
from flagsvc.server.store.store import open_store
from flagsvc.testing import FakeClock, RecordingLog
from support.flagservers import AppClient, app_client
from support.planting import plant

pytestmark = pytest.mark.one_database

PERSONAL_SECRET, BACKEND, FRONTEND = "user:new-secret", "*:development.new-backend", "*:development.new-frontend"
MADE = {
    "users": [{"name": "new", "rootRole": "editor"}],
    "tokens": [
        {"secret": PERSONAL_SECRET, "type": "personal", "user": "new"},
        {"secret": BACKEND, "type": "backend"},
        {"secret": FRONTEND, "type": "frontend"},
    ],
}
COUNTS = {"appName": "a", "instanceId": "i", "bucket": {"start": 1, "stop": 2, "toggles": {}}}


def hear_nothing(served: object, db: object, wait: Callable[[float], object]) -> Iterator[None]:
    """Notice no change of other servers."""
    while True:
        yield None
        wait(0.01)


@pytest.fixture
def client(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppClient]:
    """Give a server that hears of no change, and whose database another server has changed."""
    for name in ("sqlite", "postgresql"):
        monkeypatch.setitem(revision_listener.LISTENERS, name, hear_nothing)
    with app_client(database_url) as client:
        other = open_store(database_url, SystemClock(), RecordingLog())
        with closing(other), other.writing(None) as tx:
            plant(tx, MADE)
            user = tx.db.execute(select(users.c.id).where(users.c.username == "new")).scalar_one()
            SESSIONS.append(open_session(tx, user, LINK))
        yield client


SESSIONS: list[str] = []
FLAG = {"name": "made"}
CALLS = (
    ("GET", "/api/admin/user", PERSONAL_SECRET, None, 200),
    ("POST", "/api/admin/projects/default/features", PERSONAL_SECRET, FLAG, 201),
    ("GET", "/api/client/features", BACKEND, None, 200),
    ("POST", "/api/client/metrics", BACKEND, COUNTS, 202),
    ("GET", "/api/frontend", FRONTEND, None, 200),
    ("POST", "/api/frontend/client/metrics", FRONTEND, COUNTS, 200),
    ("GET", "/api/frontend", BACKEND, None, 403),
    ("POST", "/api/admin/projects/default/features", BACKEND, FLAG, 403),
    ("POST", "/api/admin/projects/default/features", "user:nobody", FLAG, 401),
    ("GET", "/api/client/features", "*:development.nobody", None, 401),
)


@pytest.mark.parametrize(("method", "path", "secret", "body", "status"), CALLS)
def test_a_new_token_is_known_at_once(client: AppClient, method: str, path: str, secret: str, body: object, status: int) -> None:
    """Its first request is answered as any later request. A token that does not exist is refused as before."""
    assert [client.ask(method, path, body, token=secret).status for _ in range(2)] == [status, 409 if status == 201 else status]


def test_a_session_of_another_server_is_known_at_once(client: AppClient) -> None:
    """A person who signs in at a server, and whose next request goes to another server, sees the page."""
    cookie = {"cookie": f"{SESSION.plain}={SESSIONS[-1]}"}
    assert client.get("/ui/flags", token=None, headers=cookie).status == 200


def test_proxies_learn_of_a_new_token_at_once(client: AppClient) -> None:
    """The answer about tokens has a token that another server has just made."""
    answer = client.post("/edge/validate", {"tokens": [FRONTEND]}, token=None)
    assert [each["token"] for each in answer.json()["tokens"]] == [FRONTEND]


def test_bodies_that_are_not_waited_for(client: AppClient) -> None:
    """A body without a length, or larger than what anybody may send, is refused with its unknown token."""
    large = b'"' + b"x" * OPEN_BODY_LIMIT + b'"'
    path = "/api/admin/projects/default/features"
    assert client.post(path, token=PERSONAL_SECRET, chunks=[b"{}"]).status == 401
    assert client.post(path, large, token=PERSONAL_SECRET).status == 401


@pytest.mark.parametrize(("length", "waits"), [(f"{10**9:019}", False), (f"{2:05000}", True)])
def test_a_length_is_a_number(client: AppClient, monkeypatch: pytest.MonkeyPatch, length: str, waits: bool) -> None:
    """Zeros in front change nothing: neither is a large body waited for, nor is a small one refused."""
    asked: list[int] = []
    renew = client.server.renewal.renew

    def note() -> Future[None]:
        asked.append(1)
        return renew()

    monkeypatch.setattr(client.server.renewal, "renew", note)
    path, head = "/api/admin/projects/default/features", {"content-length": length}
    assert client.post(path, {}, token="user:nobody", headers=head).status == 401
    assert bool(asked) is waits


def test_the_database_is_away(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown token is refused, and known tokens open what is in memory."""

    def fail() -> int:
        raise DatabaseError("away")

    assert client.get("/api/client/features", token=BACKEND).status == 200
    monkeypatch.setattr(client.server.store, "revision", fail)
    assert client.get("/api/client/features", token="*:development.nobody").status == 401
    assert client.get("/api/client/features", token=BACKEND).status == 200


def test_made_up_tokens_share_reads(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests with unknown tokens that come together cause one read of the database, or two."""
    reads: list[int] = []
    revision = client.server.store.revision

    def read() -> int:
        reads.append(1)
        return revision()

    monkeypatch.setattr(client.server.store, "revision", read)
    done = [client.server.renewal.renew() for _ in range(1000)]
    assert all(each.result(10) is None for each in done) and len(reads) <= 2


def test_a_read_that_hangs_is_not_waited_for(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first callers wait, for a second at most. Later ones are answered at once, until the database answers again."""
    clock, asked, go_on = FakeClock(), Event(), Event()
    revision = client.server.store.revision

    def hang() -> int:
        asked.set()
        go_on.wait(30)
        return revision()

    monkeypatch.setattr(client.server.store, "revision", hang)
    with closing(KeyRenewal(client.server.store, clock)) as renewal:
        first = renewal.renew()
        assert asked.wait(30) and not first.done()
        second = renewal.renew()
        asyncio.run(clock.advance(MOST_S + 0.1))
        assert renewal.renew().done() and not second.done()
        go_on.set()
        assert first.result(30) is None and second.result(30) is None
        assert not renewal.renew().done()


def test_questions_about_tokens_wait_in_no_thread_of_reads(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may ask about tokens, so these questions do not hold the threads in which the admin API reads."""
    question, found = {"tokens": [FRONTEND]}, []
    renew = client.server.renewal.renew

    def note() -> Future[None]:
        found.append(current_thread().name)
        return renew()

    monkeypatch.setattr(client.server.renewal, "renew", note)
    assert client.post("/edge/validate", question, token=None).status == 200
    assert len(found) == 1 and not found[0].startswith("flagsvc reader")
