"""What a form with a file sends: `multipart/form-data`. The body is in memory already, and its size is bounded before this."""

from __future__ import annotations

import re
from typing import Final

from flagsvc.http.messages import HttpError
from flagsvc.pages.forms import Form, add_field

MULTIPART: Final = "multipart/form-data"
MAX_PARTS: Final = 100
BOUNDARY: Final = re.compile(r';\s*boundary="?([^\s;"]{1,70})', re.IGNORECASE)
NAME: Final = re.compile(
    r'^content-disposition:\s*form-data\s*;\s*name="([^"\r\n]{0,200})"(\s*;\s*filename)?', re.I | re.M
)
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
