"""One row of the options table: the columns it has, and the names that follow from it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, ParamSpec

from flagsvc.settings.kinds import Kind, Parser

Columns = ParamSpec("Columns")

PREFIX, ALIAS = "FLAGSVC_", "UNLEASH_"
"""A variable whose name starts with PREFIX may also be given with ALIAS in its place (behaviour: Drop-in)."""

FILE_NAME, FILE_VARIABLE, FILE_FLAG = "File", "_FILE", "-file"
"""What follows a secret's name, variable and flag to give a file that holds it instead."""

INJECTED = re.compile(r".+_SERVICE_(HOST|PORT(_\w+)?)|.+_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?")
"""Variables that Kubernetes sets for a service whose name starts with one of our prefixes: they are no option."""
LONGEST_INJECTED = 256
"""The most characters of such a name: those of the service and of the port have at most 63 each."""


def is_injected(name: str, value: str) -> bool:
    """Return whether Kubernetes set this variable for a service, such as UNLEASH_PORT=tcp://10.0.0.1:4242."""
    link = name.endswith("_PORT") and re.match(r"(tcp|udp|sctp)://", value)
    return bool(link or (len(name) <= LONGEST_INJECTED and INJECTED.fullmatch(name)))


class Section(StrEnum):
    """What an option is about: the headings of the help, the reference page and the masked dump, in their order."""

    UPSTREAM = "Upstream flag server"
    CALLERS = "Callers"
    LISTENING = "Listening"
    EVALUATION = "Evaluation"
    METRICS = "Usage metrics"
    STORAGE = "Storage"
    SIGN_IN = "Signing in at the pages"
    WEBHOOKS = "Webhooks"
    LOGGING = "Logging"
    CORS = "CORS"
    EXPERIMENTAL = "Experimental"


class Scope(StrEnum):
    """How many values an option has in a process with several environments (behaviour: Several environments)."""

    PROCESS = "process"
    """One, for the whole process."""
    INHERITED = "inherited"
    """One for each environment; an environment without a value of its own has that of the process."""
    OWN = "own"
    """One for each environment, and none for the process."""


class Variable(NamedTuple):
    """An environment variable that an option reads; `holds_path` where its value names a file with the value."""

    name: str
    holds_path: bool


@dataclasses.dataclass(slots=True, eq=False)
class Option:
    """One option (specification: Configuration): its names, its kind of value, and its meaning.

    `option` makes it. The class that it stands in gives it its name in code (`field`) and its section. `environment` is the name
    of the environment that the row is for, or empty.

    `name` is its name in files, in messages and in the documentation, `reads` are its variables without aliases. An option without
    a variable can be given in code only. `default` is a normalised value. Where it depends on the machine, `default_factory` gives
    it for an environment, and `default_text` describes it. Without the option `needs` this one has no effect, and is refused.
    A boolean is true by default where a variable of the reference gives the option that it `follows`.
    A running proxy takes over another value of an option that `reloads`. `stops` says what a limit keeps callers from
    (SECURITY.md). Hardly any deployment sets an option that is `advanced`: help and reference pages have advanced options last.
    `scope` says whether each environment of a process has a value of its own.
    """

    name: str
    _: dataclasses.KW_ONLY
    kind: Kind
    help: str
    reads: tuple[str, ...] = ()
    default: object = None
    default_factory: Callable[[Mapping[str, str]], object] | None = None
    default_text: str = ""
    required: bool = False
    secret: bool = False
    deprecated: bool = False
    reloads: bool = False
    needs: str = ""
    follows: str = ""
    stops: str = ""
    advanced: bool = False
    scope: Scope = Scope.PROCESS
    environment: str = dataclasses.field(init=False, default="")
    field: str = dataclasses.field(init=False, default="")
    section: Section = dataclasses.field(init=False)

    def __set_name__(self, owner: Any, name: str) -> None:
        """Take the name in code and the section of the first class that the option stands in."""
        if not self.field:
            self.field, self.section = name, owner.section

    @property
    def in_code_only(self) -> bool:
        """Whether only code can give the option: it has no variable, and so no flag."""
        return not self.reads

    @property
    def flag(self) -> str:
        """The flag on the command line; empty for an option that only code can give, and for one of an environment."""
        return "" if self.in_code_only or self.environment else "--" + self.field.removeprefix("flagsvc_").replace("_", "-")

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The environment variables in their order of precedence, aliases and those of files included."""
        return tuple(self._variables())

    def _variables(self) -> Iterator[Variable]:
        for name in self.reads:
            for spelling in dict.fromkeys((name, re.sub(f"^{PREFIX}", ALIAS, name))):
                yield Variable(spelling, False)
                if self.secret:
                    yield Variable(spelling + FILE_VARIABLE, True)

    @property
    def parse(self) -> Parser:
        """Read a text or a native value; raises `RefusedError`."""
        return self.kind.parse

    def masked(self, value: Any) -> object:
        """Return a normalised value without what must not be seen: secrets, credentials in URLs, objects' own repr."""
        return self.kind.safe(value)

    def render(self, value: Any) -> str:
        """Return a normalised value as text that may be shown; an unset one as `-`."""
        return self.kind.show(self.masked(value))

    def default_for(self, environment: Mapping[str, str]) -> object:
        return self.default if self.default_factory is None else self.default_factory(environment)


def _as_any(make: Callable[Columns, Option]) -> Callable[Columns, Any]:
    """Return a function under a type that fits a class attribute of any type."""
    return make


option = _as_any(Option)
"""Makes the row of one option, to stand in a class of options behind its name in code and its type."""
