"""X-Forwarded-For cannot be spoofed past the trusted proxies, with any header."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.call import FORWARDED_FOR, Call
from flagsvc.http.messages import Request
from flagsvc.http.token_buckets import network_of
from flagsvc.http.trust import MAX_HOPS, TrustedProxies, parse_address

TRUSTED = ("10.0.0.0/8", "127.0.0.1", "fc00::/7", "loopback")
PROXIES = st.sampled_from(["10.0.0.1", "10.255.0.9", "127.0.0.1", "fd00::1", "::1", "::ffff:10.1.1.1"])
CALLERS = st.sampled_from(["192.0.2.1", "11.0.0.1", "2001:db8::1", "203.0.113.255", "fe80::1", "9.255.255.255"])
FORGED = st.lists(
    PROXIES | CALLERS | st.sampled_from(["", " ", ",", "unknown", '"', "\xa0", "10.0.0.1:80", "[::1]", "_x", "%"]),
    max_size=8,
).map(", ".join) | st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=30)
"""What a caller may write: wanted addresses, other texts, anything."""


def forwarded(lines: list[str]) -> bytes | None:
    """Return what a call holds after these lines of the header."""
    call = Call(Request(b"GET", b"/", b"", []))
    for line in lines:
        call.put(FORWARDED_FOR, line.encode("latin-1"))
    return call.forwarded


@given(st.lists(FORGED, max_size=4), CALLERS, st.lists(PROXIES, max_size=5), st.booleans())
def test_the_caller_is_who_the_first_trusted_proxy_saw(
    forged: list[str], caller: str, proxies: list[str], in_one_line: bool
) -> None:
    """Each trusted proxy appends the address that it saw; entries before that are the caller's own and change nothing."""
    seen = [caller, *proxies]
    *added, peer = seen
    lines = [", ".join([*forged[-1:], *added])] if in_one_line else [*forged, *added]
    if in_one_line:
        lines = [*forged[:-1], *lines]
    found = TrustedProxies(TRUSTED).address(peer, forwarded([line for line in lines if line]))
    assert found is not None
    assert parse_address(found) == parse_address(caller)
    assert network_of(found) == network_of(caller)


@given(st.lists(FORGED, max_size=4), CALLERS | PROXIES)
def test_without_trust_the_header_is_ignored(forged: list[str], peer: str) -> None:
    """Without trust the peer is the caller, and the header of a peer outside the trusted set is ignored."""
    expected = parse_address(peer)
    assert parse_address(TrustedProxies(False).address(peer, forwarded(forged)) or "") == expected
    if not TrustedProxies(TRUSTED).trusts(expected):
        assert parse_address(TrustedProxies(TRUSTED).address(peer, forwarded(forged)) or "") == expected


@given(FORGED, st.integers(0, 4000), CALLERS)
def test_a_long_header_hides_nobody(forged: str, commas: int, caller: str) -> None:
    """The end of a long header is read first, and only a bounded part of it."""
    header = forged + "," * commas + ", " + caller
    assert parse_address(TrustedProxies(TRUSTED).address("10.0.0.1", header.encode("latin-1")) or "") == parse_address(
        caller
    )
    assert MAX_HOPS <= 100
