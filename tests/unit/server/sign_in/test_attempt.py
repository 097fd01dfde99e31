"""A try to sign in: what follows from its secret, and which cookies are read."""

from __future__ import annotations

import base64
import hashlib

import pytest

from flagsvc.server.sign_in.attempt import LEEWAY_S, MAX_AGE_S, NOTED_S, Attempt, begin, encode, read_attempt

NOW = 1_750_000_000.5


def test_a_cookie_is_read_until_it_is_too_old() -> None:
    """The same try comes back, with its page, for ten minutes, and a minute before it began, by another clock."""
    made = begin("/flags?q=ä.b", NOW)
    assert read_attempt(made.cookie, NOW) == made == read_attempt(made.cookie, NOW + MAX_AGE_S - 1)
    assert read_attempt(made.cookie, NOW + MAX_AGE_S + 1) is None and read_attempt(made.cookie, NOW - LEEWAY_S) == made
    assert read_attempt(made.cookie, NOW - LEEWAY_S - 2) is None and NOTED_S >= MAX_AGE_S + 2 * LEEWAY_S
    assert made.is_answered_by(made.state) and not made.is_answered_by("") and not made.is_answered_by("\ud800")


def test_everything_differs_and_follows_from_the_secret() -> None:
    """State, nonce, verifier and the note of use are different digests; another time or secret gives others."""
    one, other = Attempt(1, "secret", "/"), Attempt(1, "secret", "/flags")
    facts = (one.state, one.nonce, one.verifier, one.challenge, one.hash)
    assert len(set(facts)) == len(facts) and not any("secret" in each for each in facts)
    assert facts == (other.state, other.nonce, other.verifier, other.challenge, other.hash), "the page has no part in it"
    for changed in (Attempt(2, "secret", "/"), Attempt(1, "secreT", "/")):
        assert not {changed.state, changed.nonce, changed.verifier, changed.hash} & set(facts)
    assert begin("/", NOW).random != begin("/", NOW).random


def test_the_challenge_is_that_of_the_verifier() -> None:
    """As RFC 7636 says for S256, with a verifier that is long enough."""
    made = begin("/", NOW)
    digest = base64.urlsafe_b64encode(hashlib.sha256(made.verifier.encode()).digest()).decode().rstrip("=")
    assert made.challenge == digest and 43 <= len(made.verifier) <= 128


@pytest.mark.parametrize(
    "cookie",
    [
        *("", ".", "..", "1750000000..Lw", "1750000000.x", "1750000000.x.Lw.y", "x.x.Lw", "-1.x.Lw"),
        *("1750000000.x.!", "²0.x.Lw", f"1750000000.{'x' * 3000}.{encode(b'/')}"),
    ],
)
def test_other_cookies_are_none(cookie: str) -> None:
    """A cookie in doubt belongs to no try."""
    assert read_attempt(cookie, NOW) is None
