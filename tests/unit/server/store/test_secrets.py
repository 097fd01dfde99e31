"""The form of token secrets, and the part of a secret that may be shown."""

from __future__ import annotations

import pytest

from flagsvc.server.store.keyring import make_hint, new_personal_secret, new_secret


def test_no_two_secrets_are_alike() -> None:
    """200 new secrets are all different."""
    assert len({new_secret(["*"], "development") for _ in range(100)} | {new_personal_secret() for _ in range(100)}) == 200


@pytest.mark.parametrize(
    ("secret", "hint"),
    [
        ("default:production.0123456789abcdef", "default:production.0123"),
        ("*:*.0123456789abcde", "*:*."),
        ("*:*.short", "*:*."),
        ("p:my.env.0123456789abcdef0123", "p:my.env.0123"),
        ("user:0123456789abcdef0123", "user:0123"),
        ("user:short", "user:"),
        ("short", ""),
        ("a-secret-without-any-form", "a-se"),
    ],
)
def test_what_is_shown_of_a_secret(secret: str, hint: str) -> None:
    """The hint has the first four characters of a random part of at least sixteen, and none of a shorter one."""
    assert make_hint(secret) == hint
