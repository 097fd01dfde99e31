"""Shared by the tests of the settings: a sufficient environment, what conflicts with one option, and what a load refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.load import load
from flagsvc.settings.table import BY_NAME
from support.option_samples import SAMPLES

BASE = {
    "FLAGSVC_URL": "http://127.0.0.1:4242/api",
    "FLAGSVC_API_TOKEN": "base-token",
    "FLAGSVC_PROXY_CLIENT_KEYS": "base-key",
    "HOME": "/home/somebody",
}
"""An environment that is enough for a start."""


def base_without(name: str) -> dict[str, str]:
    """Return BASE without what conflicts with the option `name`, and with what the option needs."""
    in_the_way = {
        "flagsvcUrl": "FLAGSVC_URL",
        "flagsvcApiToken": "FLAGSVC_API_TOKEN",
        "clientKeys": "FLAGSVC_PROXY_CLIENT_KEYS",
        "proxySecrets": "FLAGSVC_PROXY_CLIENT_KEYS",
    }
    left = {variable: value for variable, value in BASE.items() if variable != in_the_way.get(name)}
    return left | {BY_NAME[other].reads[0]: SAMPLES[other][0] for other in needed(name)}


def needed(name: str) -> tuple[str, ...]:
    """Return the options that `name` has no effect without."""
    return (BY_NAME[name].needs,) if BY_NAME[name].needs else ()


def kept_as(name: str) -> str:
    """Return the option under which the value of `name` is found in the end."""
    return "clientKeys" if name == "proxySecrets" else name


def toml(name: str, value: object) -> str:
    """Return a line of TOML; JSON's texts, numbers, booleans and lists read the same there."""
    return f"{name} = {json.dumps(value, ensure_ascii=False)}\n"


def problems(environment: dict[str, str], file: Path | None = None, flags: dict[str, str] | None = None) -> list[str]:
    """Return the problems of a configuration that has some."""
    with pytest.raises(ConfigurationError) as error:
        load(environment, file, flags or {})
    return list(error.value.problems)
