"""How toggles are written: Edge's form becomes ours by a row for each difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]


class Form(NamedTuple):
    """A difference that is meant: what ours writes, why, where that is written, and the change of a toggle of Edge to ours."""

    name: str
    reason: str
    source: str
    change: Callable[[Json], Json]


def with_state(toggle: Json) -> Json:
    """Return a toggle whose variant has the state of the flag, under both names."""
    state = {"feature_enabled": toggle["enabled"], "featureEnabled": toggle["enabled"]}
    return toggle | {"variant": toggle["variant"] | state}


def without_null(toggle: Json) -> Json:
    """Return a toggle whose variant has no payload that is null."""
    variant = {name: each for name, each in toggle["variant"].items() if (name, each) != ("payload", None)}
    return toggle | {"variant": variant}


FORMS: tuple[Form, ...] = (
    Form(
        "a variant has the state of its flag",
        "as at the real server; Edge leaves it to the SDKs",
        "dialects: Answers of the frontend API",
        with_state,
    ),
    Form(
        "a variant without a payload has no such member",
        "as at the real server; Edge writes null",
        "dialects: Answers of the frontend API",
        without_null,
    ),
)


def as_ours(toggle: Json) -> tuple[Json, list[str]]:
    """Return a toggle of Edge as ours writes it, and the names of the rows that changed it."""
    changed = toggle
    names = []
    for form in FORMS:
        before, changed = changed, form.change(changed)
        names += [form.name] * (before != changed)
    return changed, names
