"""The fleet of a proxy whose configuration is kept on a Redis or Valkey server (decision 0029).

Imported only where it is: what speaks to such a server takes its time to import, and memory.
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
from flagsvc.settings.storage import Server

OWN = CertificateOptionNames("storageCert", "storageKey", "storageKeyPassword")


class SharedConfiguration:
    """What takes the place of a source and a keeper, where replicas share them."""

    def __init__(
        self, plan: ProxySetup, store: ServerStore, key: str, holder: Holder[Snapshot], draw: Callable[[], float]
    ) -> None:
        """Take what is common to the parts of a supply; `key` is that of the configuration (`storage_key`)."""
        options, clock = plan.options, plan.clock

        def age() -> float | None:
            return None if holder.checked is None else clock.monotonic() - holder.checked

        self._plan = plan
        self._store = store
        self._key = key
        self.fleet = Fleet(
            Coordinator(store.client, options.storage_prefix, key, options.lease_time),
            LocalState(lambda: holder.ready, age, lambda: holder.state == State.REJECTED),
            clock=clock,
            log=plan.log,
            draw=draw,
            lease_ms=options.lease_time,
            spread_ms=options.refresh_interval,
        )

    def source(self, inner: Source) -> Source:
        """Return where documents come from, if `inner` is where the upstream's do."""
        return FleetSource(inner, self.fleet, self._plan.clock, self._plan.options.storage_timeout / 1000)

    def document_storage(self) -> DocumentStorage:
        """Return what keeps the configuration."""
        return SharedDocumentStorage(self.fleet, self._store, self._key, self._plan.log)


def make_store(options: ProxyOptions, server: Server) -> ServerStore:
    """Return what is kept on the storage server. Raises ConfigurationError where a file of certificates cannot be used."""
    password = options.storage_password or server.password
    known = replace(server, password=password)
    context = tls_context(options) if server.tls else None
    return ServerStore(Client(Access(known, context, options.storage_timeout / 1000)), options.storage_prefix)


def tls_context(options: ProxyOptions) -> ssl.SSLContext:
    """Return the TLS settings towards the storage server. Raises ConfigurationError where a file cannot be used."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    if options.storage_ca is not None:
        load_authorities(context, "storageCa", options.storage_ca)
    if options.storage_cert is not None:
        CertificateFiles(OWN, options.storage_cert, options.storage_key, options.storage_key_password).load(context)
    return context
