"""Trying contexts: what clients get in several environments, what differs between them, and why.

What was typed is in the body of the request and in the answer to it, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from flagsvc.core.direction import isolate
from flagsvc.core.errors import DocumentError
from flagsvc.engine.context import FIELDS, PROPERTIES, PROPERTY, Context
from flagsvc.engine.parse import scalar
from flagsvc.engine.values import jsdate
from flagsvc.http import json_text
from flagsvc.http.answers import Answer
from flagsvc.http.etag import short_revision
from flagsvc.http.media import UTF8
from flagsvc.http.messages import HttpError
from flagsvc.pages.forms import Form, read_whole
from flagsvc.reasons.steps import RolloutStep, Step, StrategyStep, VariantStep, WholeExplanation, tell
from flagsvc.reasons.whole import explain_whole
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.flags import is_protected, production_first
from flagsvc.server.pages.page import change, page
from flagsvc.server.pages.problems import Problem
from flagsvc.server.store.checks import Json
from flagsvc.server.store.documents import UnfoldedDocument
from flagsvc.server.store.resources import context_fields, environments, strategies

MOST_ANSWERS: Final = 100_000
"""Answers of one request: contexts × environments × flags."""
SHOWN: Final = 200
"""Flags that a page lists."""
TICKED: Final = 4
"""Environments that are ticked at first."""
EMPTY_ROWS: Final = 2
"""Rows for further fields."""
FIRST_FIELDS: Final = ("userId", "sessionId", "remoteAddress", "currentTime")


@dataclass
class Typed:
    """What was typed: environments, fields, lines of contexts, and words that names must have; `why` is the flag to explain.

    `line` is the number of the context to explain, from 0.
    """

    environments: list[str]
    pairs: dict[str, str] = field(default_factory=dict)
    lines: str = ""
    search: str = ""
    why: str = ""
    line: int = 0


def show(call: ApiCall) -> Answer:
    """Return the form. The address may have words that names of flags must have, but no context."""
    known = list_environments(call)
    typed = Typed([each["name"] for each in known][:TICKED], search=call.first_value("q") or "")
    return Answer(form_of(call, typed, known) | {"results": None, "why": None, "problem": ""})


def evaluate(call: ApiCall) -> Answer:
    """Return what clients get for what was typed."""
    known = list_environments(call)
    form = call.form
    line, _, why = form.text("why").partition(":")
    typed = Typed(
        [each["name"] for each in known if each["name"] in form.texts("environment")],
        read_pairs(form),
        "\n".join(form.texts("lines")[:1]),
        form.text("q"),
        why,
        read_whole(line) or 0,
    )
    data = form_of(call, typed, known)
    try:
        contexts = read_contexts(typed.pairs, typed.lines, call.server.clock.now() * 1000)
        results = find_results(call, typed, contexts)
        if not typed.why:
            explain_only_one(typed, results["flags"])
    except ContextError as error:
        return Answer(data | {"results": None, "why": None, "problem": Problem(str(error), error.field)}, 400)
    return Answer(data | {"results": results, "why": find_reasons(call, typed, contexts), "problem": ""})


def list_environments(call: ApiCall) -> list[Json]:
    with call.store.reading() as tx:
        known = production_first(environments.list_plain(tx))
    return [{"name": each["name"], "protected": is_protected(each["type"])} for each in known]


def form_of(call: ApiCall, typed: Typed, known: Sequence[Json]) -> Json:
    """Return the form: the environments, and the fields that the flags there read, with legal values."""
    read = {FIRST_FIELDS[0]}
    for name in typed.environments:
        with call.server.unfolded.using(call.server.documents, name) as document:
            read |= fields_of(document)
    with call.store.reading() as tx:
        legal = {each["name"]: each["legal"] for each in context_fields.list_choices(tx)}
    names = [name for name in FIRST_FIELDS if name in read] + sorted(read - set(FIRST_FIELDS))
    names += [name for name in typed.pairs if name not in read]
    fields = [{"name": name, "value": typed.pairs.get(name, ""), "legal": legal.get(name, [])} for name in names]
    return {
        "environments": [each | {"ticked": each["name"] in typed.environments} for each in known],
        "fields": fields,
        "others": [name for name in legal if name not in names],
        "empty_rows": list(range(EMPTY_ROWS)),
        "lines": typed.lines,
        "q": typed.search,
    }


def fields_of(document: UnfoldedDocument) -> set[str]:
    """Return the fields of a context that the flags of a document read."""
    keys = document.unfolded.compiled.snapshot.cache_keys
    found = set(keys.names)
    found |= {"userId", "sessionId"} if keys.rollouts or keys.draws else set()
    found |= {"remoteAddress"} if keys.draws else set()
    return found | ({"currentTime"} if keys.moments.exist else set())


def find_results(call: ApiCall, typed: Typed, contexts: Sequence[Context]) -> Json:
    """Return the answers of all flags: those that differ between the environments first. Raises ContextError for too many."""
    words = typed.search.lower().split()
    answers: dict[str, dict[str, list[tuple[bool, str]]]] = {}
    revisions = {}
    for environment in typed.environments:
        with call.server.unfolded.using(call.server.documents, environment) as document:
            snapshot = document.unfolded.compiled.snapshot
            names = [name for name in snapshot.toggles if all(word in name.lower() for word in words)]
            check_size(len(names) * len(contexts) * len(typed.environments))
            for name in names:
                found = [snapshot.decide(context, name) for context in contexts]
                answers.setdefault(name, {})[environment] = found
            snapshot.take_faults()
            revisions[environment] = revision_of(document)
    rows = [row_of(name, found, typed.environments) for name, found in answers.items()]
    rows.sort(key=lambda row: (not row["differs"], not row["some"], row["name"]))
    return {
        "environments": [{"name": name, **revisions[name]} for name in typed.environments],
        "contexts": len(contexts),
        "total": len(rows),
        "on": sum(row["some"] for row in rows),
        "differ": sum(row["differs"] for row in rows),
        "flags": rows[:SHOWN],
    }


def revision_of(document: UnfoldedDocument) -> Json:
    """Return the revision of a document: its number, and as people compare it."""
    return {"revision": document.revision, "shortRevision": short_revision(document.digest)}


def explain_only_one(typed: Typed, rows: Sequence[Json]) -> None:
    """Ask why for the flag of the name that was typed, or for the only one that fits."""
    named = [row for row in rows if row["name"] == typed.search] or rows
    if len(named) == 1:
        typed.why, typed.line = named[0]["name"], named[0]["line"]


def check_size(answers: int) -> None:
    """Raise ContextError for more answers than one request may ask for."""
    if answers > MOST_ANSWERS:
        raise ContextError(
            f"These are {answers:,} answers, and at most {MOST_ANSWERS:,} are made at once. "
            "Give words of the names, fewer contexts, or fewer environments.",
            "q",
        )


def row_of(name: str, found: dict[str, list[tuple[bool, str]]], order: Sequence[str]) -> Json:
    """Return the answers of a flag in each environment; for several contexts, for how many of them it is on."""
    cells = []
    for environment in order:
        answers = found.get(environment, [])
        cells.append(
            {
                "environment": environment,
                "on": sum(enabled for enabled, _ in answers),
                "variants": list(dict.fromkeys(variant for enabled, variant in answers if enabled and variant != "disabled")),
            }
        )
    lists = list(found.values())
    differing = [at for at, pair in enumerate(zip(*lists, strict=True)) if len(set(pair)) > 1] if len(lists) > 1 else []
    return {
        "name": name,
        "cells": cells,
        "some": any(cell["on"] for cell in cells),
        "differs": bool(differing),
        "line": differing[0] if differing else 0,
    }


def find_reasons(call: ApiCall, typed: Typed, contexts: Sequence[Context]) -> Json | None:
    """Return why a flag is on or off for one context in each environment; None if no flag was asked for."""
    if not typed.why or typed.line >= len(contexts):
        return None
    places = []
    for environment in typed.environments:
        with call.store.reading() as tx:
            rows = strategies.list_rows(tx, typed.why, environment)
        active = [{"id": row.id, "title": row.title} for row in rows if not row.disabled]
        with call.server.unfolded.using(call.server.documents, environment) as document:
            unfolded = document.unfolded
            if typed.why not in unfolded.compiled.snapshot.toggles:
                continue
            [whole] = explain_whole(unfolded, contexts[typed.line], [typed.why])
            each = [unfolded.compiled.snapshot.decide(context, typed.why)[0] for context in contexts]
            unfolded.compiled.snapshot.take_faults()
            place = {"environment": environment, **revision_of(document), "each": each}
            places.append(place | tree_of(whole, active))
    return {"flag": typed.why, "line": typed.line, "count": len(contexts), "places": places}


ROUTES = (
    page("/try", show, "try.html", "Try contexts."),
    change("/try", evaluate, summary="Try contexts.", template="try.html", reads=True, in_maintenance=True),
)


def tree_of(whole: WholeExplanation, stored: Sequence[Json]) -> Json:
    """Return an explanation as a tree. `stored` are the active strategies of the flag, in order."""
    known = stored if len(stored) == len(whole.strategies()) else ()
    inputs = [name for name, took_part in (("the time", whole.by_time), ("chance", whole.by_chance)) if took_part]
    return {
        "enabled": whole.enabled,
        "variant": whole.variant,
        "decided": whole.decided,
        "steps": [step_of(each, known) for each in whole.steps],
        "turning": whole.turning_words(),
        "inputs": inputs,
        "explanation": whole.to_json(),
    }


def step_of(step: Step, stored: Sequence[Json]) -> Json:
    """Return a step and those inside; of a parent, the strategies have no ids."""
    inside: Sequence[Json] = () if step.kind == "dependency" else stored
    found: Json = {
        "kind": step.kind,
        "answer": step.answer,
        "reached": step.reached,
        "words": tell(step),
        "steps": [step_of(each, inside) for each in step.inner()],
        "bar": bar_of(step),
        "id": None,
    }
    if isinstance(step, StrategyStep):
        own = stored[step.place - 1] if step.place <= len(stored) else None
        title = "" if own is None or not own["title"] else f'"{isolate(own["title"])}": '
        found |= {"words": f"{step.place}. {title}{step.words}", "id": None if own is None else own["id"]}
    return found


def bar_of(step: Step) -> Json | None:
    """Return the picture of a draw: the share of a rollout and the bucket; None for other steps."""
    if isinstance(step, RolloutStep):
        return {"share": step.share, "bucket": step.bucket}
    if isinstance(step, VariantStep) and step.bucket is not None:
        drawn = next((each for each in step.ranges if each.name == step.drawn and each.last is not None), None)
        return None if drawn is None else {"total": step.total, "bucket": step.bucket}
    return None


MOST_CONTEXTS: Final = 100
ATTRIBUTES: Final = {
    "appName": "app_name",
    "environment": "environment",
    "userId": "user_id",
    "sessionId": "session_id",
    "remoteAddress": "remote_address",
}
"""Standard field that is a text → the attribute of a context."""
TIME: Final = "currentTime"
NESTED: Final = "properties"
OF_FIELDS: Final = "The field"
"""The place of a context that the fields of the form have."""


class ContextError(ValueError):
    """A context that cannot be read; the message says where and what was expected. `field` is the field of the form."""

    def __init__(self, message: str, field: str = "lines") -> None:
        super().__init__(message)
        self.field = field


def read_pairs(form: Form) -> dict[str, str]:
    """Return the fields that have a value: names and values come side by side."""
    names, values = form.texts("name"), form.texts("value")
    return {name.strip(): value for name, value in zip(names, values, strict=False) if name.strip() and value}


def read_contexts(pairs: dict[str, str], lines: str, now: float) -> list[Context]:
    """Return the contexts to try: those of the lines, or the one of the fields. `now` is in epoch milliseconds.

    Raises ContextError.
    """
    written = [(number, line) for number, line in enumerate(lines.split("\n"), 1) if line.strip()]
    if len(written) > MOST_CONTEXTS:
        raise ContextError(f"There are {len(written)} contexts. At most {MOST_CONTEXTS} can be tried at once.")
    if not written:
        return [make_context(pairs, now, OF_FIELDS)]
    return [make_context(read_line(number, line), now, f"Line {number}:") for number, line in written]


def read_line(number: int, line: str) -> dict[str, str]:
    """Return the fields of a line. Raises ContextError."""
    try:
        found = json_text.parse(line.strip().encode("utf-8", "replace"), UTF8)
    except HttpError:
        raise ContextError(f"Line {number} is no JSON.") from None
    if not isinstance(found, dict):
        raise ContextError(f'Line {number} must be an object, such as {{"userId": "7"}}.')
    inside = found.pop(NESTED, None)
    if inside is not None and not isinstance(inside, dict):
        raise ContextError(f"Line {number}: `{NESTED}` must be an object.")
    given = {**(inside or {}), **found}
    try:
        return {name: scalar(value, name) for name, value in given.items() if value is not None}
    except DocumentError:
        raise ContextError(f"Line {number}: each value must be a text, a number, or true or false.") from None


def make_context(fields: dict[str, str], now: float, place: str) -> Context:
    """Return the context of these fields. Equal fields give equal draws, so a second look shows the same. Raises ContextError."""
    own = {ATTRIBUTES[name]: value for name, value in fields.items() if name in ATTRIBUTES and value}
    moment = jsdate.parse(fields[TIME]) if TIME in fields else None
    if TIME in fields and moment is None:
        field = TIME if place == OF_FIELDS else "lines"
        raise ContextError(f"{place} `{TIME}` must be a time, such as 2026-12-24T18:00:00Z.", field)
    digest = blake2b(repr(sorted(fields.items())).encode("utf-8", "replace"), digest_size=7).digest()
    return Context(
        user_id=own.get("user_id"),
        session_id=own.get("session_id"),
        app_name=own.get("app_name"),
        environment=own.get("environment"),
        remote_address=own.get("remote_address"),
        current_time=moment,
        properties={name: value for name, value in fields.items() if FIELDS.get(name, PROPERTY) in (PROPERTY, PROPERTIES)},
        now=now,
        entropy=int.from_bytes(digest, "big"),
    )
