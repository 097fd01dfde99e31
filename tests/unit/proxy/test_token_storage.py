"""The store of known tokens: nothing that a provider does stops the proxy."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import FileStore
from flagsvc.proxy.generations import lookups as module
from flagsvc.proxy.generations.lookups import ProviderTokenStore
from flagsvc.testing import MemoryStore, RecordingLog
from support.plain_store import PlainStore


class SlowStore(MemoryStore):
    """A provider that never answers."""

    async def get(self, key: str) -> bytes | None:
        await asyncio.Event().wait()
        return None


@pytest.mark.parametrize("provider", [MemoryStore(), PlainStore()], ids=["async", "plain"])
async def test_what_is_saved_is_loaded(provider: MemoryStore | PlainStore) -> None:
    """The record is under its key, and nothing is there before."""
    log = RecordingLog()
    store = ProviderTokenStore(provider, "key", log)
    assert await store.load() is None
    assert await store.save(b"one")
    assert await store.save(b"two")
    assert await store.load() == b"two" and provider.data == {"key": b"two"} and not log.lines


async def test_a_provider_that_fails() -> None:
    """The begin and the end of an outage are logged, not each attempt. A record that cannot be read does not count as absent."""
    provider, log = MemoryStore(), RecordingLog()
    store = ProviderTokenStore(provider, "key", log)
    provider.fault = ValueError("no")
    for _ in range(3):
        with pytest.raises(StoreError):
            await store.load()
        assert not await store.save(b"one")
    assert log.at("warn") == ["the stored tokens could not be read", "the known tokens could not be stored"]
    provider.fault = None
    assert await store.save(b"two")
    assert await store.load() == b"two"
    assert log.at("warn")[-2:] == ["the known tokens are stored again", "the stored tokens can be read again"]


async def test_a_record_that_is_damaged(tmp_path: Path) -> None:
    """Nothing can be read from it any more, so it counts as absent, and is replaced."""
    store, log = FileStore(tmp_path), RecordingLog()
    tokens = ProviderTokenStore(store, "key", log)
    assert await tokens.save(b"one")
    damage(tmp_path)
    assert await tokens.load() is None and log.at("warn") == ["the stored tokens could not be read"]
    assert await tokens.save(b"two") and await tokens.load() == b"two"


def damage(folder: Path) -> None:
    """Damage every file of a folder."""
    for path in folder.iterdir():
        path.write_bytes(b"damaged")


async def test_a_provider_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start does not wait for it for ever."""
    monkeypatch.setattr(module, "LOAD_S", 0.0)
    log = RecordingLog()
    with pytest.raises(StoreError):
        await ProviderTokenStore(SlowStore(), "key", log).load()
    assert log.at("warn") == ["the stored tokens could not be read"]
