"""The part of a replica in its fleet as a table: role × event → role, action. No I/O, no clock, no random draw (decision 0029).

    alone ──── the server is there ───→ follower ──── the lease was free ───→ leader
      ↑                                   │   ↑                                 │
      └──── the server does not answer ───┘   └── another has it, or handed over ┘

A replica that is alone or leads asks the upstream; a follower is told. `fleet` carries the actions out.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple


class ReplicaRole(StrEnum):
    """The part of a replica."""

    ALONE = "alone"
    """There is no fleet for it: the server is not there, or not heard of yet."""
    FOLLOWER = "follower"
    """Another replica has the lease, and tells what it gets from the upstream."""
    LEADER = "leader"
    """It has the lease, asks the upstream for all, and tells them."""


class ReplicaEvent(StrEnum):
    """What can happen to it."""

    LEASE_TAKEN = "lease-taken"
    """The lease was free, or its own, and is its own now."""
    LEASE_HELD = "lease-held"
    """Another replica has the lease."""
    LEASE_LOST = "lease-lost"
    """The lease was to be renewed, and another replica has it."""
    HEARTBEAT = "heartbeat"
    """Another replica speaks as the leader."""
    LEASE_RELEASED = "lease-released"
    """Another replica has given the lease back."""
    DUE = "due"
    """It is time for the next heartbeat."""
    HAND_OVER = "hand-over"
    """It gets nothing from the upstream, and others listen that may."""
    REDIS_LOST = "server-lost"
    """The server does not answer, or the replica leaves the fleet."""


class ReplicaAction(Enum):
    """What the replica has to do."""

    NOTHING = "nothing"
    SEEK = "seek"
    """Look whether the lease is free, and take it."""
    SEEK_IF_SILENT = "seek-if-silent"
    """The same where the leader has not been heard of for too long."""
    SEEK_SOON = "seek-soon"
    """The same with the next turn of the loop."""
    FOLLOW = "follow"
    """Take what the leader said."""
    RENEW = "renew"
    """Renew the lease and tell a heartbeat."""
    RELEASE = "release"
    """Give the lease back."""
    SPREAD = "spread"
    """Ask the upstream at a moment of its own: all replicas may have lost the server at once."""


class Step(NamedTuple):
    """One cell of the table."""

    role: ReplicaRole
    action: ReplicaAction


_ALONE = Step(ReplicaRole.ALONE, ReplicaAction.NOTHING)
_FOLLOWER = Step(ReplicaRole.FOLLOWER, ReplicaAction.NOTHING)
_LEAD = Step(ReplicaRole.LEADER, ReplicaAction.RENEW)
_FOLLOW = Step(ReplicaRole.FOLLOWER, ReplicaAction.FOLLOW)
_APART = Step(ReplicaRole.ALONE, ReplicaAction.SPREAD)


def _stay(action: ReplicaAction) -> tuple[Step, Step]:
    """Return the cells of a replica that does not lead, whose role stays."""
    return Step(ReplicaRole.ALONE, action), Step(ReplicaRole.FOLLOWER, action)


_ROWS: tuple[tuple[ReplicaEvent, tuple[Step, Step, Step]], ...] = (
    #                       alone, follower, leader
    (ReplicaEvent.LEASE_TAKEN, (_LEAD, _LEAD, _LEAD)),
    (ReplicaEvent.LEASE_HELD, (_FOLLOW, _FOLLOW, _FOLLOW)),
    (ReplicaEvent.LEASE_LOST, (_ALONE, _FOLLOWER, Step(ReplicaRole.FOLLOWER, ReplicaAction.SEEK_SOON))),
    (ReplicaEvent.HEARTBEAT, (*_stay(ReplicaAction.FOLLOW), Step(ReplicaRole.LEADER, ReplicaAction.SEEK))),
    (ReplicaEvent.LEASE_RELEASED, (*_stay(ReplicaAction.SEEK), Step(ReplicaRole.LEADER, ReplicaAction.SEEK))),
    (ReplicaEvent.DUE, (*_stay(ReplicaAction.SEEK_IF_SILENT), _LEAD)),
    (ReplicaEvent.HAND_OVER, (_ALONE, _FOLLOWER, Step(ReplicaRole.FOLLOWER, ReplicaAction.RELEASE))),
    (ReplicaEvent.REDIS_LOST, (_ALONE, _APART, _APART)),
)

TABLE: dict[tuple[ReplicaRole, ReplicaEvent], Step] = {
    (role, event): step for event, cells in _ROWS for role, step in zip(ReplicaRole, cells, strict=True)
}
"""What follows from each event in each role. Every pair is there."""
