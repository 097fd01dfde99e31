"""What a form of a page sends, `application/x-www-form-urlencoded`, or with a file `multipart/form-data`; and lists in fields.

The body is in memory already, and its size is bounded before this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl

from flagsvc.http.messages import HttpError

FORM: Final = "application/x-www-form-urlencoded"
MAX_FIELDS: Final = 20_000
DIGITS: Final = 9
EXACT: Final = "={}.{}"
"""The name of the hidden field with the exact text of a field: made of the place among fields of the same name, and the name."""


class Form(dict[str, list[str]]):
    """The values of the fields, in the order of the form."""

    def text(self, name: str) -> str:
        """Return the first value of a field without blanks around it; empty without one. An unchanged one is as it was shown."""
        return next(iter(self.trimmed(name)), "")

    def texts(self, name: str) -> list[str]:
        """Return every value of a field; each that is unchanged as it was shown."""
        return [each if (kept := self.unchanged(name, at)) is None else kept for at, each in self._numbered(name)]

    def trimmed(self, name: str) -> list[str]:
        """Return every value of a field without blanks around it; each that is unchanged as it was shown."""
        return [each.strip() if (kept := self.unchanged(name, at)) is None else kept for at, each in self._numbered(name)]

    def unchanged(self, name: str, at: int = 0) -> str | None:
        """Return the text that the page showed in a field, if a browser sends what it makes of it.

        It makes line ends of carriage returns, and drops both in a field of one line. `make_exact` in `templates.py` adds the text
        to the page.
        """
        sent, shown = self.get(name, [])[at : at + 1], self.get(EXACT.format(at, name), [""])[0]
        try:
            text = json.loads(shown) if shown else None
        except (ValueError, RecursionError):
            return None
        return text if isinstance(text, str) and sent and sent[0] in (as_area(text), as_line(text)) else None

    def _numbered(self, name: str) -> list[tuple[int, str]]:
        return list(enumerate(self.get(name, [])))

    def has(self, name: str) -> bool:
        """Return whether a box is ticked, or a button of this name was pressed."""
        return name in self


def as_area(text: str) -> str:
    """Return what a field of several lines makes of a text."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def as_line(text: str) -> str:
    """Return what a field of one line makes of a text."""
    return text.replace("\r", "").replace("\n", "")


def read_whole(text: str) -> int | None:
    """Return a whole number of at most DIGITS digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else None


def parse_form(body: bytes) -> Form:
    """Return the fields of a body. Raises HttpError (400) if it is no form in UTF-8, has a NUL, or has too many fields."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        message = f"the form cannot be read: it must be UTF-8 and have at most {MAX_FIELDS} fields"
        raise HttpError(400, message, []) from None
    form = Form()
    for name, value in pairs:
        add_field(form, name, value)
    return form


def add_field(form: Form, name: str, value: str) -> None:
    """Add a value of a field. Raises HttpError (400) for a NUL."""
    if "\0" in name or "\0" in value:
        raise HttpError(400, "the form has a NUL character, which no text may have", [])
    form.setdefault(name, []).append(value.replace("\r\n", "\n"))


MULTIPART: Final = "multipart/form-data"
MAX_PARTS: Final = 100
BOUNDARY: Final = re.compile(r';\s*boundary="?([^\s;"]{1,70})', re.IGNORECASE)
NAME: Final = re.compile(r'^content-disposition:\s*form-data\s*;\s*name="([^"\r\n]{0,200})"(\s*;\s*filename)?', re.I | re.M)
"""Matches the line that names the field of a part, and tells whether the part is a file."""
UNREADABLE: Final = f"the form cannot be read: it must be whole, in UTF-8, and have at most {MAX_PARTS} parts"


def find_boundary(content_type: str) -> str:
    """Return the boundary of a Content-Type; empty if it is no form with parts, or names none."""
    found = BOUNDARY.search(content_type)
    is_multipart = content_type.partition(";")[0].strip().lower() == MULTIPART
    return found[1] if is_multipart and found else ""


def parse_multipart(body: bytes, boundary: str) -> Form:
    """Return the fields of a body; the value of a file is its text. A file that was not chosen is left out.

    Raises HttpError (400) for a body that is not whole or not UTF-8, has a NUL, or has more than MAX_PARTS parts.
    """
    mark = b"--" + boundary.encode("latin-1", "replace")
    start, *parts = b"".join((b"\r\n", body)).split(b"\r\n" + mark, MAX_PARTS + 2)
    if start.strip() or not parts or len(parts) > MAX_PARTS + 1 or parts.pop()[:2] != b"--":
        raise HttpError(400, UNREADABLE, [])
    form = Form()
    for part in parts:
        _add_part(form, part)
    return form


def _add_part(form: Form, part: bytes) -> None:
    """Add the field of a part. Raises HttpError (400)."""
    head, blank, content = part.partition(b"\r\n\r\n")
    try:
        named = NAME.search(head.decode())
        value = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HttpError(400, UNREADABLE, []) from None
    if not blank or named is None:
        raise HttpError(400, UNREADABLE, [])
    if value or not named[2]:
        add_field(form, named[1], value)


VALUE: Final = re.compile(r'[ \t]*(?:(\\?)"((?:[^"]|"")*+)"[ \t]*(?=[,\n]|\Z)|([^,\n]*))(?:[,\n]|\Z)')
"""One value and what ends it: in quotes, where two stand for one, or as it is without blanks around it.

Reading takes linear time: quotes without an end are read to the end of the text once, or to the next single quote."""
ESCAPE: Final = re.compile(r"\\([r\\])")
"""What stands for a carriage return and a backslash, in quotes behind a backslash. A browser makes a line end of the first."""


def read_values(text: str) -> list[str]:
    """Return the values of a text, each once, in order. Empty ones without quotes are left out."""
    found: list[str] = []
    at = 0
    while at < len(text):
        match = VALUE.match(text, at)
        assert match is not None  # the second form takes anything
        at = match.end()
        mark, quoted, bare = match.groups()
        value = bare.strip() if quoted is None else unquote(quoted, escaped=bool(mark))
        if value or quoted is not None:
            found.append(value)
    return list(dict.fromkeys(found))


def show_values(values: Sequence[str]) -> str:
    """Return a text from which `read_values` reads the same values: one on each line."""
    return "\n".join([quote(each) if needs_quotes(each) else each for each in values])


def needs_quotes(value: str) -> bool:
    """Return whether a value would not be read as it is."""
    return not value or value != value.strip() or value.startswith(('"', '\\"')) or any(each in value for each in ",\n\r")


def quote(value: str) -> str:
    """Return a value in quotes; with escapes behind a backslash if it has a carriage return."""
    doubled = value.replace('"', '""')
    if "\r" not in value:
        return f'"{doubled}"'
    escaped = doubled.replace("\\", "\\\\").replace("\r", "\\r")
    return f'\\"{escaped}"'


def unquote(text: str, *, escaped: bool) -> str:
    """Return the value of a text that stood in quotes."""
    single = text.replace('""', '"')
    return ESCAPE.sub(lambda found: "\r" if found[1] == "r" else "\\", single) if escaped else single
