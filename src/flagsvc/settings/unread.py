"""Warnings about variables with one of our prefixes that no option reads, with what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from flagsvc.settings.environments import LONGEST_NAME, NAME, TABLE, VARIABLES, Written, middle_of, rows_for
from flagsvc.settings.kinds import MOST_HINTS, nearest, quoted
from flagsvc.settings.names import DIVIDED
from flagsvc.settings.option import ALIAS, PREFIX, Option, Scope, is_injected
from flagsvc.settings.real_server import BY_VARIABLE
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

CONFIG_VARIABLES = (f"{PREFIX}CONFIG", f"{ALIAS}CONFIG")
"""The variables that name the configuration file where no --config does."""

COMMAND_VARIABLES = tuple(f"{PREFIX}{side}_TOKEN{end}" for side in ("ADMIN", "FROM", "TO") for end in ("", "_FILE"))
"""Variables that no option reads. Commands that send requests to a flag server read them, so they give no warning."""

PREFIXES = (PREFIX, ALIAS)


def _endings(rows: Iterable[Option]) -> dict[str, str]:
    """Return the variables of options by what they end in, behind our prefix."""
    names = (variable.name for row in rows for variable in row.variables if not variable.name.startswith(ALIAS))
    return {name.removeprefix(PREFIX): name for name in names}


DIVIDED_ENDINGS = frozenset(_endings(DIVIDED))
"""The endings of the variables of an environment."""
PROCESS_ENDINGS = _endings(row for row in OPTIONS if row.scope is Scope.PROCESS)
"""The endings of variables that hold for the whole process → the variables."""


def unread(environment: Mapping[str, str], written: Written | None = None, *, all_known: bool = True) -> Iterator[str]:
    """Yield a warning for each variable with one of our prefixes that no option reads (behaviour: Names of variables).

    Variables of the flag server, of a real server and of other commands give no warning, because all programs may share a file of
    variables.
    Options of environments, whose tables are `written`, have variables of their own. Unless these are `all_known`, a variable that
    may be one of another environment gives no warning. A value is never shown.
    """
    names = list(written.tables) if written else []
    rows = (*OPTIONS, *SERVER_OPTIONS, *chain.from_iterable(rows_for(name) for name in names))
    known = {variable.name for option in rows for variable in option.variables}
    known |= {*CONFIG_VARIABLES, *COMMAND_VARIABLES, *VARIABLES}
    meant = {f"{prefix}{name}": name for name in known if not name.startswith(PREFIXES) for prefix in PREFIXES}
    meant |= {name: name for name in known}
    told = 0
    for name in sorted(environment):
        of_others = name in BY_VARIABLE or is_injected(name, environment[name])
        if not name.startswith(PREFIXES) or name in known or of_others:
            continue
        other = "" if name in meant else _other_environment(name, names)
        if other and not all_known:
            continue
        told += 1
        near = nearest if told <= MOST_HINTS else lambda name, known: ""
        hints = [_missing(other, written), near(other, names)] if other else [_of_process(name, names)]
        hints += [] if names and any(hints) else [near(name, meant)]
        shown = (quoted(name) or "").strip("`")
        yield "; ".join([f"environment {shown}: no option reads this variable", *filter(None, hints)])


def _of_process(name: str, environments: Iterable[str]) -> str:
    """Return the sentence that a variable names an environment, but an option of the process; the empty text if it does not."""
    rest = name.partition("_")[2]
    for middle in map(middle_of, environments):
        variable = PROCESS_ENDINGS.get(rest.removeprefix(f"{middle}_"))
        if variable and rest.startswith(f"{middle}_"):
            return f"it holds for the whole process, as `{variable}`"
    return ""


def _other_environment(name: str, environments: Iterable[str]) -> str:
    """Return the environment that a variable is probably meant for if it is none of `environments`; else the empty text."""
    rest = name.partition("_")[2]
    parts = rest.split("_")
    if rest.startswith(tuple(f"{middle_of(each)}_" for each in environments)):
        return ""
    for length in range(1, min(len(parts), LONGEST_NAME + 2)):
        middle = "_".join(parts[:length])
        if "_".join(parts[length:]) in DIVIDED_ENDINGS and NAME.fullmatch(middle):
            return middle.lower()
    return ""


def _missing(name: str, written: Written | None) -> str:
    """Return the sentence that an environment does not exist: in the place that says which ones there are."""
    source = written.source if written else f"environment {VARIABLES[0]}"
    if source.startswith("environment "):
        return f"{source.removeprefix('environment ')} names no `{name}`"
    return f"{source} has no table [{TABLE}.{name}]"
