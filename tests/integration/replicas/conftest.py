"""Fixtures for the tests of a fleet: a Redis server, and an upstream that counts its requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.fleets import CountedUpstream
from support.redises import RedisServer, redis_server
from support.tiny_engine import document


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """Run a Redis server."""
    with redis_server() as running:
        yield running


@pytest.fixture
def upstream() -> CountedUpstream:
    """Make an upstream with one toggle."""
    return CountedUpstream(document("one"))
