"""The client of the storage server: each call is bounded in time, its errors are our own messages, and none holds a secret."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.redis import LARGE_BYTES, Access, Client, off_loop, reason
from flagsvc.settings.storage import RedisAddress
from support.pki import Authority
from support.processes import free_port
from support.redises import RedisServer, redis_server
from support.tracebacks import leaks

PASSWORD = "very-secret-word"
AUTHORITY = Authority()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Run a server that requires a password."""
    with redis_server(password=PASSWORD) as running:
        yield running


@pytest.fixture(scope="module")
def secure() -> Iterator[RedisServer]:
    """Run a server that speaks TLS and requires a client certificate."""
    with redis_server(tls=AUTHORITY, clients="yes") as running:
        yield running


@asynccontextmanager
async def client_of(server: RedisAddress, tls: ssl.SSLContext | None = None, timeout_s: float = 2.0) -> AsyncIterator[Client]:
    """Give a client until the block ends."""
    client = Client(Access(server, tls, timeout_s))
    try:
        yield client
    finally:
        await client.aclose()


def at(server: RedisServer, **more: object) -> RedisAddress:
    """Return the address of a server, with its password."""
    given = {"host": "127.0.0.1", "port": server.port, "password": PASSWORD, **more}
    return RedisAddress(**given)  # type: ignore[arg-type]


async def test_a_question_is_answered(server: RedisServer) -> None:
    """The client reads and writes in the database that was asked for."""
    async with client_of(at(server, database=3)) as client:
        assert await client.call("SET", "name", b"\x00\xff") is True
        assert await client.call("GET", "name") == b"\x00\xff"
        assert client.errors == 0
    async with client_of(at(server)) as client:
        assert await client.call("GET", "name") is None


async def test_a_unix_socket(server: RedisServer) -> None:
    """The client works over a Unix socket in the same way."""
    async with client_of(at(server, path=str(server.path))) as client:
        assert await client.call("PING") is True


async def test_a_user_of_its_own(server: RedisServer) -> None:
    """A user with limited permissions gets an error for a forbidden command; the error holds nothing that was sent."""
    server.ask("ACL", "SETUSER", "proxy", "on", f">{PASSWORD}", "~mine:*", "+get", "+set")
    async with client_of(at(server, user="proxy")) as client:
        await client.call("SET", "mine:a", "b")
        for words in (("SET", "theirs:a", "b"), ("DEL", "mine:a")):
            with pytest.raises(StoreError, match="does not permit the user"):
                await client.call(*words)
        assert client.errors == 2


@pytest.mark.parametrize("password", [None, "another-secret"])
async def test_a_wrong_password(password: str | None, server: RedisServer) -> None:
    """The error says that the server refused the password, and does not contain it."""
    async with client_of(at(server, password=password)) as client:
        with pytest.raises(StoreError) as caught:
            await client.call("PING")
    assert str(caught.value) == (f"the storage server at `127.0.0.1:{server.port}`: it refuses the user or the password")


@asynccontextmanager
async def run_fake_server(behave: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[RedisAddress]:
    """Run a server on a port that behaves like this at the first command."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            await reader.read(1024)
            await behave(writer)
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as running:
        yield RedisAddress("127.0.0.1", running.sockets[0].getsockname()[1])


async def test_no_listener() -> None:
    """Without a server, the client fails at once."""
    port = free_port()
    async with client_of(RedisAddress("127.0.0.1", port)) as client:
        with pytest.raises(StoreError, match=f"`127.0.0.1:{port}`: it cannot be reached: connection refused"):
            await client.call("PING")
        assert client.errors == 1


async def test_somebody_who_says_nothing() -> None:
    """The client gives up a server that accepts connections and never answers, after its time limit."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        async with client_of(RedisAddress("127.0.0.1", mute.getsockname()[1], database=1), timeout_s=0.2) as client:
            with pytest.raises(StoreError, match="did not answer in time"):
                await client.call("PING")


async def test_an_answer_that_drips() -> None:
    """The time limit is for the whole answer: a server that sends a byte now and then does not extend it."""

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"$1000\r\n")
        for _ in range(100_000):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)  # the pace of the drip

    async with run_fake_server(drip) as place, client_of(place, timeout_s=0.3) as client:
        with pytest.raises(StoreError, match="did not answer in time"):
            await client.call("GET", "key")


@pytest.mark.parametrize("answer", [b"$abc\r\n", b":x\r\n", b"$-5\r\nab\r\n", b"*x\r\n", b"%1\r\n", b"HTTP/1.1 400 Bad\r\n\r\n"])
async def test_what_is_no_answer(answer: bytes) -> None:
    """An answer that is not the protocol of Redis is an ordinary error."""

    async def tell(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    async with run_fake_server(tell) as place, client_of(place) as client:
        with pytest.raises(StoreError, match="no answer of such a server"):
            await client.call("PING")
        assert client.errors == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("NOAUTH Authentication required.", "refuses the user or the password"),
        ("LOADING Redis is loading the dataset in memory", "still loading"),
        ("READONLY You can't write against a read only replica.", "takes no writes"),
        ("OOM command not allowed when used memory > 'maxmemory'.", "no memory left"),
        ("MOVED 3999 127.0.0.1:6381", "MovedError"),
        ("MASTERDOWN Link with MASTER is down", "MasterDownError"),
        ("MISCONF Redis is configured to save RDB snapshots", "ResponseError"),
        ("WRONGTYPE Operation against a key", "ResponseError"),
    ],
)
async def test_what_a_server_refuses_with(answer: str, words: str) -> None:
    """Each refusal of the server is an error of ours, with our own message."""

    async def tell(writer: asyncio.StreamWriter) -> None:
        writer.write(f"-{answer}\r\n".encode())

    async with run_fake_server(tell) as place, client_of(place) as client:
        with pytest.raises(StoreError, match=words) as caught:
            await client.call("SET", "key", "value")
        assert answer.partition(" ")[2] not in str(caught.value)


async def test_what_the_server_repeats_is_not_passed_on(server: RedisServer) -> None:
    """The server repeats the words of an unknown command. These may hold a password, so they must not get into a log."""
    async with client_of(at(server)) as client:
        with pytest.raises(StoreError) as caught:
            await client.call("OUTH", "some-secret")
        assert "some-secret" not in str(caught.value) and "ResponseError" in str(caught.value)
        assert not leaks(caught.value, ["some-secret"])


@pytest.mark.parametrize("more", [{"password": "wrong-hidden"}, {"user": "wrong-hidden"}, {"port": 1}], ids=repr)
async def test_no_traceback_keeps_a_password(more: dict[str, object], server: RedisServer) -> None:
    """Neither the frames of the error's traceback nor its causes hold what was sent."""
    async with client_of(at(server, **{"password": "also-hidden", **more})) as client:
        with pytest.raises(StoreError) as caught:
            await client.call("PING")
    assert not leaks(caught.value, ["hidden"])


async def test_a_connection_that_was_cut_is_made_again(server: RedisServer) -> None:
    """The next command opens a new connection."""
    async with client_of(at(server)) as client:
        await client.call("PING")
        server.ask("CLIENT", "KILL", "TYPE", "normal")
        while True:
            try:
                assert await client.call("PING") is True
                break
            except StoreError:
                continue


def context(*, shown: bool) -> ssl.SSLContext:
    """Return TLS settings that trust the authority, with or without a client certificate."""
    return AUTHORITY.client(shown=shown)


async def test_tls(secure: RedisServer) -> None:
    """TLS works with certificates on both sides."""
    async with client_of(RedisAddress("127.0.0.1", secure.port, tls=True), context(shown=True)) as client:
        assert await client.call("PING") is True


@pytest.mark.parametrize(
    ("host", "trusts", "shown", "reason"),
    [
        ("127.0.0.1", True, False, ""),
        ("127.0.0.1", False, False, "certificate verify failed"),
        ("localhost", True, True, "hostname mismatch"),
    ],
    ids=["no certificate of ours", "an authority that nobody trusts", "another name"],
)
async def test_tls_that_is_refused(secure: RedisServer, host: str, trusts: bool, shown: bool, reason: str) -> None:
    """The server wants a certificate. The client wants one of the server for the host, by an authority that it trusts."""
    tls = context(shown=shown) if trusts else ssl.create_default_context()
    async with client_of(RedisAddress(host, secure.port, tls=True), tls) as client:
        with pytest.raises(StoreError, match=f"(?i){reason}"):
            await client.call("PING")


def test_errors_that_nobody_thought_of() -> None:
    """The message of an unexpected error names its class."""
    assert reason(KeyError("secret")) == "it answers with KeyError"


async def test_work_off_loop() -> None:
    """Large work runs in a thread, with the same result."""
    assert await off_loop(len, b"ab") == 2
    assert await off_loop(len, bytes(LARGE_BYTES)) == LARGE_BYTES


@pytest.mark.parametrize("turns", range(1, 25))
async def test_a_cancellation_is_never_lost(server: RedisServer, turns: int) -> None:
    """A cancellation ends a retry loop at every step, so the process that waits for the loop can end."""

    begun = asyncio.Event()

    async def ask_for_ever() -> None:
        while True:
            await client.call("PING")
            begun.set()

    async with client_of(at(server)) as client:
        task = asyncio.create_task(ask_for_ever())
        await begun.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5.0)
        task.cancel()
        assert done and task.cancelled()
