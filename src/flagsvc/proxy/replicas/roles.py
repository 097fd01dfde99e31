"""The part of a replica in its fleet as a table: role × event → role, action. No I/O, no clock, no random draw (decision 0029).

    alone ──── the server is there ───→ follower ──── the lease was free ───→ leader
      ↑                                   │   ↑                                 │
      └──── the server does not answer ───┘   └── another has it, or handed over ┘

A replica that is alone or leads asks the upstream; a follower is told. `fleet` carries the actions out.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple


class Role(StrEnum):
    """The part of a replica."""

    ALONE = "alone"
    """There is no fleet for it: the server is not there, or not heard of yet."""
    FOLLOWER = "follower"
    """Another replica has the lease, and tells what it gets from the upstream."""
    LEADER = "leader"
    """It has the lease, asks the upstream for all, and tells them."""


class Event(StrEnum):
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
    SERVER_LOST = "server-lost"
    """The server does not answer, or the replica leaves the fleet."""


class Action(Enum):
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

    role: Role
    action: Action


_ALONE = Step(Role.ALONE, Action.NOTHING)
_FOLLOWER = Step(Role.FOLLOWER, Action.NOTHING)
_LEAD = Step(Role.LEADER, Action.RENEW)
_FOLLOW = Step(Role.FOLLOWER, Action.FOLLOW)
_APART = Step(Role.ALONE, Action.SPREAD)


def _stay(action: Action) -> tuple[Step, Step]:
    """Return the cells of a replica that does not lead, whose role stays."""
    return Step(Role.ALONE, action), Step(Role.FOLLOWER, action)


_ROWS: tuple[tuple[Event, tuple[Step, Step, Step]], ...] = (
    #                       alone, follower, leader
    (Event.LEASE_TAKEN, (_LEAD, _LEAD, _LEAD)),
    (Event.LEASE_HELD, (_FOLLOW, _FOLLOW, _FOLLOW)),
    (Event.LEASE_LOST, (_ALONE, _FOLLOWER, Step(Role.FOLLOWER, Action.SEEK_SOON))),
    (Event.HEARTBEAT, (*_stay(Action.FOLLOW), Step(Role.LEADER, Action.SEEK))),
    (Event.LEASE_RELEASED, (*_stay(Action.SEEK), Step(Role.LEADER, Action.SEEK))),
    (Event.DUE, (*_stay(Action.SEEK_IF_SILENT), _LEAD)),
    (Event.HAND_OVER, (_ALONE, _FOLLOWER, Step(Role.FOLLOWER, Action.RELEASE))),
    (Event.SERVER_LOST, (_ALONE, _APART, _APART)),
)

TABLE: dict[tuple[Role, Event], Step] = {
    (role, event): step for event, cells in _ROWS for role, step in zip(Role, cells, strict=True)
}
"""What follows from each event in each role. Every pair is there."""
