"""A seed is planted once, in an empty database; the same seed at a restart is no mistake, another one is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from flagsvc.errors import SeedError
from flagsvc.flagstore.beginning import count_features, plant
from flagsvc.flagstore.maintenance import in_maintenance, set_maintenance
from flagsvc.flagstore.seed import parse_seed
from flagsvc.flagstore.store import open_store
from flagsvc.testing import FakeClock, RecordingLog

SEED = parse_seed({"features": [{"name": "a"}, {"name": "b"}, {"name": "c", "archived": True}], "maintenance": True})


def test_a_seed_is_planted_once(database_url: str) -> None:
    """A second time, and after changes, it is left alone; another one is refused and changes nothing."""
    store = open_store(database_url, FakeClock(), RecordingLog())
    try:
        assert plant(store, SEED) is True
        assert count_features(store) == 2
        with store.writing(None) as tx:
            assert in_maintenance(tx)
            set_maintenance(tx, False)
        assert plant(store, SEED) is False
        with pytest.raises(SeedError, match="the database is not empty, it holds 3 features"):
            plant(store, parse_seed({"features": [{"name": "d"}]}))
        assert count_features(store) == 2
        with store.reading() as tx:
            assert not in_maintenance(tx)
    finally:
        store.close()


def test_several_servers_plant_one_seed_once(database_url: str) -> None:
    """However many start at once: one of them plants it, and none fails."""
    stores = [open_store(database_url, FakeClock(), RecordingLog()) for _ in range(4)]
    try:
        with ThreadPoolExecutor(len(stores)) as pool:
            planted = list(pool.map(lambda store: plant(store, SEED), stores))
        assert sorted(planted) == [False, False, False, True]
        assert count_features(stores[0]) == 2
    finally:
        for store in stores:
            store.close()
