"""Opening connections: the order of addresses, the first one to answer, and the ends of a route."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from unittest.mock import AsyncMock, Mock

import pytest

from flagsvc.http.client import dialling
from flagsvc.http.client.connection import BrokenError, ClientConnection
from flagsvc.http.client.dialling import FORBIDDEN, End, address_of, alternating, connect, first_of, in_words, route_to
from flagsvc.http.client.trust import Trust, tls_context
from flagsvc.testing import turns
from support.loopback import loopback


def test_the_families_take_turns() -> None:
    """If all addresses of one family are dead, the other family reaches the host soon."""
    assert alternating(["::1", "::2", "10.0.0.1", "10.0.0.2", "10.0.0.3"]) == [*("::1", "10.0.0.1", "::2", "10.0.0.2"), "10.0.0.3"]
    assert alternating(["10.0.0.1"]) == ["10.0.0.1"]
    assert alternating([]) == []


def test_a_link_local_address_keeps_its_scope() -> None:
    """A link-local address needs its scope to name a network."""
    assert address_of(("fe80::1", 80, 0, 2)) == "fe80::1%2"
    assert address_of(("2001:db8::1", 80, 0, 0)) == "2001:db8::1"
    assert address_of(("10.0.0.1", 80)) == "10.0.0.1"
    assert (End("fe80::1%eth0", 80).certified, End("flags.example", 80).certified) == ("fe80::1", "flags.example")


async def test_an_address_that_hangs_does_not_hold_up_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is tried a moment later, wins, and the first is given up."""
    given_up: list[str] = []
    winner = Mock(ClientConnection)

    async def attempt(end: End, address: str) -> ClientConnection:
        if address == "10.0.0.1":
            try:
                await asyncio.Event().wait()
            finally:
                given_up.append(address)
        return winner

    monkeypatch.setattr(dialling, "attempt", attempt)
    monkeypatch.setattr(dialling, "NEXT_ADDRESS_S", 0.0)
    assert await first_of(End("host", 1), ["10.0.0.1", "10.0.0.2"]) is winner
    await asyncio.sleep(0)
    assert given_up == ["10.0.0.1"] and not winner.abort.called


async def test_a_connection_that_comes_too_late_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two connections that open at once, the second is closed. A connection that opens too late is closed too."""
    made: list[Mock] = []
    gate = asyncio.Event()

    async def attempt(end: End, address: str) -> ClientConnection:
        await gate.wait()
        made.append(Mock(ClientConnection))
        return made[-1]

    monkeypatch.setattr(dialling, "attempt", attempt)
    monkeypatch.setattr(dialling, "NEXT_ADDRESS_S", 0.0)
    racing = asyncio.create_task(first_of(End("host", 1), ["10.0.0.1", "10.0.0.2"]))
    await turns()  # both attempts are waiting
    gate.set()
    taken = await racing
    assert len(made) == 2
    assert [each.abort.called for each in made if each is not taken] == [True]
    assert [each.abort.called for each in made if each is taken] == [False]


async def test_where_no_address_answers_the_first_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are tried."""
    attempt = AsyncMock(side_effect=[OSError(number, "no") for number in (1, 2, 3)])
    monkeypatch.setattr(dialling, "attempt", attempt)
    with pytest.raises(OSError, match="no") as caught:
        await first_of(End("host", 1), ["a", "b", "c"])
    assert [each.args[1] for each in attempt.await_args_list] == ["a", "b", "c"] and caught.value.errno == 1
    with pytest.raises(BrokenError, match="no address"):
        await first_of(End("host", 1), [])


async def test_addresses_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over real sockets: there is no listener at the first address. What the name server answers is checked, each time.

    The other addresses of the name are used; without any it is an error.
    """
    async with loopback() as server:
        hosts = ["127.0.0.3", "127.0.0.1"]

        async def getaddrinfo(*_: object, **__: object) -> list[object]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, server.port)) for host in hosts]

        def refusal(address: str) -> str:
            asked.append(address)
            return f"no {address}" if address == "127.0.0.3" else ""

        asked: list[str] = []
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
        for given in ((), (refusal,)):
            connection = await connect(End("flags.example", server.port), *given)
            assert connection.usable
            connection.close()
        assert asked == hosts
        hosts.remove("127.0.0.1")
        with pytest.raises(BrokenError, match=r"no 127\.0\.0\.3") as caught:
            await connect(End("flags.example", server.port), refusal)
        assert caught.value.kind == FORBIDDEN


async def test_tls_is_not_begun_over_what_is_closing() -> None:
    """A tunnel may close right after its 200. Then TLS is not started, because there would be no answer."""
    async with loopback() as server:
        connection = await connect(End("127.0.0.1", server.port))
        connection.close()
        with pytest.raises(BrokenError, match="closed"):
            await connection.start_tls(tls_context(False), "flags.example")


def test_the_ends_of_a_way() -> None:
    """TLS settings are made only for TLS. The repr contains no password."""
    plain = route_to("http://flags.example/api", None, Trust())
    assert (plain.origin, plain.proxy, plain.forwarded) == (End("flags.example", 80), None, False)
    through = route_to("http://[::1]:81", "http://user:hidden@proxy:3128", Trust())
    assert through.forwarded and through.origin.authority == "[::1]:81" and through.proxy == End("proxy", 3128)
    assert "hidden" not in repr(through) and through.credentials.startswith(b"Basic ")
    secure = route_to("https://flags.example", "http://proxy", Trust(False))
    assert not secure.forwarded and secure.origin.tls is not None and secure.origin.authority == "flags.example:443"
    assert secure.credentials == b"" and secure.origin.tls.verify_mode is ssl.CERT_NONE


def test_failures_in_words() -> None:
    """No address is repeated: it may be the outbound proxy's. OpenSSL's codes are left out."""
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)")
    assert in_words(refused) == "connection refused"
    assert in_words(socket.gaierror(-2, "Name or service not known")) == "name or service not known"
    plain = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)")
    assert in_words(plain) == "wrong version number; it may speak plain HTTP there"
    assert in_words(OSError("told in one text")) == "oserror"
