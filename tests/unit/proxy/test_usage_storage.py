"""The storage of unsent usage metrics, for each kind of storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from flagsvc.proxy.configuration.stores import FileRecordStore, FileStore, NoStore, SingleRecordStore
from flagsvc.proxy.generations.feeds import make_record_store, make_unsent_usage, make_usage_key
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.testing import MemoryStore
from support.apps_options import options


def test_each_storage_has_a_record_store(tmp_path: Path) -> None:
    """A folder has files, a provider its own records or one record, and no storage has none."""
    assert isinstance(make_record_store(FileStore(tmp_path), "key", "one"), FileRecordStore)
    assert isinstance(make_record_store(MemoryStore(), "key", "one"), SingleRecordStore)
    assert make_record_store(NoStore(), "key", "one") is None
    provider = Mock()
    assert make_record_store(provider, "key", "one") is provider.record_store.return_value
    provider.record_store.assert_called_with("key")


@pytest.mark.parametrize(
    ("interval", "timeout", "pace_s"), [(30_000, 10_000, 30.0), (500, 10_000, 10.0)], ids=["interval", "timeout"]
)
def test_a_post_on_its_way_is_no_sign_of_death(tmp_path: Path, interval: int, timeout: int, pace_s: float) -> None:
    """The counts of a process that waits for an answer are never taken over, however long it waits."""
    setup = make_setup(options(metrics_interval=interval, upstream_timeout=timeout))
    unsent_usage = make_unsent_usage(setup, FileStore(tmp_path))
    assert unsent_usage is not None and unsent_usage._every == pace_s


@pytest.mark.parametrize(
    ("scope", "other", "same"),
    [
        ("*:development", {"flagsvc_url": "http://127.0.0.1:2/api"}, False),
        ("*:development", {"flagsvc_app_name": "other"}, False),
        ("*:development", {"flagsvc_api_token": "*:production.old"}, False),
        ("*:development", {"flagsvc_api_token": "shop:development.old"}, False),
        ("*:development", {"flagsvc_api_token": "*:development"}, False),
        ("*:development", {"flagsvc_api_token": "*:development.new.secret", "port": 1, "name_prefix": "a"}, True),
        ("[]:development", {"flagsvc_api_token": "[]:development.new.secret"}, True),
        ("my.shop:development", {"flagsvc_api_token": "my.shop:development.new.secret"}, True),
    ],
)
def test_counts_are_never_booked_elsewhere(scope: str, other: dict[str, Any], same: bool) -> None:
    """Another server, environment, project or application has another shelf."""
    mine = {"flagsvc_api_token": f"{scope}.old"}
    assert (make_usage_key(options(**mine)) == make_usage_key(options(**mine | other))) is same


def test_a_token_without_a_scope_is_taken_whole() -> None:
    """Without a scope the whole token decides, with or without a dot."""
    keys = {make_usage_key(options(flagsvc_api_token=token)) for token in ("secret", "some.secret", "some.other", "a:b")}
    assert len(keys) == 4
