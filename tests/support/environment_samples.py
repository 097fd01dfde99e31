"""Configurations of two environments for the tests of the settings, with what conflicts with one option left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flagsvc.settings.environments import variable_of
from flagsvc.settings.table import BY_NAME
from support.option_samples import SAMPLES
from support.settings_samples import needed

FIRST, SECOND = "prod-eu", "test"
"""The names of the two environments."""
HOME = {"HOME": "/home/somebody"}
IN_THE_WAY = {"proxySecrets": "clientKeys"}
"""Option → another one that it gives, too."""


def required(name: str, without: str = "") -> dict[str, str]:
    """Return what an environment needs, by option name, but not what is in the way of one option. No two share a key."""
    given = {
        "flagsvcUrl": f"http://127.0.0.1:4242/{name}/api",
        "flagsvcApiToken": f"token-of-{name}",
        "clientKeys": f"key-of-{name}",
    }
    return {option: text for option, text in given.items() if option not in (without, IN_THE_WAY.get(without))}


def by_variables(name: str, given: Mapping[str, str]) -> dict[str, str]:
    return {variable_of(name, BY_NAME[option].reads[0]): text for option, text in given.items()}


def two(without: str = "") -> dict[str, str]:
    """Return variables of two environments that are enough for a start if the first one is also given the option `without`."""
    more = {option: SAMPLES[option][0] for option in (needed(without) if without else ())}
    names = {"FLAGSVC_ENVIRONMENTS": f"{FIRST}, {SECOND}"}
    return HOME | names | by_variables(FIRST, required(FIRST, without) | more) | by_variables(SECOND, required(SECOND))


def as_variable(tables: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    return HOME | {"FLAGSVC_ENVIRONMENTS": json.dumps({name: nested(table) for name, table in tables.items()})}


def nested(table: Mapping[str, object]) -> dict[str, Any]:
    """Return options by their dotted names as nested tables."""
    tree: dict[str, Any] = {}
    for name, value in table.items():
        *folders, last = name.split(".")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return tree


def write_toml(path: Path, tables: Mapping[str, Mapping[str, object]], head: str = "") -> Path:
    """Write a configuration file with a table for each environment behind some lines, and return its path.

    Names of options may be dotted there.
    """
    lines = [head]
    for name, table in tables.items():
        lines.append(f'[environments."{name}"]')
        lines += [f"{option} = {json.dumps(value, ensure_ascii=False)}" for option, value in table.items()]
    path.write_text("\n".join(lines))
    return path
