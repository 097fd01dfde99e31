"""The look-ups of one process: one for each upstream and way to ask it (behaviour: Tokens looked up upstream).

A question about tokens carries no token of an environment, so the environments of one upstream share a look-up: its questions, and
what it knows. All look-ups of the process share a budget and the places of those that wait.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from random import Random
from weakref import WeakValueDictionary

from flagsvc.http.client.addresses import shown
from flagsvc.proxy.configuration import is_file_url
from flagsvc.proxy.setup import ProxySetup
from flagsvc.proxy.token_storage import ProviderTokenStore
from flagsvc.proxy.tokens import Budget, TokenLookup, WaitingPlaces
from flagsvc.proxy.upstream import Upstream
from flagsvc.proxy.upstream_sync import make_storage, make_upstream_settings
from flagsvc.settings.rows.callers import LOOKED_UP
from flagsvc.settings.storage import server_at
from flagsvc.settings.upstreams import upstream_of_options


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
        self._lookups: WeakValueDictionary[tuple[object, ...], TokenLookup] = WeakValueDictionary()

    @property
    def known(self) -> int:
        """How many tokens the upstreams know."""
        return sum(each.known for each in self._lookups.values())

    def digests(self) -> list[str]:
        """Return the digests of these tokens."""
        return [digest for each in self._lookups.values() for digest in each.book.known]

    @property
    def waiting(self) -> int:
        """How many tokens wait for an answer."""
        return self._places.tokens.taken

    @property
    def asked(self) -> int:
        """How many requests were sent about tokens."""
        return self._budget.sent

    @property
    def restarts(self) -> int:
        """How often a loop was restarted after an unexpected failure."""
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
        return TokenLookup(
            make_session(setup),
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
    return upstream_of_options(setup.options), given.limits, given.retry_after_limit_s, names


def make_session(setup: ProxySetup) -> Upstream:
    """Return a session for questions about tokens. It has no token of its own."""
    return Upstream(replace(make_upstream_settings(setup), token=""), clock=setup.clock, log=setup.log)


def make_token_store(setup: ProxySetup) -> ProviderTokenStore:
    """Return the store of an upstream's known tokens. Its key is that of the upstream, whichever environments there are."""
    options = setup.options
    key = hashlib.sha256(f"tokens {upstream_of_options(options)}".encode()).hexdigest()[:40]
    server = server_at(options.storage)
    if options.storage_provider is not None or server is None:
        return ProviderTokenStore(make_storage(options), key, setup.log)
    from flagsvc.proxy.redis.stores import make_store

    store = make_store(options, server)
    return ProviderTokenStore(store, key, setup.log, store.aclose)
