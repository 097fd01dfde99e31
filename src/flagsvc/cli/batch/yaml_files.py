"""Reads and writes YAML data sets, with the plain scalars of YAML 1.2's JSON schema, so `on`, `09:00` and dates stay text.

PyYAML reads YAML 1.1, where `on` is true, `09:00` a number and `2026-12-01` a date. Flag data contains many such texts.
"""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

import yaml

from flagsvc.core.errors import ConfigurationError

MAX_VALUES = 2_000_000
"""The most values of a file with expanded aliases: a few lines of nested aliases could fill the memory."""
MAX_DEPTH = 200
SCALARS = (
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("bool", r"true|True|TRUE|false|False|FALSE", ("t", "T", "f", "F")),
    ("int", r"[-+]?[0-9]+", tuple("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", tuple("-+0123456789.")),
    ("merge", r"<<", ("<",)),
)
"""Tag, pattern of its plain scalars, and their first characters."""

Resolvers: TypeAlias = dict[Any, list[tuple[str, re.Pattern[str]]]]


def resolvers(others: Resolvers) -> Resolvers:
    """Return PyYAML's resolvers for our scalars, by first character, after `others`."""
    found = {character: list(rows) for character, rows in others.items()}
    for tag, form, first in SCALARS:
        for character in first:
            found.setdefault(character, []).append((f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{form})\Z")))
    return found


class YamlReader(yaml.SafeLoader):
    """PyYAML's safe loader with our scalars."""

    yaml_implicit_resolvers = resolvers({})
    yaml_constructors = {  # noqa: RUF012 - PyYAML's own form
        **yaml.SafeLoader.yaml_constructors,
        "tag:yaml.org,2002:int": lambda reader, node: int(reader.construct_scalar(node)),
        "tag:yaml.org,2002:float": lambda reader, node: float(reader.construct_scalar(node)),
    }


class YamlWriter(yaml.SafeDumper):
    """PyYAML's safe dumper; it quotes texts that either version of YAML would not read as text."""

    yaml_implicit_resolvers = resolvers(yaml.SafeDumper.yaml_implicit_resolvers)

    def ignore_aliases(self, data: Any) -> bool:
        """Return True, so that repeated values are written in full."""
        return True


def read_yaml(text: str, where: str) -> object:
    """Return the value of a YAML document, with JSON's types only; raises ConfigurationError with the position."""
    try:
        value = yaml.load(text, YamlReader)  # noqa: S506 - a subclass of the safe one
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigurationError([f"`{where}` is not YAML: {(error.problem or 'malformed').lower()}{place}"]) from None
    except yaml.YAMLError as error:
        raise ConfigurationError([f"`{where}` is not YAML: {str(error).splitlines()[0].lower()}"]) from None
    except (RecursionError, ValueError):
        raise ConfigurationError(
            [f"`{where}` is not YAML: nested too deeply, or a number has too many digits"]
        ) from None
    problem = next(find_non_json(value), "")
    if problem:
        raise ConfigurationError([f"`{where}` cannot be JSON: {problem}"])
    return value


def find_non_json(value: object) -> Any:
    """Yield what JSON cannot represent: keys that are not texts, values of other types, too many or too deep values."""
    pending, count = [(value, "", 0)], 0
    while pending:
        item, path, depth = pending.pop()
        count += 1
        if count > MAX_VALUES or depth > MAX_DEPTH:
            yield f"it holds more than {MAX_VALUES} values, or more than {MAX_DEPTH} levels, when aliases are written out"
            return
        if isinstance(item, dict):
            yield from (
                f"the key `{key}` in `{path or 'the document'}` is no text" for key in item if type(key) is not str
            )
            pending += [(below, f"{path}.{key}".lstrip("."), depth + 1) for key, below in item.items()]
        elif isinstance(item, list):
            pending += [(below, f"{path}[{number}]", depth + 1) for number, below in enumerate(item)]
        elif isinstance(item, float) and not math.isfinite(item):
            yield f"`{path}` is a number too large"
        elif item is not None and type(item) not in (str, int, float, bool):
            yield f"`{path}` is a {type(item).__name__}"


def write_yaml(value: object) -> str:
    """Return a value as YAML."""
    return yaml.dump(value, Dumper=YamlWriter, sort_keys=False, allow_unicode=True, width=100)
