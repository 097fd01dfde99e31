"""Whose address the caller has (specification: Options; behaviour: Remote address).

The chain is the peer, then X-Forwarded-For from right to left. The walk goes on while what it stands on is trusted; an entry
that is no address ends it and is not used. IPv4 mapped in IPv6 counts as IPv4. A port behind an address is left out.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from flagsvc.settings.network import trusted_networks

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

MAPPED = "::ffff:"
MAX_HOPS = 100
"""Entries of X-Forwarded-For that are looked at, empty ones included; the bound keeps a long header from costing long."""
LONGEST = 64
"""Characters of an address, its zone included, which could be of any length otherwise."""


WITH_PORT = re.compile(
    r"(?P<four>[0-9.]{7,15}):(?P<port>[0-9]{1,5})|\[(?P<six>[^]:]{0,4}:[^]]{1,64})\](?::(?P<port6>[0-9]{1,5}))?"
)
HIGHEST_PORT = 65_535


class TrustedProxies:
    """The option `trustProxy`: True, False, or addresses, CIDRs and the names loopback, linklocal and uniquelocal."""

    def __init__(self, setting: bool | tuple[str, ...]) -> None:
        self.everybody = setting is True
        self.networks: list[Network] = []
        if not isinstance(setting, bool):
            self.networks = [ip_network(each, strict=False) for each in trusted_networks(setting)]
        self.reads_header = self.everybody or bool(self.networks)

    def address(self, peer: str, forwarded: bytes | None) -> str | None:
        """Return the caller's address, given the peer's and what X-Forwarded-For holds; None where there is none."""
        current = plain(peer)
        if forwarded is None or not self.reads_header or not self.trusts(read(current)):
            return current or None
        for text in hops(forwarded):
            address = read(text)
            if address is None:
                text = without_port(text)
                address = read(text)
            if address is None:
                break
            current = str(address) if isinstance(address, IPv4Address) else text
            if not self.trusts(address):
                break
        return current or None

    def trusts(self, address: Address | None) -> bool:
        """Return whether what this address forwards is believed; a peer without an address only by `true`."""
        if self.everybody:
            return True
        return address is not None and any(address in network for network in self.networks)


def hops(forwarded: bytes) -> list[str]:
    """Return the last entries of X-Forwarded-For, from right to left; empty ones are nothing."""
    entries = forwarded.rsplit(b",", MAX_HOPS)
    last = entries[1:] if len(entries) > MAX_HOPS else entries
    return [entry for entry in (each.decode("latin-1").strip() for each in reversed(last)) if entry]


def plain(peer: str) -> str:
    """Return a peer's address, IPv4 mapped in IPv6 as IPv4."""
    if peer.startswith(MAPPED) and "." in peer:
        return peer[len(MAPPED) :]
    return peer


def without_port(text: str) -> str:
    """Return the address in `1.2.3.4:80`, `[::1]:80` or `[::1]`, as some load balancers write it; nothing of any other text."""
    found = WITH_PORT.fullmatch(text)
    if found is None or int(found["port"] or found["port6"] or 0) > HIGHEST_PORT:
        return ""
    return found["four"] or found["six"] or ""


def read(text: str) -> Address | None:
    """Return the address in `text`, IPv4 mapped in IPv6 as IPv4; None where it is none."""
    if len(text) > LONGEST:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
