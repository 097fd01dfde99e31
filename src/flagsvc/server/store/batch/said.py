"""What a check says that raises, as a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from flagsvc.server.store.refusals import Refusal

P = ParamSpec("P")


def said(check: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> str:
    """Return why a check refuses what it is given, empty where it does not."""
    try:
        check(*args, **kwargs)
    except Refusal as refusal:
        return refusal.details[0]["message"]
    return ""
