"""The role of a replica in its fleet as a table: role × event → role, action. No I/O, no clock, no random draw (decision 0029).

    from        to        when
    alone       follower  another replica has the lease
    alone       leader    the lease was free
    follower    leader    the lease was free
    leader      follower  another replica has the lease now, or this replica handed it over
    follower    alone     Redis does not answer
    leader      alone     Redis does not answer

A replica that is alone or leads polls the upstream. A follower gets the configuration from the leader. A follower that has heard no
leader for three leases polls the upstream itself (`Fleet.follows`). `fleet` carries the actions out.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple


class ReplicaRole(StrEnum):
    """The role of a replica."""

    ALONE = "alone"
    """It has no fleet: Redis does not answer, or has not answered yet."""
    FOLLOWER = "follower"
    """Another replica has the lease. It publishes what it gets from the upstream."""
    LEADER = "leader"
    """It has the lease. It polls the upstream for all replicas, and publishes what it gets."""


class ReplicaEvent(StrEnum):
    """An event that a replica reacts to."""

    LEASE_TAKEN = "lease-taken"
    """The replica has the lease now. It was free, or already its own."""
    LEASE_HELD = "lease-held"
    """Another replica has the lease."""
    LEASE_LOST = "lease-lost"
    """The replica could not renew its lease, because another replica has it."""
    HEARTBEAT = "heartbeat"
    """Another replica published a heartbeat as the leader."""
    LEASE_RELEASED = "lease-released"
    """Another replica has given the lease back."""
    DUE = "due"
    """It is time for the next heartbeat."""
    HAND_OVER = "hand-over"
    """The leader gets nothing from the upstream, and other replicas may get something."""
    REDIS_LOST = "redis-lost"
    """Redis does not answer, or the replica leaves the fleet."""


class ReplicaAction(Enum):
    """What the replica does next."""

    NOTHING = "nothing"
    SEEK = "seek"
    """Take the lease if it is free."""
    SEEK_IF_SILENT = "seek-if-silent"
    """Take the lease if it is free and no heartbeat has come for 1.6 heartbeat intervals (`schedule`)."""
    SEEK_SOON = "seek-soon"
    """Take the lease if it is free, in the next turn of the loop."""
    FOLLOW = "follow"
    """Read what the leader published."""
    RENEW = "renew"
    """Renew the lease and publish a heartbeat."""
    RELEASE = "release"
    """Give the lease back."""
    SPREAD = "spread"
    """Poll the upstream after a random time, because all replicas may have lost Redis at once."""


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
    """Return the cells of the two roles that do not lead, for an event that changes neither."""
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
