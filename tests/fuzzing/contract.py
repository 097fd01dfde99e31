"""Our own OpenAPI document in the hands of schemathesis, through the ASGI application in process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from schemathesis.engine import events, from_schema
from schemathesis.python import asgi

from flagsvc import ProxyOptions, create_app
from flagsvc.testing import RecordingLog
from fuzzing.proxy import DOCUMENT, KEY, TOKEN

KEYS = {"clientKey": {"api_key": KEY.decode()}, "serverToken": {"api_key": TOKEN.decode()}}
LENIENT = {"negative_data_rejection": {"enabled": False}}
"""What the proxy takes beyond its document, numbers for texts above all, is in the contract (behaviour: Context by POST)."""
UNREADY = {
    "not_a_server_error": {"expected-statuses": ["2xx", "4xx", "503"]},
    "missing_required_header": {"enabled": False},
    "unsupported_method": {"enabled": False},
}
"""Before the first configuration 503 comes before every other check."""


@dataclass
class Campaign:
    """What schemathesis saw: statuses by operation, and what it found wrong."""

    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many requests were answered."""
        return sum(counts.total() for counts in self.statuses.values())

    def all_statuses(self) -> set[int]:
        return {status for counts in self.statuses.values() for status in counts}

    def take(self, event: events.EngineEvent) -> None:
        if isinstance(event, events.NonFatalError | events.FatalError):
            self.wrong.append(str(event))
        elif isinstance(event, events.ScenarioFinished):
            for interaction in event.recorder.interactions.values():
                self.note(event.label or "", interaction.response)
            for name, checks in event.recorder.checks.items():
                self.wrong += [self.told(event, name, each.failure_info.failure) for each in checks if each.failure_info]

    def note(self, label: str, response: Any) -> None:
        """Count an answer, and check the headers that every answer has."""
        self.statuses.setdefault(label, Counter())[response.status_code] += 1
        headers = {name.lower(): value for name, value in response.headers.items()}
        if headers.get("access-control-allow-origin") != ["*"]:
            self.wrong.append(f"{label}: {response.status_code} without a CORS header")
        if response.status_code >= 400 and headers.get("cache-control") != ["no-store"]:
            self.wrong.append(f"{label}: {response.status_code} may be stored")

    @staticmethod
    def told(event: events.ScenarioFinished, name: str, failure: Any) -> str:
        """Return a failure in words, with the request that shows it."""
        case = event.recorder.cases[name].value
        return f"{event.label}: {failure.title}: {failure.message}\n    {case.as_curl_command()}"


def configured(examples: int, *, repeatable: bool = True, keys: bool = True, **checks: Any) -> schemathesis.Config:
    """Return how schemathesis tests: with so many generated requests for each operation, the same in every run or others.

    Without `keys` variations of a request tell nothing more: the answer is the same.
    """
    generation = {"max-examples": examples, "deterministic": repeatable, "mode": "all", "database": "none"}
    auth = {"auth": {"openapi": KEYS}} if keys else {"phases": {"coverage": {"enabled": False}}}
    return schemathesis.Config.from_dict({"generation": generation, "checks": LENIENT | checks, **auth})


class WaitUntilReady:
    """An application whose requests wait until the proxy is ready."""

    def __init__(self, proxy: Any) -> None:
        self.proxy = proxy

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one scope."""
        if scope["type"] == "http":
            await self.proxy.ready(20)
        await self.proxy(scope, receive, send)


STREAMS = "/stream(ing)?$"
"""Paths whose answers do not end. The tests of the wire have them."""


@contextmanager
def contract(config: schemathesis.Config, *, ready: bool = True, **given: Any) -> Iterator[Any]:
    """Give the schema of a proxy over the example document with these options; in the end nothing has gone wrong in it.

    With `ready` False the proxy never is ready, and the document comes from a ready proxy.
    """
    log = RecordingLog()
    app = WaitUntilReady(create_app(options(DOCUMENT.as_uri(), log, **given)))
    path = f"{app.proxy.options.proxy_base_path}/docs/openapi.json"
    try:
        schema = schemathesis.openapi.from_asgi(path, app, config=config)
        if not ready:
            schema.app = create_app(options(DOCUMENT.with_name("no-such-document.json").as_uri(), log, **given))
        yield schema.exclude(path_regex=STREAMS)
    finally:
        asgi.shutdown_lifespans()
    assert not log.at("error", "fatal"), log.lines


def options(url: str, log: RecordingLog, **given: Any) -> ProxyOptions:
    """Return options with every documented endpoint on."""
    usual: dict[str, Any] = {
        "flagsvc_url": url,
        "flagsvc_api_token": "some-token",
        "client_keys": KEY.decode(),
        "exp_server_side_sdk_config_tokens": TOKEN.decode(),
        "enable_oas": True,
        "enable_all_endpoint": True,
        "ofrep": True,
        "logger": log,
    }
    return ProxyOptions(**usual | given)


def campaign(schema: Any, seen: Campaign | None = None) -> Campaign:
    """Let schemathesis test every operation of a schema, and return what it saw, in `seen` if that is given."""
    seen = Campaign() if seen is None else seen
    for event in from_schema(schema).execute():
        seen.take(event)
    return seen
