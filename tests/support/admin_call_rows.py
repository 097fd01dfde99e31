"""Tables of admin API calls that our flag server and the real one get alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BOSS, WRITER, READER, OWNER, MEMBER, ADMIN = "boss", "writer", "reader", "owner", "member", "admin"
"""An administrator, an editor, a viewer, two viewers that are owner and member of `default`, an admin token."""

STRATEGIES = {
    "used": "00000001-0000-4000-8000-000000000000",
    "archived": "00000002-0000-4000-8000-000000000000",
    "far": "00000003-0000-4000-8000-000000000000",
    "custom": "00000004-0000-4000-8000-000000000000",
}
"""What calls name a strategy by → its id. Their features: web, old (archived), elsewhere (in `other`), app."""


@dataclass(frozen=True)
class IntendedDifference:
    """An intended difference: our status, a part of our message, the real server's status, and the reason."""

    status: int
    message: str
    real: int
    why: str


@dataclass(frozen=True)
class Step:
    """One call. `{name}` in path and body stands for an id: of a strategy, or of the result of an earlier step with `keep`.

    A result without an id, a token, is kept by its secret; of a feature with links, the first link is kept.
    """

    method: str
    path: str
    body: Any = None
    who: str = BOSS
    keep: str = ""
    ours: IntendedDifference | None = None


def get(path: str, who: str = BOSS, **given: Any) -> Step:
    return Step("GET", path, who=who, **given)


def post(path: str, body: Any = None, who: str = BOSS, **given: Any) -> Step:
    return Step("POST", path, body, who, **given)


def put(path: str, body: Any, who: str = BOSS, **given: Any) -> Step:
    return Step("PUT", path, body, who, **given)


def delete(path: str, who: str = BOSS, **given: Any) -> Step:
    return Step("DELETE", path, None, who, **given)


def filled(value: Any, known: Mapping[str, Any]) -> Any:
    """Return a path or a body with the ids. A text that is only a name becomes the id itself."""
    if isinstance(value, dict):
        return {key: filled(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, known) for each in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if value[1:-1] in known:
        return known[value[1:-1]]
    for name, number in known.items():
        value = value.replace(f"{{{name}}}", str(number))
    return value
