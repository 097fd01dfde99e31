"""The form of token secrets, and the part of a secret that may be shown."""

from __future__ import annotations

import re

import pytest

from flagsvc.server.store.secrets import make_hint, new_personal_secret, new_secret


@pytest.mark.parametrize(
    ("projects", "environment", "head"),
    [
        (["*"], "*", "*:*."),
        (["shop"], "production", "shop:production."),
        (["a", "b"], "development", "[]:development."),
    ],
)
def test_a_secret_says_what_it_is_for(projects: list[str], environment: str, head: str) -> None:
    """A secret begins with its project and environment. 56 random hexadecimal digits follow."""
    secret = new_secret(projects, environment)
    assert secret.startswith(head)
    assert re.fullmatch("[0-9a-f]{56}", secret.removeprefix(head))


def test_a_personal_secret_says_so() -> None:
    """A user's token begins with `user:`."""
    assert re.fullmatch("user:[0-9a-f]{56}", new_personal_secret())


def test_no_two_secrets_are_alike() -> None:
    """200 new secrets are all different."""
    assert (
        len({new_secret(["*"], "development") for _ in range(100)} | {new_personal_secret() for _ in range(100)}) == 200
    )


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
