"""Which environments share a look-up, and what all look-ups of a process have in common."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.proxy.generations.lookups import TokenLookups, make_token_store
from flagsvc.proxy.generations.setup import ProxySetup, make_setup
from flagsvc.proxy.tokens import TokenGrant, TokenLookup, TokenScope
from flagsvc.proxy.tokens.book import digest_of
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import turns

URL = "http://one.example/api"


def process(**tables: dict[str, Any]) -> ProxySetup:
    """Return the setup of a process with these environments, each with a key and a token of its own."""
    environments = {
        name: {"flagsvc_api_token": f"*:{name}.s", "client_keys": f"key-{name}", **table} for name, table in tables.items()
    }
    return make_setup(ProxyOptions(flagsvc_url=URL, token_validation="upstream", storage="none", environments=environments))


def find_each(setup: ProxySetup) -> list[TokenLookup | None]:
    """Return the look-up of each environment."""
    made = TokenLookups(setup, lambda token: None)
    return [made.find(each) for each in setup.environments]


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"flagsvc_url": "http://other.example/api"},
        {"upstream_headers": {"x-tenant": "b"}},
        {"flagsvc_app_name": "another"},
    ],
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
    assert (made.figures(), made.restarts) == ((0, 0, 0), 0)


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
