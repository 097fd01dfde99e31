"""The heartbeat of a leader, and the digest of a stored configuration."""

from __future__ import annotations

import pytest

from flagsvc.proxy.configuration.stores.file import frame
from flagsvc.proxy.replicas.configurations import digest_of
from flagsvc.proxy.replicas.heartbeat import HEAD_BYTES, Heartbeat, digest_in, unpack

HEARTBEATS = [
    Heartbeat("leader"),
    Heartbeat("leader", 7, "ab" * 32, 2.5, "network"),
    Heartbeat("leader", leaving=True),
]


@pytest.mark.parametrize("heartbeat", HEARTBEATS)
def test_a_heartbeat_comes_back(heartbeat: Heartbeat) -> None:
    """All fields of a heartbeat survive packing."""
    assert unpack(heartbeat.pack()) == heartbeat


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"leader":1}',
        b'{"leader":"x","age_s":-1}',
        b'{"leader":"x","age_s":"1"}',
        b'{"leader":"x","number":1.5}',
    ],
)
def test_what_is_no_heartbeat(data: bytes) -> None:
    """Others may write on the channel as well; nothing of it is believed."""
    assert unpack(data) is None


def test_what_a_later_version_adds_is_no_obstacle() -> None:
    """Replicas of two versions are one fleet while one is rolled out."""
    assert unpack(b'{"leader":"x","mood":"fine"}') == Heartbeat("x")


@pytest.mark.parametrize("data", [b"", b"x", b"\n\n", bytes(range(256)) * 1000])
def test_the_digest_stands_in_the_first_line(data: bytes) -> None:
    """The first bytes of stored data contain the digest."""
    assert digest_in(frame(data)[:HEAD_BYTES]) == digest_of(data)


@pytest.mark.parametrize("head", [b"", b"flagsvc-store 1 5 abc", b"other 1 5 abc\n", b"\n"])
def test_what_is_not_ours_has_no_digest(head: bytes) -> None:
    """Other data, and an incomplete first line, give no digest."""
    assert digest_in(head) == ""
