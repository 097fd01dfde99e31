"""Addresses and address ranges."""

from __future__ import annotations

import random

import pytest

from flagsvc.engine.values import cidr
from flagsvc.engine.values.text import split_list
from support import javascript

V4 = [
    ("0.0.0.0", (0, 32)), ("255.255.255.255", (2**32 - 1, 32)), ("10.1.2.3", (0x0A010203, 32)),
    ("10.1.2.3/8", (0x0A010203, 8)), ("10.1.2.3/0", (0x0A010203, 0)), ("10.1.2.3/08", (0x0A010203, 8)),
    ("10.1.2.3/32", (0x0A010203, 32)),
]  # fmt: skip

NO_V4 = [
    "", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "256.1.1.1", "1.2.3.1000", "01.2.3.4", "1.2.3.00",
    "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/100", "1.2.3.4/a", "1.2.3.4/ 8", "1.2.3.4/8/8", "1.2.3.4 ", " 1.2.3.4",
    "1.2.3.4x", "1.2.3.a", "1.2.3.-4", "1.2.3.4/\u0663", "\u0661.2.3.4", "1.2.3.4%eth0", "::1", "0x1.2.3.4",
]  # fmt: skip

V6 = [
    ("::", (0, 128)), ("::1", (1, 128)), ("1::", (1 << 112, 128)),
    ("1:2:3:4:5:6:7:8", (0x00010002000300040005000600070008, 128)), ("FE80::aB/64", ((0xFE80 << 112) | 0xAB, 64)),
    ("::ffff:1.2.3.4", (0xFFFF01020304, 128)), ("::1.2.3.4/100", (0x01020304, 100)), ("::/0", (0, 0)),
    ("::1/064", (1, 64)), ("fe80::1%eth0", ((0xFE80 << 112) | 1, 128)),
    ("fe80::1%eth0/64", ((0xFE80 << 112) | 1, 64)), ("fe80::1/64%eth0", ((0xFE80 << 112) | 1, 64)),
    ("::1%a/64%b", (1, 64)), ("::1%", (1, 128)), ("1:2:3:4:5:6:7::", (0x00010002000300040005000600070000, 128)),
    ("::2:3:4:5:6:7:8", (0x00000002000300040005000600070008, 128)),
    ("1:2:3:4:5:6:1.2.3.4", (0x00010002000300040005000601020304, 128)),
    ("0001:0002:0003:0004:0005:0006:255.255.255.255", (0x000100020003000400050006FFFFFFFF, 128)),
]  # fmt: skip

NO_V6 = [
    "", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8", "1::2::3", ":1:2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7:", "12345::", "g::", "::1 ", " ::1", "::1/129", "::1/", "::1/1000", "::1/a", "::1/64/64",
    "::1/64%a/32", "::1%a/b", "::1%a\n", "::1%\u2028", "::1/64%\r", "::01.2.3.4", "::1.2.3", "::1.2.3.4.5",
    "::256.1.1.1", "::1.2.3.4:5", "1.2.3.4", "::1.2.3.4x", "0000:0000:0000:0000:0000:0000:0000:0000:0000:0",
    "1:2:3:4:5:6:7:1.2.3.4", "é::",
]  # fmt: skip


@pytest.mark.parametrize(("written", "address"), [*V4, *((written, None) for written in NO_V4)])
def test_reads_ipv4(written: str, address: tuple[int, int] | None) -> None:
    """Four octets and perhaps a prefix length; without one it is the address alone.

    Leading zeros (octal elsewhere), blanks, other digits and other notations are no address.
    """
    assert cidr.parse_v4(written) == address


@pytest.mark.parametrize(("written", "address"), [*V6, *((written, None) for written in NO_V6)])
def test_reads_ipv6(written: str, address: tuple[int, int] | None) -> None:
    """Eight groups or fewer round a gap, a dotted quad at the end, a prefix length and a zone in any order, and nothing else."""
    assert cidr.parse_v6(written) == address


@pytest.mark.parametrize(
    ("values", "written", "matches"),
    [
        (["10.0.0.0/8"], "10.1.2.3", True), (["10.0.0.0/8"], "11.1.2.3", False), (["10.1.2.3"], "10.1.2.3", True),
        (["10.1.2.3"], "10.1.2.4", False), (["10.9.9.9/8"], "10.1.2.3", True), (["0.0.0.0/0"], "1.2.3.4", True),
        (["10.0.0.0/8"], "10.1.0.0/16", True), (["10.0.0.0/16"], "10.0.1.0/8", False),
        (["10.0.0.1/16"], "10.0.0.1/8", True), (["nonsense", "", "10.0.0.0/8"], "10.0.0.1", True),
        (["10.0.0.0/8", "10.1.2.3/32"], "10.1.2.3", True), (["2001:db8::/32"], "2001:db8::1", True),
        (["2001:db8::/32"], "2001:db9::1", False), (["fe80::1%eth0"], "FE80:0::1%eth1", True),
        (["::/0"], "10.0.0.1", False), (["0.0.0.0/0"], "::1", False), (["::ffff:10.0.0.0/104"], "10.0.0.1", False),
        (["::ffff:10.0.0.0/104"], "::ffff:10.0.0.1", True), (["0.0.0.0/0", "::/0"], "nonsense", False),
        ([], "10.0.0.1", False), (["0.0.0.0/0"], "", False),
    ],
)  # fmt: skip
def test_matches_a_set_of_ranges(values: list[str], written: str, matches: bool) -> None:
    """The whole network of the address must lie in a range of its family, or the address be the one a range is written with."""
    assert cidr.CidrSet(values).matches(written) is matches


@pytest.mark.parametrize(
    ("addresses", "written", "matches"),
    [
        ("10.0.0.0/8", "10.1.2.3", True), ("1.2.3.4 , 10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.1/16", "10.0.0.1/8", False), ("::1", "::1", True), ("::/0", "::1", False),
        ("anything", "anything", True), ("anything", "nothing", False), ("10.0.0.0/8", "11.0.0.1", False),
    ],
)  # fmt: skip
def test_matches_a_list_of_addresses(addresses: str, written: str, matches: bool) -> None:
    """The strategy compares texts exactly, and IPv4 ranges."""
    assert cidr.AddressList(split_list(addresses)).matches(written) is matches


def octets(draw: random.Random) -> str:
    """Return something like an IPv4 address."""
    usual, odd = ["0", "1", "10", "10", "192", "168", "255"], ["256", "01", "00", "", "a", "\u0663", "-1", " 1"]
    return ".".join(draw.choice(odd if draw.random() < 0.04 else usual) for _ in range(draw.choice([4] * 20 + [3, 5])))


def groups(draw: random.Random) -> str:
    """Return something like an IPv6 address."""
    usual, odd = ["0", "1", "fe80", "2001", "db8", "FFFF", "0000"], ["00001", "g", "", "1", "aB"]
    some = [draw.choice(odd if draw.random() < 0.04 else usual) for _ in range(draw.choice([8, 8, 7, 9, 2, 3, 4]))]
    at = draw.randrange(len(some) + 1)
    written = ":".join(some) if len(some) > 6 else ":".join(some[:at]) + "::" + ":".join(some[at:])
    return written.rpartition(":")[0] + ":" + octets(draw) if draw.random() < 0.2 else written


PREFIXES = [
    "0", "8", "08", "16", "24", "31", "32", "33", "64", "96", "120", "128", "129", "064", "a", "0000", "\u0663", "",
    "1 ",
]  # fmt: skip


def almost_address(draw: random.Random, six: bool) -> str:
    """Return something like an address, perhaps with a prefix length and a zone."""
    written = groups(draw) if six else octets(draw)
    for _ in range(draw.choice([1, 1, 1, 2])):
        if draw.random() < 0.3:
            written += "/" + draw.choice(PREFIXES)
        if draw.random() < 0.15:
            written += "%" + draw.choice(["eth0", "", "a/b", "\n", "\u2028", "1", "é", "/64", "a%b", "."])
    return written


ADDRESSES = """([text, values]) => {
    const { Address4, Address6 } = require('ip-address')
    const families = [Address4, Address6]
    const parsed = families.map(F => F.isValid(text) ? [String(new F(text).bigInt()), new F(text).subnetMask] : null)
    const within = (F, range) => new F(text).correctForm() === new F(range).correctForm() || new F(text).isInSubnet(new F(range))
    const family = families.find(F => F.isValid(text))
    const strategy = values.map(value => value.trim()).some(range => range === text
        || Address4.isValid(range) && Address4.isValid(text) && new Address4(text).isInSubnet(new Address4(range)))
    return [parsed, values.some(range => family && family.isValid(range) && within(family, range)), strategy]
}"""


@pytest.mark.programs
def test_reads_and_matches_as_npm_ip_address_does() -> None:
    """Random addresses and ranges, valid or not, are the same numbers and match the same."""
    draw = random.Random(7)
    cases = []
    for _ in range(5_000):
        six = draw.random() < 0.5
        cases.append(
            [almost_address(draw, six), [almost_address(draw, six != (draw.random() < 0.1)) for _ in range(draw.randint(1, 3))]]
        )
    wrong = []
    for (written, values), answer in zip(cases, javascript.apply(ADDRESSES, cases, package="unleash-client"), strict=True):
        parsed = [
            address and [str(address[0]), address[1]]
            for address in (cidr.parse_v4(written), cidr.parse_v6(written))  # type: ignore[arg-type]
        ]
        listed = cidr.AddressList(split_list(",".join(values).strip()))
        ours = [parsed, cidr.CidrSet(values).matches(written), listed.matches(written)]  # type: ignore[arg-type]
        if ours != answer:
            wrong.append((written, values, ours, answer))
    assert not wrong, wrong[:10]


@pytest.mark.parametrize(("text", "expected"), [("10.0.0.0/8", True), ("::1", True), ("ten", False), ("10.0.0.0/33", False)])
def test_ranges_are_known(text: str, expected: bool) -> None:
    """An address is a range of one. A text of neither family is not a range."""
    assert cidr.is_range(text) is expected


def test_a_text_with_very_many_points_takes_linear_time() -> None:
    """It is no address after the fourth point: its value would grow, and take minutes."""
    assert cidr.parse_v4("1." * 2_000_000) is None
    assert cidr.parse_v6("::" + "1." * 2_000_000) is None
