"""Replicas that keep their configuration on one Redis or Valkey server, and have one of them ask the upstream for all.

    roles         alone, follower or leader: the table of what follows from each event
    fleet         the loop of one replica: it takes the lease, renews it, receives messages and publishes them; with what it knows
                  of the leader (leader), its own checks of the upstream (checks), times (schedule), publications (publisher)
    coordinator   the server's side: the lease with the last heartbeat in it, the stored configuration, the channel
    heartbeat     what a leader publishes
    configurations  what this replica has accepted, and what the fleet offers
    source        where the poller's documents come from: the upstream for a replica that leads or is alone, else the fleet
    document_storage  stores what the poller accepted, for the fleet
    store         a storage provider on the server
    record_store  unsent usage metrics on the server
    client        the client of the server: bounded in time, with errors of flagsvc

Redis is imported with this package, so it is imported where the storage is such a server, and only there.
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
