"""Questions of pages: generated contexts, as a query or as a body, about all flags or about a single one."""

from __future__ import annotations

import json
import random
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import frontend_flags
from diff_requests import Asker, Question

Json: TypeAlias = dict[str, Any]

LISTS = ("", "/all")
SINGLE = "/features/"
SINGLES = 4
"""Questions about single flags for each document; one more is about a flag that is not there."""
UNKNOWN = "no.such.flag"
STANDARD = ("userId", "sessionId", "appName", "environment", "remoteAddress", "currentTime")


def questions(seed: str, number: int, names: list[str], count: int, *, is_usual: bool) -> list[Question]:
    """Return `count` questions about the flags of a document, the same ones for the same seed and number."""
    asker = Asker(random.Random(f"edge {seed} {number}"), names)
    usual = frontend_flags.Maker(f"edge {seed} {number}") if is_usual else None
    singles = [SINGLE + quote(name, safe="") for name in (*asker.rng.choices(names, k=SINGLES), UNKNOWN)]
    paths = [LISTS[each % 2] for each in range(count - len(singles))] + singles
    return [asked(asker, path, usual_context(usual) if usual else asker.context()) for path in paths]


def usual_context(maker: frontend_flags.Maker) -> Json:
    """Return a context that meets the flags that flag servers send."""
    given = maker.context()
    properties = {name: each for name, each in given.items() if name not in STANDARD}
    return {name: each for name, each in given.items() if name in STANDARD} | {"properties": properties}


def asked(asker: Asker, path: str, context: Json) -> Question:
    """Return a question with a context: by GET or by POST."""
    if asker.chance(0.5):
        return Question("GET", f"{path}?{asker.query(context)}", context=context)
    body = json.dumps({"context": asker.typed(context)}, ensure_ascii=asker.chance(0.5)).encode()
    return Question("POST", path, body, context=context)


def is_list(question: Question) -> bool:
    """Return whether a question is about all flags."""
    return not question.target.startswith(SINGLE)


def lists_all(question: Question) -> bool:
    """Return whether the answer has flags that are off, too."""
    return question.target.partition("?")[0] != ""


def named(question: Question) -> str:
    """Return the flag that a question is about; empty for all of them."""
    return "" if is_list(question) else unquote(question.target.partition("?")[0].removeprefix(SINGLE))
