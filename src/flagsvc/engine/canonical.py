"""The canonical bytes of a request: two requests with equal bytes get equal answers (behaviour: Caching).

They contain only what the configuration reads from the context. For the time, they contain only its position between the dates of
the configuration. There are no such bytes if the answer depends on a random draw, or on a custom strategy that is not pure.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from flagsvc.engine.context import CURRENT_TIME, FIELDS, PROPERTY, SESSION_ID, Context
from flagsvc.engine.reads import Moments, Reads

ENABLED: Final = "e"
ALL: Final = "a"
NAMED: Final = "n"

# the state of a field in a context: a digit to the base 4, so that the states of all fields fit into one number
ABSENT: Final = 0
OWN: Final = 1
AS_PROPERTY: Final = 2
STATES: Final = 4

# the field of default stickiness; the last one is a random draw
BY_USER: Final = 1
BY_SESSION: Final = 2
BY_ADDRESS: Final = 3
BY_CHANCE: Final = 4

MARK: Final = "\0"
"""Separates the parts. If a part contains it, the lengths of all parts come first instead."""


class CacheKeys:
    """Makes the canonical bytes of requests to one snapshot.

    `revision` is the snapshot's. `timed` tells that a request needs `Context.now` before its bytes are made, `volatile` that no
    request has such bytes, and `addressed` that an answer may depend on the caller's address.
    """

    def __init__(self, reads: Reads, revision: str) -> None:
        self.revision = revision
        self.volatile: bool = reads.random or reads.impure
        self.timed: bool = len(reads.moments) > 0 or reads.custom
        self.moments = Moments(reads.moments)
        self.rollouts: bool = reads.rollouts
        self.draws: bool = reads.draws
        self.whole: bool = reads.any_field
        self.addressed: bool = reads.any_field or reads.draws or "remoteAddress" in reads.fields
        fields = set(FIELDS) | reads.needed if reads.any_field else set(reads.fields)
        fields.discard("properties")  # it is equal for everyone
        self.names: list[str] = sorted(fields)
        self.kinds: vec[i64] = vec[i64]([FIELDS.get(name, PROPERTY) for name in self.names])
        self.needed: list[bool] = [name in reads.needed for name in self.names]

    def key(self, context: Context, form: str, names: list[str]) -> bytes | None:
        """Return the canonical bytes of a request; None if its answer is volatile.

        `form` is ENABLED, ALL or NAMED. `names` are the requested toggles, empty for the first two forms, in which a caller
        without a session gets a random one. Two requests to snapshots of one revision with equal bytes have equal answers.
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
        if self.moments.exist:
            parts.append(str(self.moments.position(context)))
        return self.encode_key(context, parts, states, names)

    def add_sticky_identifier(self, context: Context, has_random_session: bool, parts: list[str]) -> int:
        """Add the identifier of default stickiness, and return its field; BY_CHANCE if it is drawn."""
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

    def encode_key(self, context: Context, parts: list[str], states: int, names: list[str]) -> bytes:
        """Return the parts as bytes, with the requested names and, if any field may be read, every property."""
        # hexadecimal, because decimal conversion has a length limit
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
        # an enricher may make a lone surrogate, which must not fail
        return joined.encode("utf-8", "surrogatepass")


def add_field(context: Context, kind: i64, name: str, parts: list[str]) -> int:
    """Add a field of this kind to the parts, if it is present, and return its state in the context."""
    own: str | None = None
    if kind == CURRENT_TIME:
        # a custom strategy sees more of it than its text
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
    """Return the parts after their lengths, for parts that contain MARK. No other parts give the same bytes."""
    return MARK + ",".join([str(len(part)) for part in parts]) + MARK + "".join(parts)
