"""Creates the secrets of tokens, and the hints that may be shown of them (decision 0017)."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex

RANDOM_BYTES = 28
HINT_CHARACTERS = 4
"""Characters of the random part that a hint shows; a random part shorter than four times this shows none."""


def new_secret(projects: Sequence[str], environment: str) -> str:
    """Return a secret in the real server's form `project:environment.random`; `[]` stands for several projects."""
    return f"{projects[0] if len(projects) == 1 else '[]'}:{environment}.{token_hex(RANDOM_BYTES)}"


def new_personal_secret() -> str:
    """Return the secret of a user's token."""
    return f"user:{token_hex(RANDOM_BYTES)}"


def make_hint(secret: str) -> str:
    """Return what may be shown of a secret: the part before the random one, and a few characters of a long random part."""
    head, mark, rest = secret.rpartition("." if "." in secret else ":")
    return f"{head}{mark}{rest[:HINT_CHARACTERS]}" if len(rest) >= 4 * HINT_CHARACTERS else f"{head}{mark}"
