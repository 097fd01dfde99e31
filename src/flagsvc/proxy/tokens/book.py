"""What a token opens, and which tokens one upstream knows or does not know.

It has no clock and no I/O. Every collection has a bound, because callers decide what is looked up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

import msgspec

from flagsvc.settings.tokens import EVERY_PROJECT, SEVERAL_PROJECTS, read_exact_scope, read_scope

KINDS: Mapping[str, bool] = {"client": True, "backend": True, "frontend": False}
"""The types of tokens that callers may use, and whether each is one for servers. The upstream has other types, such as `admin`."""
LONGEST = 1000
"""The most characters of a token. A longer text is no token, and is not asked about."""


class TokenScope(NamedTuple):
    """An environment, and projects in it; None for all of them."""

    environment: str
    projects: frozenset[str] | None

    def covers(self, other: TokenScope) -> bool:
        """Return whether everything of another scope is in this one."""
        if self.environment != other.environment:
            return False
        return self.projects is None or (other.projects is not None and other.projects <= self.projects)

    def limited_to(self, project: str | None) -> TokenScope:
        """Return the part of this scope that is in one project; the whole scope for None and for an empty text."""
        if not project:
            return self
        only = frozenset([project])
        return self._replace(projects=only if self.projects is None else self.projects & only)

    @property
    def breadth(self) -> float:
        """The number of projects; infinite for all of them."""
        return math.inf if self.projects is None else len(self.projects)


class TokenGrant(NamedTuple):
    """What the upstream says about a token: whether it is for servers, and its scope."""

    is_server: bool
    scope: TokenScope


class Admission(NamedTuple):
    """What a token opens that was looked up: an environment of this process, and the scope that the upstream tells.

    `environment` is the number of the environment's feed: another feed may have its name soon. `is_whole` tells that the
    environment has no more than this scope.
    """

    environment: int
    is_server: bool
    scope: TokenScope
    is_whole: bool

    @property
    def projects(self) -> frozenset[str] | None:
        """The projects of the environment that it opens; None for all of them."""
        return None if self.is_whole else self.scope.projects


def scope_of_text(token: str) -> TokenScope | None:
    """Return the scope that a token names in its text, `project:environment.secret`; None if it has another form.

    The name of a project may contain a dot. A token for several projects does not name them. It counts as one for all, until the
    upstream has told.
    """
    named = read_scope(token)
    if named is None:
        return None
    is_one = named.project not in (EVERY_PROJECT, SEVERAL_PROJECTS)
    return TokenScope(named.environment, frozenset([named.project]) if is_one else None)


def exact_scope_of_text(token: str) -> TokenScope | None:
    """Return the scope that a token names in its text; None if only the upstream knows it."""
    return None if read_exact_scope(token) is None else scope_of_text(token)


def is_plausible(token: str) -> bool:
    """Return whether a text can be a token: printable ASCII without blanks, and not too long.

    It has no character that JSON escapes, either. So a question has a bound in bytes, which callers cannot pass: an upstream that
    refuses it as too long would answer no caller.
    """
    if not (0 < len(token) <= LONGEST and token.isascii() and token.isprintable()):
        return False
    return not any(character in token for character in ' "\\')


def read_grant(told: object) -> tuple[str, TokenGrant] | None:
    """Return a token and its grant from an entry of the upstream's answer; None for an entry that no caller can use."""
    if not isinstance(told, dict):
        return None
    token, kind, environment = told.get("token"), told.get("type"), told.get("environment")
    projects = told.get("projects")
    if not (isinstance(token, str) and isinstance(environment, str) and isinstance(kind, str) and kind in KINDS):
        return None
    named = [each for each in projects if isinstance(each, str)] if isinstance(projects, list) else []
    if not named:
        return None
    return token, TokenGrant(KINDS[kind], TokenScope(environment, None if EVERY_PROJECT in named else frozenset(named)))


MAX_KNOWN = 50_000
"""The most tokens that are known; for one more token, the token that was checked longest ago is forgotten."""
MAX_UNKNOWN = 10_000
"""The most tokens that are known to be unknown. Half of them are forgotten at once."""
SLICE = 1000
"""The most tokens that are packed at once; that takes a millisecond or two."""
UNKNOWN_S = 30.0
"""Seconds for which an unknown token is not asked about again."""


class KnownToken(NamedTuple):
    """A token that the upstream knows, what it opens, and when the upstream said so, in seconds since the epoch.

    `text` is None for a token that was stored: only its digest is known until a caller sends it.
    """

    grant: TokenGrant
    checked_at: float
    text: str | None = None

    def __repr__(self) -> str:
        """Return a text without the token."""
        return f"KnownToken({self.grant}, {self.checked_at})"


def digest_of(token: str) -> str:
    """Return the name of a token in the book and in storage. The token cannot be found from it."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class TokenBook:
    """What is known about tokens, by digest. An unknown one counts as unknown for `unknown_s` seconds."""

    def __init__(self, unknown_s: float = UNKNOWN_S) -> None:
        self._unknown_s = unknown_s
        self.known: dict[str, KnownToken] = {}
        self._young: dict[str, float] = {}
        self._old: dict[str, float] = {}

    def find(self, token: str) -> KnownToken | None:
        return self.known.get(digest_of(token))

    def is_unknown(self, token: str, now: float) -> bool:
        """Return whether the upstream did not know a token a moment ago. `now` is in seconds of any clock that never goes back."""
        digest = digest_of(token)
        until = self._young.get(digest) or self._old.get(digest) or 0.0
        return now < until

    def add(self, token: str, grant: TokenGrant, checked_at: float) -> list[str]:
        """Know a token from now on. Returns the tokens that are forgotten because there are too many."""
        digest = digest_of(token)
        self.known.pop(digest, None)
        self.known[digest] = KnownToken(grant, checked_at, token)
        self._young.pop(digest, None)
        self._old.pop(digest, None)
        forgotten = [self.known.pop(next(iter(self.known))) for _ in range(len(self.known) - MAX_KNOWN)]
        return [each.text for each in forgotten if each.text is not None]

    def add_unknown(self, token: str, now: float) -> None:
        digest = digest_of(token)
        if len(self._young) >= MAX_UNKNOWN // 2:
            self._old, self._young = self._young, {}
        self._young[digest] = now + self._unknown_s
        self.known.pop(digest, None)

    def texts(self) -> list[str]:
        return [each.text for each in self.known.values() if each.text is not None]

    # ---- stored

    def pack(self) -> Iterator[bytes]:
        """Yield the known tokens as bytes to store, without their texts, in slices: all of them at once would take long."""
        known = list(self.known.items())
        yield b'{"flagsvc":1,"tokens":['
        for at in range(0, len(known), SLICE):
            tokens = [to_stored(*each) for each in known[at : at + SLICE]]
            part = msgspec.json.encode(tokens, order="deterministic")[1:-1]
            yield b"," + part if at else part
        yield b"]}"

    def restore(self, stored: dict[str, KnownToken]) -> None:
        """Know the stored tokens as well, up to the bound, and take the dictionary over.

        The knowledge of this process is newer, also about unknown tokens. A token that it knows from storage alone is
        known no longer if it is no longer stored: another process has taken it back.
        """
        own = {digest: each for digest, each in self.known.items() if each.text is not None}
        for digest in (*own, *self._young, *self._old):
            stored.pop(digest, None)
        for digest in list(islice(stored, max(0, len(stored) + len(own) - MAX_KNOWN))):
            del stored[digest]
        stored.update(own)
        self.known = stored


class StoredToken(msgspec.Struct, frozen=True, gc=False):
    """A stored token."""

    digest: str
    server: bool
    environment: str
    projects: frozenset[str] | None
    checked: float


class StoredTokens(msgspec.Struct, frozen=True):
    """The record of stored tokens."""

    tokens: list[StoredToken]


def to_stored(digest: str, known: KnownToken) -> StoredToken:
    (is_server, (environment, projects)), checked_at, _ = known
    return StoredToken(digest, is_server, environment, projects, checked_at)


def from_stored(stored: StoredToken) -> KnownToken:
    return KnownToken(TokenGrant(stored.server, TokenScope(stored.environment, stored.projects)), stored.checked)


def unpack(data: bytes) -> Iterator[dict[str, KnownToken]] | None:
    """Return the stored tokens of packed data by digest, in slices; None if the data are malformed."""
    try:
        found = msgspec.json.decode(data, type=StoredTokens).tokens[-MAX_KNOWN:]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    slices = (found[at : at + SLICE] for at in range(0, len(found), SLICE))
    return ({each.digest: from_stored(each) for each in part} for part in slices)
