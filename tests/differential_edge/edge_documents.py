"""Documents that both proxies are given, and the questions that both are asked.

The documents are generated ones without what Edge refuses as a whole, and such as flag servers send.
What is taken out of generated documents has rows of its own in `edge_malformed`. Only a doubled number of segments has none: which
of the two counts in Edge is not the same each time.

Questions are those of pages: generated contexts, as a query or as a body, about all flags or about a single one.
"""

from __future__ import annotations

import json
import random
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import diff_documents
import frontend_flags
from diff_requests import Asker, Question

Json: TypeAlias = dict[str, Any]

FLAGS = 12
"""Flags of a document as a flag server sends it."""


def generated(seed: str, number: int) -> Json:
    """Return a document of the generator, without what Edge refuses it for."""
    document = diff_documents.document(seed, number)
    found = document | {"features": list(map(readable_feature, document["features"]))}
    if "segments" in document:
        found["segments"] = list(map(readable_segment, {each["id"]: each for each in document["segments"]}.values()))
    return found


def readable_segment(given: Json) -> Json:
    return given | {"constraints": list(map(readable_constraint, given.get("constraints") or []))}


def readable_feature(given: Json) -> Json:
    return with_weight(given | {"enabled": bool(given["enabled"]), "strategies": list(map(readable_strategy, given["strategies"]))})


def readable_strategy(given: Json) -> Json:
    found = dict(given)
    if "parameters" in found:
        found["parameters"] = {name: each for name, each in found["parameters"].items() if isinstance(each, str)}
    if found.get("constraints"):
        found["constraints"] = list(map(readable_constraint, found["constraints"]))
    if "segments" in found:
        found["segments"] = [each for each in found["segments"] or [] if isinstance(each, int)]
    return with_weight(found)


def readable_constraint(given: Json) -> Json:
    known = {name: each for name, each in given.items() if name not in ("inverted", "caseInsensitive") or each is not None}
    found = {"contextName": "region", "operator": "BOGUS"} | known
    if not isinstance(found.get("value", ""), str):
        del found["value"]
    return found


def with_weight(holder: Json) -> Json:
    """Return a feature or a strategy whose variants do not all have the weight zero."""
    known = holder.get("variants")
    if not known or any(each["weight"] for each in known):
        return holder
    return holder | {"variants": [*known[:-1], known[-1] | {"weight": 1}]}


def renumbered(document: Json, first: int) -> Json:
    """Return a document with other numbers of segments. Edge keeps the segments of former documents."""

    def strategy(given: Json) -> Json:
        known = given.get("segments")
        return given | {"segments": [first + each for each in known]} if known else given

    found = document | {
        "features": [each | {"strategies": list(map(strategy, each["strategies"]))} for each in document["features"]]
    }
    if document.get("segments"):
        found["segments"] = [each | {"id": first + each["id"]} for each in document["segments"]]
    return found


def usual(seed: str, number: int) -> Json:
    """Return a document as a flag server sends it: flags that its admin API takes, a segment and a dependency."""
    maker = frontend_flags.Maker(f"usual {seed} {number}")
    features = [maker.flag(each) | {"project": "default", "type": "release"} for each in range(FLAGS)]
    for feature in features:
        if maker.chance(0.2):
            feature["strategies"] = [each | {"segments": [1]} for each in feature["strategies"]]
    features[-1]["dependencies"] = [{"feature": features[0]["name"], "enabled": maker.chance(0.5)}]
    segments = [{"id": 1, "name": "some", "constraints": [maker.constraint(), maker.constraint()]}]
    return {"version": 2, "features": features, "segments": segments}


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
