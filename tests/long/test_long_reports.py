"""Every report with one odd value, and many with two, beside both real servers and the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from report_cases import doubled, single
from report_compare import EXCLUSIONS, Comparison
from report_peers import all_peers, ask_all

pytestmark = pytest.mark.long

SEED, PAIRS = "long reports", 3000


@pytest.fixture(scope="module")
def compared() -> Iterator[Comparison]:
    """Give the comparison of all reports."""
    cases = [*single(), *doubled(SEED, PAIRS)]
    with all_peers() as peers:
        yield Comparison(cases, ask_all(peers, cases))


def test_what_a_peer_takes_is_taken(compared: Comparison, record_property: Callable[[str, object], None]) -> None:
    """Statuses are alike: taken if one of the peers takes it. What differs on purpose is a row of the table."""
    record_property("summary", "; ".join(compared.lines()))
    assert list(map(str, compared.differences)) == []


def test_every_exclusion_occurs(compared: Comparison) -> None:
    """A row that changes nothing is not needed any more."""
    assert set(compared.excluded) == {row.name for row in EXCLUSIONS}
