"""Resolves the options of several environments: variables, then a JSON variable, then the tables of the file.

It warns about environments with the same flags, or with the same looked-up tokens, and about upstreams that see the same tokens.
A token is never shown (behaviour: Several environments).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from flagsvc.settings.advice import advice_on, quotation
from flagsvc.settings.environments import (
    INHERITED,
    NAMES,
    TABLE,
    Environment,
    Written,
    normalise_environment,
    read_variable,
    rows_for,
    shared_keys,
    upstream_of,
    useless_defaults,
)
from flagsvc.settings.normalise import Given, find_entry, followers
from flagsvc.settings.option import Option
from flagsvc.settings.places import NO_TABLES, NOTHING, Resolved, Tables, candidates, choose, in_tables, of_variables
from flagsvc.settings.rows.callers import LOOKED_UP
from flagsvc.settings.table import BY_NAME
from flagsvc.settings.tokens import EVERY_PROJECT, SEVERAL_PROJECTS, read_scope

WRONG = f"<{TABLE} "
"""How the keys in `Resolved.problems` begin for what is wrong with the variable that names the environments."""


def written_environments(environment: Mapping[str, str], file: Tables, resolved: Resolved) -> list[Written]:
    """Return the places that tell of environments: a variable, then the file. The first one decides which there are."""
    entry = choose(NAMES, candidates(NAMES, environment, {}, NO_TABLES), resolved)
    in_file = [file.environments] if file.environments.source else []
    if entry is None:
        return in_file
    named, problems = read_variable(str(entry.value), entry.source)
    resolved.problems.update({f"{WRONG}{number}>": text for number, text in enumerate(problems)})
    ignored = () if problems else file.environments.tables.keys() - named.tables.keys()
    for name in sorted(ignored):
        resolved.warnings.append(f"{TABLE}.{name} ({file.source}) is ignored: {entry.source} does not name it")
    return [named, *in_file]


def lost_options(rows: Iterable[Option], file: Tables, resolved: Resolved) -> frozenset[str]:
    """Return the options that may be given in a place that could not be read: all of them for the file or the environments.

    A misspelt option is one of them.
    """
    is_partial = _is_partial(file, resolved)
    return frozenset(row.name for row in rows) if is_partial else frozenset((*resolved.problems, *file.meant))


def _is_partial(file: Tables, resolved: Resolved) -> bool:
    """Return whether the configuration file, a table in it, or the file with the environments could not be read."""
    return not file.complete or TABLE in resolved.problems


def knows_environments(written: Sequence[Written], file: Tables, resolved: Resolved) -> bool:
    """Return whether the names of all environments could be read."""
    is_wrong = _is_partial(file, resolved) or any(name.startswith(WRONG) for name in resolved.problems)
    return not is_wrong and all(each.tables for each in written)


def add_environments(
    written: Sequence[Written],
    process: Mapping[str, Given],
    environment: Mapping[str, str],
    file: Tables,
    resolved: Resolved,
) -> None:
    """Resolve each environment, and add its values, sources, problems and warnings.

    `process` is what is given for the whole process. A warning about it stays only if it holds for any environment.
    """
    found: list[tuple[str, dict[str, Any]]] = []
    lost = BY_NAME.keys() if _is_partial(file, resolved) else INHERITED.intersection(file.meant)
    every_lost = set(lost)
    advised = set(advice_on(resolved.values))
    for name in written[0].tables:
        part = Resolved({}, {}, {}, [], resolved.files)
        own = choose_own(name, environment, tables_of(name, written, file), part)
        own |= {row: entry for row, entry in followers({**process, **own}, rows_for(name)).items() if BY_NAME[row].follows in own}
        meant = chain.from_iterable(each.meant.get(name, ()) for each in written)
        own_lost = {*lost, *part.problems, *meant}
        every_lost |= own_lost
        made = normalise_environment(name, own, process, environment, lost=own_lost)
        add_to(resolved, name, own, made, part, advised)
        found.append((name, made.values))
    groundless = advised - {text for _, values in found for text in advice_on(values)}
    resolved.warnings[:] = [text for text in resolved.warnings if text not in groundless]
    resolved.values[TABLE] = tuple(found)
    resolved.problems.update(dict(useless_defaults(process, found, every_lost)) | resolved.problems)
    resolved.problems.update({f"<{TABLE} keys {at}>": text for at, text in enumerate(shared_keys(found))})
    resolved.warnings.extend(shared_scopes(found))


def tables_of(name: str, written: Sequence[Written], file: Tables) -> list[Tables]:
    """Return the tables of one environment in their order of precedence. Paths in the file go by its folder."""
    return [
        Tables(each.tables.get(name, {}), each.source_of(name), file.folder if each is file.environments else "", NOTHING)
        for each in written
    ]


def choose_own(name: str, environment: Mapping[str, str], tables: Sequence[Tables], part: Resolved) -> dict[str, Given]:
    """Return the values that are given for one environment, by option name. Add problems and warnings to `part`."""
    own: dict[str, Given] = {}
    for row in rows_for(name):
        places = chain(of_variables(row, environment), *(in_tables(row, each) for each in tables))
        entry = choose(row, places, part)
        if entry is not None:
            own[row.name] = entry
    return own


def add_to(
    resolved: Resolved,
    name: str,
    own: Mapping[str, Given],
    made: Environment,
    part: Resolved,
    advised: Collection[str],
) -> None:
    """Add sources, problems and warnings of one environment. What is `advised` for the process is not repeated."""
    prefix = f"{TABLE}.{name}"
    given = {option: find_entry(option, own) for option in made.values}
    resolved.sources.update({f"{prefix}.{option}": entry.source for option, entry in given.items() if entry})
    problems = {option: f"{prefix}: {text}" for option, text in part.problems.items()} | made.problems
    resolved.problems.update({f"{prefix}.{option}": text for option, text in problems.items()})
    in_quotes = quotation({row.name: row for row in rows_for(name)}, own, problems)
    odd = (text for text in advice_on(made.values) if text not in advised)
    resolved.warnings.extend(made.deprecations)
    resolved.warnings.extend(f"{prefix}: {text}" for text in chain(part.warnings, in_quotes, odd))


def part_of(resolved: Resolved, name: str, values: dict[str, Any]) -> Resolved:
    """Return what was found for one environment. The source of a value that is not its own is `default`."""
    prefix = f"{TABLE}.{name}."
    sources = dict.fromkeys(values, "default") | starting_with(prefix, resolved.sources)
    return Resolved(values, sources, starting_with(prefix, resolved.problems), [], resolved.files)


def starting_with(prefix: str, found: Mapping[str, str]) -> dict[str, str]:
    """Return the entries whose names begin with the prefix, without it."""
    return {name.removeprefix(prefix): text for name, text in found.items() if name.startswith(prefix)}


def check_everywhere(resolved: Resolved, check: Callable[[Resolved], None]) -> None:
    """Make a check of the process and of each environment. Keep each problem once, also if all have it."""
    check(resolved)
    told = set(resolved.problems.values())
    for name, values in resolved.values.get(TABLE, ()):
        prefix = f"{TABLE}.{name}"
        known = starting_with(f"{prefix}.", resolved.problems)
        sources = resolved.sources | starting_with(f"{prefix}.", resolved.sources)
        part = Resolved(values, sources, dict(known), [], resolved.files)
        check(part)
        for option, text in part.problems.items():
            if option not in known and text not in told:
                resolved.problems[f"{prefix}.{option}"] = f"{prefix}: {text}"


Values: TypeAlias = Mapping[str, Any]
"""The values of one environment by option name."""


def shared_scopes(environments: Iterable[tuple[str, Values]]) -> Iterator[str]:
    """Yield a warning for each group of environments with the same flags, and for each that the same looked-up tokens open.

    Also for each group whose upstreams may be asked about the same tokens.
    """
    given = list(environments)
    alike, opened = group(given, flags_key), group(given, opening_key)
    for names in alike:
        more = f", and {only_first(names)}" if names in opened else ""
        yield f"{TABLE}: {listed(names)} have the same upstream token and project: they have the same flags{more}"
    for names in opened:
        if names not in alike:
            yield f"{TABLE}: {listed(names)} have the same environment and projects upstream: {only_first(names)}"
    for names in asked_together(given):
        yield (
            f"{TABLE}: {listed(names)} have several upstreams for environments of one name: each of these upstreams may be asked"
            " about a token that none of them knows yet"
        )


def only_first(names: Sequence[str]) -> str:
    """Return what becomes of looked-up tokens that would open several environments."""
    return f"tokens that are looked up open `{min(names)}` alone"


def token_key(values: Values) -> Hashable:
    """Return the upstream, its token and the project of an environment; None without a token."""
    token = values.get("flagsvcApiToken")
    return (upstream_of(values), token, values.get("projectName") or "") if token else None


def flags_key(values: Values) -> Hashable:
    """Return what decides which flags an environment has; None without a token."""
    key = token_key(values)
    return None if key is None else (key, values.get("namePrefix") or "", values.get("tags") or ())


def opening_key(values: Values) -> Hashable:
    """Return what decides which looked-up tokens open an environment; None if there are none."""
    if values.get("tokenValidation") != LOOKED_UP:
        return None
    named = read_scope(values.get("flagsvcApiToken") or "")
    if named is None or named.project == SEVERAL_PROJECTS:
        return token_key(values)
    project = values.get("projectName") or named.project
    is_empty = named.project not in (EVERY_PROJECT, project)
    return None if is_empty else (upstream_of(values), named.environment, project)


def asked_together(given: Iterable[tuple[str, Values]]) -> list[list[str]]:
    """Return the names of environments whose upstreams may all be asked about a token: those of one name upstream.

    A token of an upstream that names no environment may be of any.
    """
    looking = []
    for name, values in given:
        token = values.get("flagsvcApiToken")
        if token and values.get("tokenValidation") == LOOKED_UP:
            named = read_scope(token)
            looking.append((name, upstream_of(values), "" if named is None else named.environment))
    environments = dict.fromkeys(environment for _, _, environment in looking if environment)
    groups = [[each for each in looking if each[2] in (environment, "")] for environment in environments or [""]]
    return [[name for name, _, _ in each] for each in groups if len({upstream for _, upstream, _ in each}) > 1]


def group(given: Sequence[tuple[str, Values]], key_of: Callable[[Values], Hashable]) -> list[list[str]]:
    """Return the names of environments with the same key, wherever there are several."""
    found: dict[Hashable, list[str]] = {}
    for name, values in given:
        key = key_of(values)
        if key is not None:
            found.setdefault(key, []).append(name)
    return [names for names in found.values() if len(names) > 1]


def listed(names: Sequence[str]) -> str:
    """Return names as a part of a sentence."""
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} and {last}"
