"""The type of one row of the options table, and the names that follow from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from flagsvc.settings.parse import Kind, Parser

PREFIX, ALIAS = "FLAGSVC_", "UNLEASH_"
"""Every variable that starts with the one also answers with the other in its place (behaviour: Names of variables)."""

FILE_NAME, FILE_VARIABLE, FILE_FLAG = "File", "_FILE", "-file"
"""What is put behind a secret's name, variable and flag to give a file that holds it instead."""

INJECTED = re.compile(r".+_SERVICE_(HOST|PORT(_\w+)?)|.+_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?")
"""Variables that Kubernetes sets for a service whose name starts with one of our prefixes: they are no option."""


def is_injected(name: str, value: str) -> bool:
    """Return whether Kubernetes set this variable for a service, such as UNLEASH_PORT=tcp://10.0.0.1:4242."""
    link = name.endswith("_PORT") and re.match(r"(tcp|udp|sctp)://", value)
    return bool(link or INJECTED.fullmatch(name))


class Section(StrEnum):
    """What an option is about: the headings of the help, the reference page and the masked dump, in their order."""

    UPSTREAM = "Upstream flag server"
    CALLERS = "Callers"
    LISTENING = "Listening"
    EVALUATION = "Evaluation"
    METRICS = "Usage metrics"
    STORAGE = "Storage"
    LOGGING = "Logging"
    CORS = "CORS"
    EXPERIMENTAL = "Experimental"


class Variable(NamedTuple):
    """An environment variable an option reads; `holds_path` when its value names a file with the value."""

    name: str
    holds_path: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option (specification: Configuration): what it is called everywhere, what it takes, what it means.

    `default` is the normalised value; where it depends on the machine, `default_from` gives it for an environment and
    `default_text` tells it in the documentation. Without the option `needs` it would have no effect: then it is refused.
    With `reloads` a running proxy takes another value over. `stops` says of a limit what callers cannot do for it (SECURITY.md).
    """

    name: str
    kind: Kind
    section: Section
    help: str
    reads: tuple[str, ...] = ()
    default: object = None
    default_from: Callable[[Mapping[str, str]], object] | None = None
    default_text: str = ""
    required: bool = False
    secret: bool = False
    deprecated: bool = False
    reloads: bool = False
    in_code_only: bool = False
    named_in_code: str = ""
    needs: str = ""
    stops: str = ""

    @property
    def field(self) -> str:
        """The name in code: snake_case, dots and capitals to underscores."""
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name)
        return self.named_in_code or name.replace(".", "_").lower()

    @property
    def flag(self) -> str:
        """The flag on the command line, or the empty text for an option that only code can give."""
        return "" if self.in_code_only else "--" + self.field.removeprefix("flagsvc_").replace("_", "-")

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
        """Return the default on a machine with this environment."""
        return self.default if self.default_from is None else self.default_from(environment)
