"""The look-ups of one process: one for each upstream and way to ask it (behaviour: Tokens looked up upstream).

A question about tokens carries no token of an environment, so the environments of one upstream share a look-up: its questions, and
what it knows. All look-ups of the process share a budget and the places of those that wait.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from random import Random
from weakref import WeakValueDictionary

from flagsvc.core.errors import DamagedRecordError, StoreError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.http.client.addresses import shown
from flagsvc.http.counts import Calls
from flagsvc.proxy.api.metrics import TokenFigures
from flagsvc.proxy.configuration import is_file_url
from flagsvc.proxy.configuration.stores import StorageProvider, StorageServer, read_record, write_record
from flagsvc.proxy.generations.feeds import make_storage, make_upstream_settings
from flagsvc.proxy.generations.setup import ProxySetup
from flagsvc.proxy.tokens import Budget, TokenLookup, WaitingPlaces
from flagsvc.proxy.upstream import Upstream
from flagsvc.settings.environments import upstream_of_options
from flagsvc.settings.rows.callers import LOOKED_UP


class TokenLookups:
    """The look-ups of one process, in one event loop. A look-up lasts as long as an environment has it."""

    def __init__(
        self,
        setup: ProxySetup,
        on_revoke: Callable[[str], object],
        on_restore: Callable[[list[str]], object] = lambda digests: None,
    ) -> None:
        """Take the setup of the process. `on_revoke` is called with each token that is no longer valid as it was.

        `on_restore` is called with the digests of valid tokens that storage has told.
        """
        self._setup = setup
        self._on_revoke = on_revoke
        self._on_restore = on_restore
        self._draw = Random().random
        self._budget = Budget(setup.options.token_lookup_rate, setup.clock, self._draw)
        self._places = WaitingPlaces()
        self._calls = Calls()
        self._lookups: WeakValueDictionary[tuple[object, ...], TokenLookup] = WeakValueDictionary()

    def figures(self) -> TokenFigures:
        """Return how many tokens the upstreams know, how many wait, and the requests that were sent about tokens."""
        known = sum(len(each.book.known) for each in self._lookups.values())
        return TokenFigures(known, self._places.tokens.taken, self._budget.sent, self._calls)

    def digests(self) -> list[str]:
        return [digest for each in self._lookups.values() for digest in each.book.known]

    @property
    def restarts(self) -> int:
        return sum(each.restarts for each in self._lookups.values())

    def find(self, setup: ProxySetup) -> TokenLookup | None:
        """Return the look-up for an environment, which others may have, too; None if only listed keys are accepted."""
        if setup.options.token_validation != LOOKED_UP or is_file_url(setup.options.flagsvc_url):
            return None
        way = way_to_ask(setup)
        found = self._lookups.get(way)
        if found is None or found.is_over:
            found = self._lookups[way] = self._make(setup)
            self._setup.loops["tokens"] = self
        return found

    def _make(self, setup: ProxySetup) -> TokenLookup:
        """Return a look-up. If it is not for a single environment, its log lines name the upstream."""
        log = self._setup.log.bind(upstream=shown(setup.options.flagsvc_url)) if setup.name else setup.log
        session = make_session(setup)
        session.calls = self._calls
        return TokenLookup(
            session,
            self._budget,
            self._places,
            make_token_store(setup),
            clock=setup.clock,
            log=log,
            draw=self._draw,
            interval_s=setup.options.token_revalidation_interval,
            on_revoke=self._on_revoke,
            on_restore=self._on_restore,
        )


def way_to_ask(setup: ProxySetup) -> tuple[object, ...]:
    """Return what decides where questions about tokens go, and how. Environments for which it is the same share a look-up."""
    given = make_upstream_settings(setup)
    names = given.identity.app_name, given.identity.instance_id
    password = setup.options.upstream_key_password
    return upstream_of_options(setup.options), given.limits, given.retry_after_limit_s, names, password


def make_session(setup: ProxySetup) -> Upstream:
    """Return a session for questions about tokens. It has no token of its own."""
    return Upstream(replace(make_upstream_settings(setup), token=""), clock=setup.clock, log=setup.log, tracer=setup.tracer)


def make_token_store(setup: ProxySetup) -> ProviderTokenStore:
    """Return the store of an upstream's known tokens. Its key depends on the upstream, and not on the environments."""
    options = setup.options
    key = hashlib.sha256(f"tokens {upstream_of_options(options)}".encode()).hexdigest()[:40]
    return ProviderTokenStore(make_storage(options), key, setup.log)


LOAD_S = 10.0
"""Seconds that the start waits for a provider at most."""


class ProviderTokenStore:
    """Keeps the record of known tokens with a storage provider. Errors of the provider are logged."""

    def __init__(self, provider: StorageProvider, key: str, log: Logger) -> None:
        """Take the provider and the key of the record."""
        self._provider = provider
        self._key = key
        self._unread = OutageLog(log, "the stored tokens could not be read", "the stored tokens can be read again")
        self._unsaved = OutageLog(log, "the known tokens could not be stored", "the known tokens are stored again")

    async def load(self) -> bytes | None:
        """Return the last stored record; None without a record, and for a damaged record. Raises StoreError if it cannot be
        read now."""
        try:
            async with asyncio.timeout(LOAD_S):
                found = await read_record(self._provider, self._key)
        except DamagedRecordError as error:
            self._unread.log_failure(error)
            return None
        except Exception as error:  # a provider of a user may raise anything
            self._unread.log_failure(error)
            raise StoreError("the stored tokens could not be read") from None
        self._unread.log_recovery()
        return found

    async def save(self, data: bytes) -> bool:
        """Store the record. Returns whether that went well."""
        try:
            await write_record(self._provider, self._key, data)
        except Exception as error:  # as in load
            self._unsaved.log_failure(error)
            return False
        self._unsaved.log_recovery()
        return True

    async def aclose(self) -> None:
        if isinstance(self._provider, StorageServer):
            await self._provider.aclose()
