"""What a form of a page sends: `application/x-www-form-urlencoded`. `multipart.py` reads forms with a file."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

from flagsvc.http.messages import HttpError

FORM: Final = "application/x-www-form-urlencoded"
MAX_FIELDS: Final = 20_000
DIGITS: Final = 9


class Form(dict[str, list[str]]):
    """The values of the fields, in the order of the form."""

    def text(self, name: str) -> str:
        """Return the first value of a field without blanks around it; empty without one."""
        return self.get(name, [""])[0].strip()

    def texts(self, name: str) -> list[str]:
        """Return every value of a field."""
        return self.get(name, [])

    def has(self, name: str) -> bool:
        """Return whether a box is ticked, or a button of this name was pressed."""
        return name in self


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
