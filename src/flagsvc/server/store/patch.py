"""JSON Patch (RFC 6902) as the real server applies it: `remove` accepts a missing value.

A patch that cannot be applied is a 400 of our own. The real server answers some of these with 500.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

from flagsvc.server.store.errors import bad_data

END = "-"
"""The step of a pointer that means the position after the last item of an array."""
MOST_COPIED: Final = 1_000_000
"""The most characters that all `copy` operations of a patch copy together: a copy of the whole into itself doubles it."""
VALUE_SIZE: Final = 10
"""The characters that a value counts besides those of a text."""


class InapplicableOperationError(Exception):
    """An operation cannot be applied to the document."""


class Held(list[Any]):
    """The document, as the only item, and how many characters may still be copied in it."""

    left = MOST_COPIED

    def copied(self, value: Any) -> Any:
        """Return a copy of a JSON value. Raises InapplicableOperationError once too much is copied."""
        digits = value.bit_length() if isinstance(value, int) else 0
        self.left -= VALUE_SIZE + (len(value) if isinstance(value, str) else digits)
        if self.left < 0:
            raise InapplicableOperationError(f"the patch copies more than {MOST_COPIED:,} characters")
        if isinstance(value, dict):
            return {self.copied(key): self.copied(each) for key, each in value.items()}
        return [self.copied(each) for each in value] if isinstance(value, list) else value


def apply_patch(document: Any, operations: Iterable[Mapping[str, Any]]) -> Any:
    """Return a document after some operations.

    The given document does not change. Raises CallerError (400) if one cannot be applied.
    """
    held = Held([deepcopy(document)])
    for number, operation in enumerate(operations):
        try:
            OPERATIONS[operation["op"]](held, operation)
        except InapplicableOperationError as error:
            raise bad_data(f"Could not apply provided patch: operation {number}: {error}") from None
    return held[0]


def _steps(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise InapplicableOperationError(f"`{pointer}` is no JSON Pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _place(held: list[Any], pointer: str) -> tuple[Any, str]:
    """Return the container of the value at a pointer, and its key there. The document itself is item 0 of a list."""
    holder: Any = held
    key = "0"
    for step in _steps(pointer):
        holder, key = _value(holder, key, pointer), step
    if not isinstance(holder, dict | list):
        raise InapplicableOperationError(f"there is nothing at `{pointer}`")
    return holder, key


def _value(holder: Any, key: str, pointer: str) -> Any:
    """Return the value of a key. Raises InapplicableOperationError if there is none."""
    if isinstance(holder, dict) and key in holder:
        return holder[key]
    if isinstance(holder, list):
        place = _index(holder, key, pointer)
        if place < len(holder):
            return holder[place]
    raise InapplicableOperationError(f"there is nothing at `{pointer}`")


def _index(holder: list[Any], key: str, pointer: str) -> int:
    """Return the index that a key names in an array, at most the one after the last item."""
    if key == END:
        return len(holder)
    if not (key.isascii() and key.isdecimal()):
        raise InapplicableOperationError(f"there is nothing at `{pointer}`")
    return min(int(key[:9]), len(holder))


def _find(held: list[Any], pointer: str) -> Any:
    return _value(*_place(held, pointer), pointer)


def _put(held: list[Any], pointer: str, value: Any, *, insert: bool) -> None:
    """Set the value at a pointer. In an array, `insert` moves the later items."""
    holder, key = _place(held, pointer)
    if isinstance(holder, dict):
        holder[key] = value
        return
    place = _index(holder, key, pointer)
    if insert and holder is not held:
        holder.insert(place, value)
    elif place < len(holder):
        holder[place] = value
    else:
        raise InapplicableOperationError(f"there is nothing at `{pointer}`")


def _given(operation: Mapping[str, Any], name: str) -> Any:
    if name not in operation:
        raise InapplicableOperationError(f"`{name}` is missing")
    return operation[name]


def _add(held: Held, operation: Mapping[str, Any]) -> None:
    _put(held, operation["path"], _given(operation, "value"), insert=True)


def _replace(held: Held, operation: Mapping[str, Any]) -> None:
    _put(held, operation["path"], _given(operation, "value"), insert=False)


def _remove(held: Held, operation: Mapping[str, Any]) -> None:
    holder, key = _place(held, operation["path"])
    if holder is held:
        raise InapplicableOperationError("the whole document cannot be removed")
    if isinstance(holder, dict):
        holder.pop(key, None)
        return
    place = _index(holder, key, operation["path"])
    del holder[place : place + 1]


def _copy(held: Held, operation: Mapping[str, Any]) -> None:
    _put(held, operation["path"], held.copied(_find(held, _given(operation, "from"))), insert=True)


def _move(held: Held, operation: Mapping[str, Any]) -> None:
    source = _given(operation, "from")
    value = _find(held, source)
    _remove(held, {"path": source})
    _put(held, operation["path"], value, insert=True)


def _is_equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. In Python alone, true equals 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _test(held: Held, operation: Mapping[str, Any]) -> None:
    if not _is_equal(_find(held, operation["path"]), _given(operation, "value")):
        raise InapplicableOperationError(f"the value at `{operation['path']}` is another")


OPERATIONS = {"add": _add, "replace": _replace, "remove": _remove, "copy": _copy, "move": _move, "test": _test}
