"""The table of a replica's part in its fleet: every pair is there, and what must hold in each."""

from __future__ import annotations

import itertools

import pytest

from flagsvc.proxy.replicas.roles import TABLE, ReplicaAction, ReplicaEvent, ReplicaRole


def test_every_pair_is_there() -> None:
    """Of a role and an event."""
    assert set(TABLE) == set(itertools.product(ReplicaRole, ReplicaEvent))


@pytest.mark.parametrize(
    ("event", "roles"),
    [
        (ReplicaEvent.LEASE_TAKEN, {ReplicaRole.LEADER}),
        (ReplicaEvent.LEASE_HELD, {ReplicaRole.FOLLOWER}),
        (ReplicaEvent.REDIS_LOST, {ReplicaRole.ALONE}),
    ],
)
def test_what_the_server_says_decides(event: ReplicaEvent, roles: set[ReplicaRole]) -> None:
    """It does not matter what the role was before."""
    assert {TABLE[role, event].role for role in ReplicaRole} == roles


def test_a_lease_makes_a_leader() -> None:
    """Nothing else does, and a leader that loses it follows, or is alone."""
    for (before, event), (after, _) in TABLE.items():
        if after is ReplicaRole.LEADER:
            assert event is ReplicaEvent.LEASE_TAKEN or before is ReplicaRole.LEADER
    for event in (ReplicaEvent.LEASE_HELD, ReplicaEvent.LEASE_LOST, ReplicaEvent.HAND_OVER):
        assert TABLE[ReplicaRole.LEADER, event].role is ReplicaRole.FOLLOWER


def test_the_leader_alone_renews() -> None:
    """And gives back only what it has."""
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
    """A leader looks whose the lease is; the others take what it says."""
    actions = {role: TABLE[role, ReplicaEvent.HEARTBEAT].action for role in ReplicaRole}
    assert actions == {
        ReplicaRole.ALONE: ReplicaAction.FOLLOW,
        ReplicaRole.FOLLOWER: ReplicaAction.FOLLOW,
        ReplicaRole.LEADER: ReplicaAction.SEEK,
    }
