"""The fleet of a proxy whose configuration is kept on a Redis or Valkey server (decision 0029).

This module is imported only in that case, because the client of such a server costs start time and memory.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace

import certifi

from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, load_authorities
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.configuration import Holder, Source, State
from flagsvc.proxy.configuration.stores import DocumentStorage
from flagsvc.proxy.replicas import (
    Access,
    Client,
    Coordinator,
    Fleet,
    FleetSource,
    LocalState,
    ServerStore,
    SharedDocumentStorage,
)
from flagsvc.proxy.setup import ProxySetup
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.storage import RedisAddress

OWN = CertificateOptionNames("storageCert", "storageKey", "storageKeyPassword")


class SharedConfiguration:
    """Makes the source and the document storage of replicas that share a configuration."""

    def __init__(
        self, setup: ProxySetup, store: ServerStore, key: str, holder: Holder[Snapshot], draw: Callable[[], float]
    ) -> None:
        """Take the parts of a proxy. `key` is the key of the configuration (`storage_key`)."""
        options, clock = setup.options, setup.clock

        def get_age() -> float | None:
            return None if holder.checked_at is None else clock.monotonic() - holder.checked_at

        self._setup = setup
        self._store = store
        self._key = key
        self.fleet = Fleet(
            Coordinator(store.client, options.storage_prefix, key, options.lease_time),
            LocalState(lambda: holder.is_ready, get_age, lambda: holder.state == State.REFUSED),
            clock=clock,
            log=setup.log,
            draw=draw,
            lease_ms=options.lease_time,
            spread_ms=options.refresh_interval,
        )

    def make_source(self, inner: Source) -> Source:
        """Return the shared source of documents; `inner` is the source of the upstream's."""
        return FleetSource(inner, self.fleet, self._setup.clock, self._setup.options.storage_timeout / 1000)

    def make_document_storage(self) -> DocumentStorage:
        """Return the storage of the configuration."""
        return SharedDocumentStorage(self.fleet, self._store, self._key, self._setup.log)


def make_store(options: ProxyOptions, server: RedisAddress) -> ServerStore:
    """Return the store on a storage server. Raises ConfigurationError if a file of certificates cannot be used."""
    password = options.storage_password or server.password
    server = replace(server, password=password)
    context = make_tls_context(options) if server.tls else None
    return ServerStore(Client(Access(server, context, options.storage_timeout / 1000)), options.storage_prefix)


def make_tls_context(options: ProxyOptions) -> ssl.SSLContext:
    """Return the TLS context for the storage server. Raises ConfigurationError if a file cannot be used."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    if options.storage_ca is not None:
        load_authorities(context, "storageCa", options.storage_ca)
    if options.storage_cert is not None:
        CertificateFiles(OWN, options.storage_cert, options.storage_key, options.storage_key_password).load(context)
    return context
