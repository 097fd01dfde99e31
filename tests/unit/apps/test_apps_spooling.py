"""Where usage metrics wait, for each kind of storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from apps_options import options

from flagsvc.apps.plan import make_plan
from flagsvc.apps.spooling import make_shelf, make_spool, make_usage_key
from flagsvc.apps.world import World
from flagsvc.repository.stores import FileShelf, FileStore, NoStore, OwnShelf
from flagsvc.testing import MemoryShelf, MemoryStore


class Shelving(MemoryStore):
    """A provider with shelves of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.shelves: dict[str, MemoryShelf] = {}

    def shelf(self, key: str) -> MemoryShelf:
        """Return the shelf of a key."""
        return self.shelves.setdefault(key, MemoryShelf())


def test_each_storage_has_a_shelf(tmp_path: Path) -> None:
    """A folder has files, a provider what it offers or else one record, nothing has nothing."""
    assert isinstance(make_shelf(FileStore(tmp_path), "key", "one"), FileShelf)
    assert isinstance(make_shelf(MemoryStore(), "key", "one"), OwnShelf)
    assert make_shelf(NoStore(), "key", "one") is None
    provider = Shelving()
    assert make_shelf(provider, "key", "one") is provider.shelves["key"]


def test_without_storage_nothing_is_spooled(tmp_path: Path) -> None:
    """With it everything is that cannot be sent."""
    plan = make_plan(options())
    assert make_spool(plan, NoStore()) is None
    spool, other = make_spool(plan, FileStore(tmp_path)), make_spool(plan, FileStore(tmp_path))
    assert spool is not None and other is not None and spool.name != other.name


@pytest.mark.parametrize(
    ("interval", "timeout", "pace_s"), [(30_000, 10_000, 30.0), (500, 10_000, 10.0)], ids=["interval", "timeout"]
)
def test_a_post_on_its_way_is_no_sign_of_death(tmp_path: Path, interval: int, timeout: int, pace_s: float) -> None:
    """Nobody takes over the counts of a process that waits for the upstream's answer, however long that may take."""
    plan = make_plan(options(metrics_interval=interval, upstream_timeout=timeout))
    spool = make_spool(plan, FileStore(tmp_path))
    assert spool is not None and spool._every == pace_s


@pytest.mark.parametrize(("storage", "stores"), [("none", False), ("file:///nowhere/at/all", True)])
def test_the_options_decide(storage: str, stores: bool) -> None:
    """`storage` is for both, the configuration and what could not be sent."""
    reporter = World(make_plan(options(storage=storage))).reporter
    assert reporter is not None
    assert (reporter._spool is not None) is stores


@pytest.mark.parametrize(
    "other",
    [
        {"flagsvc_url": "http://127.0.0.1:2/api"},
        {"flagsvc_app_name": "other"},
        {"flagsvc_api_token": "*:production.secret"},
        {"flagsvc_api_token": "shop:development.secret"},
        {"flagsvc_api_token": "*:development"},
    ],
)
def test_counts_are_never_booked_elsewhere(other: dict[str, Any]) -> None:
    """Another server, environment, project or application has another shelf."""
    mine = {"flagsvc_api_token": "*:development.secret"}
    assert make_usage_key(options(**mine)) != make_usage_key(options(**mine | other))


def test_counts_wait_for_the_next_token() -> None:
    """A token that is replaced by another of its scope leaves none behind; nor do filters or ports matter."""
    first = make_usage_key(options(flagsvc_api_token="*:development.old"))
    assert make_usage_key(options(flagsvc_api_token="*:development.new.secret", port=1, name_prefix="a")) == first


def test_a_token_without_a_scope_is_taken_whole() -> None:
    """Whatever is in front of a dot."""
    keys = {
        make_usage_key(options(flagsvc_api_token=token)) for token in ("secret", "some.secret", "some.other", "a:b")
    }
    assert len(keys) == 4
