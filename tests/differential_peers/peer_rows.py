"""One request as a row of a table, what such rows share, and one difference that is on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

JSON = "application/json"
NOTHING: Mapping[str, Any] = MappingProxyType({})
CONTEXT = {"userId": "7", "sessionId": "s", "appName": "shop-web", "properties": {"region": "eu", "plan": "pro"}}
KNOWN = "userId=7&sessionId=s&appName=shop-web&properties[region]=eu&properties[plan]=pro"
"""The same context as a query."""
BUCKET = {"start": "2026-01-01T00:00:00.000Z", "stop": "2026-01-01T00:01:00.000Z"}
TWO_AND_ONE = "2 yes 1 no"
"""What `usage` reports, as `peer_meaning` tells it."""


class Exclusion(NamedTuple):
    """One thing in which ours differs on purpose. `source` names headings of the contract, or decisions.

    `ours` has what ours says by field, in the words of `peer_meaning`; None for a field that is absent. If `like` is the title of a
    row, ours answers as the peer answers that one.
    """

    name: str
    reason: str
    source: str
    ours: Mapping[str, Any] = NOTHING
    like: str = ""

    def but(self, **ours: Any) -> Exclusion:
        """Return the same exclusion for a row where ours says something else."""
        return self._replace(ours={**self.ours, **ours})

    def as_row(self, title: str) -> Exclusion:
        """Return the same exclusion for a row where ours answers as the peer answers another row."""
        return self._replace(like=title)


class Row(NamedTuple):
    """One request. `title` is its only name within the scene; a `key` that is empty is not sent.

    A `body` that is not bytes is sent as JSON. `again` is sent as `If-None-Match` after a first request; TAG in it stands for the
    tag of that answer. `counts` is the flag whose counts upstream come of this request alone, `registers` an application, and
    `measures` an impact metric likewise. `environment` is the one that is asked for, where the key does not name it. `but` has the
    exclusions: each of them must change something.
    """

    title: str
    path: str
    method: str = "GET"
    key: str = ""
    headers: Mapping[str, str] = NOTHING
    body: Any = None
    type: str = JSON
    again: str = ""
    counts: str = ""
    registers: str = ""
    measures: str = ""
    environment: str = ""
    but: tuple[Exclusion, ...] = ()

    @property
    def reaches_upstream(self) -> bool:
        """Whether something must be looked for upstream."""
        return bool(self.counts or self.registers or self.measures)


class Caller(NamedTuple):
    """A program that sends requests. `path` and `key` are the defaults of every row, `headers` the headers of each GET."""

    path: str
    key: str
    headers: Mapping[str, str] = NOTHING

    def get(self, title: str, query: str = "", path: str = "", key: str | None = None, **more: Any) -> Row:
        """Return a GET."""
        target = (path or self.path) + (f"?{query}" if query else "")
        return Row(title, target, key=self.key if key is None else key, **{"headers": self.headers, **more})

    def post(self, title: str, body: Any, path: str = "", key: str | None = None, **more: Any) -> Row:
        """Return a POST."""
        return Row(title, path or self.path, "POST", self.key if key is None else key, body=body, **more)


def usage(app: str, flag: str, **more: Any) -> dict[str, Any]:
    """Return a report: a flag was on twice and off once. Fields that are None are left out."""
    toggles = {flag: {"yes": 2, "no": 1, "variants": {}}}
    report = {"appName": app, "instanceId": "one", "bucket": {**BUCKET, "toggles": toggles}, **more}
    return {name: value for name, value in report.items() if value is not None}


def counted(flag: str, **counts: Any) -> dict[str, Any]:
    """Return a report with these counts of a flag."""
    return usage("page", flag, bucket={**BUCKET, "toggles": {flag: counts}})


def registration(app: str | None, **more: Any) -> dict[str, Any]:
    """Return a registration. Fields that are None are left out."""
    plain = {"appName": app, "instanceId": "one", "interval": 1000, "strategies": ["default"], "started": BUCKET["start"]}
    return {name: value for name, value in {**plain, **more}.items() if value is not None}
