"""Turns the refusal of a check into a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from flagsvc.server.store.errors import CallerError

P = ParamSpec("P")


def refusal_text(check: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> str:
    """Return the first message of a check that raises CallerError; empty if it passes."""
    try:
        check(*args, **kwargs)
    except CallerError as refusal:
        return refusal.details[0]["message"]
    return ""
