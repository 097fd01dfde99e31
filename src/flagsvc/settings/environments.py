"""The options of several environments in one process (behaviour: Several environments).

An environment is a table `[environments.NAME]`. A row of an option becomes one of an environment: its variable then has the name of
the environment in it, as in `FLAGSVC_PRODUCTION_API_TOKEN`.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from flagsvc.settings.kinds import TEXT, is_blank, quoted, read_json, repeated_keys, split
from flagsvc.settings.names import DIVIDED, DIVIDED_SETTABLE, ENVIRONMENTS_TABLE, TABLES, flatten
from flagsvc.settings.normalise import Given, Normalised, followers, missing_needed_text, normalise
from flagsvc.settings.option import PREFIX, Option, Scope, option
from flagsvc.settings.table import BY_NAME, OPTIONS, ProxyRows

TABLE = ENVIRONMENTS_TABLE
NAMES: Option = option(
    TABLE,
    kind=TEXT,
    help="the environments that this process serves: names with commas between, or a JSON object with a table for each",
    reads=(f"{PREFIX}ENVIRONMENTS",),
    secret=True,
)
"""The row of the variable that names the environments. It is no option: its value is not that of an option."""
VARIABLES = tuple(variable.name for variable in NAMES.variables)
LONGEST_NAME = 64
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
EXPECTED = "expected letters, digits, `.`, `_` and `-`, at most 64, beginning with a letter or a digit"
MAX_ENVIRONMENTS = 1000
INHERITED = frozenset(row.name for row in OPTIONS if row.scope is not Scope.OWN)
"""The options whose values for the process hold for an environment that has none of its own."""


class Written(NamedTuple):
    """Tables of environments as they were written: the values by option name for each environment, and their source.

    `meant` has the options that misspelt keys of an environment probably mean.
    """

    tables: Mapping[str, Mapping[str, object]]
    source: str
    meant: Mapping[str, Collection[str]] = {}

    def source_of(self, name: str) -> str:
        return f"{self.source} [{TABLE}.{name}]"


def read_tables(tree: object, source: str, *, shows_names: bool = True) -> tuple[Written, list[str]]:
    """Return the tables of a mapping from names to nested tables of options, and a problem for each part that is wrong."""
    if not isinstance(tree, Mapping) or not tree:
        return Written({}, source), [f"{TABLE} ({source}): expected a table for each environment"]
    given = {str(name): table for name, table in tree.items()}
    names, problems = read_names(given, source, shows_names=shows_names)
    tables: dict[str, Mapping[str, object]] = {}
    meant: dict[str, Collection[str]] = {}
    for name in names:
        table = given[name]
        if not isinstance(table, Mapping):
            problems.append(f"{TABLE}.{name} ({source}): expected a table of options")
            continue
        tables[name], wrong, meant[name] = flatten(table, f"{source} [{TABLE}.{name}]", DIVIDED_SETTABLE)
        problems += wrong
    return Written(tables, source, meant), problems


def read_variable(text: str, source: str) -> tuple[Written, list[str]]:
    """Return the environments of a variable: names with commas between, or a JSON object with a table for each.

    A text that is neither may be a secret, so no problem shows it.
    """
    if not text.lstrip().startswith("{"):
        names, problems = read_names(map(str, split(text)), source, shows_names=False)
        return Written({name: {} for name in names}, source), problems
    try:
        tree = read_json(text)
    except ValueError as error:
        return Written({}, source), [f"{TABLE} ({source}): it begins with `{{` and is not JSON: {error}"]
    written, problems = read_tables(tree, source, shows_names=False)
    return written, [*problems, *_repeated(tree, source)]


def _repeated(tree: object, source: str) -> Iterator[str]:
    """Yield a problem for each key that comes more than once. A key inside of a value may be a secret, and is not shown.

    A name that no environment can have is a problem already, and so is a table that no option is in.
    """
    for path, key in repeated_keys(tree):
        name, *inner = path or (key,)
        if not NAME.fullmatch(name):
            continue
        places = [".".join(inner[:depth]) for depth in range(len(inner) + 1)]
        option = next((place for place in places if place in DIVIDED_SETTABLE), "")
        if option:
            yield f"{TABLE}.{name}.{option} ({source}): a key comes twice"
        elif places[-1] in ("", *TABLES):
            yield f"{'.'.join((TABLE, *path))} ({source}): {quoted(key)} comes twice"


def read_names(names: Iterable[str], source: str, *, shows_names: bool = True) -> tuple[list[str], list[str]]:
    """Return the valid names, each once, and a problem for each other name or for the whole list."""
    names = list(dict.fromkeys(names))
    if not names:
        return [], [f"{TABLE} ({source}): expected a name for each environment"]
    if len(names) > MAX_ENVIRONMENTS:
        return [], [f"{TABLE} ({source}): expected at most {MAX_ENVIRONMENTS} environments"]
    found = [name for name in names if NAME.fullmatch(name)]
    wrong = ((quoted(name) if shows_names else f"name {at}") for at, name in enumerate(names, 1) if name not in found)
    problems = [f"{TABLE} ({source}): {shown} is no name of an environment; {EXPECTED}" for shown in wrong]
    return found, [*problems, *(f"{TABLE} ({source}): {text}" for text in shared_variables(found))]


def shared_variables(names: Iterable[str]) -> Iterator[str]:
    """Yield a problem for each name whose variables are also those of another environment, or of the process."""
    owners = {variable.name: "" for row in OPTIONS for variable in row.variables}
    for name in names:
        variables = [variable.name for row in rows_for(name) for variable in row.variables]
        others = {owners.setdefault(variable, name): variable for variable in reversed(variables)}
        for other, variable in others.items():
            if other != name:
                yield f"{f'`{other}`' if other else 'the process'} and `{name}` would both read {variable}; choose another name"


def middle_of(name: str) -> str:
    """Return the part of a variable that names an environment: `prod-eu` is `PROD_EU`."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def variable_of(name: str, variable: str) -> str:
    """Return the name of a variable for one environment: `FLAGSVC_API_TOKEN` is `FLAGSVC_PRODUCTION_API_TOKEN`."""
    return f"{PREFIX}{middle_of(name)}_{variable.removeprefix(PREFIX)}"


@cache
def rows_for(name: str) -> tuple[Option, ...]:
    return tuple(row_for(name, row) for row in DIVIDED)


def row_for(name: str, row: Option) -> Option:
    made = copy.copy(row)
    made.environment = name
    made.reads = tuple(variable_of(name, variable) for variable in row.reads)
    return made


class Environment(NamedTuple):
    """The values of one environment by option name, its problems, and its warnings."""

    values: dict[str, Any]
    problems: dict[str, str]
    deprecations: list[str]


def normalise_environment(
    name: str,
    own: Mapping[str, Given],
    process: Mapping[str, Given],
    environment: Mapping[str, str],
    *,
    in_code: bool = False,
    lost: Collection[str] = (),
) -> Environment:
    """Return the values of one environment: its `own`, else what is given for the `process`, else the defaults.

    A problem of a value of the process is not repeated. The options that are `lost` could not be read, and are not required.
    """
    inherited = {option: entry for option, entry in process.items() if option in INHERITED}
    rows = {row.name: row for row in (*OPTIONS, *rows_for(name))}
    given = inherited | dict(own)
    given |= followers(given, OPTIONS)
    found: Normalised = normalise(given, environment, list(rows.values()), in_code=in_code, lost=lost)
    return Environment(
        found.values,
        {option: f"{TABLE}.{name}: {text}" for option, text in found.problems.items() if option in own or option not in inherited},
        [f"{TABLE}.{name}: {text}" for text in found.deprecations],
    )


def useless_defaults(
    process: Mapping[str, Given], environments: Collection[tuple[str, Mapping[str, Any]]], lost: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield each option of the process that no environment can use, with the problem: all lack the option that it needs.

    An option that is `lost` may be given in a place that could not be read.
    """
    for row in OPTIONS:
        entry = process.get(row.name)
        if not row.needs or row.scope is not Scope.INHERITED or entry is None or is_blank(entry.value):
            continue
        if environments and row.needs not in {*process, *lost} and all(values[row.needs] is None for _, values in environments):
            yield row.name, missing_needed_text(row, entry, BY_NAME[row.needs])


def shared_keys(environments: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield a problem for two environments that a key would open. The key is not shown."""
    owners: dict[str, str] = {}
    told: set[tuple[str, str]] = set()
    for name, values in environments:
        for key in {*values["clientKeys"], *values["expServerSideSdkConfig.tokens"]}:
            other = owners.setdefault(key, name)
            if other != name and (other, name) not in told:
                told.add((other, name))
                yield f"{TABLE}: a key is both in `{other}` and in `{name}`; each key opens one environment"


DECIDING = (
    "flagsvcUrl",
    "upstreamHeaders",
    "httpProxy",
    "httpsProxy",
    "noProxy",
    "httpOptions.rejectUnauthorized",
    "upstreamCa",
    "upstreamCert",
    "upstreamKey",
)
"""The options that decide which server answers, and as whose: a gateway may tell its tenants apart by a header or a certificate.

Timeouts, and the names in the headers, which differ from replica to replica, do not.
"""


def upstream_of(values: Mapping[str, Any]) -> str:
    """Return the identity of the upstream of an environment with these values, by option name. No secret can be read from it."""
    return hashlib.sha256(repr([values.get(name) for name in DECIDING]).encode()).hexdigest()


def upstream_of_options(options: ProxyRows) -> str:
    """Return the identity of the upstream of these options."""
    return upstream_of({name: getattr(options, BY_NAME[name].field) for name in DECIDING})
