"""JSON as the value of a variable. No key is lost in silence, and no message shows a part of the text, which may hold secrets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

Path = tuple[str, ...]
"""The keys that lead to an object."""


class JsonObject(dict[str, Any]):
    """An object of JSON. `repeated` has the keys that come more than once in it."""

    repeated: Path = ()


def read_json(text: str) -> object:
    """Return the value of a JSON text. Raises ValueError with what is wrong, and the line and the column.

    The position and the reason are shown, and nothing of the text (behaviour: Several environments).
    """
    import json  # most processes have no option in JSON

    try:
        return json.loads(text, object_pairs_hook=_json_object)
    except json.JSONDecodeError as error:
        reason = re.sub(r"( starting)? at$|:.*", "", error.msg)
        place = f"at line {error.lineno}, column {error.colno}"
        raise ValueError(f"{reason[:1].lower()}{reason[1:]} ({place})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        raise ValueError("a number is too long") from None


def _json_object(pairs: Sequence[tuple[str, Any]]) -> JsonObject:
    """Return an object of its keys and values."""
    found = JsonObject(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        found.repeated = tuple(key for key in found if times[key] > 1)
    return found


def repeated_keys(value: object) -> Iterator[tuple[Path, str]]:
    """Yield each key that comes more than once in an object of a value that was read, behind the keys that lead there."""
    waiting: list[tuple[Path, object]] = [((), value)]
    while waiting:
        path, found = waiting.pop()
        if isinstance(found, JsonObject):
            yield from ((path, key) for key in found.repeated)
            waiting += [((*path, key), each) for key, each in reversed(found.items())]
        elif isinstance(found, list):
            waiting += [(path, each) for each in found]
