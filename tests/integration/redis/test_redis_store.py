"""What is stored on a Redis server: the storage providers beyond their contracts, and the parts of a proxy that use them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError, StoreError
from flagsvc.proxy.configuration.stores import MAX_RECORDS
from flagsvc.proxy.generations.feeds import make_storage
from flagsvc.proxy.redis import Access, Client, RedisRecordStore, RedisStore, make_tls_context
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.storage import RedisAddress
from flagsvc.testing import MemoryStore
from support.aio import until
from support.apps_options import options as usual
from support.environments import only
from support.loopback import reply
from support.pki import Authority
from support.processes import free_port
from support.redises import RedisServer, redis_server
from support.scene import scene


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Run a Redis server."""
    with redis_server() as running:
        yield running


KEY = "0123abc"


@pytest.fixture(autouse=True)
def _empty(server: RedisServer) -> None:
    server.ask("FLUSHALL")


@asynccontextmanager
async def store(server: RedisServer, prefix: str = "test") -> AsyncIterator[RedisStore]:
    """Give a store until the block ends."""
    connection = client(server)
    try:
        yield RedisStore(connection, prefix)
    finally:
        await connection.aclose()


async def test_where_it_is_stored(server: RedisServer) -> None:
    """The key begins with the prefix, so that one server has room for several environments."""
    async with store(server, "one") as first, store(server, "other") as second:
        await first.set("key", b"data")
        assert server.names() == ["one:store:key"]
        assert await second.get("key") is None
        await first.delete("key")
        assert await first.get("key") is None and server.names() == []


@pytest.mark.parametrize("cut", [0, 1, 20, 80, -1])
async def test_what_is_not_whole_is_refused(cut: int, server: RedisServer) -> None:
    """A cut-off value is refused, at every length."""
    async with store(server) as kept:
        await kept.set("key", b"data")
        server.ask("SET", kept.name("key"), server.ask("GET", kept.name("key"))[:cut])
        with pytest.raises(StoreError, match="is not whole, or not flagsvc's"):
            await kept.get("key")


async def test_something_else_under_the_name(server: RedisServer) -> None:
    """A list where a text is expected is an ordinary error, and the next write replaces it."""
    async with store(server) as kept:
        server.ask("DEL", kept.name("key"))
        server.ask("RPUSH", kept.name("key"), "somebody's")
        with pytest.raises(StoreError):
            await kept.get("key")
        await kept.set("key", b"data")
        assert await kept.get("key") == b"data"


async def test_what_is_stored_is_not_written_again(server: RedisServer) -> None:
    """Replicas that accept the same configuration write it once. Each of them writes another configuration."""
    async with store(server, "twice") as first, store(server, "twice") as second:
        await first.set("key", b"data")
        writes = server.ask("INFO", "commandstats")["cmdstat_set"]["calls"]
        await second.set("key", b"data")
        assert server.ask("INFO", "commandstats")["cmdstat_set"]["calls"] == writes
        await second.set("key", b"other")
        assert await first.get("key") == b"other"


async def test_what_a_server_has_lost(server: RedisServer) -> None:
    """A server that has restarted empty has lost it; so has a server where something else stands under the name."""
    async with store(server, "lost") as kept:
        assert await kept.is_lost("key")
        await kept.set("key", b"data")
        assert not await kept.is_lost("key")
        server.ask("SET", kept.name("key"), "somebody's")
        assert await kept.is_lost("key")


def client(server: RedisServer) -> Client:
    """Return a client of the server."""
    return Client(Access(RedisAddress("127.0.0.1", server.port)))


async def test_a_record_comes_back_whole(server: RedisServer) -> None:
    """A record holds any bytes, also many; a later write replaces it; a removed record is gone."""
    connection = client(server)
    record_store = RedisRecordStore(connection, "prefix", KEY)
    assert (await record_store.names(), await record_store.get("0a"), record_store.shared) == ([], None, True)
    for data in (b"one", b"", bytes(range(256)) * 4096, b"\n\n{}"):
        await record_store.put("0a", data)
        assert await record_store.get("0a") == data
    assert server.ask("KEYS", "*") == [f"prefix:usage:{KEY}".encode()] and await record_store.names() == ["0a"]
    assert await record_store.remove("0a") and not await record_store.remove("0a")
    assert (await record_store.names(), server.ask("KEYS", "*")) == ([], [])
    await connection.aclose()


async def test_one_alone_removes_a_record(server: RedisServer) -> None:
    """Of several removals at once, each over its own connection, exactly one succeeds."""
    clients = [client(server) for _ in range(8)]
    record_stores = [RedisRecordStore(each, "prefix", KEY) for each in clients]
    await RedisRecordStore(clients[0], "prefix", "other").put("0a", b"of others")
    for number in range(10):
        await record_stores[0].put(str(number), b"data")
        told = await asyncio.gather(*(record_store.remove(str(number)) for record_store in record_stores))
        assert sorted(told) == [False] * 7 + [True]
    assert await RedisRecordStore(clients[1], "prefix", "other").names() == ["0a"]
    for each in clients:
        await each.aclose()


async def test_a_damaged_record_is_an_error(server: RedisServer) -> None:
    """A damaged record is an error, and so is a value that another program wrote."""
    connection = client(server)
    record_store = RedisRecordStore(connection, "prefix", KEY)
    server.ask("HSET", f"prefix:usage:{KEY}", "0a", "something else")
    with pytest.raises(StoreError, match="not whole"):
        await record_store.get("0a")
    server.ask("DEL", f"prefix:usage:{KEY}")
    server.ask("SET", f"prefix:usage:{KEY}", "no hash at all")
    for work in (record_store.names(), record_store.get("0a"), record_store.put("0a", b"x"), record_store.remove("0a")):
        with pytest.raises(StoreError):
            await work
    await connection.aclose()


async def test_records_are_bounded(server: RedisServer) -> None:
    """The number of records is limited; a process that has a record may still write it."""
    connection = client(server)
    record_store = RedisRecordStore(connection, "prefix", KEY)
    for number in range(MAX_RECORDS):
        await record_store.put(str(number), b"x")
    with pytest.raises(StoreError, match="already"):
        await record_store.put("more", b"x")
    await record_store.put("0", b"y")
    assert await record_store.get("0") == b"y" and len(await record_store.names()) == MAX_RECORDS
    await connection.aclose()


SERVER = "redis://127.0.0.1:1/0"
REFRESH_S = 60


def options(**given: Any) -> ProxyOptions:
    """Return options of a proxy that keeps its configuration on a server."""
    return usual(**{"storage": SERVER, **given})


@pytest.mark.parametrize(
    "given",
    [{"storage": "none"}, {"storage_provider": MemoryStore()}, {"flagsvc_url": "file:///nowhere/document.json"}],
    ids=["none", "provider", "file"],
)
def test_another_storage(given: dict[str, Any]) -> None:
    """A provider of the user wins, and a file as upstream needs no storage."""
    assert isinstance(make_storage(options()), RedisStore)
    assert not isinstance(make_storage(options(**given)), RedisStore)


def test_the_password_beside_the_url() -> None:
    """It takes the place of the one in the URL, and no repr shows either."""
    store = make_storage(options(storage="redis://user:first-word@h:1/2", storage_password="second-word"))
    assert isinstance(store, RedisStore)
    given = store.client._pool.connection_kwargs
    assert (given["host"], given["port"], given["db"], given["username"]) == ("h", 1, 2, "user")
    assert given["password"] == "second-word"
    assert "-word" not in repr(store.client) + repr(store.client._redis) + repr(store.client._pool)


@pytest.mark.parametrize("name", ["storage_ca", "storage_cert"])
def test_a_certificate_that_cannot_be_read(name: str) -> None:
    """The error names the option, before anything runs."""
    with pytest.raises(ConfigurationError, match="storageC"):
        make_storage(options(storage="rediss://h", **{name: "/nowhere/file.pem"}))
    assert isinstance(make_storage(options(**{name: "/nowhere/file.pem"})), RedisStore)


def test_tls(tmp_path: Path) -> None:
    """Certificates are read from files."""
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "own.pem").write_text(authority.issue().both)
    files = {"storage_ca": str(tmp_path / "ca.pem"), "storage_cert": str(tmp_path / "own.pem")}
    given = options(storage="rediss://h", **files)
    assert isinstance(make_storage(given), RedisStore)
    trusted = make_tls_context(given).get_ca_certs(binary_form=True)
    assert ssl.PEM_cert_to_DER_cert(authority.pem) in trusted
    assert ssl.PEM_cert_to_DER_cert(authority.pem) not in make_tls_context(options()).get_ca_certs(binary_form=True)


@pytest.mark.programs
async def test_replicas_share_what_they_accept(tmp_path: Path) -> None:
    """A replica that starts while the upstream is away serves what another replica has stored. Each polls for itself."""
    with redis_server() as server:
        async with scene(tmp_path) as around:
            given = around.options(storage=server.url)
            async with around.proxy(given) as first:
                await until(server.names)
                around.replies["features"] = reply(503)
                async with around.proxy(given) as second:
                    assert await second.names() == await first.names() == ["on"]


@pytest.mark.programs
async def test_a_server_that_restarts_empty(tmp_path: Path) -> None:
    """A replica that has the configuration stores it again, although the upstream has no other one."""
    with redis_server() as server:
        async with scene(tmp_path) as around, around.proxy(around.options(storage=server.url)):
            await until(server.names)
            server.ask("FLUSHALL")
            await around.clock.advance(REFRESH_S)
            await until(server.names)


@pytest.mark.programs
async def test_what_a_scrape_says_of_the_server(tmp_path: Path) -> None:
    """How often a request to the server failed; nothing with another storage."""
    async with scene(tmp_path) as around:
        async with around.proxy(around.options(storage=f"redis://127.0.0.1:{free_port()}")) as proxy:
            assert await proxy.names() == ["on"]
            await until(lambda: only(proxy.app).storage_errors())
            assert await proxy.sample("flagsvc_storage_errors_total") > 0
        async with around.proxy(around.options()) as proxy:
            page = (await proxy.ask("GET", "/proxy/internal-backstage/prometheus")).text
            assert "\nflagsvc_storage" not in page
