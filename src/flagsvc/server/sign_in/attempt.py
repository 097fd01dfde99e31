"""One try to sign in at a provider: a random secret in a cookie, from which everything follows that the answer must fit.

State, nonce and the code verifier of PKCE are digests of the secret under different labels. A digest that somebody sees in an
address tells nothing of the other digests. The time is a part of the secret, so that no one can make an old try young.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from secrets import token_urlsafe

RANDOM_BYTES = 32
MAX_AGE_S = 600
"""Seconds that a try is valid."""
LEEWAY_S = 60
"""Seconds by which the clocks of two servers may differ: another server may end the try."""
NOTED_S = MAX_AGE_S + 2 * LEEWAY_S
"""Seconds that a used try is noted: longer than any of these clocks takes it."""
SEPARATOR = "."
LONGEST = 2048
"""The most characters of a cookie that is read."""


@dataclass(frozen=True)
class Attempt:
    """A try. `started` is in seconds since the epoch, and `goal` is the page to go to after it."""

    started: int
    random: str
    goal: str

    @property
    def state(self) -> str:
        """What the answer must repeat."""
        return self._derive("state")

    @property
    def nonce(self) -> str:
        """What the ID token must repeat."""
        return self._derive("nonce")

    @property
    def verifier(self) -> str:
        """What proves to the provider that the code is redeemed by who has asked for it (PKCE)."""
        return self._derive("verifier")

    @property
    def challenge(self) -> str:
        """The digest of the verifier, which the address of the provider has (S256)."""
        return encode(hashlib.sha256(self.verifier.encode()).digest())

    @property
    def hash(self) -> str:
        """The name under which the database notes that this try was used."""
        return hashlib.sha256(f"used {self._secret}".encode()).hexdigest()

    @property
    def cookie(self) -> str:
        return SEPARATOR.join((self._secret, encode(self.goal.encode())))

    def is_answered_by(self, state: str) -> bool:
        """Return whether an answer with this state belongs to the try."""
        return hmac.compare_digest(self.state.encode(), state.encode("utf-8", "replace"))

    @property
    def _secret(self) -> str:
        return f"{self.started}{SEPARATOR}{self.random}"

    def _derive(self, label: str) -> str:
        return encode(hashlib.sha256(f"flagsvc {label} {self._secret}".encode()).digest())


def begin(goal: str, now: float) -> Attempt:
    """Return a new try at a time, in seconds since the epoch."""
    return Attempt(int(now), token_urlsafe(RANDOM_BYTES), goal)


def read_attempt(cookie: str, now: float) -> Attempt | None:
    """Return the try of a cookie; None for another text, and for a try that is older than MAX_AGE_S."""
    parts = cookie[: LONGEST + 1].split(SEPARATOR)
    if len(cookie) > LONGEST or len(parts) != 3 or not (parts[0].isascii() and parts[0].isdecimal()):
        return None
    started, goal = int(parts[0][:15]), decode(parts[2])
    if not parts[1] or goal is None or not -LEEWAY_S <= now - started <= MAX_AGE_S:
        return None
    return Attempt(started, parts[1], goal)


def encode(value: bytes) -> str:
    """Return bytes in base64 for addresses, without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def decode(text: str) -> str | None:
    """Return the text in base64 for addresses; None if it is none."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
    except (ValueError, UnicodeError):
        return None
