"""The real clients of the table, the flags that they evaluate, and what they report.

Each runs unmodified, and every client has a relay of its own to the proxy (`http_tap`), so its requests are known. A stranger is
a second instance of it, with an unknown key. A newcomer is a third one, with a token that the upstream knows later on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from http_tap import Exchange, HttpTap

from support.fake_upstream import granted
from support.processes import KEY, SERVER_SIDE_TOKEN

WRONG_KEY = "*:development.nobody-knows-this"
NEW_TOKENS = {f"*:development.new-{kind}": granted(kind, environment="development") for kind in ("frontend", "client")}
"""What the upstream knows of the tokens of newcomers: one for pages, and one for services."""
CONTEXT: dict[str, Any] = {"userId": "7", "properties": {"region": "eu"}}
ELSEWHERE = {"properties": {"region": "us"}}
BASE = {"on": True, "for-7": True, "for-8": False, "with-variant": True, "in-segment": True, "new": False}
"""Flag → whether it is on for the context, as long as nothing changes."""
CHANGED = BASE | {"new": True}
PAYLOAD = {"type": "json", "value": '{"colour": "grün"}'}
SEGMENTS = [{"id": 7, "name": "europe", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}]
OWN_NAME = "proxy-under-test"
"""The application under which the proxy reports what has no name of its own."""


class Counts(NamedTuple):
    """How often a flag was on and off, and each variant given."""

    yes: int
    no: int
    variants: dict[str, int]


class Use(NamedTuple):
    """What a client does with its own flags once it is ready: the answers, and by flag what is counted upstream."""

    asked: list[bool]
    counts: dict[str, Counts]


BY_SDK = Use(
    [True, True, True, False, False], {"asked": Counts(3, 0, {}), "off": Counts(0, 1, {}), "variant": Counts(1, 0, {"green": 1})}
)
"""Three questions for the first flag, one each for a flag that is off and an unknown one, and one for a variant."""


@dataclass(frozen=True)
class Row:
    """One row of the table. `id` is also the beginning of the names of the flags that only this client counts.

    `path` is where it asks, below the proxy's address. `reports_as` is the application of its counts upstream;
    `registers_as` is the application that registers, if the two differ. `sees_errors`: the application hears of failed requests.
    `keeps_order`: flags come in the order of the document. `refusal` is the status for a wrong key.
    """

    id: str
    package: str
    path: str
    reports_as: str = OWN_NAME
    registers_as: str = ""
    post: bool = False
    key: str = KEY
    server_side: bool = False
    sees_errors: bool = True
    keeps_order: bool = True
    refusal: int = 401
    use: Use = BY_SDK

    @property
    def registered(self) -> str:
        """The application that must have registered."""
        return self.registers_as or self.reports_as

    @property
    def polls(self) -> tuple[str, str]:
        """The method and the path of its polls."""
        if self.server_side:
            return "GET", f"{self.path}/client/features"
        return "POST" if self.post else "GET", self.path

    @property
    def learns_nothing_new_by_304(self) -> bool:
        """Whether a poll that brings nothing new is a 304: at `/proxy`, a POST is always answered in full."""
        return not (self.post and self.path == "/proxy")

    @property
    def stranger(self) -> Row:
        """The same with a wrong key."""
        return replace(self, id=f"{self.id}-stranger", key=WRONG_KEY)

    @property
    def newcomer(self) -> Row:
        """The same with a token that the proxy does not list."""
        return replace(self, id=f"{self.id}-new", key=list(NEW_TOKENS)[self.server_side])


@dataclass
class Client:
    """A running client. `said` returns the events of one kind that it told so far, in order.

    `ready`: it has its flags; with what its first questions gave. `state`: flag → whether it is on, at each change. `error`.
    """

    row: Row
    tap: HttpTap
    said: Callable[[str], list[dict[str, Any]]]
    excused: Counter[str] = field(default_factory=Counter)
    """Errors of a time when the proxy was away."""

    def states(self) -> list[dict[str, bool]]:
        """Return what it saw of the flags, at each change, since it was ready."""
        seen = [each["flags"] for each in self.said("state")]
        return seen[seen.index(BASE) :] if BASE in seen else seen

    def polls(self) -> list[Exchange]:
        """Return its polls so far."""
        method, path = self.row.polls
        return [each for each in self.tap.exchanges if (each.method, each.path) == (method, path)]

    def errors(self) -> list[str]:
        """Return its errors so far, without the excused ones."""
        return list((Counter(str(each["error"]) for each in self.said("error")) - self.excused).elements())


def plan(clients: list[tuple[Row, HttpTap]]) -> str:
    """Return what a script needs to know, as JSON: the clients to run, the context, and the flags to look at."""
    runs = [
        {"id": row.id, "url": tap.url + row.path, "key": row.key, "appName": row.reports_as, "post": row.post}
        for row, tap in clients
    ]
    return json.dumps({"runs": runs, "context": CONTEXT, "elsewhere": ELSEWHERE, "flags": list(BASE)})


def feature(name: str, *constraints: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a flag that is on for everyone whom the constraints admit."""
    strategy = {"name": "default", "constraints": list(constraints)}
    plain = {"name": name, "project": "default", "enabled": True, "impressionData": False}
    return {**plain, "strategies": [strategy], **more}


def document(rows: list[Row], *new: str) -> dict[str, Any]:
    """Return a document with flags of all kinds, three for each client to count, and `new` ones that are on for everyone.

    Newcomers have flags to count, too.
    """
    for_7, for_8 = ({"contextName": "userId", "operator": "IN", "values": [user]} for user in "78")
    green = {"variants": [{"name": "green", "weight": 1000, "payload": PAYLOAD}]}
    features = [
        feature("on"),
        feature("for-7", for_7),
        feature("for-8", for_8),
        feature("with-variant", **green),
        feature("in-segment", strategies=[{"name": "default", "segments": [7]}]),
    ]
    for row in (each for first in rows for each in (first, first.newcomer)):
        features += [feature(f"{row.id}.asked"), feature(f"{row.id}.off", for_8), feature(f"{row.id}.variant", **green)]
    return {"version": 2, "features": [*features, *map(feature, new)], "segments": SEGMENTS}


def enabled_names(rows: list[Row]) -> list[str]:
    """Return the names of the flags of the document that are on for the context, in its order."""
    names = [each["name"] for each in document(rows)["features"]]
    return [name for name in names if BASE.get(name, not name.endswith(".off"))]


def frontend_rows(kind: str, package: str, paths: tuple[str, ...]) -> tuple[Row, ...]:
    """Return the rows of an SDK for pages, which asks by GET or by POST."""
    return tuple(
        Row(f"{kind}-{method.lower()}-{path.strip('/').replace('/', '-')}", package, path, post=post)
        for path in paths
        for method, post in (("GET", False), ("POST", True))
    )


def service_row(kind: str, package: str, path: str, reports_as: str, **more: Any) -> Row:
    """Return the row of a client that reads the configuration with a server-side token."""
    return Row(kind, package, path, reports_as, server_side=True, **({"key": SERVER_SIDE_TOKEN} | more))


def service_rows(kind: str, package: str, **more: Any) -> tuple[Row, ...]:
    """Return the rows of an SDK for services. At `/proxy` what it reports is the proxy's."""
    return tuple(
        service_row(f"{kind}-{path[1:]}", package, path, name, **more)
        for path, name in (("/api", f"{kind}-service"), ("/proxy", OWN_NAME))
    )


PAGE_ROWS = frontend_rows("js", "unleash-proxy-client 3.8.2", ("/api/frontend", "/proxy", "/api/proxy"))
REACT_ROWS = frontend_rows("react", "@unleash/proxy-client-react 5.1.0", ("/api/frontend", "/proxy"))
NODE_ROWS = service_rows("node", "unleash-client 6.12.1")
PYTHON_ROWS = service_rows("python", "UnleashClient 6.9.1", sees_errors=False)
