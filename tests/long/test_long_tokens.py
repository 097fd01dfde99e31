"""Floods of random tokens, from one address and from many: the upstream, known callers and new ones do not suffer.

One has a thousand requests a second with a token each. The other has a tenth of that, but each asks at `/edge/validate` about a
hundred tokens. `make test-long`; FLOOD_SECONDS=60 is the length of each flood, FLOOD_RATE=1000 its requests. The figures are
printed with `-s`.
"""

from __future__ import annotations

import os
import statistics

import pytest

from support.flooded_tokens import BUDGET, flooded

SECONDS = float(os.environ.get("FLOOD_SECONDS", "60"))
RATE = float(os.environ.get("FLOOD_RATE", "1000"))
QUIET_S = 10.0
GROWTH = 16 * 1024 * 1024
"""Bytes by which a proxy may grow after the first 20 seconds."""
FACTOR = 50
"""By how much the p99 of known callers may grow. Proxy and flood share the processors."""
NEW_S = 15.0
"""Seconds within which a new token is let in."""


@pytest.mark.long
@pytest.mark.parametrize("number", [1, 2], ids=["one process", "two workers"])
@pytest.mark.parametrize(("route", "share"), [("proxy", 1), ("validate", 10)])
@pytest.mark.parametrize("many", [False, True], ids=["one address", "many addresses"])
def test_a_flood_of_tokens(many: bool, number: int, route: str, share: int) -> None:
    """The upstream gets its budget and no more, known callers are answered, memory is flat, no process ends, new tokens get in."""
    figures = flooded(SECONDS, RATE / share, many=many, quiet_s=QUIET_S, number=number, route=route)
    source = "many addresses" if many else "one address"
    print(f"\n{route}, {source}, {number} worker(s), {RATE / share:.0f} a second for {SECONDS:.0f} s\n{figures.lines()}")
    assert figures.statuses == {200} and not figures.dead
    assert set(figures.flood["statuses"]) <= {"200" if route == "validate" else "401", "503"} and not figures.flood["failed"]
    assert figures.questions <= BUDGET * (figures.seconds + 1) and figures.largest <= 100
    before, during = (statistics.quantiles(times, n=100)[98] for times in (figures.before, figures.during))
    assert during < FACTOR * before
    assert figures.newcomers and max(seconds for _, seconds in figures.newcomers) < NEW_S
    assert figures.memory[-1] - figures.memory[min(20, len(figures.memory) - 1)] < GROWTH
