"""The corpus: documents, questions and what must be answered, read from JSON, and how a case is asked of our own service.

Each file holds groups: a document and the cases that are asked on it. A case names its rule (a row of `rules.json`), says in a
sentence what it shows, and gives a context as a query string (`get`) or as a JSON object (`post`), a form (`list`, `all` or
`named` with `toggles`) and the answer: `expected` in full, `on` for toggles that are on and have no variant, or `outcomes`
where the answer is random, all of which must occur. `release/smoke.py` has this module and flagsvc alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.http.call import Call
from flagsvc.http.messages import Request, Response
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.usage import UsageCounters
from flagsvc.testing import FakeClock, RecordingLog

Json = dict[str, Any]
FOLDER = Path(__file__).with_name("corpus")
RULES = "rules.json"
KEY = "some-client-key"
APP_NAME = "proxy-under-test"
HOST_NAME = "Some-Host"
FALLBACK = {"name": "disabled", "enabled": False}
SOURCES = ("specification", "behaviour", "client specification", "decision")


@dataclass(frozen=True)
class Case:
    """One case, and the document it is asked on."""

    file: str
    number: int
    document: Json
    content: Json

    def __str__(self) -> str:
        return f"{self.file}-{self.number}-{self.content['rule']}"

    @property
    def outcomes(self) -> list[list[Json]]:
        """The correct answers: one, or every result that a random draw can give."""
        if "on" in self.content:
            return [[{"name": name, "enabled": True, "impressionData": False, "variant": FALLBACK} for name in self.content["on"]]]
        return list(self.content.get("outcomes") or [self.content["expected"]])

    def request(self) -> tuple[str, str, Json | None]:
        """Return method, path and query behind the proxy's own address, and the body of a POST."""
        path = "/all" if self.content["form"] == "all" else ""
        if "get" in self.content:
            return "GET", f"{path}?{self.content['get']}", None
        body: Json = {"context": self.content["post"]}
        if self.content["form"] == "named":
            body["toggles"] = self.content["toggles"]
        return "POST", path, body


def rules() -> list[Json]:
    return list(json.loads((FOLDER / RULES).read_text(encoding="utf-8")))


def groups() -> list[list[Case]]:
    """Return the cases of every file, those of one document together."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        number = 0
        for group in json.loads(path.read_text(encoding="utf-8")) if path.name != RULES else ():
            found.append([Case(path.stem, number + at, group["document"], case) for at, case in enumerate(group["cases"])])
            number += len(group["cases"])
    return found


def cases() -> list[Case]:
    return [case for group in groups() for case in group]


class Ours:
    """Our service on one document, asked without a socket: the same checks, context and engine as behind one."""

    def __init__(self, document: Json, options: Json) -> None:
        compiled = compile_document(document, CompileOptions(hostname=HOST_NAME, **options))
        assert compiled.problems == []
        clock, holder = FakeClock(), Holder()
        holder.replace(compiled.snapshot, ConfigurationDocument(b"", ""), 0)
        given: dict[str, Any] = {"app_name": APP_NAME, "enable_all_endpoint": True, "context_value_limit": 100_000}
        settings = ServiceSettings(client_keys=(KEY,), **given)
        parts: dict[str, Any] = {
            "holder": holder,
            "usage": UsageCounters(dict, clock.now),
            "log": RecordingLog(),
            "clock": clock,
            "random": Random(1),
        }
        self.service = Service(settings, **parts)

    def ask(self, case: Case) -> list[Json]:
        method, target, body = case.request()
        path, _, query = target.partition("?")
        content = b"" if body is None else json.dumps(body).encode()
        headers = [(b"authorization", KEY.encode())]
        if body is not None:
            headers += [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        request = Request(method.encode(), f"/proxy{path}".encode(), query.encode(), headers, peer="192.0.2.1")
        call = self.service.admit(request)
        assert isinstance(call, Call), getattr(call, "body", call)
        response = self.service.answer(call, content)
        assert isinstance(response, Response) and response.status == 200, getattr(response, "body", response)
        return list(json.loads(response.body)["toggles"])
