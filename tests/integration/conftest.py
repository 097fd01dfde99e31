"""What many of these tests begin with: a flag server in this process, its pages, a seeded store, an upstream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from datetime import datetime

    from flagsvc.core.clock import Clock
    from flagsvc.server.store.store import Store
    from support.fake_upstream import FakeUpstream
    from support.flagservers import AppClient, OurFlagServer
    from support.page_forms import PageClient
    from support.provider import Scene
    from support.receivers import Receiver
    from support.stored_flags import SeededStore

# The package can only be imported when the tests run, so each fixture imports what it gives.


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> Clock:
    """Give the clock of `client` and `store`: a clock that shows the module's NOW, the module's CLOCK, or that of the machine."""
    from flagsvc.core.clock import SystemClock
    from flagsvc.testing import FakeClock

    now: datetime | None = getattr(request.module, "NOW", None)
    made: Clock = getattr(request.module, "CLOCK", SystemClock)()
    return made if now is None else FakeClock(now.timestamp())


@pytest.fixture
def client(database_url: str, request: pytest.FixtureRequest, clock: Clock) -> Iterator[AppClient]:
    """Give a server on each kind of database, with what the module's GIVEN adds to a new database, and its `prepare` does."""
    from support.flagservers import app_client

    with app_client(database_url, given=getattr(request.module, "GIVEN", None), clock=clock) as made:
        if prepare := getattr(request.module, "prepare", None):
            prepare(made)
        yield made


@pytest.fixture
def pages(database_url: str, request: pytest.FixtureRequest) -> Iterator[PageClient]:
    """Give the pages of a server as `client` does."""
    from support.page_forms import page_client

    with page_client(database_url, getattr(request.module, "GIVEN", None)) as made:
        if prepare := getattr(request.module, "prepare", None):
            prepare(made)
        yield made


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a server with a provider of sign-ins, on each kind of database."""
    from support.provider import provider_scene

    with provider_scene(database_url) as made:
        yield made


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Give a receiver of webhooks that answers 200."""
    from support.receivers import receiving

    with receiving() as made:
        yield made


@pytest.fixture
def seeded(database_url: str) -> Iterator[SeededStore]:
    """Give the state of `SeededStore` in each kind of database."""
    from support.stored_flags import open_seeded_store

    with open_seeded_store(database_url) as made:
        yield made


@pytest.fixture
def store(database_url: str, clock: Clock) -> Iterator[Store]:
    """Give a new database of each kind."""
    from flagsvc.server.store.store import open_store
    from flagsvc.testing import RecordingLog

    made = open_store(database_url, clock, RecordingLog())
    yield made
    made.close()


@pytest.fixture
def upstream(request: pytest.FixtureRequest) -> Iterator[FakeUpstream]:
    """Give a flag server with the module's DOCUMENT, else with two flags."""
    from support.fake_upstream import fake_upstream
    from support.worker_pools import document

    with fake_upstream(getattr(request.module, "DOCUMENT", document("first", "second"))) as made:
        yield made


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[OurFlagServer]:
    """Give a flag server in a process of its own, for the tests of a module, as `client` does."""
    from support.flagservers import our_flag_server

    with our_flag_server(given=getattr(request.module, "GIVEN", None)) as made:
        if prepare := getattr(request.module, "prepare", None):
            prepare(made)
        yield made
