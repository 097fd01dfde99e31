"""The schemas of the places in a document, for readers of files that ask what belongs at a place."""

from __future__ import annotations

from typing import Final

from flagsvc.engine.values import jsnumber
from flagsvc.http.shapes.shape import Named, Schema, Shape

NOTES: Final = {"description", "example"}
"""Keys of a schema that say nothing of values."""


class Places:
    """The schemas of the places in a shape."""

    def __init__(self, shape: Shape) -> None:
        self._named: dict[str, Schema] = {}
        pending = [shape]
        while pending:
            each = pending.pop()
            if not isinstance(each, Named):
                pending += each.below()
            elif each.name not in self._named:
                self._named[each.name] = each.inner.schema()
                pending.append(each.inner)

    def resolve(self, schema: Schema | None) -> Schema | None:
        """Return the schema behind a reference and beside null; None if several are possible."""
        while schema is not None and ("$ref" in schema or "anyOf" in schema):
            if "$ref" in schema:
                schema = self._named[schema["$ref"].rpartition("/")[2]]
                continue
            others = [each for each in schema["anyOf"] if each != {"type": "null"}]
            schema = others[0] if len(others) == 1 else None
        return schema

    def member(self, schema: Schema | None, key: str | None) -> Schema | None:
        """Return the schema of a member of an object, or of an item for None. It is None if nothing is said of the member."""
        if schema is None or takes_anything(schema):
            return schema
        if key is None:
            return schema.get("items")
        rest = schema.get("additionalProperties")
        found: Schema | None = schema.get("properties", {}).get(key, rest if isinstance(rest, dict) else None)
        return found


def takes_anything(schema: Schema) -> bool:
    """Return whether a schema allows every value."""
    return schema.keys() <= NOTES


def takes(schema: Schema, *kinds: str) -> bool:
    """Return whether a schema allows a value of one of several types."""
    given = schema.get("type", "string" if "enum" in schema else "")
    return not set(given if isinstance(given, list) else [given]).isdisjoint(kinds)


def takes_text(schema: Schema) -> bool:
    """Return whether a schema allows a text other than a moment."""
    return takes(schema, "string") and schema.get("format") != "date-time"


def is_canonical(word: str) -> bool:
    """Return whether JavaScript writes a number in the same way, so that it means the same as a number and as a text."""
    return jsnumber.is_decimal(word) and jsnumber.to_text(jsnumber.parse(word)) == word
