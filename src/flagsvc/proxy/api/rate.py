"""Rate limits: token buckets for each key and each address (options rateLimitKey, rateLimitAddress). Compiled."""

from __future__ import annotations

from hashlib import sha256

from flagsvc.core.clock import Clock
from flagsvc.http import http_errors
from flagsvc.http.call import Call
from flagsvc.http.keys import KeyCheck
from flagsvc.http.reached_limits import ADDRESS_RATE, KEY_RATE
from flagsvc.http.token_buckets import TokenBuckets, network_of
from flagsvc.http.trust import TrustedProxies
from flagsvc.proxy.api.settings import ServiceSettings


class RateLimits:
    """The rate limits of one process. The address is checked before the key, so that keys cannot be guessed quickly."""

    def __init__(self, keys: TokenBuckets | None, addresses: TokenBuckets | None, trust: TrustedProxies, clock: Clock) -> None:
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
    if not settings.rate_limit_key and not settings.rate_limit_address:
        return None
    keys = make_buckets(settings.rate_limit_key, settings.rate_limit_burst)
    addresses = make_buckets(settings.rate_limit_address, settings.rate_limit_burst)
    return RateLimits(keys, addresses, TrustedProxies(settings.trust_proxy), clock)


def make_buckets(rate: int, burst: int) -> TokenBuckets | None:
    """Return buckets with this rate, or None for a rate of 0. A burst of 0 means the rate of one second."""
    return TokenBuckets(float(rate), float(burst if burst else rate)) if rate else None
