"""What an event holds: the sides before and after a change, and the views of them that the real server shows (decision 0027)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

Way: TypeAlias = Literal["api", "page", "import", "seed", "start", "command", "sign-in"]
"""How a change comes about: by the admin API, a page, an import, a seed, the first start, a command on the database, or a sign-in
of somebody whose groups have changed."""
WAYS: tuple[str, ...] = get_args(Way)

Side: TypeAlias = Mapping[str, Any] | None
View: TypeAlias = Callable[[Side, Side], tuple[Side, Side]]
"""What was before and what is after → `data` and `preData` of the API."""


def whole(before: Side, after: Side) -> tuple[Side, Side]:
    """Show both sides."""
    return after, before


def nothing(before: Side, after: Side) -> tuple[Side, Side]:
    """Show no side: the type says it all."""
    return None, None


def after_only(before: Side, after: Side) -> tuple[Side, Side]:
    """Show only what is after; of something deleted what was before."""
    return before if after is None else after, None


def only(*names: str) -> View:
    """Show these members of both sides."""
    return lambda before, after: (_pick(after, names), _pick(before, names))


def only_after(*names: str) -> View:
    """Show these members of what is after, or was before, as `data`."""
    return lambda before, after: (_pick(before if after is None else after, names), None)


def only_before(*names: str) -> View:
    """Show these members of what was before, as `preData`."""
    return lambda before, after: (None, _pick(before, names))


def removed(*names: str) -> View:
    """Show these members of what was before, as `data`."""
    return lambda before, after: (_pick(before, names), None)


def without(*names: str) -> View:
    """Show both sides without these members."""
    return lambda before, after: (_leave_out(after, names), _leave_out(before, names))


def _pick(side: Side, names: tuple[str, ...]) -> Side:
    return None if side is None else {name: side[name] for name in names if name in side}


def _leave_out(side: Side, names: tuple[str, ...]) -> Side:
    return None if side is None else {name: value for name, value in side.items() if name not in names}


def list_changes(before: Side, after: Side) -> list[dict[str, Any]]:
    """Return each member of an event that is different before and after. Without one of the two sides nothing is compared."""
    if before is None or after is None:
        return []
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
