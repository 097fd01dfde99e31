"""Reads the values of a decoded JSON document by their kinds.

A value of another kind than expected is odd. The reference's engine reads it as JavaScript does, and so does this module
(behaviour: Odd values in a configuration).
"""

from __future__ import annotations

from typing import Final

from flagsvc.core.errors import DocumentError
from flagsvc.engine.values.jsvalue import MISSING, is_true, text_of

KINDS: Final[dict[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}
SCALAR: Final = "a text, a number, true or false"


class Oddities:
    """The odd value of a part that is served all the same. Of several, the one with the first path counts."""

    def __init__(self) -> None:
        self.first: DocumentError | None = None

    def add(self, path: str, expected: str, raw: object) -> None:
        """Note an unexpected value."""
        if self.first is None or path < self.first.path:
            self.first = DocumentError(path, wrong(expected, raw))


def as_object(raw: object, path: str) -> dict[str, object]:
    """Return an object. Raises DocumentError for any other value."""
    if isinstance(raw, dict):
        return raw
    raise DocumentError(path, wrong("an object", raw))


def as_list(owner: dict[str, object], key: str, path: str) -> list[object]:
    """Return the list under `key`, empty if it is absent. Raises DocumentError for any other value."""
    raw = owner.get(key)
    if raw is None:
        return []
    if isinstance(raw, list):
        return raw
    raise DocumentError(f"{path}.{key}" if path else key, wrong("a list", raw))


def read_object(raw: object, path: str, odd: Oddities, nullable: bool = False) -> dict[str, object]:
    """Return an object; an empty one for any other value, which is odd."""
    if isinstance(raw, dict):
        return raw
    if raw is not None or not nullable:
        odd.add(path, "an object", raw)
    return {}


def read_list(owner: dict[str, object], key: str, path: str, odd: Oddities) -> list[object]:
    """Return the list under `key`, empty if it is absent; empty for any other value, which is odd."""
    raw = owner.get(key)
    if isinstance(raw, list):
        return raw
    if raw is not None:
        odd.add(f"{path}.{key}", "a list", raw)
    return []


def read_flag(owner: dict[str, object], key: str, path: str, odd: Oddities) -> bool:
    """Return the boolean under `key`, false if it is absent. Any other value is odd, and true or false as in JavaScript."""
    raw = owner.get(key)
    if raw is not None and not isinstance(raw, bool):
        odd.add(f"{path}.{key}", "true or false", raw)
    return is_true(raw)


def read_own_text(owner: dict[str, object], key: str, path: str, odd: Oddities) -> str:
    """Return the text under `key`; empty for any other value. Only null is not odd."""
    raw = owner.get(key)
    if raw is not None and not isinstance(raw, str):
        odd.add(f"{path}.{key}", "a text", raw)
    return raw if isinstance(raw, str) else ""


def read_key(owner: dict[str, object], key: str, path: str, odd: Oddities) -> str:
    """Return the name under `key` as JavaScript uses it for a key: `undefined` if there is none. A list or an object is odd."""
    raw = owner.get(key, MISSING)
    if isinstance(raw, (list, dict)):
        odd.add(f"{path}.{key}", "a text", raw)
    return text_of(raw)


def wrong(expected: str, raw: object) -> str:
    """Return the error for a value of the wrong kind."""
    return f"must be {expected}, is {'missing' if raw is None else KINDS.get(type(raw), 'something else')}"
