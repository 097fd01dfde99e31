"""The network of a caller, which rate limits and memory budgets count by. Compiled."""

from __future__ import annotations

from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from typing import Final

MAPPED: Final = b"\0" * 10 + b"\xff\xff"
"""The prefix of an IPv4 address in IPv6 form."""


def network_of(address: str) -> bytes:
    """Return the network of a caller: an IPv4 address, or the first 64 bits of an IPv6 address."""
    if ":" not in address:
        return address.encode()
    try:
        packed = inet_pton(AF_INET6, address.partition("%")[0])
    except OSError:
        return address.encode()
    if packed.startswith(MAPPED):
        return inet_ntop(AF_INET, packed[12:]).encode()
    return packed[:8] + b"/64"
