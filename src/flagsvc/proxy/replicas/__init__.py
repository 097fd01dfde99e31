"""Replicas that keep their configuration on one Redis or Valkey server, and have one of them ask the upstream for all.

    member    who this replica is in the fleet: it takes and keeps the lease, listens, tells
    post      what is said on the server: the lease with the last beat in it, the document, the channel
    source    where the poller's documents come from: the upstream for who leads or is alone, the fleet for the others
    keeper    what the poller accepted, for the fleet to have
    store     a storage provider on the server
    client    the client of the server: bounded in time, its errors ours

Redis is imported with this room, so it is imported where the storage is such a server, and only there.
"""

from flagsvc.proxy.replicas.client import Access, Client
from flagsvc.proxy.replicas.document_storage import SharedDocumentStorage
from flagsvc.proxy.replicas.member import Fleet, Role
from flagsvc.proxy.replicas.post import Post
from flagsvc.proxy.replicas.source import FleetSource
from flagsvc.proxy.replicas.store import ServerStore

__all__ = ["Access", "Client", "Fleet", "FleetSource", "Post", "Role", "ServerStore", "SharedDocumentStorage"]
