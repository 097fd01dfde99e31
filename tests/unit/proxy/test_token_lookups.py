"""Which environments share a look-up, what all look-ups of a process have in common, and the store of known tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import FileStore
from flagsvc.proxy.generations import lookups as module
from flagsvc.proxy.generations.lookups import ProviderTokenStore, TokenLookups, make_token_store
from flagsvc.proxy.generations.setup import ProxySetup, make_setup
from flagsvc.proxy.tokens import TokenGrant, TokenLookup, TokenScope
from flagsvc.proxy.tokens.book import digest_of
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import MemoryStore, RecordingLog, turns
from support.plain_store import PlainStore
from unit.proxy.configuration.test_document_storage import SlowStore

URL = "http://one.example/api"


def process(**tables: dict[str, Any]) -> ProxySetup:
    """Return the setup of a process with these environments, each with a key and a token of its own."""
    environments = {
        name: {"flagsvc_api_token": f"*:{name}.s", "client_keys": f"key-{name}", **table} for name, table in tables.items()
    }
    return make_setup(ProxyOptions(flagsvc_url=URL, token_validation="upstream", storage="none", environments=environments))


def find_each(setup: ProxySetup) -> list[TokenLookup | None]:
    made = TokenLookups(setup, lambda token: None)
    return [made.find(each) for each in setup.environments]


@pytest.mark.parametrize(
    "table",
    [{}, {"flagsvc_url": "http://other.example/api"}, {"upstream_headers": {"x-tenant": "b"}}, {"flagsvc_app_name": "another"}],
    ids=lambda table: next(iter(table), "the same"),
)
async def test_another_way_to_ask(table: dict[str, Any]) -> None:
    """Environments of one upstream share a look-up, whichever token each has: a question carries none of them."""
    one, other = find_each(process(a={}, b=table))
    assert one is not None and other is not None and (one is other) is (not table)
    assert one._budget is other._budget and one._places is other._places, "those are of the process"


async def test_environments_that_look_up_nothing() -> None:
    """An environment with listed keys has no look-up, and a file as the upstream knows no tokens."""
    one, file, other = find_each(process(a={"token_validation": "static"}, b={"flagsvc_url": "file:///flags.json"}, c={}))
    assert one is file is None and other is not None


async def test_a_look_up_lasts_as_long_as_it_is_used() -> None:
    """The environment that goes last ends it. One that comes later gets a new one."""
    setup = process(a={}, b={})
    made = TokenLookups(setup, lambda token: None)
    lookup = made.find(setup.environments[0])
    assert lookup is not None and setup.loops["tokens"] is made
    lookup.book.add("*:a.1", TokenGrant(False, TokenScope("a", None)), 1.0)
    assert (made.figures().known, made.digests()) == (1, [digest_of("*:a.1")])
    lookup.start("a")
    lookup.start("b")
    await turns()
    await lookup.stop("a")
    assert made.find(setup.environments[1]) is lookup
    await lookup.stop("b")
    await lookup.stop("b")
    later = made.find(setup.environments[0])
    assert later is not None and later is not lookup
    assert (lookup.is_over, later.is_over) == (True, False)
    assert (made.figures()[:3], made.restarts) == ((0, 0, 0), 0)


def test_where_known_tokens_are_stored() -> None:
    """The key is that of the upstream: it stays in another order of the tables, and with other tokens, names and replicas."""
    same: list[dict[str, dict[str, Any]]] = [
        {"a": {}, "b": {}},
        {"b": {}, "a": {}},
        {"a": {"flagsvc_api_token": "*:a.another"}},
        {"a": {"flagsvc_instance_id": "another replica", "upstream_timeout": 1}},
    ]
    others: list[dict[str, dict[str, Any]]] = [
        {"a": {"flagsvc_url": "http://other.example/api"}},
        {"a": {"upstream_headers": {"x-tenant": "a"}}},
        {"a": {"upstream_headers": {"x-tenant": "b"}}},
        {"a": {"https_proxy": "http://outbound.example"}},
    ]
    keys = [[make_token_store(process(**each).environments[0])._key for each in tables] for tables in (same, others)]
    assert len(set(keys[0])) == 1 and len({*keys[0], *keys[1]}) == 1 + len(others)


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
