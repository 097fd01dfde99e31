"""What replicas write to the server: which replica may write it, and what the other replicas learn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.configuration.stores.file import frame
from flagsvc.proxy.replicas import Access, Client, Coordinator
from flagsvc.proxy.replicas.configurations import digest_of
from flagsvc.proxy.replicas.heartbeat import Heartbeat, unpack
from flagsvc.settings.storage import RedisAddress
from support.aio import asynchronous
from support.redises import RedisServer

LEASE_MS = 60_000
RECORD = StoredDocument(b'{"features":[]}', '"tag"')
LEASE, STORED = "test:lease:key", "test:store:key"


@asynccontextmanager
async def coordinators(server: RedisServer) -> AsyncIterator[tuple[Coordinator, Coordinator]]:
    """Give the coordinators of two replicas until the block ends."""
    made = [
        Coordinator(Client(Access(RedisAddress("127.0.0.1", server.port))), "test", "key", LEASE_MS) for _ in range(2)
    ]
    try:
        yield made[0], made[1]
    finally:
        for each in made:
            await each.client.aclose()


@asynchronous
async def test_one_has_the_lease(server: RedisServer) -> None:
    """The first replica has the lease, also when it asks again; the other one learns what the first has published, and when."""
    async with coordinators(server) as (one, other):
        assert await one.seek(Heartbeat(one.token, 1)) is None
        found = await other.seek(Heartbeat(other.token))
        assert found is not None and found[0] == Heartbeat(one.token, 1) and 0.0 <= found[1] < 5.0
        assert await one.seek(Heartbeat(one.token, 2)) is None
        assert 0 < server.ask("PTTL", LEASE) <= LEASE_MS


@asynchronous
async def test_a_lease_that_was_said_to_be_free(server: RedisServer) -> None:
    """The other replica takes a released lease; a replica without the lease cannot release it."""
    async with coordinators(server) as (one, other):
        await one.seek(Heartbeat(one.token))
        await other.release()
        assert await other.seek(Heartbeat(other.token)) is not None
        async with other.listening() as subscription:
            await one.release()
            heard = await subscription.receive(2.0)
            assert heard is not None and unpack(heard) == Heartbeat(one.token, leaving=True)
        assert await other.seek(Heartbeat(other.token)) is None


@asynchronous
async def test_what_is_told(server: RedisServer) -> None:
    """Every listener hears a message, and a later replica finds it in the lease."""
    async with coordinators(server) as (one, other), other.listening() as subscription:
        assert await one.tell(Heartbeat(one.token, 3, age_s=1.5)) == ""
        heard = await subscription.receive(2.0)
        assert heard is not None and unpack(heard) == Heartbeat(one.token, 3, age_s=1.5)
        found = await other.seek(Heartbeat(other.token))
        assert found is not None and found[0] == Heartbeat(one.token, 3, age_s=1.5)
        assert await one.listeners() == 1


@asynchronous
async def test_what_is_stored(server: RedisServer) -> None:
    """A document is stored before it is announced, and the next message carries its digest."""
    async with coordinators(server) as (one, other):
        assert await one.read() is None
        digest = digest_of(RECORD.pack())
        assert await one.tell(Heartbeat(one.token), frame(RECORD.pack())) == digest
        assert await one.tell(Heartbeat(one.token)) == digest
        assert await other.read() == (RECORD, digest)


@asynchronous
async def test_who_does_not_lead_says_nothing(server: RedisServer) -> None:
    """A replica without the lease can neither publish nor store, and the lease keeps its owner."""
    async with coordinators(server) as (one, other), one.listening() as subscription:
        await one.seek(Heartbeat(one.token))
        assert await other.tell(Heartbeat(other.token), frame(RECORD.pack())) is None
        assert await subscription.receive(0.1) is None and await one.read() is None
        assert await one.tell(Heartbeat(one.token)) == ""


@pytest.mark.parametrize("content", [b"somebody's", frame(b"no record"), frame(RECORD.pack())[:-1]])
@asynchronous
async def test_what_is_no_configuration_is_not_read(content: bytes, server: RedisServer) -> None:
    """Data that is no configuration is not served; it has no digest unless it begins as flagsvc's data does."""
    server.ask("SET", STORED, content)
    async with coordinators(server) as (one, _):
        assert await one.read() is None
        assert bool(await one.tell(Heartbeat(one.token))) == content.startswith(b"flagsvc-store")


@asynchronous
async def test_something_else_under_the_name(server: RedisServer) -> None:
    """A value of another type counts as nothing stored, and can be replaced."""
    server.ask("RPUSH", STORED, "somebody's")
    async with coordinators(server) as (one, _):
        assert await one.tell(Heartbeat(one.token)) == ""
        assert await one.tell(Heartbeat(one.token), frame(RECORD.pack())) == digest_of(RECORD.pack())


@asynchronous
async def test_a_lease_that_holds_nothing_of_ours(server: RedisServer) -> None:
    """If another program holds the lease, a replica learns only that it is taken."""
    server.ask("SET", LEASE, "somebody's", "PX", LEASE_MS)
    async with coordinators(server) as (one, _):
        found = await one.seek(Heartbeat(one.token))
        assert found is not None and found[0] is None
