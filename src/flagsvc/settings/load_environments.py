"""Resolves the options of several environments: variables, then a JSON variable, then the tables of the file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

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
    useless_defaults,
)
from flagsvc.settings.normalise import Given, find_entry, followers
from flagsvc.settings.option import Option
from flagsvc.settings.places import (
    NO_TABLES,
    NOTHING,
    Resolved,
    Tables,
    candidates,
    choose,
    in_tables,
    of_variables,
)
from flagsvc.settings.shared_scopes import shared_scopes
from flagsvc.settings.table import BY_NAME

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
        own |= {
            row: entry
            for row, entry in followers({**process, **own}, rows_for(name)).items()
            if BY_NAME[row].follows in own
        }
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
        Tables(
            each.tables.get(name, {}), each.source_of(name), file.folder if each is file.environments else "", NOTHING
        )
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
    """Make a check of the process and of each environment. Keep the problems, those that all have only once."""
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
