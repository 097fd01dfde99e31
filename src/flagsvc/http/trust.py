"""Whose address the caller has (specification: Options; behaviour: Remote address).

The chain is the peer, then X-Forwarded-For from right to left. The walk continues while the present entry is trusted. An entry that
is not an address ends the walk and is not used. IPv4 mapped in IPv6 counts as IPv4. A port after an address is ignored.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from flagsvc.http.token_buckets import network_of
from flagsvc.settings.network import trusted_networks

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

MAPPED = "::ffff:"
MAX_HOPS = 100
"""The most entries of X-Forwarded-For that are read, including empty ones, so that a long header costs little."""
LONGEST = 64
"""The most characters of an address with its zone, which could otherwise have any length."""


WITH_PORT = re.compile(r"(?P<four>[0-9.]{7,15}):(?P<port>[0-9]{1,5})|\[(?P<six>[^]:]{0,4}:[^]]{1,64})\](?::(?P<port6>[0-9]{1,5}))?")
HIGHEST_PORT = 65_535


class TrustedProxies:
    """The option `trustProxy`: True, False, or addresses, CIDRs and the names loopback, linklocal and uniquelocal."""

    def __init__(self, setting: bool | tuple[str, ...]) -> None:
        self.trusts_all = setting is True
        self.networks: list[Network] = []
        if not isinstance(setting, bool):
            self.networks = [ip_network(each, strict=False) for each in trusted_networks(setting)]
        self.reads_header = self.trusts_all or bool(self.networks)

    def address(self, peer: str, forwarded: bytes | None) -> str | None:
        """Return the caller's address, from the peer's address and X-Forwarded-For; None if there is none."""
        current = unmap_ipv4(peer)
        if forwarded is None or not self.reads_header or not self.trusts(parse_address(current)):
            return current or None
        for text in hops(forwarded):
            address = parse_address(text)
            if address is None:
                text = without_port(text)
                address = parse_address(text)
            if address is None:
                break
            current = str(address) if isinstance(address, IPv4Address) else text
            if not self.trusts(address):
                break
        return current or None

    def caller_network(self, peer: str, forwarded: bytes | None) -> bytes:
        """Return the network of the caller's address; empty if there is none."""
        address = self.address(peer, forwarded)
        return b"" if address is None else network_of(address)

    def trusts(self, address: Address | None) -> bool:
        """Return whether the X-Forwarded-For of this address is trusted. A peer without an address is trusted only with `true`."""
        if self.trusts_all:
            return True
        return address is not None and any(address in network for network in self.networks)


def hops(forwarded: bytes) -> list[str]:
    """Return the last entries of X-Forwarded-For, from right to left, without empty ones."""
    entries = forwarded.rsplit(b",", MAX_HOPS)
    last = entries[1:] if len(entries) > MAX_HOPS else entries
    return [entry for entry in (each.decode("latin-1").strip() for each in reversed(last)) if entry]


def unmap_ipv4(peer: str) -> str:
    """Return a peer's address, with IPv4 mapped in IPv6 as IPv4."""
    if peer.startswith(MAPPED) and "." in peer:
        return peer[len(MAPPED) :]
    return peer


def without_port(text: str) -> str:
    """Return the address in `1.2.3.4:80`, `[::1]:80` or `[::1]`, as some load balancers write it; empty for any other text."""
    found = WITH_PORT.fullmatch(text)
    if found is None or int(found["port"] or found["port6"] or 0) > HIGHEST_PORT:
        return ""
    return found["four"] or found["six"] or ""


def parse_address(text: str) -> Address | None:
    """Return the address in `text`, with IPv4 mapped in IPv6 as IPv4; None if it is not an address."""
    if len(text) > LONGEST:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
