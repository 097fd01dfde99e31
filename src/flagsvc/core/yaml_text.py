"""Loads YAML of bounded size: a few lines whose aliases multiply end in an error before their values are made.

The reader of data sets and compose files, and the reader of seed files, are subclasses of `BoundedReader`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import yaml

TAGS: Final = "tag:yaml.org,2002:"
MERGE: Final = f"{TAGS}merge"
INT: Final = f"{TAGS}int"
LARGEST: Final = 64 * 1024 * 1024
"""The most bytes or characters of a text."""
MOST_REPEATED: Final = 2_000_000
"""The most values that aliases and merges repeat. A text counts once more for every TEXT characters."""
TEXT: Final = 64
MAX_DEPTH: Final = 100
"""The most levels, with aliases written out."""
MOST_MERGES: Final = 100
"""The most merge keys of a mapping. PyYAML needs a time that grows with their square."""
LONGEST_NUMBER: Final = 1000
"""The most characters of an integer. PyYAML needs a time that grows with the square of `1:1:1…`."""


class YamlError(ValueError):
    """A text is no YAML that can be read. `reason` is in lower case, `place` is `line 1, column 2` or empty."""

    def __init__(self, reason: str, mark: yaml.Mark | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place_of(mark) if mark else ""

    def told(self, problem: str) -> str:
        """Return a message that continues the name of the file; `problem` says that the file is no YAML."""
        return f"{problem}: {self.reason}{f' at {self.place}' if self.place else ''}"


class UnclearError(YamlError):
    """A value can be read in several ways. `how` says how to write it."""

    def __init__(self, reason: str, mark: yaml.Mark, how: str) -> None:
        super().__init__(reason, mark)
        self.how = how

    def told(self, problem: str) -> str:
        """Return a message that continues the name of the file."""
        return f"{self.reason} at {self.place}: {self.how}"


def place_of(mark: yaml.Mark) -> str:
    """Return a position for messages."""
    return f"line {mark.line + 1}, column {mark.column + 1}"


def unchanged(node: Any) -> Any:
    return node


class BoundedReader(yaml.SafeLoader):
    """PyYAML's safe loader with bounds. It is not LibYAML's, because there deep nesting crashes the process.

    `finish` returns the node whose value is made, from that of the document.
    """

    def __init__(self, stream: str | bytes, finish: Callable[[Any], Any] = unchanged) -> None:
        super().__init__(stream)
        self._finish = finish
        self._depth = self._deepest = self._values = self._repeated = 0
        self._anchored: dict[int, tuple[int, int]] = {}
        """The id of a node with an anchor → its values and its levels, with aliases written out."""

    def compose_document(self) -> Any:
        """Return the next document. An alias stands for a node of its own document only."""
        self._anchored.clear()
        return super().compose_document()

    def get_single_node(self) -> Any:
        """Return the node of the document, and None if there is none. Raises YamlError."""
        node = super().get_single_node()
        return node and self._finish(node)

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node. Raises YamlError."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        before, outer, self._deepest = self._values, self._deepest, self._depth
        self._values += 1 + len(getattr(event, "value", None) or "") // TEXT
        self._reach(self._depth, event)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent):
            self._repeat(node, event)
        elif event.anchor is not None:
            self._anchored[id(node)] = self._values - before, self._deepest - self._depth
        self._deepest = max(outer, self._deepest)
        return node

    def _repeat(self, node: object, event: Any) -> None:
        """Count the values of an alias."""
        if id(node) not in self._anchored:
            raise YamlError("an alias is inside of what it stands for", event.start_mark)
        values, levels = self._anchored[id(node)]
        self._values += values
        self._repeated += values
        self._reach(self._depth + levels, event)
        if self._repeated > MOST_REPEATED:
            raise YamlError(f"its aliases repeat more than {MOST_REPEATED} values", event.start_mark)

    def _reach(self, depth: int, event: Any) -> None:
        """Note how deep the nodes are."""
        self._deepest = max(self._deepest, depth)
        if depth > MAX_DEPTH:
            raise YamlError("nested too deeply", event.start_mark)

    def flatten_mapping(self, node: Any) -> None:
        """Replace the merge keys of a mapping by what they stand for. Raises YamlError."""
        if sum(key.tag == MERGE for key, _ in node.value) > MOST_MERGES:
            raise YamlError(f"a mapping has more than {MOST_MERGES} merge keys", node.start_mark)
        super().flatten_mapping(node)

    def construct_integer(self, node: Any) -> int:
        """Return an integer of YAML 1.1. Raises ValueError."""
        if len(node.value) > LONGEST_NUMBER:
            raise ValueError("a number has too many digits")
        return int(super().construct_yaml_int(node))


BoundedReader.add_constructor(INT, BoundedReader.construct_integer)


def load_yaml(text: str | bytes, reader: type[BoundedReader], finish: Callable[[Any], Any] = unchanged) -> Any:
    """Return the value of a YAML document, made of the node that `finish` returns. Raises YamlError."""
    return _load(text, lambda: reader(text, finish).get_single_data())


def load_documents(text: str | bytes, reader: type[BoundedReader]) -> list[Any]:
    """Return the values of the YAML documents of a text, with the bounds of one. Raises YamlError."""
    return list(_load(text, lambda: list(yaml.load_all(text, reader))))


def _load(text: str | bytes, load: Callable[[], Any]) -> Any:
    """Return what `load` makes of a text. Raises YamlError."""
    if len(text) > LARGEST:
        raise YamlError(f"it has more than {LARGEST} bytes")
    try:
        return load()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError((error.problem or "malformed").lower(), mark) from None
    except yaml.YAMLError as error:
        raise YamlError(str(error).splitlines()[0].lower()) from None
    except YamlError:
        raise
    except RecursionError:
        raise YamlError("nested too deeply") from None
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError):
        raise YamlError("a value is not of its type, or a number has too many digits") from None
