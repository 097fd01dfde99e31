"""Token buckets: how many requests, or tries, are left under a name, such as the network of a caller. Compiled.

An unused bucket is full after a while, and a full bucket need not be stored. So there are two generations of buckets, and the
older one is dropped as a whole when all its buckets are full. It is dropped earlier if the younger one reaches its limit: a caller
with so many addresses is not slowed down by a limit for each address anyway.
"""

from __future__ import annotations

from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from typing import Final

MAX_BUCKETS: Final = 32_768
"""The most buckets of one generation. Both generations together take about 15 MB."""


class TokenBucket:
    """The number of tokens at a moment (seconds of the monotonic clock)."""

    def __init__(self, tokens: float, at: float) -> None:
        self.tokens = tokens
        self.updated_at = at


class TokenBuckets:
    """Buckets by name. Each gets `rate` tokens every second, until it has `burst`."""

    def __init__(self, rate: float, burst: float, max_buckets: int = MAX_BUCKETS) -> None:
        self.rate: Final = rate
        self.burst: Final = burst
        self.max_buckets: Final = max_buckets
        self.young: dict[bytes, TokenBucket] = {}
        self.old: dict[bytes, TokenBucket] = {}
        self.rotated_at: float = 0.0

    def take_token(self, name: bytes, now: float) -> float:
        """Take a token from a bucket. Returns 0.0, or the seconds until there is a token."""
        bucket = self.young.get(name)
        if bucket is None:
            bucket = self.promote(name, now)
        tokens = min(self.burst, bucket.tokens + (now - bucket.updated_at) * self.rate)
        bucket.updated_at = now
        if tokens < 1.0:
            bucket.tokens = tokens
            return (1.0 - tokens) / self.rate
        bucket.tokens = tokens - 1.0
        return 0.0

    def promote(self, name: bytes, now: float) -> TokenBucket:
        """Return a bucket of the older generation, or a new full one, and move it to the younger generation."""
        if len(self.young) >= self.max_buckets or now - self.rotated_at > self.burst / self.rate:
            self.old = self.young
            self.young = {}
            self.rotated_at = now
        bucket = self.old.pop(name, None)
        if bucket is None:
            bucket = TokenBucket(self.burst, now)
        self.young[name] = bucket
        return bucket

    def is_full(self, name: bytes, now: float) -> bool:
        bucket = self.young.get(name)
        if bucket is None:
            bucket = self.old.get(name)
        return bucket is None or bucket.tokens + (now - bucket.updated_at) * self.rate >= self.burst

    def give_back(self, name: bytes) -> None:
        """Put a token that was taken back into a bucket. One that was dropped meanwhile is full anyway."""
        bucket = self.young.get(name)
        if bucket is None:
            bucket = self.old.get(name)
        if bucket is not None:
            bucket.tokens = min(self.burst, bucket.tokens + 1.0)


MAPPED: Final = b"\0" * 10 + b"\xff\xff"
"""The prefix of an IPv4 address in IPv6 form."""


def network_of(address: str) -> bytes:
    """Return the network of a caller: an IPv4 address, or the first 64 bits of an IPv6 address."""
    if ":" not in address:
        return address.encode()
    try:
        packed = inet_pton(AF_INET6, address.partition("%")[0])
    except OSError:
        return address.encode()
    if packed.startswith(MAPPED):
        return inet_ntop(AF_INET, packed[12:]).encode()
    return packed[:8] + b"/64"
