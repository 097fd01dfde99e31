"""The steps of a move that are single requests. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class AdminRequest(NamedTuple):
    """One request of the admin API. With `may_exist`, a 409 is fine: what it adds is there already."""

    method: str
    path: str
    body: Json | None = None
    may_exist: bool = False


class MoveStep(NamedTuple):
    """One resource to create or change: its title and name, `new` or `changed`, and the requests for it."""

    title: str
    name: str
    kind: str
    requests: tuple[AdminRequest, ...]
