"""Digests of the values in a document. Equal values have the same digest in every process, however they are spelled in JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Final

import msgspec

SIZE: Final = 16
"""Bytes of a digest."""


def digest(value: object) -> bytes:
    """Return the digest of a decoded JSON value; the order of keys and the spelling do not count."""
    return hashlib.blake2b(canonical(value), digest_size=SIZE).digest()


def canonical(value: object) -> bytes:
    """Return JSON that is equal for equal values, and for no others."""
    try:
        encoded = msgspec.json.encode(value, order="deterministic")
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(value, sort_keys=True).encode()
    # the fast encoder writes null for an infinity, which a document may hold as 1e999
    if b"null" in encoded and infinite(value):
        return json.dumps(value, sort_keys=True).encode()
    return encoded


def infinite(value: object) -> bool:
    """Return whether a number somewhere in the value is beyond all doubles."""
    if isinstance(value, dict):
        for item in value.values():
            if infinite(item):
                return True
    elif isinstance(value, list):
        for item in value:
            if infinite(item):
                return True
    elif isinstance(value, float):
        return value - value != 0.0
    return False


def combined(parts: list[bytes]) -> str:
    """Return the hex digest of parts of any length, in their order."""
    whole = hashlib.blake2b(digest_size=SIZE)
    for part in parts:
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.hexdigest()
