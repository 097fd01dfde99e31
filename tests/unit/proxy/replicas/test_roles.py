"""The table of a replica's part in its fleet: every pair is there, and what must hold in each."""

from __future__ import annotations

import itertools

import pytest

from flagsvc.proxy.replicas.roles import TABLE, Action, Event, Role


def test_every_pair_is_there() -> None:
    """Of a role and an event."""
    assert set(TABLE) == set(itertools.product(Role, Event))


@pytest.mark.parametrize(
    ("event", "roles"),
    [
        (Event.LEASE_TAKEN, {Role.LEADER}),
        (Event.LEASE_HELD, {Role.FOLLOWER}),
        (Event.SERVER_LOST, {Role.ALONE}),
    ],
)
def test_what_the_server_says_decides(event: Event, roles: set[Role]) -> None:
    """It does not matter what the role was before."""
    assert {TABLE[role, event].role for role in Role} == roles


def test_a_lease_makes_a_leader() -> None:
    """Nothing else does, and a leader that loses it follows, or is alone."""
    for (before, event), (after, _) in TABLE.items():
        if after is Role.LEADER:
            assert event is Event.LEASE_TAKEN or before is Role.LEADER
    for event in (Event.LEASE_HELD, Event.LEASE_LOST, Event.HAND_OVER):
        assert TABLE[Role.LEADER, event].role is Role.FOLLOWER


def test_the_leader_alone_renews() -> None:
    """And gives back only what it has."""
    for (before, event), (after, action) in TABLE.items():
        if action is Action.RENEW:
            assert after is Role.LEADER
        if action is Action.RELEASE:
            assert before is Role.LEADER and event is Event.HAND_OVER and after is Role.FOLLOWER


def test_the_loss_of_the_server_is_met_once() -> None:
    """A replica that was alone before does not put its next poll off again."""
    assert [TABLE[role, Event.SERVER_LOST].action for role in Role] == [Action.NOTHING, Action.SPREAD, Action.SPREAD]


def test_a_heartbeat_of_another_leader() -> None:
    """A leader looks whose the lease is; the others take what it says."""
    actions = {role: TABLE[role, Event.HEARTBEAT].action for role in Role}
    assert actions == {Role.ALONE: Action.FOLLOW, Role.FOLLOWER: Action.FOLLOW, Role.LEADER: Action.SEEK}
