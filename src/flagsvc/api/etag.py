"""Entity tags: two answers with the same tag are the same answer (behaviour: Evaluation endpoints). Compiled."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

HEX_DIGITS: Final = 32


def etag(body: bytes) -> bytes:
    """Return the weak entity tag of a body: 128 bits of its SHA-256."""
    return b'W/"' + sha256(body).hexdigest()[:HEX_DIGITS].encode() + b'"'


def matches(condition: bytes, tag: bytes) -> bool:
    """Return whether an If-None-Match header (a list, or `*`) names `tag`, compared weakly.

    A tag of ours holds neither comma nor quote, so that it stands in the list exactly where its quoted text stands in the header.
    """
    return tag[2:] in condition or condition.strip() == b"*"
