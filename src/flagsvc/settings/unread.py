"""Warnings about variables that no option reads: what was probably meant, and what replaces variables of other programs.

Other programs are Unleash Edge, a real server and Node.js.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from flagsvc.settings.edge import ROWS, Fate, hint
from flagsvc.settings.environments import LONGEST_NAME, NAME, TABLE, VARIABLES, Written, middle_of, rows_for
from flagsvc.settings.kinds import MOST_HINTS, ask_for, is_blank, nearest, nearest_name, quoted
from flagsvc.settings.names import DIVIDED
from flagsvc.settings.option import ALIAS, PREFIX, Option, Scope, is_injected
from flagsvc.settings.real_server import BY_VARIABLE
from flagsvc.settings.real_server import ROWS as REAL_ROWS
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


class Hints:
    """The variables that one program reads, and which of them an unknown name probably means.

    The last word of a name says what its value is: a URL, a token, a port. If it is such a word, the hint is of the same kind: a
    variable that ends in the word, or whose option takes such a value. A slip in the name of a variable that only others read gives
    no hint.
    """

    def __init__(self, rows: Iterable[Option], others: Iterable[str]) -> None:
        known = [(each.name, "FILE" if each.holds_path else row.kind.metavar) for row in rows for each in row.variables]
        known = sorted([*known, *((name, "FILE") for name in CONFIG_VARIABLES)], key=lambda each: _is_ours(each[0]))
        self._others = [each.removeprefix(PREFIX) for each in others]
        self._known = {
            prefix: {name.removeprefix(prefix): (name, kind) for name, kind in known if _is_for(prefix, name)}
            for prefix in PREFIXES
        }

    def find(self, name: str) -> str:
        """Return the question whether a variable was meant; the empty text if none is near."""
        prefix = next(each for each in PREFIXES if name.startswith(each))
        ending, own = name.removeprefix(prefix).upper(), self._known[prefix]
        word = last_word(ending)
        alike = {
            each: variable for each, (variable, kind) in own.items() if word not in KIND_WORDS or word in (last_word(each), kind)
        }
        if nearest_name(ending, [each for each in self._others if each not in own], SLIP):
            return ""
        near = nearest_name(ending, own)
        tails = [] if near else [each for each in alike if ending.endswith(f"_{each}")]
        slips = {f"{prefix}{each}": variable for each, variable in alike.items()}
        found = nearest_name(ending, alike) or nearest_name(f"{prefix}{ending}", slips, SLIP)
        return ask_for(found or (alike[max(tails, key=len)] if tails else ""))


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIXES)


def _is_for(prefix: str, name: str) -> bool:
    return name.startswith(prefix) or not _is_ours(name)


def last_word(name: str) -> str:
    return name.rpartition("_")[2]


SLIP = 0.9
"""How near a name is to another one that differs by a letter or two."""
KIND_WORDS = frozenset(last_word(variable.name) for row in (*OPTIONS, *SERVER_OPTIONS) for variable in row.variables)
"""The words that say what a value is: all last words of names of variables of both programs."""


def unread(
    environment: Mapping[str, str],
    written: Written | None = None,
    *,
    rows: Iterable[Option] = OPTIONS,
    all_known: bool = True,
) -> Iterator[str]:
    """Yield a warning for each variable with one of our prefixes that no option reads (behaviour: Names of variables).

    Variables of the other program, of a real server and of other commands give no warning, because all programs may share a file of
    variables. A hint names only what the program with the options `rows` reads.
    Options of environments, whose tables are `written`, have variables of their own. Unless these are `all_known`, a variable that
    may be one of another environment gives no warning. A value is never shown.
    """
    names = list(written.tables) if written else []
    divided = tuple(chain.from_iterable(rows_for(name) for name in names))
    known = {variable.name for option in (*OPTIONS, *SERVER_OPTIONS, *divided) for variable in option.variables}
    known |= {*CONFIG_VARIABLES, *COMMAND_VARIABLES, *VARIABLES}
    meant = {f"{prefix}{name}" for name in known if not name.startswith(PREFIXES) for prefix in PREFIXES}
    hints_of = Hints((*rows, *divided), known)
    told = 0
    for name in sorted(environment):
        of_others = name in BY_VARIABLE or is_injected(name, environment[name])
        if not name.startswith(PREFIXES) or name in known or of_others:
            continue
        other = "" if name in meant else _other_environment(name, names)
        if other and not all_known:
            continue
        told += 1
        is_first = told <= MOST_HINTS
        hints = [_missing(other, written)] if other else [_of_process(name, names)]
        hints += [nearest(other, names)] if other and is_first else []
        hints += [hints_of.find(name)] if is_first and not (names and any(hints)) else []
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
    """Return the sentence that an environment does not exist, with the place that names the environments."""
    source = written.source if written else f"environment {VARIABLES[0]}"
    if source.startswith("environment "):
        return f"{source.removeprefix('environment ')} names no `{name}`"
    return f"{source} has no table [{TABLE}.{name}]"


class Foreign(NamedTuple):
    """What to do about a variable of another program. There is no warning if a variable of `instead` has the same value.

    Many programs use a `common` name. It gives a warning only if a variable that only Edge uses is set, too.
    """

    hint: str
    common: bool = False
    instead: tuple[str, ...] = ()


AUTHORITIES = ("FLAGSVC_UPSTREAM_CA", "UNLEASH_UPSTREAM_CA", "SSL_CERT_FILE")
MIGRATE = "environment: `flagsvc migrate` translates the variables of Unleash Edge, all at once"
SHARED = ("PORT", "LOG_LEVEL", "DATABASE_URL", "DATABASE_URL_FILE")
"""Variables of a real server that are also ours: they tell nothing about where the environment comes from."""
OURS = frozenset(variable.name for option in (*OPTIONS, *SERVER_OPTIONS) for variable in option.variables)

FOREIGN: dict[str, Foreign] = {
    **{row.name: Foreign(hint(row), row.common) for row in ROWS if row.name not in OURS},
    "NODE_EXTRA_CA_CERTS": Foreign("use FLAGSVC_UPSTREAM_CA, or SSL_CERT_FILE in place of the system's", instead=AUTHORITIES),
}
"""Variable → what to do about it. A value is never shown: it may be a token."""


def foreign(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable of another program that was probably meant for the proxy; the last one has a way out."""
    there = {
        name: FOREIGN[name]
        for name, value in sorted(environment.items())
        if name in FOREIGN and not is_blank(value) and not is_injected(name, value)
    }
    edge = any(not row.common and not row.instead for row in there.values())
    for name, row in there.items():
        told = any(environment.get(other) == environment[name] for other in row.instead)
        if (edge or not row.common) and not told:
            yield f"environment {name}: flagsvc does not read it; {row.hint}"
    if edge:
        yield MIGRATE


def foreign_to_server(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable of a real Unleash server that the flag server does not take."""
    there = [row for row in REAL_ROWS if not is_blank(value := environment.get(row.name, "")) and not is_injected(row.name, value)]
    if all(row.common or row.name in SHARED for row in there):
        return
    for row in there:
        if row.fate in (Fate.ABSENT, Fate.NEEDLESS) and environment[row.name].strip().lower() not in row.quiet:
            yield f"environment {row.name}: not taken: {row.here}"
