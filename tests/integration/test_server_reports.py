"""Registrations and usage metrics beside the real server's: the same requests to both, the same answers, the same counts shown.

`DIFFERENT` names what differs on purpose; everything else is compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support import processes
from support.flagservers import AppClient, app_client

DIFFERENT = {
    "what the real server refuses": "ours takes what can be read (decision 0016); `differential_reports` compares all such reports",
    "a moment that is none": "the list of what is wrong ends with another sentence: ours tells of anyOf",
    "projects of an application that only reports": "the real server shows `*`, ours the projects of its token",
    "strategies of an application": "the real server keeps the first that were told, ours shows the last",
    "who made an application": "the real server forgets it when usage is reported within the same seconds",
    "a report without an instance": "the real server shows an instance without a name, ours calls it `default`",
    "a choice that may be null": "the real server lists `null` among the allowed values, ours does not",
}
NOW = datetime.now(UTC)
MOMENT = f"{NOW:%Y-%m-%dT%H:%M:%S}.000Z"
APP = {"appName": "app", "interval": 10, "started": MOMENT, "strategies": ["default", "nosuch"], "instanceId": "i"}
BUCKET = {"start": MOMENT, "stop": MOMENT}
REPORT = {"appName": "app", "instanceId": "i", "bucket": BUCKET | {"toggles": {"one": {"yes": 3, "no": 1, "variants": {"v": 2}}}}}
TOLD = {"appName": "far", "instanceId": "j", "environment": "production", "started": MOMENT, "interval": 1}
COUNT = {"featureName": "one", "appName": "far", "environment": "development", "timestamp": MOMENT, "yes": 5, "no": 7}


def toggles(**counts: Any) -> dict[str, Any]:
    """Return a report of one flag."""
    return REPORT | {"bucket": BUCKET | {"toggles": {"one": counts}}}


def bulk(*metrics: Any, applications: Any = ()) -> dict[str, Any]:
    """Return the post of a server in between."""
    return {"applications": list(applications), "metrics": list(metrics)}


REQUESTS: list[tuple[str, Any]] = [
    ("register", APP),
    ("register", APP | {"instanceId": "", "started": 1_700_000_000, "interval": "5", "extra": 1}),
    ("register", {name: value for name, value in APP.items() if name != "started"}),
    ("register", {name: value for name, value in APP.items() if name != "strategies"}),
    ("register", APP | {"interval": -1}),
    ("register", APP | {"strategies": "x"}),
    ("register", APP | {"started": "x"}),
    ("register", []),
    ("metrics", REPORT),
    ("metrics", REPORT | {"instanceId": "k", "environment": "production"}),
    ("metrics", toggles()),
    ("metrics", toggles(yes="2", no="3")),
    ("metrics", toggles(yes=1, variants=None)),
    ("metrics", REPORT | {"bucket": BUCKET | {"toggles": []}}),
    ("metrics", REPORT | {"bucket": BUCKET | {"toggles": {"nosuch": {"yes": 1}, "": {"yes": 1}}}}),
    ("metrics", REPORT | {"bucket": BUCKET}),
    ("metrics", REPORT | {"bucket": BUCKET | {"toggles": {}, "start": "x"}}),
    ("metrics", {}),
    ("metrics", []),
    ("metrics/bulk", bulk(COUNT, COUNT | {"environment": "production"}, applications=[TOLD])),
    ("metrics/bulk", bulk()),
    ("metrics/bulk", {"applications": []}),
    ("metrics/bulk", bulk(applications=[{"appName": "page", "instanceId": "m", "environment": "development",
                                         "sdkType": "frontend", "sdkVersion": "js:1"}])),
]  # fmt: skip
SHOWN = [
    "client-metrics/features/one",
    "client-metrics/features/one/raw?hoursBack=2",
    "client-metrics/features/one/raw?hoursBack=49",
    "client-metrics/features/nosuch",
    "client-metrics/features/nosuch/raw",
    "metrics/applications",
    "metrics/applications?query=AP",
    "metrics/applications?limit=1&offset=1&sortOrder=desc",
    "metrics/applications?offset=99",
    "metrics/applications/app",
    "metrics/applications/far",
    "metrics/applications/nosuch",
    "metrics/instances/app/environment/development",
    "metrics/instances/nosuch/environment/development",
]
MOMENTS = ("createdAt", "updatedAt", "lastSeen", "lastSeenAt")
PLACES = ("usage", "project", "environment")
UNSTEADY = (*MOMENTS, "clientIp", "strategies", "createdBy", *PLACES)
"""Members that tell of the moment or the caller, and those that `DIFFERENT` names. Usage metrics are compared by environment."""


@dataclass(frozen=True)
class Servers:
    """Both servers with a flag `one`, and their answers to every request."""

    real: processes.FlagServer
    ours: AppClient
    answers: list[tuple[processes.Answer, processes.Answer]]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Give both servers after the same requests to each."""
    with ExitStack() as made:
        real = made.enter_context(processes.unleash_server(made.enter_context(processes.postgresql())))
        real.admin("/projects/default/features", {"name": "one", "type": "release"})
        token = real.admin(
            "/api-tokens", {"type": "backend", "tokenName": "t", "projects": ["default"], "environment": "development"}
        )["secret"]
        ours = made.enter_context(our_server(tmp_path_factory.mktemp("ours"), token))
        yield Servers(real, ours, [ask_both(real, ours, token, path, body) for path, body in REQUESTS])


def our_server(folder: Path, token: str) -> Any:
    """Return our server with the same flag and token."""
    tokens = [{"type": "backend", "secret": token, "projects": ["default"], "environment": "development"}]
    features = [{"name": "one", "enabled": []}]
    return app_client(f"sqlite:///{folder / 'flags.db'}", given={"tokens": tokens, "features": features})


def ask_both(
    real: processes.FlagServer, ours: AppClient, token: str, path: str, body: Any
) -> tuple[processes.Answer, processes.Answer]:
    """Send one request to both, the real one first."""
    headers = {"Authorization": token}
    first = processes.ask(f"{real.url}/client/{path}", method="POST", headers=headers, body=body)
    return first, ours.post(f"/api/client/{path}", body, token=token)


def told(answer: processes.Answer) -> Any:
    """Return the message of an answer, without its id and without the text after the first problem."""
    if not answer.body:
        return answer.status, None
    body = answer.json()
    return answer.status, {name: body[name] for name in ("name", "message")}, body["details"][0]


@pytest.mark.parametrize("number", range(len(REQUESTS)), ids=lambda number: f"{number}-{REQUESTS[number][0]}")
def test_answers(servers: Servers, number: int) -> None:
    """Every request is taken or refused as the real server does, with its message."""
    real, ours = servers.answers[number]
    assert told(ours) == told(real), REQUESTS[number]


@pytest.mark.parametrize("path", SHOWN)
def test_what_is_shown(servers: Servers, path: str) -> None:
    """Counts and applications are shown as by the real server, once that has stored them."""

    def wanted() -> Any:
        return steady(servers.ours.get(f"/api/admin/{path}").json())  # anew: the hour may turn

    def real() -> Any:
        answer = processes.ask(f"{servers.real.url}/admin/{path}", headers={"Authorization": processes.ADMIN_TOKEN})
        return steady(answer.json())

    def same() -> bool:
        return bool(real() == wanted())

    try:
        servers.real.program.wait(same, "of one mind", 20)
    except AssertionError:
        assert real() == wanted()


def steady(value: Any) -> Any:
    """Return an answer without its time-dependent parts, with its lists sorted."""
    if isinstance(value, dict):
        left_out = MOMENTS if "featureName" in value or "yes" in value else UNSTEADY
        return {name: steady(each) for name, each in value.items() if name not in left_out}
    if isinstance(value, list):
        return sorted((steady(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value
