"""What is to be done to a server in single requests. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class AdminRequest(NamedTuple):
    """One request of the admin API."""

    method: str
    path: str
    body: Json | None = None


class MoveStep(NamedTuple):
    """One thing that is made or changed: what it is and its name, `new` or `changed`, and the requests that do it."""

    title: str
    name: str
    kind: str
    requests: tuple[AdminRequest, ...]
