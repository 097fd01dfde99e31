"""The corpus: documents, questions and what must be answered, read from JSON, and how a case is asked of our own service.

Each file holds groups: a document and the cases that are asked on it. A case names its rule (a row of `rules.json`), says in a
sentence what it shows, and gives a context as a query string (`get`) or as a JSON object (`post`), a form (`list`, `all` or
`named` with `toggles`) and the answer: `expected` in full, `on` for toggles that are on and have no variant, or `outcomes`
where the answer is random, all of which must occur.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.proxy.configuration import ConfigurationDocument
from support.wirekit import TRANSPORTS, open_wire

Json = dict[str, Any]
FOLDER = Path(__file__).with_name("corpus")
RULES = "rules.json"
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
        """Return the case's place and its rule."""
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
        given: dict[str, Any] = {"app_name": APP_NAME, "enable_all_endpoint": True, "context_value_limit": 100_000}
        self.wire = open_wire(TRANSPORTS["asgi"], document=None, **given)
        self.wire.holder.replace(compiled.snapshot, ConfigurationDocument(b"", ""), 0)

    def ask(self, case: Case) -> list[Json]:
        method, target, body = case.request()
        headers = {} if body is None else {"content-type": "application/json"}
        answer = self.wire.ask(method, f"/proxy{target}", headers, body=body or b"", peer="192.0.2.1")
        assert answer.status == 200, answer.body
        return list(answer.json()["toggles"])
