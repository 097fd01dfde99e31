"""Rate limits: token buckets for each key and each address (options rateLimitKey, rateLimitAddress). Compiled.

An unused bucket is full after a while, and a full bucket need not be stored. So there are two generations of buckets, and the
older one is dropped as a whole when all its buckets are full. It is dropped earlier if the younger one reaches its limit: a caller
with so many addresses is not slowed down by a limit for each address anyway.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from flagsvc.core.clock import Clock
from flagsvc.http import http_errors
from flagsvc.http.call import Call
from flagsvc.http.keys import KeyCheck
from flagsvc.http.networks import network_of
from flagsvc.http.reached_limits import ADDRESS_RATE, KEY_RATE
from flagsvc.http.trust import TrustedProxies
from flagsvc.proxy.api.settings import ServiceSettings

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


class RateLimits:
    """The rate limits of one process. The address is checked before the key, so that keys cannot be guessed quickly."""

    def __init__(
        self, keys: TokenBuckets | None, addresses: TokenBuckets | None, trust: TrustedProxies, clock: Clock
    ) -> None:
        self.keys = keys
        self.addresses = addresses
        self.trust = trust
        self.clock = clock

    def admit(self, call: Call, key_check: KeyCheck) -> None:
        """Admit a call with a key that opens its route. Raises HttpError (429, 401, 403)."""
        self.admit_address(call)
        now = self.clock.monotonic()
        key = key_check.find_key(call.key)
        if self.keys is not None:
            seconds = self.keys.take_token(sha256(key).digest(), now)
            if seconds > 0.0:
                raise http_errors.too_many_requests("with this key", KEY_RATE, seconds)

    def admit_address(self, call: Call) -> None:
        """Count a request of the caller's address, once. Raises HttpError (429)."""
        if self.addresses is not None and not call.is_counted:
            call.is_counted = True
            self.count_address(call, self.addresses, self.clock.monotonic())

    def count_address(self, call: Call, addresses: TokenBuckets, now: float) -> None:
        """Count a request of the caller's address. On a Unix socket there is none. Raises HttpError (429)."""
        address = self.trust.address(call.request.peer, call.forwarded)
        if address is None:
            return
        seconds = addresses.take_token(network_of(address), now)
        if seconds > 0.0:
            raise http_errors.too_many_requests("from this address", ADDRESS_RATE, seconds)


def make_rate_limits(settings: ServiceSettings, clock: Clock) -> RateLimits | None:
    """Return the rate limits of the settings, or None if there are none."""
    if not settings.rate_limit_key and not settings.rate_limit_address:
        return None
    keys = make_buckets(settings.rate_limit_key, settings.rate_limit_burst)
    addresses = make_buckets(settings.rate_limit_address, settings.rate_limit_burst)
    return RateLimits(keys, addresses, TrustedProxies(settings.trust_proxy), clock)


def make_buckets(rate: int, burst: int) -> TokenBuckets | None:
    """Return buckets with this rate, or None for a rate of 0. A burst of 0 means the rate of one second."""
    return TokenBuckets(float(rate), float(burst if burst else rate)) if rate else None
