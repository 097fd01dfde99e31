"""What must be equal for two answers to be equal, as bytes (behaviour: Caching).

Of a context only what the configuration reads counts; of the time only between which of its dates it stands. Where an answer hangs
on a random draw, or on a custom strategy that may change its mind, there are no such bytes.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from flagsvc.engine.context import CURRENT_TIME, FIELDS, PROPERTY, SESSION_ID, Context
from flagsvc.engine.reads import Reads

ENABLED: Final = "e"
ALL: Final = "a"
NAMED: Final = "n"

# how a field stands in a context; digits to the base 4, which fit all that is absent, sticky or read into one number
ABSENT: Final = 0
OWN: Final = 1
AS_PROPERTY: Final = 2
STATES: Final = 4

# what default stickiness takes; the last tells that it draws
BY_USER: Final = 1
BY_SESSION: Final = 2
BY_ADDRESS: Final = 3
BY_CHANCE: Final = 4

MARK: Final = "\0"
"""Stands between the parts. Where a part holds one itself, the lengths of all parts go in front instead."""


class CacheKeys:
    """Makes the canonical bytes of requests to one snapshot.

    `revision` is the snapshot's. `timed` tells whether a request needs `Context.now` before it is asked for its bytes;
    `volatile` that no request has any; `addressed` that an answer may hang on where the caller is.
    """

    def __init__(self, reads: Reads, revision: str) -> None:
        self.revision = revision
        self.volatile: bool = reads.random or reads.impure
        self.timed: bool = len(reads.moments) > 0 or reads.custom
        self.moments: list[float] = sorted(reads.moments)
        self.rollouts: bool = reads.rollouts
        self.draws: bool = reads.draws
        self.whole: bool = reads.any_field
        self.addressed: bool = reads.any_field or reads.draws or "remoteAddress" in reads.fields
        fields = set(FIELDS) | reads.needed if reads.any_field else set(reads.fields)
        fields.discard("properties")  # it reads the same for everyone
        self.names: list[str] = sorted(fields)
        self.kinds: vec[i64] = vec[i64]([FIELDS.get(name, PROPERTY) for name in self.names])
        self.needed: list[bool] = [name in reads.needed for name in self.names]

    def key(self, context: Context, form: str, names: list[str]) -> bytes | None:
        """Return what decides the answer to a context in one of the forms; None where it is volatile.

        `form` is ENABLED, ALL or NAMED; `names` are the toggles asked for, empty in the first two, which give a caller without
        a session a random one. Two requests to snapshots of one revision with equal bytes have equal answers.
        """
        if self.volatile:
            return None
        has_random_session = form != NAMED and context.session_id is None
        parts: list[str] = [form, ""]
        # the leading digit keeps the number of digits
        states: int = 1
        if self.rollouts or self.draws:
            sticky_field = self.add_sticky_identifier(context, has_random_session, parts)
            if sticky_field == BY_CHANCE:
                return None
            states = STATES + sticky_field
        for at, name in enumerate(self.names):
            kind = self.kinds[at]
            if has_random_session and kind == SESSION_ID:
                return None
            state = add_field(context, kind, name, parts)
            if self.needed[at] and (state == ABSENT or parts[len(parts) - 1] == ""):
                return None
            states = states * STATES + state
        if self.moments:
            parts.append(self.moment_interval(context))
        return self.encode_key(context, parts, states, names)

    def add_sticky_identifier(self, context: Context, has_random_session: bool, parts: list[str]) -> int:
        """Add what default stickiness takes, and return which field it is; BY_CHANCE where it draws."""
        user = context.user_id
        if user:
            parts.append(user)
            return BY_USER
        session = context.session_id
        if session:
            parts.append(session)
            return BY_SESSION
        address = context.remote_address
        if has_random_session or self.rollouts or not address:
            return BY_CHANCE
        parts.append(address)
        return BY_ADDRESS

    def moment_interval(self, context: Context) -> str:
        """Return how the time stands to the moments: how many have passed, and whether it is one of them."""
        given = context.current_time
        time = context.now if given is None else given
        if time != time:
            return "never"
        low: i64 = 0
        high: i64 = len(self.moments)
        while low < high:
            middle = (low + high) >> 1
            if self.moments[middle] < time:
                low = middle + 1
            else:
                high = middle
        if low < len(self.moments) and self.moments[low] == time:
            return f"{low}="
        return str(low)

    def encode_key(self, context: Context, parts: list[str], states: int, names: list[str]) -> bytes:
        """Return the parts as bytes, with the names asked for and, where any field may be read, every property."""
        # hexadecimal, for that has no bound
        parts[1] = f"{states:x}"
        if names:
            parts.append(str(len(names)))
            parts.extend(names)
        if self.whole:
            for name in sorted(context.properties):
                parts.append(name)
                parts.append(context.properties[name])
        joined = MARK.join(parts)
        if joined.count(MARK) != len(parts) - 1:
            joined = join_with_lengths(parts)
        # a lone surrogate that an enricher made is no reason to fail
        return joined.encode("utf-8", "surrogatepass")


def add_field(context: Context, kind: i64, name: str, parts: list[str]) -> int:
    """Add a field of this kind to the parts, if it is there, and return how it stands in the context."""
    own: str | None = None
    if kind == CURRENT_TIME:
        # what a custom strategy sees of it is finer than its text
        own = None if context.current_time is None else repr(context.current_time)
    elif kind != PROPERTY:
        own = context.own(kind)
    if own is not None:
        parts.append(own)
        return OWN
    value = context.properties.get(name)
    if value is None:
        return ABSENT
    parts.append(value)
    return AS_PROPERTY


def join_with_lengths(parts: list[str]) -> str:
    """Return parts that hold marks in a form that nothing else has: their lengths first."""
    return MARK + ",".join([str(len(part)) for part in parts]) + MARK + "".join(parts)
