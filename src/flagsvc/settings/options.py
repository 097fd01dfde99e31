"""The options in code: `ProxyOptions`, frozen, valid and normalised by the rows of OPTIONS.

The same rows serve `load.py`; a value means the same wherever it is given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from flagsvc.settings.advice import advice_on
from flagsvc.settings.base import Converted, Entries
from flagsvc.settings.environments import (
    INHERITED,
    TABLE,
    normalise_environment,
    read_names,
    shared_keys,
    useless_defaults,
)
from flagsvc.settings.kinds import is_blank
from flagsvc.settings.names import flatten
from flagsvc.settings.normalise import CODE, Given
from flagsvc.settings.option import Option, Scope
from flagsvc.settings.storage import server_at
from flagsvc.settings.table import BY_NAME, OPTIONS, ProxyRows

__all__ = ["OPTIONS", "Option", "ProxyOptions", "advice"]


KEY_OPTIONS = ("client_keys", "exp_server_side_sdk_config_tokens")
"""The fields of the options with the keys and tokens of callers."""


def without_row() -> Any:
    """Return the default of a field that is no option: no environments."""
    return ()


class ProxyOptions(ProxyRows):
    """The options of one proxy (specification: Configuration), valid and normalised; intervals are milliseconds.

    Takes each option as a native value or as the text that a variable would hold; an option that is None, or a text of blanks,
    has its default. `proxy_secrets` and `exp_bootstrap` are other ways to give `client_keys`, `exp_bootstrap_url` and
    `exp_bootstrap_authorization`: they are found there, and are themselves empty. `environments` has the options of several
    environments by name, each as a mapping; what a mapping lacks comes from the other arguments. Raises `ConfigurationError`
    with every problem at once. The environment is not read: `flagsvc.settings.load.load` does that.
    """

    environments: Environments = without_row()

    @property
    def parts(self) -> tuple[Environment, ...]:
        """The environments; the only one has an empty name."""
        return self.environments or (Environment("", self),)

    @classmethod
    def _divide(cls, given: Mapping[str, object], entries: Entries) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Return the environments that were given in code by name, with their values, and add their problems."""
        wanted = given.get(TABLE) or {}
        if isinstance(wanted, tuple) and all(isinstance(each, Environment) for each in wanted):
            wanted = dict(wanted)
        if not isinstance(wanted, Mapping):
            entries.problems.append(f"{TABLE}: expected a mapping from names to options")
            return ()
        by_name = {str(name): value for name, value in wanted.items()}
        names, wrong = read_names(by_name, "in code") if by_name else ([], [])
        entries.problems.extend(wrong)
        made = [(name, cls._one(name, by_name[name], entries)) for name in names]
        entries.problems.extend(shared_keys(made))
        entries.problems.extend(text for _, text in useless_defaults(entries.given, made, entries.meant))
        return tuple(made)

    @classmethod
    def _one(cls, name: str, given: object, entries: Entries) -> Mapping[str, Any]:
        """Return the values of one environment by option name, and add its problems."""
        if isinstance(given, ProxyOptions):
            return {option.name: getattr(given, option.field) for option in OPTIONS}
        if not isinstance(given, Mapping):
            entries.problems.append(f"{TABLE}.{name}: expected a mapping from options to values")
            given = {}
        own, wrong, meant = cls._entries({str(field): value for field, value in given.items()})
        wrong += ["an environment has no environments"] * (TABLE in given)
        wrong += [
            f"`{BY_NAME[option].field}` holds for the whole process" for option in own if BY_NAME[option].scope is Scope.PROCESS
        ]
        lost = meant | INHERITED.intersection(entries.meant)
        found = normalise_environment(name, own, entries.given, os.environ, in_code=True, lost=lost)
        entries.problems.extend((*(f"{TABLE}.{name}: {text}" for text in wrong), *found.problems.values()))
        return found.values

    def _keep(self, values: Mapping[str, Any]) -> None:
        """Store normalised values, and the environments that have values of their own. What holds for the process is in all."""
        super()._keep(values)
        shared = {row.name: values[row.name] for row in OPTIONS if row.scope is Scope.PROCESS}
        vars(self)[TABLE] = tuple(Environment(name, ProxyOptions.of({**found, **shared})) for name, found in values.get(TABLE, ()))

    @classmethod
    def _entries(cls, given: Mapping[str, object]) -> Entries:
        """Put the parts of exp_bootstrap, a URL or a mapping, where no part of their own is given."""
        others = {field: given[field] for field in given if field not in ("exp_bootstrap", TABLE)}
        entries = super()._entries(others)
        value = given.get("exp_bootstrap")
        if is_blank(value):
            return entries
        tree = {"expBootstrap": {"url": value} if isinstance(value, str) else value}
        found = flatten(tree, "in code", BY_NAME)
        parts = {name: Given(part, CODE) for name, part in found.values.items()}
        return Entries(parts | entries.given, entries.problems + found.problems, entries.meant | found.meant)


class Environment(NamedTuple):
    """One environment of a process: its name, and its options. Those of the whole process are among them."""

    name: str
    options: ProxyOptions


Environments: TypeAlias = Converted[tuple[Environment, ...], Mapping[str, object] | tuple[Environment, ...]]
"""The options of several environments, by name in code."""


def advice(options: ProxyOptions) -> list[str]:
    """Return a warning for each combination of options that is valid but probably a mistake."""
    return advice_on({name: getattr(options, option.field) for name, option in BY_NAME.items()})


def reloaded(used: ProxyOptions, read: ProxyOptions) -> ProxyOptions:
    """Return the options that a running process uses when it has read others: those of its environments change.

    What holds for the whole process needs a restart, and so does whether it has one environment or several.
    """
    if bool(used.environments) != bool(read.environments):
        return used
    if not read.environments:
        return with_process(read, used)
    return replace(used, environments=tuple(each._replace(options=with_process(each.options, used)) for each in read.environments))


def with_process(options: ProxyOptions, process: ProxyOptions) -> ProxyOptions:
    """Return the options of an environment with those of another process, for what holds for the whole process."""
    shared = {row.field: getattr(process, row.field) for row in OPTIONS if row.scope is Scope.PROCESS}
    return with_values(options, shared)


def with_values(options: ProxyOptions, values: Mapping[str, Any]) -> ProxyOptions:
    """Return the options of one environment with other values by field, which must be valid and normalised."""
    return ProxyOptions.of({row.name: values.get(row.field, getattr(options, row.field)) for row in OPTIONS})


def differing(one: ProxyOptions, other: ProxyOptions) -> list[Option]:
    """Return the rows of the options whose values differ."""
    return [option for option in OPTIONS if getattr(one, option.field) != getattr(other, option.field)]


def secrets_of(options: ProxyOptions) -> list[str]:
    found: list[str] = []
    for environment in options.environments:
        found += secrets_of(environment.options)
    for option in OPTIONS:
        value = getattr(options, option.field) if option.secret else None
        for each in value if isinstance(value, tuple) else (value,):
            found += [each[1] if isinstance(each, tuple) else each] if each else []
    server = server_at(options.storage)
    return found if server is None or not server.password else [*found, server.password]
