"""The HTTP client of the commands: what it keeps of an answer, its bounds, and where it sends nothing."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest

from flagsvc.cli import client as commands
from flagsvc.cli.client import Client, read_connection
from flagsvc.core.errors import ConfigurationError, UnreachableError, UpstreamError
from flagsvc.http.client.answers import Answer
from flagsvc.http.client.outbound import Outbound
from flagsvc.http.client.trust import Trust
from support.aio import until
from support.loopback import Loopback, Request, Writer, loopback, reply, silence, then_close
from support.pki import Authority, written
from support.processes import free_port

TOKEN = [("authorization", b"s3cret")]


def opened(url: str, seconds: float = 5.0) -> Client:
    """Return a client for a server."""
    return Client(url, Outbound(), Trust(), seconds)


async def sent(client: Client, server: Loopback, content: bytes | None = b"{}") -> Answer:
    """Return the answer to a POST, or to a GET without content."""
    method = "GET" if content is None else "POST"
    return await asyncio.to_thread(client.send, method, f"{server.url}/x", TOKEN, content)


@pytest.mark.parametrize("content", [None, b"{}"])
@pytest.mark.parametrize("status", [200, 400, 409, 503])
async def test_the_body_of_every_answer_is_kept(status: int, content: bytes | None) -> None:
    """An error says in its body what is wrong."""
    async with loopback() as server:
        server.script(reply(status, gzip.compress(b'{"message":"why"}'), content_encoding="gzip"))
        with opened(server.url) as client:
            answer = await sent(client, server, content)
    assert (answer.status, answer.body) == (status, b'{"message":"why"}')


@pytest.mark.parametrize("packed", [False, True])
async def test_a_body_is_bounded(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger answer is an error, also if it is small before it is decompressed."""
    monkeypatch.setattr(commands, "LARGEST_DOCUMENT", 10_000)
    body = b" " * 10_001
    answer = reply(200, gzip.compress(body), content_encoding="gzip") if packed else reply(200, body)
    async with loopback() as server:
        server.script(answer)
        with opened(server.url) as client, pytest.raises(UpstreamError, match="is larger than 10000 bytes"):
            await sent(client, server, None)


async def test_a_silent_server() -> None:
    """A step has a time limit. The server may have done what was sent, so the error is not about an unreachable server."""
    async with loopback() as server:
        server.script(silence)
        with opened(server.url, 0.2) as client:
            with pytest.raises(UpstreamError, match="no answer within the time limit") as raised:
                await sent(client, server)
            assert not isinstance(raised.value, UnreachableError)


async def test_an_endless_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that comes byte by byte has a time limit as a whole."""
    monkeypatch.setattr(commands, "MOST_STEPS", 2)

    async def drip(_: Request, __: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(reply(200, content_length="1000000"))
        while not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(0.02)

    async with loopback() as server:
        server.script(drip)
        with opened(server.url, 0.2) as client, pytest.raises(UpstreamError, match=r"no whole answer within 0\.4 s"):
            await sent(client, server)


async def test_a_kept_connection_that_has_ended() -> None:
    """It is not used: a POST that fails on it could not be sent again."""
    async with loopback() as server:
        server.script(then_close(reply(200)), reply(200))
        with opened(server.url) as client:
            await sent(client, server)
            await until(lambda: not any(each.usable for each in client._transport._kept))
            assert (await sent(client, server)).status == 200
        assert server.connections == 2


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}", "http://a..b", "http://[::1", "ftp://x"])
def test_nothing_was_sent(url: str) -> None:
    """A server without a listener and an address that is none are errors that say that nothing was sent."""
    with pytest.raises(UnreachableError), opened(address := url.format(free_port())) as client:
        client.send("POST", address)


def test_authorities(tmp_path: Path) -> None:
    """A file that cannot be used is an error of the configuration, before anything is sent."""
    _, trust = read_connection({"FLAGSVC_UPSTREAM_CA": str(tmp_path / "none")})
    with pytest.raises(ConfigurationError, match="upstreamCa: cannot read"):
        Client("https://127.0.0.1:9", Outbound(), trust, 1.0)


async def test_an_authority_of_ones_own(tmp_path: Path) -> None:
    """The proxy's variable for authorities applies, and without it the server is not trusted."""
    ours = Authority()
    async with loopback(ours.server()) as server:
        outbound, trust = read_connection({"FLAGSVC_UPSTREAM_CA": written(tmp_path, "ca.pem", ours.pem)})
        with Client(server.url, outbound, trust, 5.0) as client:
            assert (await sent(client, server)).status == 200
        with opened(server.url) as client, pytest.raises(UnreachableError, match="certificate verify failed"):
            await sent(client, server)
