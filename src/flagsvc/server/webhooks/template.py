"""Body templates: the part of Mustache that needs no code, no files and no other delimiters (decision 0062). Pure.

`{{event.type}}` is a value, written for JSON where the body is JSON; `{{{event.type}}}` and `{{&event.type}}` are the value as it
is. `{{#event.tags}}…{{/event.tags}}` repeats for a list or shows once for anything else that is there; `{{^event.tags}}…` shows
where nothing is. `{{! a comment }}` shows nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from flagsvc.core.errors import FlagsvcError

TAG = re.compile(r"\{\{\{\s*(?P<raw>[^{}]*?)\s*\}\}\}|\{\{\s*(?P<kind>[#^/!&]?)\s*(?P<name>.*?)\s*\}\}", re.DOTALL)
NAME = re.compile(r"\.|[\w$-]+(?:\.[\w$-]+)*")
MOST_CHARACTERS = 1024 * 1024
"""The longest text that a template may make."""
MOST_STEPS = 100_000
"""The most pieces of a template that are written for one text: sections of lists within lists multiply."""
DEEPEST = 20
"""The most sections within each other."""

Escape: TypeAlias = Callable[[str], str]


class TemplateError(FlagsvcError):
    """A template cannot be read, or makes too much. The message has no value of an event."""


class Value(NamedTuple):
    """A value by its path; `raw`: as it is."""

    path: tuple[str, ...]
    raw: bool


class Section(NamedTuple):
    """A part that depends on a value; `absent`: it is shown where nothing is."""

    path: tuple[str, ...]
    absent: bool
    parts: list[Any]


Part: TypeAlias = str | Value | Section


def parse_template(text: str) -> list[Part]:
    """Return the parts of a template. Raises TemplateError, which says where."""
    open_: list[Section] = [Section((), False, [])]
    place = 0
    for found in TAG.finditer(text):
        _add_text(open_[-1], text[place : found.start()], text, place)
        _add_tag(open_, found)
        place = found.end()
    _add_text(open_[-1], text[place:], text, place)
    if len(open_) > 1:
        raise TemplateError(f"the section `{'.'.join(open_[-1].path)}` has no end")
    return open_[0].parts


def _add_text(section: Section, piece: str, text: str, place: int) -> None:
    """Add the text between two tags."""
    at = piece.find("{{")
    if at >= 0:
        raise TemplateError(f"the tag at character {place + at + 1} has no end")
    if piece:
        section.parts.append(piece)


def _add_tag(open_: list[Section], found: re.Match[str]) -> None:
    """Add what a tag says to the innermost section, or begin or end one."""
    raw, kind, name = found["raw"], found["kind"], found["name"]
    if kind == "!":
        return
    path = _path_of(found, raw if raw is not None else name)
    if kind == "/":
        _end_section(open_, path)
    elif kind in ("#", "^"):
        if len(open_) > DEEPEST:
            raise TemplateError(f"more than {DEEPEST} sections are within each other")
        section = Section(path, kind == "^", [])
        open_[-1].parts.append(section)
        open_.append(section)
    else:
        open_[-1].parts.append(Value(path, raw is not None or kind == "&"))


def _path_of(found: re.Match[str], name: str) -> tuple[str, ...]:
    """Return the path of a name, empty for the present value. Raises TemplateError."""
    if NAME.fullmatch(name) is None:
        raise TemplateError(f"`{found[0][:40]}` at character {found.start() + 1} is no value, section or comment")
    return () if name == "." else tuple(name.split("."))


def _end_section(open_: list[Section], path: tuple[str, ...]) -> None:
    """End the innermost section. Raises TemplateError for any other one."""
    if len(open_) == 1 or open_[-1].path != path:
        inner = f": `{'.'.join(open_[-1].path)}` is open" if len(open_) > 1 else ""
        raise TemplateError(f"`{{{{/{'.'.join(path)}}}}}` ends no section{inner}")
    open_.pop()


def render_template(
    parts: Sequence[Part], values: Mapping[str, Any], escape: Escape, ready: Collection[str] = ()
) -> str:
    """Return the text that a template makes of values. Values named in `ready` are never escaped. Raises TemplateError."""
    writer = _Writer(escape, frozenset(ready))
    writer.write(parts, (values,))
    return "".join(writer.pieces)


class _Writer:
    """Collects the pieces of one text, within its limits."""

    def __init__(self, escape: Escape, ready: frozenset[str]) -> None:
        self.pieces: list[str] = []
        self._escape = escape
        self._ready = ready
        self._size = 0
        self._steps = 0

    def write(self, parts: Sequence[Part], scopes: tuple[Any, ...]) -> None:
        """Write parts; names are looked up in the innermost scope first."""
        for part in parts:
            self._steps += 1
            if isinstance(part, str):
                self._add(part)
            elif isinstance(part, Value):
                text = text_of(find_value(part.path, scopes))
                plain = part.raw or (len(part.path) > 0 and part.path[0] in self._ready)
                self._add(text if plain else self._escape(text))
            else:
                self._write_section(part, scopes)

    def _write_section(self, section: Section, scopes: tuple[Any, ...]) -> None:
        value = find_value(section.path, scopes)
        if section.absent:
            if not value:
                self.write(section.parts, scopes)
        elif isinstance(value, list):
            for each in value:
                self.write(section.parts, (*scopes, each))
        elif value:
            self.write(section.parts, (*scopes, value))

    def _add(self, text: str) -> None:
        self._size += len(text)
        if self._size > MOST_CHARACTERS or self._steps > MOST_STEPS:
            raise TemplateError(f"the body template makes more than {MOST_CHARACTERS} characters of this event")
        self.pieces.append(text)


def find_value(path: tuple[str, ...], scopes: tuple[Any, ...]) -> Any:
    """Return the value at a path: its first name in the innermost scope that has it. None without one."""
    if not path:
        return scopes[-1]
    first, *rest = path
    value = next((each[first] for each in reversed(scopes) if isinstance(each, Mapping) and first in each), None)
    for name in rest:
        value = _member(value, name)
    return value


def _member(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None


def text_of(value: Any) -> str:
    """Return a value as text: nothing for None, JSON for lists and objects."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def escape_json(text: str) -> str:
    """Return a text as it stands between the quotes of a JSON text."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
