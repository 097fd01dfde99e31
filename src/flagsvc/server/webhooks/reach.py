"""The addresses that webhooks may reach (option webhookNetworks; decision 0033). Pure.

The address of the connection is checked, after the name is resolved. So no form of a URL and no answer of a name server matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from flagsvc.http.trust import Address, Network
from flagsvc.settings.network import LEFT_OUT, REACH_NAMES

NAT64 = IPv6Network("64:ff9b::/96")
"""Where a gateway sends what goes to an address on to the IPv4 address in its last 32 bits (RFC 6052)."""
UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing listens there
"""Addresses that the system takes as loopback when a connection goes there."""


class Reach:
    """Networks, and those behind `!` that are left out. Without a network that is not left out, all others count."""

    def __init__(self, networks: Iterable[str]) -> None:
        given = tuple(networks)
        self._named = read_networks(each for each in given if not each.startswith(LEFT_OUT))
        self._left_out = read_networks(each.removeprefix(LEFT_OUT) for each in given if each.startswith(LEFT_OUT))

    def contains(self, text: str) -> bool:
        """Return whether a webhook may reach an address."""
        forms = list(forms_of(ip_address(text)))
        named = not self._named or is_within(forms[0], self._named)
        return named and not any(is_within(each, self._left_out) for each in forms)

    def refusal(self, text: str) -> str:
        """Return why a webhook may not reach an address; empty if it may."""
        if self.contains(text):
            return ""
        return f"the address {text} is not in the networks that webhooks may reach (option webhookNetworks)"


def read_networks(given: Iterable[str]) -> list[Network]:
    """Return networks, with those that a name stands for."""
    return [ip_network(network) for each in given for network in REACH_NAMES.get(each, (each,))]


def is_within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in each for each in networks)


def forms_of(address: Address) -> Iterator[Address]:
    """Yield an address, with IPv4 mapped in IPv6 as IPv4, and then what else a connection to it may reach."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    yield address
    if str(address) in UNSPECIFIED:
        yield ip_address(UNSPECIFIED[str(address)])
    if isinstance(address, IPv6Address) and address in NAT64:
        yield IPv4Address(int(address) & 0xFFFF_FFFF)
    if isinstance(address, IPv6Address) and address.sixtofour is not None:
        yield address.sixtofour
