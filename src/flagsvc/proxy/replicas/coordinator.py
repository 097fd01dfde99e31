"""What a fleet has on the server: one lease, one stored configuration and one channel.

The lease contains its owner's token and last heartbeat. A replica that finds the lease taken knows at once what is served. The
remaining time of the lease tells how old the heartbeat is. A script checks the lease and does what only the leader may do in one
step. So a replica that was suspended for a minute overwrites nothing.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator

from flagsvc.core.errors import StoreError
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.configuration.stores.file import unframe
from flagsvc.proxy.replicas.client import Client, Subscription, off_loop
from flagsvc.proxy.replicas.heartbeat import HEAD_BYTES, Heartbeat, digest_in, unpack
from flagsvc.proxy.replicas.store import ServerStore

TAKEN = """
local held = redis.call('GET', KEYS[1])
local taken = held and string.sub(held, 1, #ARGV[1]) ~= ARGV[1]
"""
SEEK = f"""{TAKEN}
if taken then
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 then redis.call('SET', KEYS[1], held, 'PX', ARGV[3]) end
  return {{held, left}}
end
redis.call('SET', KEYS[1], ARGV[1] .. ARGV[2], 'PX', ARGV[3])
return false
"""
"""Take the lease if it is free. Returns nothing, or the content of the lease and its remaining milliseconds.

A lease without an expiry (copied by a tool, or by hand) would never become free, so the script gives it one.
"""
TELL = f"""{TAKEN}
if taken then return false end
if ARGV[5] then redis.call('SET', KEYS[2], ARGV[5]) end
redis.call('SET', KEYS[1], ARGV[1] .. ARGV[2], 'PX', ARGV[3])
redis.call('PUBLISH', ARGV[4], ARGV[2])
local head = redis.pcall('GETRANGE', KEYS[2], 0, {HEAD_BYTES - 1})
return type(head) == 'string' and head or ''
"""
"""Renew the lease, store a configuration if one is given, and publish a heartbeat.

Returns the beginning of the stored configuration; nothing if another replica leads.
"""
RELEASE = f"""{TAKEN}
if held and not taken then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[2], ARGV[3])
end
return false
"""
"""Give the lease back, and tell the other replicas."""


class Coordinator:
    """The lease, the stored configuration and the channel of one configuration. `token` is the name of this process."""

    def __init__(self, client: Client, prefix: str, key: str, lease_ms: int) -> None:
        """Take the client, the prefix of all names, the key of the configuration (`storage_key`), and the lease in milliseconds."""
        self.token = secrets.token_hex(8)
        self.client = client
        self._lease_ms = lease_ms
        self._lease = f"{prefix}:lease:{key}"
        self._channel = f"{prefix}:news:{key}"
        self._stored = ServerStore(client, prefix).name(key)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Subscription]:
        """Receive messages until the block ends. Raises StoreError."""
        async with self.client.listening(self._channel) as subscription:
            yield subscription

    async def seek(self, heartbeat: Heartbeat) -> tuple[Heartbeat | None, float] | None:
        """Take the lease and return None; or return the last heartbeat of its owner, and how many seconds ago it was published."""
        found = await self.client.run(SEEK, [self._lease], self._mine, heartbeat.pack(), self._lease_ms)
        if found is None:
            return None
        held, left_ms = found
        return unpack(held.partition(b" ")[2]), max(0.0, (self._lease_ms - left_ms) / 1000)

    async def tell(self, heartbeat: Heartbeat, framed: bytes | None = None) -> str | None:
        """Renew the lease and publish a heartbeat; store a configuration, framed, if one is given. Raises StoreError.

        Returns the digest of the stored configuration; empty if none is stored. Returns None, and does nothing, if another
        replica leads.
        """
        more = () if framed is None else (framed,)
        keys = [self._lease, self._stored]
        head = await self.client.run(TELL, keys, self._mine, heartbeat.pack(), self._lease_ms, self._channel, *more)
        return None if head is None else digest_in(head)

    async def release(self) -> None:
        """Give the lease back if this process has it, and tell the other replicas. Raises StoreError."""
        await self.client.run(
            RELEASE, [self._lease], self._mine, self._channel, Heartbeat(self.token, leaving=True).pack()
        )

    async def listeners(self) -> int:
        """Return how many replicas are subscribed, including this one. Raises StoreError."""
        return int((await self.client.call("PUBSUB", "NUMSUB", self._channel))[1])

    async def read(self) -> tuple[StoredDocument, str] | None:
        """Return the stored configuration with its digest, or None if there is no complete one. Raises StoreError."""
        content = await self.client.call("GET", self._stored)
        data = await off_loop(unframe, content) if isinstance(content, bytes) else None
        if data is None:
            return None
        try:
            return StoredDocument.unpack(data), digest_in(content[:HEAD_BYTES])
        except StoreError:
            return None

    @property
    def _mine(self) -> str:
        return f"{self.token} "
