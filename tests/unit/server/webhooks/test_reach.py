"""Which addresses webhooks may reach: the option's networks, in each form in which an address can hold another one.

When a failed delivery is tried again.
"""

from __future__ import annotations

import pytest

from flagsvc.server.webhooks.reach import Reach
from flagsvc.server.webhooks.sender import LONGEST_WISH_S, MOST_ATTEMPTS, PAUSES_S, SPREAD, pause_after
from flagsvc.settings.table import SERVER_OPTIONS

DEFAULT = next(row.kind.parse(row.default) for row in SERVER_OPTIONS if row.name == "webhookNetworks")
INSIDE = ("!linklocal", "!loopback", "!uniquelocal")


@pytest.mark.parametrize(
    ("networks", "address", "may"),
    [
        (DEFAULT, "203.0.113.7", True),
        (DEFAULT, "10.1.2.3", True),
        (DEFAULT, "127.0.0.1", True),
        (DEFAULT, "2001:db8::1", True),
        (DEFAULT, "169.254.169.254", False),
        (DEFAULT, "169.254.0.1", False),
        (DEFAULT, "::ffff:169.254.169.254", False),
        (DEFAULT, "64:ff9b::a9fe:a9fe", False),
        (DEFAULT, "2002:a9fe:a9fe::1", False),
        (DEFAULT, "fe80::1", False),
        (DEFAULT, "fe80::1%2", False),
        (DEFAULT, "fd00:ec2::254", False),
        (DEFAULT, "fd00:ec2::253", True),
        (DEFAULT, "100.100.100.200", False),
        (INSIDE, "0.0.0.0", False),
        (INSIDE, "::", False),
        (INSIDE, "::1", False),
        (INSIDE, "192.168.0.1", False),
        (INSIDE, "64:ff9b::a00:1", False),
        (INSIDE, "8.8.8.8", True),
        (("10.0.0.0/8",), "10.1.2.3", True),
        (("10.0.0.0/8",), "::ffff:10.1.2.3", True),
        (("10.0.0.0/8",), "11.1.2.3", False),
        (("10.0.0.0/8",), "64:ff9b::a01:203", False),
        (("10.0.0.0/8", "!10.1.0.0/16"), "10.1.2.3", False),
        (("10.0.0.0/8", "!10.1.0.0/16"), "10.2.2.3", True),
        (("linklocal",), "169.254.169.254", True),
        (("0.0.0.0/0", "::/0"), "169.254.169.254", True),
    ],
)
def test_which_addresses(networks: tuple[str, ...], address: str, may: bool) -> None:
    """A network behind `!` is left out. An address counts as every address that a connection to the address may reach."""
    reach = Reach(networks)
    assert reach.contains(address) is may
    words = f"the address {address} is not in the networks that webhooks may reach (option webhookNetworks)"
    assert reach.refusal(address) == ("" if may else words)


def test_the_pauses_grow_and_end() -> None:
    """Each pause is longer than the one before, and chance adds a tenth at most. A longer Retry-After counts, up to an hour."""
    pauses = [pause_after(attempts, 0.0) for attempts in range(1, MOST_ATTEMPTS + 1)]
    assert pauses == [*PAUSES_S, None]
    assert list(PAUSES_S) == sorted(PAUSES_S)
    assert pause_after(1, 0.999) < PAUSES_S[0] * (1 + SPREAD)  # type: ignore[operator]
    assert pause_after(1, 0.0, 1.0) == PAUSES_S[0]
    assert pause_after(1, 0.0, 90.0) == 90.0
    assert pause_after(1, 0.0, 1e9) == LONGEST_WISH_S
    assert pause_after(MOST_ATTEMPTS, 0.0, 5.0) is None
