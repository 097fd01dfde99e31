"""The message that the leader of a fleet publishes again and again, and the digest of a stored configuration. Pure.

Messages contain ages, not times, because the clocks of two machines may differ.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from flagsvc.proxy.configuration.stores.file import MAGIC

HEAD_BYTES = 128
"""The first bytes of a stored configuration, which contain its first line with the digest."""

Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Heartbeat(msgspec.Struct, frozen=True):
    """One heartbeat of the replica `leader`, a token that is new with every process.

    `number` counts the leader's polls of the upstream. `digest` is that of the stored configuration that all replicas are to
    serve; empty if the leader does not know. `age_s` is how many seconds ago the leader's last successful poll was; None for
    never. `failing` is the kind of error of the last poll; empty if it succeeded. `leaving` tells that the lease is free.
    """

    leader: str
    number: int = 0
    digest: str = ""
    age_s: Seconds | None = None
    failing: str = ""
    leaving: bool = False

    def pack(self) -> bytes:
        """Return the heartbeat as bytes."""
        return msgspec.json.encode(self)


def unpack(data: bytes) -> Heartbeat | None:
    """Return the heartbeat in these bytes, or None if there is none."""
    try:
        return msgspec.json.decode(data, type=Heartbeat)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def digest_in(head: bytes) -> str:
    """Return the digest in the first line of stored data; empty if the data are not flagsvc's."""
    line, end, _ = head.partition(b"\n")
    return line.rpartition(b" ")[2].decode("ascii", "replace") if end and line.startswith(MAGIC) else ""
