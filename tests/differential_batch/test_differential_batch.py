"""Our batch operations beside the real server's: the same answers and states, and every deliberate difference still there.

`BATCH_ROUNDS=500` compares from so many states on, `BATCH_SEED=1` from others, `BATCH_PEER=server-8` with the server 8.2.0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from batch_compare import EXCLUSIONS, Exclusion
from batch_twins import AGREED, BROKEN, Tally, compare, our_server
from real_batch import RealServer, real_server

ROUNDS = int(os.environ.get("BATCH_ROUNDS", "40"))
SEED = int(os.environ.get("BATCH_SEED", "7"))
PEER = os.environ.get("BATCH_PEER", "server")


@pytest.fixture(scope="module")
def real() -> Iterator[RealServer]:
    """Give the real server."""
    with real_server(PEER) as server:
        yield server


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def tally(request: pytest.FixtureRequest, real: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tally]:
    """Give the results of random states and requests, with ours on either database; PostgreSQL gets a quarter of them."""
    if on_file := request.param == "sqlite":
        database = f"sqlite:///{tmp_path_factory.mktemp('ours') / 'flags.db'}"
    else:
        database = request.getfixturevalue("postgresql_cluster")
    with our_server(database) as ours:
        yield compare(real, ours, SEED, ROUNDS if on_file else ROUNDS // 4, foretold=on_file)


def test_answers_are_those_of_the_real_server(tally: Tally, record_property: Callable[[str, object], None]) -> None:
    """Statuses, lists, messages and exports are the real server's, but for the exclusions."""
    excluded = sum(tally.excluded.values())
    record_property("summary", f"{tally.answers} batch answers compared, {excluded} of them excluded by name")
    assert tally.answers > ROUNDS * (4 if tally.foretold else 1)
    if tally.mismatches:
        pytest.fail(f"{len(tally.mismatches)} mismatches\n" + "\n".join(tally.mismatches[:3]), pytrace=False)


def test_what_the_commands_say_is_what_an_import_does(tally: Tally, record_property: Callable[[str, object], None]) -> None:
    """What `flagsvc validate` finds nothing wrong with is imported by the real server; what it finds problems in is not.

    A dry run of ours answers as the import does: `compare` notes each that does not.
    """
    record_property("summary", f"{sum(tally.law.values())} imports foretold: {dict(tally.law)}")
    assert not [how for how in BROKEN if tally.law[how]]
    assert not tally.foretold or all(tally.law[how] > ROUNDS // 5 for how in AGREED)


@pytest.mark.parametrize("tally", ["sqlite"], indirect=True)
@pytest.mark.parametrize("row", [row for row in EXCLUSIONS if row.sure], ids=lambda row: row.name.replace(" ", "-"))
def test_each_exclusion_still_occurs(tally: Tally, row: Exclusion) -> None:
    """An exclusion that does not occur any more must be removed from the table."""
    assert tally.excluded[row.name]
