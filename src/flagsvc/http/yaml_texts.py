"""Keeps the texts of a YAML document as written: `1.10`, `01067`, `yes` and dates, where a schema says that a text belongs.

YAML reads a plain `1.10` as the number 1.1. Only the place says whether a number or a text is meant, so the schema of the file
decides before values are made. A value that can be kept neither as text nor as something else is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import yaml

from flagsvc.core.yaml_text import MERGE, TAGS, UnclearError
from flagsvc.http.shapes.places import Places, is_canonical, takes, takes_anything, takes_text
from flagsvc.http.shapes.shape import Schema, Shape

TEXT: Final = f"{TAGS}str"
NOTHING: Final = f"{TAGS}null"
NUMBERS: Final = (f"{TAGS}int", f"{TAGS}float")
PLAIN: Final = (TEXT, NOTHING)
WORDS: Final = ("true", "false")


def keep_texts(shape: Shape) -> Callable[[Any], Any]:
    """Return a function that returns the node of a document with the texts of a shape as written. It raises UnclearError."""
    return lambda node: TextKeeper(shape).kept(node, shape.schema())


class TextKeeper(Places):
    """Makes the nodes of one document. A node that aliases share is made once for each schema that it has to fit."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._made: dict[tuple[int, int, bool], yaml.Node] = {}

    def kept(self, node: yaml.Node, schema: Schema | None, *, item: bool = False) -> yaml.Node:
        """Return a node whose texts are as written. Raises UnclearError."""
        schema = self.resolve(schema)
        place = id(node), id(schema), item
        if place not in self._made:
            self._made[place] = self._make(node, schema, item)
        return self._made[place]

    def _make(self, node: yaml.Node, schema: Schema | None, item: bool) -> yaml.Node:
        if isinstance(node, yaml.SequenceNode):
            items = [self.kept(each, self.member(schema, None), item=True) for each in node.value]
            return yaml.SequenceNode(node.tag, items, node.start_mark, node.end_mark, node.flow_style)
        if isinstance(node, yaml.MappingNode):
            pairs = [self._pair(key, value, schema) for key, value in node.value]
            return yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark, node.flow_style)
        return self._scalar(node, schema, item)

    def _pair(self, key: yaml.Node, value: yaml.Node, schema: Schema | None) -> tuple[yaml.Node, yaml.Node]:
        """Return a member of a mapping. Its key is a text. What is merged has the schema of the mapping."""
        if not isinstance(key, yaml.ScalarNode):
            return key, value
        if key.tag != MERGE:
            return as_text(key), self.kept(value, self.member(schema, key.value))
        if not isinstance(value, yaml.SequenceNode):
            return key, self.kept(value, schema)
        several = [self.kept(each, schema) for each in value.value]
        return key, yaml.SequenceNode(value.tag, several, value.start_mark, value.end_mark)

    def _scalar(self, node: yaml.Node, schema: Schema | None, item: bool) -> yaml.Node:
        """Return a scalar; one with quotation marks stays."""
        if not isinstance(node, yaml.ScalarNode) or node.style or schema is None:
            return node
        word = str(node.value)
        if takes_text(schema):
            if node.tag == NOTHING and item and word:
                raise UnclearError(f"has `{word}` in a list of texts", node.start_mark, f'write `"{word}"` for the text')
            return node if node.tag == NOTHING else as_text(node)
        if takes(schema, "number", "integer") and node.tag in NUMBERS and (":" in word or is_octal(word)):
            raise UnclearError(f"has the number `{word}`", node.start_mark, "write a decimal number without a leading zero")
        if takes_anything(schema) and node.tag not in PLAIN and word not in WORDS and not is_canonical(word):
            how = f'write `"{word}"` for a text, and other values as in JSON'
            raise UnclearError(f"has `{word}`, which readers take differently", node.start_mark, how)
        return node


def as_text(node: yaml.ScalarNode) -> yaml.Node:
    return node if node.tag == TEXT else yaml.ScalarNode(TEXT, node.value, node.start_mark, node.end_mark, node.style)


def is_octal(word: str) -> bool:
    """Return whether YAML 1.1 reads a number to the base 8."""
    digits = word.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and (digits[1].isdigit() or digits[1] == "_")
