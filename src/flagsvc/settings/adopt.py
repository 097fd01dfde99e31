"""Takes the variables of a real Unleash server that mean the same here, where nothing of ours gives the option (decision 0065)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from flagsvc.settings.database_url import PARTS, TLS_PARTS, UrlRefusedError, compose, extended
from flagsvc.settings.edge import Fate
from flagsvc.settings.kinds import is_blank
from flagsvc.settings.normalise import Given
from flagsvc.settings.option import ALIAS, PREFIX
from flagsvc.settings.real_server import BY_VARIABLE, ROWS

DATABASE = "database"
HOST = "DATABASE_HOST"
WHOLE = ("environment DATABASE_URL", "environment DATABASE_URL_FILE")
"""The sources of a whole URL whose name a real server knows too."""
VARIABLE = "environment "


class Adopted(NamedTuple):
    """What is taken from the variables of a real server: values by option name, problems by option name, and warnings."""

    given: dict[str, Given]
    problems: dict[str, str]
    warnings: list[str]


def adopt(environment: Mapping[str, str], given: Mapping[str, Given]) -> Adopted:
    """Return what the environment gives to options that are not `given`, or given as a whole URL that lacks parameters."""
    there = {row.name: environment[row.name] for row in ROWS if not is_blank(environment.get(row.name))}
    found = Adopted({}, {}, [])
    for name, value in there.items():
        option = BY_VARIABLE[name].option
        if option and option not in given:
            found.given[option] = Given(value, VARIABLE + name)
        elif option and given[option].value != value:
            found.warnings.extend(_not_used([name], given[option].source))
    _adopt_database({name: value for name, value in there.items() if name in PARTS}, given.get(DATABASE), found)
    return found


def _adopt_database(parts: Mapping[str, str], entry: Given | None, found: Adopted) -> None:
    """Take the URL of the database from its parts, or add parameters to a whole one."""
    whole = entry is not None and entry.source in WHOLE
    used = [name for name in parts if name in TLS_PARTS] if whole else list(parts)
    rest = [name for name in parts if name not in used]
    if entry is not None and not whole:
        found.warnings.extend(_not_used(used, entry.source))
        return
    if entry is None and HOST not in parts:
        found.warnings.extend([f"{VARIABLE}{', '.join(used)}: no effect without {HOST}"] * bool(used))
        return
    sources = [entry.source.removeprefix(VARIABLE), *used] if entry is not None else used
    source = VARIABLE + ", ".join(sources)
    try:
        made = extended(str(entry.value), parts) if entry is not None else compose(parts)
    except UrlRefusedError as refusal:
        found.given[DATABASE] = Given("", source)  # of a refused value only the source counts
        found.problems[DATABASE] = f"{DATABASE} ({VARIABLE}{refusal.variable}): {refusal}"
        return
    found.warnings.extend(_not_used(rest, entry.source) if entry is not None else ())
    found.warnings.extend(f"{VARIABLE}{text}" for text in made.unread)
    if entry is None or made.url != entry.value:
        found.given[DATABASE] = Given(made.url, source)


def _not_used(names: list[str], source: str) -> Iterator[str]:
    """Yield a warning about variables in whose place another one counts, unless that one is ours."""
    name = source.removeprefix(VARIABLE)
    if names and name != source and not name.startswith((PREFIX, ALIAS)):
        yield f"{VARIABLE}{', '.join(names)}: not used, {name} is given"


def adopted_text(sources: Mapping[str, str]) -> str:
    """Return which options have the values of variables of a real server; the empty text if there are none."""
    taken = {option: source.removeprefix(VARIABLE) for option, source in sources.items() if _is_adopted(source)}
    return ", ".join(f"{option} from {names.replace(', ', ' + ')}" for option, names in taken.items())


def _is_adopted(source: str) -> bool:
    """Return whether a value came from a variable that has a row here and is not one of ours, too."""
    names = source.removeprefix(VARIABLE).split(", ")
    rows = [BY_VARIABLE[name] for name in names if name in BY_VARIABLE]
    return source.startswith(VARIABLE) and any(row.option or row.fate is Fate.COMBINED for row in rows)
