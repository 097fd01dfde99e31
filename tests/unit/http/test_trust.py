"""The walk along X-Forwarded-For."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.trust import LONGEST, MAX_HOPS, TrustedProxies, parse_address, unmap_ipv4

ENTRIES = st.sampled_from(
    [
        *("1.1.1.1", "10.0.0.1", "10.0.0.2", "::1", "fd00::1", "::ffff:10.0.0.9", "x", ""),
        *("1.1.1.1:80", "10.0.0.1:80", "[fd00::1]:80", "[::ffff:10.0.0.9]:80", "[x]:80", "x:80"),
    ]
)


def slow(networks: list[str], peer: str, entries: list[str]) -> str:
    """Return the caller's address, spelt out."""
    address = ipaddress.ip_address(peer)
    for entry in reversed([entry for entry in entries if entry]):
        if not any(address in ipaddress.ip_network(network) for network in networks):
            break
        try:
            following = ipaddress.ip_address(entry.removesuffix(":80").strip("[]"))
        except ValueError:
            break
        mapped = getattr(following, "ipv4_mapped", None)
        address = mapped or following
    return str(address)


@given(st.sampled_from(["10.0.0.7", "9.9.9.9", "fd00::2"]), st.lists(ENTRIES, max_size=6))
def test_fast_and_slow_walk_agree(peer: str, entries: list[str]) -> None:
    """The fast walk gives the same result as the slow one."""
    networks = ["10.0.0.0/8", "fc00::/7"]
    trust = TrustedProxies(tuple(networks))
    assert trust.address(peer, ", ".join(entries).encode()) == slow(networks, peer, entries)


@given(st.binary(max_size=60))
def test_any_header_gives_an_address(forwarded: bytes) -> None:
    """For any header, the result is an address."""
    found = TrustedProxies(True).address("10.0.0.7", forwarded)
    assert found is not None
    assert parse_address(found) is not None


def test_a_peer_without_an_address() -> None:
    """On a Unix socket only `true` trusts the header; without a header there is no address."""
    assert TrustedProxies(True).address("", b"1.1.1.1") == "1.1.1.1"
    assert TrustedProxies(("10.0.0.0/8",)).address("", b"1.1.1.1") is None
    assert TrustedProxies(True).address("", None) is None


def test_hops_are_bounded() -> None:
    """The walk looks at no more entries than its bound."""
    chain = ",".join(f"10.0.{number // 250}.{number % 250}" for number in range(MAX_HOPS + 50, 0, -1))
    assert TrustedProxies(True).address("10.9.9.9", chain.encode()) == f"10.0.0.{MAX_HOPS}"


def test_forms_of_a_peer() -> None:
    """Only IPv4 in IPv6 is rewritten."""
    assert unmap_ipv4("::ffff:1.2.3.4") == "1.2.3.4"
    assert unmap_ipv4("::ffff:102:304") == "::ffff:102:304"
    assert unmap_ipv4("2001:db8::1") == "2001:db8::1"
    assert str(parse_address("::ffff:102:304")) == "1.2.3.4"


def test_a_zone_is_no_place_to_write_in() -> None:
    """The zone of an IPv6 address may be any text: so an entry that is longer than an address ends the walk."""
    zoned = "fe80::1%" + "e" * (LONGEST - 8)
    assert TrustedProxies(True).address("10.0.0.7", zoned.encode()) == zoned
    assert TrustedProxies(True).address("10.0.0.7", f"{zoned}e".encode()) == "10.0.0.7"
