"""Body templates: the part of Mustache that needs no code, no files and no other delimiters (decision 0033). Pure.

An editor writes a template, and the server runs it for each event. So the length of a template is bounded, reading takes time in
proportion to the length, and each name that is looked up and each round of a section counts as a step.

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

KINDS = ("#", "^", "/", "!", "&")
SECTIONS = ("#", "^")
NAME = re.compile(r"\.|[\w$-]+(?:\.[\w$-]+)*")
INDEX = re.compile(r"\d{1,9}")
LONGEST_TEMPLATE = 64 * 1024
"""The most characters of a template."""
MOST_CHARACTERS = 1024 * 1024
"""The longest text that a template may make."""
MOST_STEPS = 100_000
"""The most steps of one text: parts that are written, names of their paths, and items of lists."""
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
    if len(text) > LONGEST_TEMPLATE:
        raise TemplateError(f"a template has at most {LONGEST_TEMPLATE} characters, this template has {len(text)}")
    open_: list[Section] = [Section((), False, [])]
    place = 0
    while (start := text.find("{{", place)) >= 0:
        if start > place:
            open_[-1].parts.append(text[place:start])
        place = _read_tag(open_, text, start)
    if place < len(text):
        open_[-1].parts.append(text[place:])
    if len(open_) > 1:
        raise TemplateError(f"the section `{'.'.join(open_[-1].path)}` has no end")
    return open_[0].parts


def _read_tag(open_: list[Section], text: str, start: int) -> int:
    """Read the tag that starts at a place, and return the place behind the tag. Raises TemplateError."""
    raw = text.startswith("{{{", start)
    braces = 3 if raw else 2
    end = text.find("}" * braces, start + braces)
    if end < 0:
        raise TemplateError(f"the tag at character {start + 1} has no end")
    inner = text[start + braces : end].strip()
    kind = inner[:1] if not raw and inner.startswith(KINDS) else ""
    if kind != "!":
        name = inner[len(kind) :].strip()
        if NAME.fullmatch(name) is None:
            tag = text[start : min(end + braces, start + 40)]
            raise TemplateError(f"`{tag}` at character {start + 1} is no value, section or comment")
        _add_tag(open_, "&" if raw else kind, () if name == "." else tuple(name.split(".")))
    return end + braces


def _add_tag(open_: list[Section], kind: str, path: tuple[str, ...]) -> None:
    """Add a value or a section to the innermost section, or end the innermost section. Raises TemplateError."""
    if kind == "/":
        _end_section(open_, path)
    elif kind in SECTIONS:
        if len(open_) > DEEPEST:
            raise TemplateError(f"more than {DEEPEST} sections are within each other")
        section = Section(path, kind == "^", [])
        open_[-1].parts.append(section)
        open_.append(section)
    else:
        open_[-1].parts.append(Value(path, kind == "&"))


def _end_section(open_: list[Section], path: tuple[str, ...]) -> None:
    """End the innermost section. Raises TemplateError if the innermost section has another name."""
    if len(open_) == 1 or open_[-1].path != path:
        inner = f": `{'.'.join(open_[-1].path)}` is open" if len(open_) > 1 else ""
        raise TemplateError(f"`{{{{/{'.'.join(path)}}}}}` ends no section{inner}")
    open_.pop()


def render_template(parts: Sequence[Part], values: Mapping[str, Any], escape: Escape, ready: Collection[str] = ()) -> str:
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
            self._step()
            if isinstance(part, str):
                self._add(part)
            elif isinstance(part, Value):
                text = text_of(self._find(part.path, scopes))
                plain = part.raw or (len(part.path) > 0 and part.path[0] in self._ready)
                self._add(text if plain else self._escape(text))
            else:
                self._write_section(part, scopes)

    def _write_section(self, section: Section, scopes: tuple[Any, ...]) -> None:
        value = self._find(section.path, scopes)
        if section.absent:
            if not value:
                self.write(section.parts, scopes)
        elif isinstance(value, list):
            for each in value:
                self._step()
                self.write(section.parts, (*scopes, each))
        elif value:
            self.write(section.parts, (*scopes, value))

    def _find(self, path: tuple[str, ...], scopes: tuple[Any, ...]) -> Any:
        """Return the value at a path. Each name of the path is a step."""
        self._step(len(path))
        return find_value(path, scopes)

    def _step(self, number: int = 1) -> None:
        """Count steps. Raises TemplateError at the bound."""
        self._steps += number
        if self._steps > MOST_STEPS:
            raise TemplateError(f"the body template takes more than {MOST_STEPS} steps for this event")

    def _add(self, text: str) -> None:
        """Add a piece of text. Raises TemplateError at the bound."""
        self._size += len(text)
        if self._size > MOST_CHARACTERS:
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
    if isinstance(value, list) and INDEX.fullmatch(name) is not None and int(name) < len(value):
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
