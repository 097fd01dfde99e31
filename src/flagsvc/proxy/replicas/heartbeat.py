"""What the leader of a fleet tells again and again, and how a stored configuration is told from another. Pure.

Ages travel, never moments: the clocks of two machines need not agree.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from flagsvc.proxy.configuration.stores.file import MAGIC

HEAD_BYTES = 128
"""Bytes of a stored configuration that hold its first line, with the digest."""

Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Heartbeat(msgspec.Struct, frozen=True):
    """One heartbeat of the replica `leader` (a token, new with every process), which has asked the upstream `number` times as such.

    `digest` is that of the stored configuration that all are to serve, empty while the leader cannot say; `age_s` how many seconds
    ago its last check of the upstream went well, None for never; `failing` the kind of error that the last one brought, if
    it brought one. With `leaving` the lease is free.
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
    """Return the heartbeat in these bytes, None where there is none."""
    try:
        return msgspec.json.decode(data, type=Heartbeat)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def digest_in(head: bytes) -> str:
    """Return the digest in the first line of what is stored, empty where that is not flagsvc's."""
    line, end, _ = head.partition(b"\n")
    return line.rpartition(b" ")[2].decode("ascii", "replace") if end and line.startswith(MAGIC) else ""
