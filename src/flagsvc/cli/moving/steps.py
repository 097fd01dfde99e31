"""What is to be done to a server in single requests. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class Request(NamedTuple):
    """One request of the admin API."""

    method: str
    path: str
    body: Json | None = None


class Step(NamedTuple):
    """One thing that is made or changed: what it is and its name, `new` or `changed`, and the requests that do it."""

    title: str
    name: str
    kind: str
    requests: tuple[Request, ...]
