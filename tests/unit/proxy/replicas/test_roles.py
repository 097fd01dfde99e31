"""The table of roles: it is complete, and its invariants hold."""

from __future__ import annotations

import itertools

import pytest

from flagsvc.proxy.api.samples import ROLES
from flagsvc.proxy.replicas.roles import TABLE, ReplicaAction, ReplicaEvent, ReplicaRole


def test_every_pair_is_there() -> None:
    """The table has every pair of a role and an event."""
    assert set(TABLE) == set(itertools.product(ReplicaRole, ReplicaEvent))


def test_the_metrics_know_every_role() -> None:
    """`flagsvc_fleet_role` has one number for each role."""
    assert tuple(ReplicaRole) == ROLES


@pytest.mark.parametrize(
    ("event", "roles"),
    [
        (ReplicaEvent.LEASE_TAKEN, {ReplicaRole.LEADER}),
        (ReplicaEvent.LEASE_HELD, {ReplicaRole.FOLLOWER}),
        (ReplicaEvent.REDIS_LOST, {ReplicaRole.ALONE}),
    ],
)
def test_what_the_server_says_decides(event: ReplicaEvent, roles: set[ReplicaRole]) -> None:
    """The state of the lease decides the role, with any former role."""
    assert {TABLE[role, event].role for role in ReplicaRole} == roles


def test_a_lease_makes_a_leader() -> None:
    """Nothing else does, and a leader that loses it follows, or is alone."""
    for (before, event), (after, _) in TABLE.items():
        if after is ReplicaRole.LEADER:
            assert event is ReplicaEvent.LEASE_TAKEN or before is ReplicaRole.LEADER
    for event in (ReplicaEvent.LEASE_HELD, ReplicaEvent.LEASE_LOST, ReplicaEvent.HAND_OVER):
        assert TABLE[ReplicaRole.LEADER, event].role is ReplicaRole.FOLLOWER


def test_the_leader_alone_renews() -> None:
    """Only the leader renews the lease, and it releases only its own."""
    for (before, event), (after, action) in TABLE.items():
        if action is ReplicaAction.RENEW:
            assert after is ReplicaRole.LEADER
        if action is ReplicaAction.RELEASE:
            assert before is ReplicaRole.LEADER and event is ReplicaEvent.HAND_OVER and after is ReplicaRole.FOLLOWER


def test_the_loss_of_the_server_is_met_once() -> None:
    """A replica that was alone before does not put its next poll off again."""
    assert [TABLE[role, ReplicaEvent.REDIS_LOST].action for role in ReplicaRole] == [
        ReplicaAction.NOTHING,
        ReplicaAction.SPREAD,
        ReplicaAction.SPREAD,
    ]


def test_a_heartbeat_of_another_leader() -> None:
    """A leader checks the lease; other replicas follow the heartbeat."""
    actions = {role: TABLE[role, ReplicaEvent.HEARTBEAT].action for role in ReplicaRole}
    assert actions == {
        ReplicaRole.ALONE: ReplicaAction.FOLLOW,
        ReplicaRole.FOLLOWER: ReplicaAction.FOLLOW,
        ReplicaRole.LEADER: ReplicaAction.SEEK,
    }
