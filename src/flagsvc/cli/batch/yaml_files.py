"""Reads and writes YAML data sets, with the plain scalars of YAML 1.2's JSON schema, so `on`, `09:00` and dates stay text.

PyYAML reads YAML 1.1, where `on` is true, `09:00` a number and `2026-12-01` a date. Flag data contains many such texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import yaml

from flagsvc.core.errors import ConfigurationError
from flagsvc.core.yaml_text import BoundedReader, YamlError, load_documents, load_yaml, unchanged
from flagsvc.settings.kinds import printable

SCALARS = (
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("bool", r"true|True|TRUE|false|False|FALSE", ("t", "T", "f", "F")),
    ("int", r"[-+]?[0-9]+", tuple("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", tuple("-+0123456789.")),
    ("merge", r"<<", ("<",)),
)
"""Tag, pattern of its plain scalars, and their first characters."""

Parts: TypeAlias = "tuple[()] | tuple[Parts, str]"
"""The last part of a path behind the parts before it; the empty tuple for the document."""
Resolvers: TypeAlias = dict[Any, list[tuple[str, re.Pattern[str]]]]


def resolvers(others: Resolvers) -> Resolvers:
    """Return PyYAML's resolvers for our scalars, by first character, after `others`."""
    found = {character: list(rows) for character, rows in others.items()}
    for tag, form, first in SCALARS:
        for character in first:
            found.setdefault(character, []).append((f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{form})\Z")))
    return found


class YamlReader(BoundedReader):
    """The safe loader with our scalars."""

    yaml_implicit_resolvers = resolvers({})
    yaml_constructors = {  # noqa: RUF012 - PyYAML's own form
        **BoundedReader.yaml_constructors,
        "tag:yaml.org,2002:int": lambda reader, node: int(reader.construct_scalar(node)),
        "tag:yaml.org,2002:float": lambda reader, node: float(reader.construct_scalar(node)),
    }


class YamlWriter(yaml.SafeDumper):
    """PyYAML's safe dumper; it quotes texts that either version of YAML would not read as text."""

    yaml_implicit_resolvers = resolvers(yaml.SafeDumper.yaml_implicit_resolvers)

    def ignore_aliases(self, data: Any) -> bool:
        """Return True, so that repeated values are written in full."""
        return True


def read_yaml(text: str, where: str, finish: Callable[[Any], Any] = unchanged) -> object:
    """Return the value of a YAML document, with JSON's types only; `finish` is that of `load_yaml`.

    Raises ConfigurationError with the position.
    """
    return _checked(lambda: load_yaml(text, YamlReader, finish), where)


def read_documents(text: str, where: str) -> list[object]:
    """Return the values of the YAML documents of a text, as `read_yaml` does."""
    return cast(list[object], _checked(lambda: load_documents(text, YamlReader), where))


def _checked(load: Callable[[], object], where: str) -> object:
    """Return what `load` returns, with JSON's types only. Raises ConfigurationError."""
    try:
        value = load()
    except YamlError as error:
        raise ConfigurationError([f"`{where}` {error.told('is not YAML')}"]) from None
    problem = next(find_non_json(value), "")
    if problem:
        raise ConfigurationError([f"`{where}` cannot be JSON: {problem}"])
    return value


def find_non_json(value: object) -> Iterator[str]:
    """Yield what JSON cannot represent: keys that are not texts, and values of other types."""
    pending: list[tuple[object, Parts]] = [(value, ())]
    while pending:
        item, parts = pending.pop()
        if isinstance(item, dict):
            for key in item:
                if type(key) is not str:
                    yield f"the key `{printable(str(key))}` in `{path_of(parts) or 'the document'}` is no text"
            pending += [(below, (parts, f".{key}")) for key, below in item.items()]
        elif isinstance(item, list):
            pending += [(below, (parts, f"[{number}]")) for number, below in enumerate(item)]
        elif isinstance(item, float) and not math.isfinite(item):
            yield f"`{path_of(parts)}` is a number too large"
        elif item is not None and type(item) not in (str, int, float, bool):
            yield f"`{path_of(parts)}` is a {type(item).__name__}"


def path_of(parts: Parts) -> str:
    """Return a path for messages. It is made of its parts only here: with a long key, the paths of all values are large."""
    found: list[str] = []
    while parts:
        parts, part = parts
        found.append(printable(part))
    return "".join(reversed(found)).removeprefix(".")


def write_yaml(value: object) -> str:
    return yaml.dump(value, Dumper=YamlWriter, sort_keys=False, allow_unicode=True, width=100)
