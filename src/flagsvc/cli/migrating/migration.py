"""The result of a translation: options, environments, and notes on what is different. A note never holds a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from flagsvc.settings.advice import advice_on
from flagsvc.settings.environments import TABLE, read_names
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.normalise import Given, Normalised, normalise, refused_text
from flagsvc.settings.table import BY_NAME, OPTIONS

Value: TypeAlias = str | int | bool | list[str]
"""What an option is given in a file."""

OURS = "file flagsvc.toml"
"""Where a problem of the result says that a value stands."""
ENVIRONMENT = "environment "
"""How the loader's sources begin that are variables."""
LONGEST_NUMBER = 18
RELATIVE = "its path starts at the folder of the configuration file, or with variables at that of the process"
FIRST = ("flagsvcUrl", "flagsvcApiToken", "tokenValidation", "tokenRevalidationInterval")
KNOWN = {name: BY_NAME[name] for name in FIRST} | BY_NAME
"""Every option that a result may hold, by name, in the order in which it is written."""


class Peer(StrEnum):
    """A program to move over from."""

    EDGE = "edge"
    PROXY = "proxy"


class About(StrEnum):
    """What a note is about. The first one keeps the result from being complete."""

    NEEDED = "to do"
    ABSENT = "no equivalent"
    CHANGED = "different"
    IGNORED = "left out"


class Note(NamedTuple):
    """One line for the user: what it is about, the name that it concerns, and the text."""

    about: About
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.name}: {self.text}"


@dataclass
class Migration:
    """Options by name, those of each environment, why an option is set that was not given, and notes.

    `elsewhere` are options whose value the container goes on to get from a Secret or the like.

    With several environments `options` holds the defaults of all. With one, or with none that is named, it holds everything.
    """

    peer: Peer
    options: dict[str, Value] = field(default_factory=dict)
    environments: dict[str, dict[str, Value]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    noted: set[Note] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)

    def note(self, about: About, name: str, text: str) -> None:
        """Add a note, unless it is there."""
        note = Note(about, name, text)
        if note not in self.noted:
            self.noted.add(note)
            self.notes.append(note)

    def set(self, option: str, value: Value, source: str, *, environment: str = "") -> None:
        """Set an option, of one environment or of all. A value that it does not take becomes a note with `source`.

        A text becomes a number if the option is one.
        """
        row = KNOWN[option]
        if isinstance(value, str) and type(row.default) is int and value.isdecimal() and len(value) <= LONGEST_NUMBER:
            value = int(value)
        try:
            row.parse(value)
        except RefusedError as refusal:
            self.note_problem(refused_text(row, Given(value, source), str(refusal)), option, source)
            return
        (self.environments.setdefault(environment, {}) if environment else self.options)[option] = value

    def note_problem(self, problem: str, option: str, source: str) -> None:
        """Add a note on a value that an option does not take; `problem` is the loader's message about it."""
        self.note(About.NEEDED, source.removeprefix(ENVIRONMENT), problem.removeprefix(f"{option} ({source}): "))

    def set_default(self, option: str, value: Value, reason: str) -> None:
        """Set an option of all environments that is not set yet, and keep the reason."""
        if option not in self.options:
            self.options[option] = value
            self.reasons[option] = reason

    def in_order(self) -> list[Note]:
        """Return the notes, those about one thing together."""
        return [note for about in About for note in self.notes if note.about is about]

    @property
    def complete(self) -> bool:
        """Whether the result says all that the other program was told."""
        return not any(note.about is About.NEEDED for note in self.notes)

    def merged(self, environment: str = "") -> dict[str, Value]:
        """Return the options of an environment with the defaults below them."""
        return self.options | self.environments.get(environment, {})


def read_options(options: Mapping[str, Value]) -> Normalised:
    """Return what the options of a result mean, with their problems."""
    given = {name: Given(value, OURS) for name, value in options.items() if name in BY_NAME}
    return normalise(given, {}, OPTIONS)


def check(migration: Migration) -> None:
    """Add a note for everything that would keep the result from a start, and for every value that is probably a mistake."""
    for problem in read_names(migration.environments, OURS)[1] if migration.environments else ():
        migration.note(About.NEEDED, TABLE, problem)
    for environment in migration.environments or ("",):
        options = migration.merged(environment)
        found = read_options(options)
        for name, problem in found.problems.items():
            if name in migration.elsewhere:
                continue
            migration.note(About.NEEDED, environment or name, problem.removeprefix(f"{name} "))
        for name, value in options.items():
            if KNOWN[name].kind.relative_to(value, "/") != value:
                migration.note(About.CHANGED, name, RELATIVE)
        for text in advice_on(found.values):
            migration.note(About.CHANGED, "advice", text)
