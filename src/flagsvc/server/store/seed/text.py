"""Parses the text of a seed file, JSON or YAML, and refuses repeated keys of an object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import yaml

from flagsvc.core.yaml_text import MERGE, BoundedReader, YamlError, load_yaml, place_of
from flagsvc.http.shapes import Shape
from flagsvc.http.yaml_texts import keep_texts
from flagsvc.settings.kinds import printable

TOO_DEEP = "is nested too deeply"


class RepeatedKeyError(Exception):
    """A key is repeated in one object. `str` names the key and its position."""


class SeedYamlReader(BoundedReader):
    """The safe loader, which refuses repeated keys."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the node of an object.

        Raises RepeatedKeyError. Keys of a merge may be repeated, because they are not added yet.
        """
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
                continue
            if key.value in seen:
                raise RepeatedKeyError(f"has the key `{printable(key.value)}` twice: {place_of(key.start_mark)}")
            seen.add(key.value)
        return node


def read_text(content: bytes, shape: Shape) -> object:
    """Return the value of a text; texts of YAML are kept where the shape has texts.

    Raises ValueError with a message that continues `the seed file …`.
    JSON is tried first, because its indentation may be invalid in YAML.
    """
    try:
        value = _read(content, shape)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except RepeatedKeyError as error:
        raise ValueError(str(error)) from None
    if value is None:
        raise ValueError("is empty")
    return value


def _read(content: bytes, shape: Shape) -> Any:
    with suppress(ValueError):
        return json.loads(content, object_pairs_hook=_record)
    try:
        return load_yaml(content, SeedYamlReader, keep_texts(shape))
    except YamlError as error:
        raise ValueError(error.told("is neither JSON nor YAML")) from None


def _record(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises RepeatedKeyError."""
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise RepeatedKeyError(f"has the key `{printable(key)}` twice in one object")
        record[key] = value
    return record
