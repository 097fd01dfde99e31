"""The contexts that people try: typed into fields, or one on each line as JSON."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from flagsvc.core.errors import DocumentError
from flagsvc.engine.context import FIELDS, PROPERTIES, PROPERTY, Context
from flagsvc.engine.parse import scalar
from flagsvc.engine.values import jsdate
from flagsvc.http import json_text
from flagsvc.http.media import UTF8
from flagsvc.http.messages import HttpError
from flagsvc.pages.forms import Form

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


class ContextError(ValueError):
    """A context that cannot be read; the message says where and what was expected."""


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
        return [make_context(pairs, now, "The field")]
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
        raise ContextError(f"{place} `{TIME}` must be a time, such as 2026-12-24T18:00:00Z.")
    digest = blake2b(repr(sorted(fields.items())).encode("utf-8", "replace"), digest_size=7).digest()
    return Context(
        user_id=own.get("user_id"),
        session_id=own.get("session_id"),
        app_name=own.get("app_name"),
        environment=own.get("environment"),
        remote_address=own.get("remote_address"),
        current_time=moment,
        properties={
            name: value for name, value in fields.items() if FIELDS.get(name, PROPERTY) in (PROPERTY, PROPERTIES)
        },
        now=now,
        entropy=int.from_bytes(digest, "big"),
    )
