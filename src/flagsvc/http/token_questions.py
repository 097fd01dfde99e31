"""POST /edge/validate: a proxy asks which of some texts are tokens, and what they open. The bodies of question and answer.

The proxy and the flag server answer it (dialects: POST /edge/validate; POST /edge/validate of the flag server).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flagsvc.http.shapes import Array, Record, String

MAX_TOKENS = 100
"""The most texts in one question."""
TEXT = String()
KNOWN_TOKEN = {"token": TEXT, "type": TEXT, "projects": Array(TEXT), "environment": TEXT}
QUESTION = Record({"tokens": Array(TEXT, max_items=MAX_TOKENS)}, required=("tokens",))
ANSWER = Record({"tokens": Array(Record(KNOWN_TOKEN, required=tuple(KNOWN_TOKEN)))}, required=("tokens",))


def describe_tokens(texts: Iterable[str], describe: Callable[[str], dict[str, Any] | None]) -> dict[str, list[dict[str, Any]]]:
    """Return the answer for some texts: each known token once, in the order asked. `describe` returns None for an unknown one."""
    found = (describe(text) for text in dict.fromkeys(texts))
    return {"tokens": [each for each in found if each is not None]}


def known_token(token: str, kind: str, projects: Iterable[str], environment: str) -> dict[str, Any]:
    """Return the entry of a known token. `kind` is `client`, `frontend` or `admin`; the project `*` stands for all."""
    return {"token": token, "type": kind, "projects": list(projects), "environment": environment}
