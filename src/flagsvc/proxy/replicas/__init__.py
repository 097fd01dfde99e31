"""Replicas whose configuration is stored on one Redis or Valkey server. One of them polls the upstream for all.

    roles             alone, follower or leader, as a table of events
    fleet             the loop of one replica: takes and renews the lease, receives messages, publishes
    leader            what a follower knows of its leader
    checks            the results of the replica's own polls of the upstream
    schedule          when a replica does what
    publisher         publishes heartbeats and the configuration
    coordinator       what is on the server: the lease, the stored configuration, the channel
    heartbeat         the message of a leader
    configurations    the accepted configuration, and the one that the fleet offers
    source            the source of documents: the upstream or the fleet
    document_storage  stores accepted documents for the fleet
    store             a storage provider on the server
    record_store      unsent usage metrics on the server
    client            a client with time limits and with errors of flagsvc

This package imports Redis. So it is imported only if the storage is on such a server.
"""

from flagsvc.proxy.replicas.client import Access, Client
from flagsvc.proxy.replicas.coordinator import Coordinator
from flagsvc.proxy.replicas.document_storage import SharedDocumentStorage
from flagsvc.proxy.replicas.fleet import Fleet
from flagsvc.proxy.replicas.publisher import LocalState
from flagsvc.proxy.replicas.roles import ReplicaRole
from flagsvc.proxy.replicas.source import FleetSource
from flagsvc.proxy.replicas.store import ServerStore

__all__ = [
    "Access",
    "Client",
    "Coordinator",
    "Fleet",
    "FleetSource",
    "LocalState",
    "ReplicaRole",
    "ServerStore",
    "SharedDocumentStorage",
]
