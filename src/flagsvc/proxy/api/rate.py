"""Who asks too often: token buckets for each key and each address (options rateLimitKey, rateLimitAddress). Compiled.

A bucket that nobody takes from is full after a while, and a full one is as good as none. So the buckets stand in two generations,
and the older one goes as a whole when everything in it is full. Should the younger one be at its bound before that, it goes sooner:
who has so many addresses is not held up by a limit for each of them anyway.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from flagsvc.core.clock import Clock
from flagsvc.http import refusals
from flagsvc.http.call import Call
from flagsvc.http.keys import KeySet
from flagsvc.http.limits import ADDRESS_RATE, KEY_RATE
from flagsvc.http.networks import network_of
from flagsvc.http.trust import TrustedProxies
from flagsvc.proxy.api.settings import ServiceSettings

MOST: Final = 32_768
"""Buckets of one generation at most: both together take some 15 MB."""


class TokenBucket:
    """So many tokens at that moment (seconds of the monotonic clock)."""

    def __init__(self, tokens: float, at: float) -> None:
        self.tokens = tokens
        self.at = at


class TokenBuckets:
    """Buckets by name: `rate` tokens flow into each every second, until it holds `burst`."""

    def __init__(self, rate: float, burst: float, most: int = MOST) -> None:
        self.rate: Final = rate
        self.burst: Final = burst
        self.most: Final = most
        self.young: dict[bytes, TokenBucket] = {}
        self.old: dict[bytes, TokenBucket] = {}
        self.turned: float = 0.0

    def take(self, name: bytes, now: float) -> float:
        """Take a token out of a bucket; return 0.0, or how many seconds it takes until there is one."""
        bucket = self.young.get(name)
        if bucket is None:
            bucket = self.older(name, now)
        tokens = min(self.burst, bucket.tokens + (now - bucket.at) * self.rate)
        bucket.at = now
        if tokens < 1.0:
            bucket.tokens = tokens
            return (1.0 - tokens) / self.rate
        bucket.tokens = tokens - 1.0
        return 0.0

    def older(self, name: bytes, now: float) -> TokenBucket:
        """Return a bucket that is not among the younger ones, as one of them: from the older ones, or full."""
        if len(self.young) >= self.most or now - self.turned > self.burst / self.rate:
            self.old = self.young
            self.young = {}
            self.turned = now
        bucket = self.old.pop(name, None)
        if bucket is None:
            bucket = TokenBucket(self.burst, now)
        self.young[name] = bucket
        return bucket


class RateLimits:
    """The rate limits of one process; that for addresses comes before the key is looked at, so that keys cannot be guessed fast."""

    def __init__(
        self, keys: TokenBuckets | None, addresses: TokenBuckets | None, trust: TrustedProxies, clock: Clock
    ) -> None:
        self.keys = keys
        self.addresses = addresses
        self.trust = trust
        self.clock = clock

    def admit(self, call: Call, ring: KeySet) -> None:
        """Let a call with one of these keys pass; raises Refused (429, 401)."""
        now = self.clock.monotonic()
        if self.addresses is not None:
            self.count_address(call, self.addresses, now)
        key = call.key
        if key is None or not ring.holds(key):
            raise refusals.unauthorized()
        if self.keys is not None:
            seconds = self.keys.take(sha256(key.strip(b" \t")).digest(), now)
            if seconds > 0.0:
                raise refusals.too_many_requests("with this key", KEY_RATE, seconds)

    def count_address(self, call: Call, addresses: TokenBuckets, now: float) -> None:
        """Count a request of the caller's address, if it has one (on a Unix socket it has none); raises Refused (429)."""
        address = self.trust.address(call.request.peer, call.forwarded)
        if address is None:
            return
        seconds = addresses.take(network_of(address), now)
        if seconds > 0.0:
            raise refusals.too_many_requests("from this address", ADDRESS_RATE, seconds)


def rates_of(settings: ServiceSettings, clock: Clock) -> RateLimits | None:
    """Return the rate limits that the settings ask for; None for none at all."""
    if not settings.rate_limit_key and not settings.rate_limit_address:
        return None
    keys = buckets_of(settings.rate_limit_key, settings.rate_limit_burst)
    addresses = buckets_of(settings.rate_limit_address, settings.rate_limit_burst)
    return RateLimits(keys, addresses, TrustedProxies(settings.trust_proxy), clock)


def buckets_of(rate: int, burst: int) -> TokenBuckets | None:
    """Return buckets with this rate, where it is one; a burst of 0 is what a second allows."""
    return TokenBuckets(float(rate), float(burst if burst else rate)) if rate else None
