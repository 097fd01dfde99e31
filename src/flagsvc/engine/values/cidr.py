"""Addresses and address ranges for the operator IN_CIDR and the strategy remoteAddress (behaviour: Addresses).

An address is an integer and a prefix length: an address may itself have `/24`, and then stands for that whole network. The accepted
forms are those of the reference's `ip-address` library: four decimal octets without leading zeros; IPv6 with an optional zone and
an optional dotted quad at the end; both with an optional prefix length. The two families never match each other.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

ZERO: Final = 0x30
NINE: Final = 0x39
POINT: Final = 0x2E

BITS_4: Final = 32
POINTS_4: Final = 3
BITS_6: Final = 128
GROUPS_6: Final = 8
LONGEST_6: Final = 45
HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
NOT_IN_ZONE: Final = ("/", "\n", "\r", "\u2028", "\u2029")


def parse_v4(text: str) -> tuple[int, int] | None:
    """Return (address, prefix length) of an IPv4 address, None if the text is not one."""
    size: i64 = len(text)
    value: i64 = 0
    octet: i64 = -1
    points: i64 = 0
    at: i64 = 0
    while at < size:
        code: i64 = ord(text[at])
        if ZERO <= code <= NINE:
            if octet == 0:
                return None
            octet = code - ZERO if octet < 0 else octet * 10 + code - ZERO
            if octet > 255:
                return None
        elif octet < 0:
            return None
        elif code == POINT:
            value = value * 256 + octet
            octet = -1
            points += 1
            if points > POINTS_4:
                return None
        else:
            break
        at += 1
    if points != POINTS_4 or octet < 0:
        return None
    prefix = BITS_4 if at == size else parse_prefix(text[at:], 2, BITS_4)
    return None if prefix < 0 else (value * 256 + octet, prefix)


def parse_prefix(text: str, digits: int, largest: int) -> int:
    """Return the prefix length in `/24`; -1 if it is invalid, has too many digits or is larger than `largest`."""
    length = text[1:]
    if text[0] != "/" or not 1 <= len(length) <= digits or not is_digits(length):
        return -1
    return int(length) if int(length) <= largest else -1


def is_digits(text: str) -> bool:
    """Return whether the text consists of ASCII digits."""
    return text.isascii() and text.isdigit()


def parse_v6(text: str) -> tuple[int, int] | None:
    """Return (address, prefix length) of an IPv6 address; None for any other text. A zone is checked and dropped."""
    address, slash, rest = text.partition("/")
    length, _, zone = rest.partition("%")
    prefix = parse_prefix("/" + length, 3, BITS_6) if slash else BITS_6
    address, _, zone_before = address.partition("%")
    if prefix < 0 or len(address) > LONGEST_6 or not is_zone(zone) or not is_zone(zone_before):
        return None
    value = parse_groups(embed_v4(address))
    return None if value < 0 else (value, prefix)


def is_zone(text: str) -> bool:
    """Return whether the text may follow a `%`: anything without a slash or a line end."""
    return not any(character in text for character in NOT_IN_ZONE)


def embed_v4(address: str) -> str:
    """Return the address with a final dotted quad as two groups; unchanged without one."""
    head, colon, quad = address.rpartition(":")
    parsed = parse_v4(quad)
    if parsed is None or "/" in quad:
        return address
    return f"{head}{colon}{parsed[0] >> 16:x}:{parsed[0] & 0xFFFF:x}"


def parse_groups(address: str) -> int:
    """Return the value of eight groups, or of fewer around one `::`; -1 for a malformed text."""
    halves = address.split("::")
    first = halves[0].split(":") if halves[0] else []
    last = halves[1].split(":") if len(halves) == 2 and halves[1] else []
    missing = GROUPS_6 - len(first) - len(last)
    if len(halves) > 2 or (missing < 1 if len(halves) == 2 else missing != 0):
        return -1
    value = 0
    for group in first + ["0"] * missing + last:
        if not 1 <= len(group) <= 4 or not HEXADECIMAL.issuperset(group):
            return -1
        value = value << 16 | int(group, 16)
    return value


def is_range(text: str) -> bool:
    return parse_v4(text) is not None or parse_v6(text) is not None


class Ranges:
    """Ranges of one address family by prefix length: one look-up for each length that occurs."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.addresses: set[int] = set()
        self.networks: dict[int, set[int]] = {}

    def add(self, address: int, prefix: int) -> None:
        """Add the range of all addresses with the same first `prefix` bits."""
        self.addresses.add(address)
        self.networks.setdefault(prefix, set()).add(address >> (self.bits - prefix))

    def cover(self, address: int, prefix: int) -> bool:
        """Return whether a range contains the whole network of the address and its prefix."""
        for length, networks in self.networks.items():
            if length <= prefix and address >> (self.bits - length) in networks:
                return True
        return False


class CidrSet:
    """The values of an IN_CIDR constraint. A value that is not a range is left out, because it matches nothing."""

    def __init__(self, values: list[str]) -> None:
        self.v4 = Ranges(BITS_4)
        self.v6 = Ranges(BITS_6)
        self.add(values)

    def add(self, values: list[str]) -> None:
        """Add values, before the first text is matched."""
        for value in values:
            v4 = parse_v4(value)
            if v4 is not None:
                self.v4.add(v4[0], v4[1])
                continue
            v6 = parse_v6(value)
            if v6 is not None:
                self.v6.add(v6[0], v6[1])

    def matches(self, text: str) -> bool:
        """Return whether the text is an address within a range, or the text of a range; false if it is not an address."""
        ranges = self.v4
        parsed = parse_v4(text)
        if parsed is None:
            ranges = self.v6
            parsed = parse_v6(text)
        return parsed is not None and (parsed[0] in ranges.addresses or ranges.cover(parsed[0], parsed[1]))


class AddressList:
    """The list of addresses of the strategy remoteAddress: exact texts, and IPv4 ranges."""

    def __init__(self, values: list[str]) -> None:
        self.texts: set[str] = set()
        self.v4 = Ranges(BITS_4)
        self.add(values)

    def add(self, values: list[str]) -> None:
        """Add values, before the first text is matched."""
        self.texts.update(values)
        for value in values:
            parsed = parse_v4(value)
            if parsed is not None:
                self.v4.add(parsed[0], parsed[1])

    def matches(self, text: str) -> bool:
        """Return whether the text is in the list, or is an IPv4 address within a range of the list."""
        if text in self.texts:
            return True
        parsed = parse_v4(text)
        return parsed is not None and self.v4.cover(parsed[0], parsed[1])
