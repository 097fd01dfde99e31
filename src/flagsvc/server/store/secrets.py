"""The secrets of tokens: how they are made, and what is kept and shown of them (decision 0017)."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex

RANDOM_BYTES = 28
SHOWN = 4
"""Characters of the random part that stay readable; a shorter random part than twice these shows none."""


def new_secret(projects: Sequence[str], environment: str) -> str:
    """Return a secret in the real server's form `project:environment.random`; `[]` stands for several projects."""
    return f"{projects[0] if len(projects) == 1 else '[]'}:{environment}.{token_hex(RANDOM_BYTES)}"


def new_personal_secret() -> str:
    """Return the secret of a user's token."""
    return f"user:{token_hex(RANDOM_BYTES)}"


def hint_of(secret: str) -> str:
    """Return what may be shown of a secret: what stands before the random part, and a few characters of a long one."""
    head, mark, rest = secret.rpartition("." if "." in secret else ":")
    return f"{head}{mark}{rest[:SHOWN]}" if len(rest) >= 4 * SHOWN else f"{head}{mark}"
