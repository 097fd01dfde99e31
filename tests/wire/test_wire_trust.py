"""Which X-Forwarded-For headers the proxy trusts (specification: Options; behaviour: Remote address)."""

from __future__ import annotations

import pytest

from support.wirekit import Opener, asking

PRIVATE = ("uniquelocal", "linklocal", "loopback")


def seen(opened: Opener, trust: bool | tuple[str, ...], forwarded: str | None, peer: str, expected: str) -> bool:
    """Return whether the context's remoteAddress is the one expected."""
    wire = opened(document={"version": 2, "features": [asking("remoteAddress", "IN", expected)]}, trust_proxy=trust)
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
    return wire.get("/proxy", headers, peer=peer).names == ["asked"]


@pytest.mark.parametrize(
    ("trust", "forwarded", "peer", "address"),
    [
        # not trusted: the peer
        (False, "1.1.1.1", "127.0.0.1", "127.0.0.1"),
        (False, None, "::ffff:127.0.0.1", "127.0.0.1"),
        ((), "1.1.1.1", "127.0.0.1", "127.0.0.1"),
        # everybody: the left-most
        (True, "1.1.1.1, 2.2.2.2", "127.0.0.1", "1.1.1.1"),
        (True, " 1.1.1.1 ,, 2.2.2.2 ", "127.0.0.1", "1.1.1.1"),
        (True, "::ffff:9.9.9.9", "127.0.0.1", "9.9.9.9"),
        (True, "", "127.0.0.1", "127.0.0.1"),
        # an entry that is no address ends the walk and is not used
        (True, "foo, 2.2.2.2", "127.0.0.1", "2.2.2.2"),
        (True, "2.2.2.2, foo", "127.0.0.1", "127.0.0.1"),
        # a port behind an address does not belong to it
        (True, "1.1.1.1:80", "127.0.0.1", "1.1.1.1"),
        (True, "[2001:db8::1]:80", "127.0.0.1", "2001:db8::1"),
        (True, "[::ffff:9.9.9.9]:65535", "127.0.0.1", "9.9.9.9"),
        (("10.0.0.0/8", "loopback"), "1.1.1.1:1, 10.0.0.1:80, [::1]:80", "127.0.0.1", "1.1.1.1"),
        (True, "1.1.1.1:", "127.0.0.1", "127.0.0.1"),
        (True, "1.1.1.1:80:80", "127.0.0.1", "127.0.0.1"),
        (True, "1.1.1.1:65536", "127.0.0.1", "127.0.0.1"),
        (True, "1.1.1.1:-1", "127.0.0.1", "127.0.0.1"),
        (True, "[1.1.1.1]:80", "127.0.0.1", "127.0.0.1"),
        (True, "[2001:db8::1]80", "127.0.0.1", "127.0.0.1"),
        (True, "[2001:db8::1]:", "127.0.0.1", "127.0.0.1"),
        (True, "[2001:db8::1", "127.0.0.1", "127.0.0.1"),
        (True, "2001:db8::1]:80", "127.0.0.1", "127.0.0.1"),
        (True, "[]:80", "127.0.0.1", "127.0.0.1"),
        # a list: the right-most that is not in it, if the peer is
        (("127.0.0.1",), "1.1.1.1, 2.2.2.2", "127.0.0.1", "2.2.2.2"),
        (("127.0.0.1",), "1.1.1.1", "::ffff:127.0.0.1", "1.1.1.1"),
        # CIDRs and names, all trusted: the left-most
        (("10.0.0.0/8", "loopback"), "1.1.1.1, 10.0.0.1", "127.0.0.1", "1.1.1.1"),
        (("192.168.1.1/24", "127.0.0.1"), "1.1.1.1, 192.168.1.77", "127.0.0.1", "1.1.1.1"),
        (PRIVATE, "1.1.1.1, 192.168.0.1, 172.16.0.1, 169.254.1.1", "127.0.0.1", "1.1.1.1"),
        (PRIVATE, "fc00::1, fd00::2", "127.0.0.1", "fc00::1"),
        (PRIVATE, "1.1.1.1, fe80::1, 100.64.0.1", "127.0.0.1", "100.64.0.1"),
    ],
)
def test_the_walk(opened: Opener, trust: bool | tuple[str, ...], forwarded: str | None, peer: str, address: str) -> None:
    """The caller's address under each form of the option."""
    assert seen(opened, trust, forwarded, peer, address)


def test_several_headers_are_one(opened: Opener) -> None:
    """Two X-Forwarded-For headers are one list."""
    document = {"version": 2, "features": [asking("remoteAddress", "IN", "1.1.1.1")]}
    wire = opened(document=document, trust_proxy=True)
    headers = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2")]
    assert wire.ask("GET", "/proxy", headers).names == ["asked"]


def test_the_callers_own_value_wins(opened: Opener) -> None:
    """The caller's own remoteAddress takes precedence over the header."""
    document = {"version": 2, "features": [asking("remoteAddress", "IN", "9.9.9.9")]}
    wire = opened(document=document, trust_proxy=True)
    assert wire.get("/proxy?remoteAddress=9.9.9.9", {"x-forwarded-for": "1.1.1.1"}).names == ["asked"]


def test_a_long_chain_ends(opened: Opener) -> None:
    """Only a bounded number of hops is read."""
    chain = ", ".join(["1.1.1.1"] + ["10.0.0.1"] * 1200)
    assert seen(opened, True, chain, "127.0.0.1", "10.0.0.1")


@pytest.mark.parametrize("name", ["x-forwarded-host", "x-forwarded-proto", "x-forwarded-prefix"])
def test_other_forwarded_headers_are_used_for_nothing(opened: Opener, name: str) -> None:
    """Other forwarding headers change no answer."""
    wire = opened(trust_proxy=True, enable_oas=True)
    for target in ("/proxy?sessionId=1", "/docs/openapi.json", "/docs/openapi"):
        assert wire.get(target, {name: "/evil.example"}) == wire.get(target)
