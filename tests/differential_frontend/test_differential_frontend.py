"""Our frontend APIs beside the real server's: generated flags and contexts, and single requests of every kind (decision 0011).

All answer from the same flags: our proxy has the real server as its upstream, and our flag server gets them by its admin API. What
differs on purpose is a named row, and must occur.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from frontend_flags import Json, Maker

from support import processes
from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, OurFlagServer, our_flag_server
from support.waiting import wait_until

FLAGS = 80
CONTEXTS = 800
FEATURES = "/projects/default/features"
FRONTEND = "/api/frontend"


@dataclass(frozen=True)
class Pair:
    """The real server and ours, by their addresses. `keys` has our key for each one of the proxy's."""

    real: str
    ours: str
    keys: Mapping[str, str]

    def ask(
        self, method: str, path: str, keys: tuple[str, str], headers: Mapping[str, str], body: Any = None
    ) -> list[processes.Answer]:
        """Return the answers of both, the real server's first."""
        bases = (self.real, self.ours)
        keys = (keys[0], self.keys.get(keys[1], keys[1]))
        return [
            processes.ask(base + path, method=method, headers={**({"Authorization": key} if key else {}), **headers}, body=body)
            for base, key in zip(bases, keys, strict=True)
        ]


GOOD = (processes.FRONTEND_TOKEN, processes.KEY)
SERVER_SIDE = (processes.UPSTREAM_TOKEN, processes.SERVER_SIDE_TOKEN)


PROXY, SERVER = "proxy", "flag server"
KEYS: dict[str, dict[str, str]] = {
    PROXY: {},
    SERVER: {
        processes.KEY: FRONTEND_SECRET,
        processes.KEY.upper(): FRONTEND_SECRET.upper(),
        f"Bearer {processes.KEY}": f"Bearer {FRONTEND_SECRET}",
        processes.SERVER_SIDE_TOKEN: BACKEND_SECRET,
    },
}
"""What is ours → the key in the place of each key of the proxy."""


@pytest.fixture(scope="module")
def real() -> Iterator[processes.FlagServer]:
    """Give the real server, with the generated flags."""
    with processes.postgresql() as database, processes.unleash_server(database) as server:
        make_all(server)
        yield server


@pytest.fixture(scope="module", params=[PROXY, SERVER])
def pair(request: pytest.FixtureRequest, real: processes.FlagServer) -> Iterator[Pair]:
    """Give the real server, and ours with the same flags."""
    with ExitStack() as stack:
        if request.param == PROXY:
            proxy = stack.enter_context(processes.our_proxy(real.url, FLAGSVC_FETCH_INTERVAL="100"))
            ours = proxy.url.removesuffix("/proxy")
        else:
            server = stack.enter_context(our_flag_server())
            make_all(server)
            ours = server.root
        found = Pair(real.url.removesuffix("/api"), ours, KEYS[request.param])
        wait_until(lambda: all("last" in names(answer) for answer in found.ask("GET", f"{FRONTEND}?userId=1", GOOD, {})))
        yield found


def make_all(server: processes.FlagServer | OurFlagServer) -> None:
    """Make the generated flags, the same ones on each server."""
    maker = Maker("frontend")
    segment = server.admin("/segments", {"name": "some", "constraints": [maker.constraint(), maker.constraint()]})
    flags = [maker.flag(number) for number in range(FLAGS)]
    for flag in flags:
        make(server, flag, segment["id"] if maker.chance(0.2) else None)
    later = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2090-01-01T00:00:00.000Z", "values": []}
    make(server, plain("later", later), None)
    make(server, plain("for-5", {"contextName": "userId", "operator": "IN", "values": ["5"]}), None)
    server.admin(f"{FEATURES}/{flags[1]['name']}/dependencies", {"feature": flags[0]["name"]})
    default = {"name": "last", "enabled": True, "impressionData": False, "strategies": [{"name": "default"}]}
    make(server, default, None)


def plain(name: str, constraint: Json) -> Json:
    """Return a flag with one constraint."""
    strategy = {"name": "default", "parameters": {}, "constraints": [constraint]}
    return {"name": name, "enabled": True, "impressionData": False, "strategies": [strategy]}


def make(server: processes.FlagServer | OurFlagServer, flag: Json, segment: int | None) -> None:
    """Make a flag by the admin API."""
    server.admin(FEATURES, {"name": flag["name"], "type": "release", "impressionData": flag["impressionData"]})
    place = f"{FEATURES}/{flag['name']}/environments/development"
    for strategy in flag["strategies"]:
        server.admin(f"{place}/strategies", strategy if segment is None else strategy | {"segments": [segment]})
    if flag["enabled"]:
        server.admin(f"{place}/on", {})


def names(answer: processes.Answer) -> list[str]:
    """Return the names of the toggles in an answer."""
    return [toggle["name"] for toggle in answer.json()["toggles"]] if answer.status == 200 else []


def toggles(answer: processes.Answer) -> list[Json]:
    """Return the toggles of an answer, without the second name of the impression flag, which is ours."""
    assert answer.status == 200, answer.body
    return [{name: value for name, value in each.items() if name != "impression_data"} for each in answer.json()["toggles"]]


def as_query(context: Json, maker: Maker) -> str:
    """Return a context as a query string: other fields by name or inside `properties`."""
    known = ("userId", "sessionId", "appName", "environment", "remoteAddress")
    pairs = [(name if name in known or maker.chance(0.5) else f"properties[{name}]", value) for name, value in context.items()]
    return urlencode(pairs)


def as_body(context: Json, maker: Maker) -> Json:
    """Return a context as a body: other fields by name or inside `properties`."""
    known = ("userId", "sessionId", "appName", "environment", "remoteAddress")
    fields = {name: value for name, value in context.items() if name in known}
    return {"context": fields | {"properties": {name: value for name, value in context.items() if name not in known}}}


def test_answers_are_those_of_the_real_server(pair: Pair, record_property: Callable[[str, object], None]) -> None:
    """For every context, by GET and by POST: the same toggles with all their fields.

    The proxy keeps the order of its upstream.
    """
    maker = Maker("contexts")
    different = []
    seen: set[str] = set()
    for number in range(CONTEXTS):
        context = maker.context()
        if number % 2:
            answers = pair.ask("POST", FRONTEND, GOOD, {}, as_body(context, maker))
        else:
            answers = pair.ask("GET", f"{FRONTEND}?{as_query(context, maker)}", GOOD, {})
        real, ours = map(toggles, answers)
        if pair.keys:
            real, ours = (sorted(each, key=itemgetter("name")) for each in (real, ours))
        seen.add(json.dumps(real))
        if real != ours:
            different.append((context, [each for each in real if each not in ours], [each for each in ours if each not in real]))
    record_property("summary", f"{CONTEXTS} answers compared with the real server's, {len(different)} differ")
    assert not different, f"{len(different)} differ: {json.dumps(different[:3])}"
    assert len(seen) > CONTEXTS / 4, "the contexts get different answers"


class Single(NamedTuple):
    """One request, and our status where it differs from the real server's on purpose; `why` names the reason.

    `server` is the status of our flag server where it is not that of our proxy.
    """

    what: str
    method: str = "GET"
    path: str = FRONTEND
    keys: tuple[str, str] = GOOD
    headers: Mapping[str, str] = MappingProxyType({})
    body: Any = None
    ours: int | None = None
    real: int | None = None
    why: str = ""
    server: int | None = None


BUCKET = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z", "toggles": {}}
REGISTRATION = {"appName": "a", "interval": 10, "started": "2026-01-01T00:00:00Z", "strategies": ["default"]}
REPORT = {"appName": "a", "bucket": BUCKET}


def metrics(what: str, body: Json, **more: Any) -> Single:
    """Return a report of usage."""
    return Single(what, method="POST", path=f"{FRONTEND}/client/metrics", body=body, **more)


def counting(yes: float) -> Json:
    """Return a report with a count."""
    return {"appName": "a", "bucket": BUCKET | {"toggles": {"last": {"yes": yes, "no": 0}}}}


def registration(what: str, body: Json) -> Single:
    """Return a registration."""
    return Single(what, method="POST", path=f"{FRONTEND}/client/register", body=body)


LENIENT = "values of the wrong kind are dropped, as Edge does"
EDGE = "a route of Edge"
SINGLE = (
    Single("no key", keys=("", "")),
    Single("a wrong key", keys=("wrong", "wrong")),
    Single("a key in capitals", keys=(GOOD[0].upper(), GOOD[1].upper())),
    Single("a bearer", keys=(f"Bearer {GOOD[0]}", f"Bearer {GOOD[1]}")),
    Single("a server-side token", keys=SERVER_SIDE),
    Single("a slash at the end", path=f"{FRONTEND}/"),
    Single("a doubled slash", path="/api//frontend"),
    Single("a standard field twice", path=f"{FRONTEND}?userId=7&userId=8"),
    Single("properties that are a text", path=f"{FRONTEND}?properties=foo"),
    Single("properties in two levels", path=f"{FRONTEND}?properties[a][b]=c"),
    Single("a list of users", path=f"{FRONTEND}?userId[]=7"),
    Single("a time that is none", path=f"{FRONTEND}?currentTime=garbage"),
    Single("a condition", headers={"If-None-Match": "*"}),
    Single("a foreign condition", headers={"If-None-Match": '"x"'}),
    Single("HEAD", method="HEAD"),
    Single("PUT", method="PUT", body={}, ours=405, real=404, why="a known path with another method is 405"),
    Single("DELETE", method="DELETE", ours=405, real=404, why="a known path with another method is 405"),
    Single("every toggle", path=f"{FRONTEND}/all", ours=200, real=404, why=EDGE, server=404),
    Single("one toggle", path=f"{FRONTEND}/features/last", ours=200, real=404, why=EDGE, server=404),
    Single("one unknown toggle", path=f"{FRONTEND}/features/nobody"),
    Single("the other name", path="/api/proxy", ours=200, real=404, why=EDGE, server=403),
    Single("a wrong URL", path="/api", ours=404, real=403, why="the answer names the right URL", server=403),
    Single("the features of a client", path=f"{FRONTEND}/client/features", ours=404, real=405, why="there is no such route"),
    Single("an empty context", method="POST", body={}),
    Single("an empty body", method="POST", body=b"", headers={"Content-Type": "application/json"}),
    Single("no type", method="POST", body=b"{}", headers={"Content-Type": ""}),
    Single("another type", method="POST", body=b"{}", headers={"Content-Type": "application/vnd.api+json"}),
    Single("a text", method="POST", body=b"x", headers={"Content-Type": "text/plain"}),
    Single("broken JSON", method="POST", body=b"{", headers={"Content-Type": "application/json"}),
    Single("a list", method="POST", body=[]),
    Single("a context that is null", method="POST", body={"context": None}),
    Single("a context that is a text", method="POST", body={"context": "x"}),
    Single("a context that is a list", method="POST", body={"context": []}),
    Single("a number as the user", method="POST", body={"context": {"userId": 7}}),
    Single("null as the user", method="POST", body={"context": {"userId": None}}),
    Single("a list as the user", method="POST", body={"context": {"userId": [7]}}, ours=200, real=400, why=LENIENT),
    Single("an object as a property", method="POST", body={"context": {"properties": {"a": {}}}}, ours=200, real=400, why=LENIENT),
    Single("null as the application", method="POST", body={"context": {"appName": None}}, ours=200, real=400, why=LENIENT),
    Single(
        "a condition on a POST",
        method="POST",
        body={},
        headers={"If-None-Match": "*"},
        ours=304,
        real=200,
        why="Edge answers so, and SDKs send it",
    ),
    Single("a large body", method="POST", body={"context": {"properties": {"a": "x" * 110_000}}}),
    metrics("metrics", REPORT),
    metrics("metrics without a bucket", {"appName": "a"}, ours=200, real=400, why="Edge needs no bucket"),
    metrics("metrics without a name", {"bucket": BUCKET}),
    metrics("a negative count", counting(-1), ours=200, real=400, why="a bad entry costs only itself"),
    metrics("a count that is not whole", counting(1.5)),
    metrics("metrics with a server-side token", REPORT, keys=SERVER_SIDE, ours=200, real=403, why="Edge takes them", server=403),
    registration("registration", REGISTRATION),
    registration("registration with a number", REGISTRATION | {"started": 1767225600000}),
    registration("registration without strategies", {"appName": "a"}),
)


@pytest.mark.parametrize("single", SINGLE, ids=lambda single: single.what)
def test_single_requests(pair: Pair, single: Single) -> None:
    """Statuses are equal, and so are the bodies of refused keys; a difference is as its row says, and still occurs."""
    real, ours = pair.ask(single.method, single.path, single.keys, single.headers, single.body)
    expected = single.ours if single.server is None or not pair.keys else single.server
    if single.why and expected != single.real:
        assert (real.status, ours.status) == (single.real, expected)
        return
    assert ours.status == real.status, (real.body[:300], ours.body[:300])
    if real.status in (401, 403):
        assert ours.json() == real.json()
    if real.status >= 400 and single.method != "HEAD":
        assert isinstance(ours.json()["message"], str)
    if real.status == 200 and ours.body == b"OK":
        assert real.body == b"OK"
    if real.status == 200 and real.body != b"OK":
        assert ours.headers["cache-control"] == real.headers["cache-control"] == "no-cache"


def test_what_is_read_in_another_way(pair: Pair) -> None:
    """Named differences in what is read: a time in the query, a body without `context`, and a selection of toggles."""
    then = "userId=1&sessionId=1&currentTime=2095-01-01T00:00:00Z"
    real, ours = pair.ask("GET", f"{FRONTEND}?{then}", GOOD, {})
    assert ("later" in names(real), "later" in names(ours)) == (False, True), "the real server's time is always now"
    real, ours = pair.ask("POST", FRONTEND, GOOD, {}, {"userId": "5", "sessionId": "1"})
    assert ("for-5" in names(real), "for-5" in names(ours)) == (False, True), "the real server reads `context` alone"
    real, ours = pair.ask("POST", FRONTEND, GOOD, {}, {"context": {"userId": "5"}, "toggles": ["last", "nobody"]})
    assert "for-5" in names(real) and names(ours) == ["last", "nobody"], "the real server selects nothing"
