"""YAML as data sets may be in: the plain scalars of YAML 1.2's JSON-like schema, so that `on`, `09:00` and dates stay text.

PyYAML reads YAML 1.1, where `on` is true, `09:00` a number and `2026-12-01` a date; flag data is full of such texts.
"""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

import yaml

from flagsvc.core.errors import ConfigurationError

MOST_VALUES = 2_000_000
"""Values that a file may hold, aliases written out: a few lines of aliases of aliases would fill any memory."""
DEEPEST = 200
SCALARS = (
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("bool", r"true|True|TRUE|false|False|FALSE", ("t", "T", "f", "F")),
    ("int", r"[-+]?[0-9]+", tuple("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", tuple("-+0123456789.")),
    ("merge", r"<<", ("<",)),
)
"""Tag, form of the plain scalars that have it, first characters."""

Resolvers: TypeAlias = dict[Any, list[tuple[str, re.Pattern[str]]]]


def resolvers(others: Resolvers) -> Resolvers:
    """Return our scalars in PyYAML's form, by first character, after `others`."""
    found = {character: list(rows) for character, rows in others.items()}
    for tag, form, first in SCALARS:
        for character in first:
            found.setdefault(character, []).append((f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{form})\Z")))
    return found


class YamlReader(yaml.SafeLoader):
    """PyYAML's safe reader with our scalars."""

    yaml_implicit_resolvers = resolvers({})
    yaml_constructors = {  # noqa: RUF012 - PyYAML's own form
        **yaml.SafeLoader.yaml_constructors,
        "tag:yaml.org,2002:int": lambda reader, node: int(reader.construct_scalar(node)),
        "tag:yaml.org,2002:float": lambda reader, node: float(reader.construct_scalar(node)),
    }


class YamlWriter(yaml.SafeDumper):
    """PyYAML's safe writer; quotes what either version of YAML would read as something other than text."""

    yaml_implicit_resolvers = resolvers(yaml.SafeDumper.yaml_implicit_resolvers)

    def ignore_aliases(self, data: Any) -> bool:
        """Write a value that occurs twice twice."""
        return True


def read_yaml(text: str, where: str) -> object:
    """Return the value of one YAML document, of JSON's kinds only; raises ConfigurationError with the position."""
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
    problem = next(unlike_json(value), "")
    if problem:
        raise ConfigurationError([f"`{where}` cannot be JSON: {problem}"])
    return value


def unlike_json(value: object) -> Any:
    """Give what JSON has no form for: keys that are no text, values of other kinds, too many or too deep values."""
    pending, count = [(value, "", 0)], 0
    while pending:
        item, path, depth = pending.pop()
        count += 1
        if count > MOST_VALUES or depth > DEEPEST:
            yield f"it holds more than {MOST_VALUES} values, or more than {DEEPEST} levels, when aliases are written out"
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
