"""Reads the variables of another proxy and its command line, and finds out which proxy it is.

They come from the environment, env files, a compose file, Kubernetes manifests or the values of a Helm chart.
"""

from __future__ import annotations

import os.path
from argparse import Namespace
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import NamedTuple

from flagsvc.cli.documents import read_text
from flagsvc.cli.migrating import compose_files, env_files
from flagsvc.cli.migrating.compose_files import Service, read_services
from flagsvc.cli.migrating.env_files import Lookup, parse_env
from flagsvc.cli.migrating.kubernetes import ALL, CHART, read_containers, read_values
from flagsvc.cli.migrating.migration import TITLES, About, Note, Peer
from flagsvc.core.errors import ConfigurationError
from flagsvc.core.extras import require
from flagsvc.settings.edge import BY_VARIABLE, EdgeVariable, Takes
from flagsvc.settings.kinds import is_blank, nearest, printable
from flagsvc.settings.option import is_injected


@dataclass
class Source:
    """What was given, and where. `subcommand` is that of Edge; it is empty if no command line says it."""

    where: str
    variables: dict[str, str]
    subcommand: str = ""
    has_edge_command: bool = False
    service: Service | None = None
    notes: list[Note] = field(default_factory=list)


def read_source(args: Namespace, environment: Mapping[str, str]) -> Source:
    """Return what the arguments name. Raises ConfigurationError if it cannot be read, or if no service can be chosen."""
    ways = [each for each in (args.compose, args.kubernetes, args.helm) if each]
    if len(ways) > 1:
        raise ConfigurationError(["`--compose`, `--kubernetes` and `--helm` each name what to move over: give one of them"])
    if args.service and not (args.compose or args.kubernetes):
        problem = "`--service` chooses a service of a compose file or a container: give `--compose` or `--kubernetes` as well"
        raise ConfigurationError([problem])
    source = _read_service(args, environment) if ways else _read_variables(args, environment)
    if args.edge_command:
        add_command(source, args.edge_command)
    source.variables = {
        name: value for name, value in source.variables.items() if not is_blank(value) and not is_injected(name, value)
    }
    return source


def peer_of(source: Source, chosen: str | None) -> Peer:
    """Return the program that a source configures, `chosen` if the user has said it. Raises ConfigurationError."""
    if chosen:
        known = source.variables | (source.service.references if source.service else {})
        check_chosen(Peer(chosen), known, source.where)
        return Peer(chosen)
    if source.has_edge_command:
        return Peer.EDGE
    service = source.service
    names = source.variables | (service.references if service else {})
    return find_peer(names, service.image if service else "", source.where)


def _read_variables(args: Namespace, environment: Mapping[str, str]) -> Source:
    """Return the variables of env files, or those of this process."""
    if not args.env_file:
        return Source("the environment", dict(environment))
    source = Source(", ".join(f"`{printable(path, 300)}`" for path in args.env_file), {})
    source.variables = _read_env_files(args.env_file, environment, source)
    return source


def _read_env_files(paths: Sequence[str], environment: Mapping[str, str], source: Source) -> dict[str, str]:
    """Return the variables of env files, of which later ones win. What could not be read becomes a note."""
    found: dict[str, str] = {}
    for path in paths:
        shown = printable(path, 300)
        text = parse_env(read_text(path, env_files.LARGEST), environment.get, shown, braces_only=True)
        found |= text.values
        lines = [f"line {number} is no `NAME=value`" for number in text.odd_lines]
        source.notes += [Note(About.IGNORED, shown, line) for line in lines]
        source.notes += [_missing(name) for name in text.missing]
    return found


def _missing(name: str) -> Note:
    """Return the note on a variable of `${…}` that has no value."""
    return Note(About.NEEDED, name, "a value refers to this variable, which is not set: it counts as empty")


def _read_service(args: Namespace, environment: Mapping[str, str]) -> Source:
    """Return a service of a compose file, a container, or what a chart makes.

    Variables of the process and of env files have the values that the files do not have: those of `${…}` and of Secrets.
    `.env` beside a compose file is such a file, as docker compose has it.
    """
    if find_spec("yaml") is None:
        require("cli")
    source = Source("", {})
    beside = os.path.join(os.path.dirname(args.compose), ".env") if args.compose else ""
    paths = args.env_file or ([beside] if os.path.isfile(beside) else [])
    given = _read_env_files(paths, environment, source)
    files = args.kubernetes or [args.compose or args.helm]
    texts = {path: read_text(path, compose_files.LARGEST) for path in files}
    shown = ", ".join(f"`{printable(path, 300)}`" for path in files)
    service = choose_service(_read_services(args, texts, (given | dict(environment)).get), shown, args.service)
    if service.error:
        raise service.error
    source.where = f"{service.kind} `{service.name}` of {shown}"
    source.variables, source.service = service.variables, service
    if ALL in service.references and args.env_file:
        del service.references[ALL]  # the env files say what is in the Secret
        source.variables = given | service.variables
    if is_edge_command(service.words) and IMAGES[Peer.PROXY] not in service.image:
        add_command(source, service.words)
    about = About.NEEDED if service.kind == CHART else About.IGNORED
    source.notes += [Note(about, f"{service.kind} {service.name}", text) for text in service.odd]
    source.notes += [_missing(name) for name in dict.fromkeys(service.missing)]
    return source


def _read_services(args: Namespace, texts: Mapping[str, str], lookup: Lookup) -> list[Service]:
    """Return the services or containers of the files. Raises ConfigurationError."""
    if args.kubernetes:
        return read_containers(texts, lookup)
    ((where, text),) = texts.items()
    return read_services(text, where, lookup) if args.compose else read_values(text, where, lookup)


def choose_service(services: Sequence[Service], shown: str, chosen: str | None) -> Service:
    """Return the `chosen` service, or the only service that looks like a peer. Raises ConfigurationError.

    `shown` are the files, ready to be shown.
    """
    names = {service.name: service for service in services}
    kind = services[0].kind if services else "service"
    if chosen:
        if chosen in names:
            return names[chosen]
        hint = nearest(chosen, list(names)) or f"the {kind}s are {', '.join(names)}"
        raise ConfigurationError([f"no {kind} `{printable(chosen)}`; {hint}"])
    likely = [service for service in services if looks_like_peer(service)]
    if len(likely) == 1:
        return likely[0]
    if likely:
        found = ", ".join(service.name for service in likely)
        raise ConfigurationError([f"several {kind}s of {shown} can be moved over; choose with `--service`: {found}"])
    unread = next((service.error for service in services if service.error), None)
    if unread:
        raise unread
    looked = f"looked for images named {' or '.join(IMAGES.values())}, and for {describe_marks()}"
    found = ", ".join(names)
    raise ConfigurationError([f"no {kind} of {shown} can be moved over; {looked}; choose with `--service`: {found}"])


def add_command(source: Source, words: Sequence[str]) -> None:
    """Add what a command line of Edge says. Its flags win over variables, as in Edge. Raises ConfigurationError for a probe."""
    command = read_edge_command(words)
    if command.subcommand in PROBES:
        instead = "here it is `flagsvc health`; give the command line that starts it"
        raise ConfigurationError([f"`{command.subcommand}` of Edge asks a running one: {instead}, {EDGE} or {OFFLINE}"])
    source.has_edge_command, source.subcommand = True, command.subcommand
    source.variables = source.variables | command.variables
    source.notes += [Note(About.IGNORED, flag, "Edge has no such option") for flag in command.unknown]
    if command.stray:
        text = f"{command.stray} of its words belong to no option"
        source.notes.append(Note(About.IGNORED, "command line", text))


MARKS = {
    Peer.EDGE: ("UPSTREAM_URL", "BOOTSTRAP_FILE", "PRETRUSTED_TOKENS", "CLIENT_TOKENS", "FRONTEND_TOKENS"),
    Peer.PROXY: ("UNLEASH_URL", "UNLEASH_API_TOKEN", "UNLEASH_PROXY_CLIENT_KEYS", "UNLEASH_PROXY_SECRETS"),
}
"""Peer → variables that only this peer has."""
IMAGES = {Peer.EDGE: "unleash-edge", Peer.PROXY: "unleash-proxy"}
"""Peer → a part of the names of its container images."""


def describe_marks() -> str:
    """Return which variables show a peer, in words."""
    return " and ".join(f"{', '.join(marks)} ({TITLES[peer]})" for peer, marks in MARKS.items())


def looks_like_peer(service: Service) -> bool:
    """Return whether a service is one of the peers, by its image, its command or its variables."""
    is_named = any(name in service.image for name in IMAGES.values()) or any(map(is_program, service.words))
    return is_named or any(mark in service.variables or mark in service.references for marks in MARKS.values() for mark in marks)


def find_peer(variables: dict[str, str], image: str, where: str) -> Peer:
    """Return the program that variables configure. Raises ConfigurationError if it is none of the peers, or both."""
    named = [peer for peer, part in IMAGES.items() if part in image]
    found = named or [peer for peer, marks in MARKS.items() if any(mark in variables for mark in marks)]
    if len(found) == 1:
        return found[0]
    if found:
        both = " and of ".join(TITLES[peer] for peer in found)
        raise ConfigurationError([f"{where} has variables of {both}: choose one with `--from`"])
    ours = ": FLAGSVC_URL is there, which flagsvc reads itself" if "FLAGSVC_URL" in variables else ""
    raise ConfigurationError([f"no proxy to move over in {where}{ours}; looked for {describe_marks()}"])


def check_chosen(peer: Peer, variables: dict[str, str], where: str) -> None:
    """Raise ConfigurationError if there is no variable of the program that the user has named."""
    known = {name in BY_VARIABLE if peer is Peer.EDGE else name.startswith("UNLEASH_") for name in variables}
    if True not in known:
        raise ConfigurationError([f"{where} has no variable of {TITLES[peer]}; looked for {', '.join(MARKS[peer])}"])


EDGE, OFFLINE = "edge", "offline"
PROBES = ("health", "ready")
SUBCOMMANDS = (EDGE, OFFLINE, *PROBES)
PROGRAM = "unleash-edge"

EVERYWHERE = {"i": "INTERFACE", "a": "APP_NAME", "w": "WORKERS", "l": "LOG_FORMAT"}
SHORT = {
    "": {**EVERYWHERE, "p": "PORT", "b": "BASE_PATH"},
    EDGE: {
        **EVERYWHERE,
        "u": "UPSTREAM_URL",
        "b": "BACKUP_FOLDER",
        "m": "METRICS_INTERVAL_SECONDS",
        "f": "FEATURES_REFRESH_INTERVAL_SECONDS",
        "t": "TOKENS",
        "p": "PRETRUSTED_TOKENS",
        "H": "CUSTOM_CLIENT_HEADERS",
        "s": "SKIP_SSL_VERIFICATION",
    },
    OFFLINE: {
        **EVERYWHERE,
        "b": "BOOTSTRAP_FILE",
        "t": "TOKENS",
        "c": "CLIENT_TOKENS",
        "f": "FRONTEND_TOKENS",
        "r": "RELOAD_INTERVAL",
    },
    **{probe: {**EVERYWHERE, "e": "EDGE_URL", "c": "CA_CERTIFICATE_FILE"} for probe in PROBES},
}
"""Subcommand, empty before it → the letters of its options, and their variables."""


class EdgeCommand(NamedTuple):
    """What a command line says: the subcommand, empty if there is none, its variables, and the flags that Edge does not have.

    `stray` is the number of words that belong to nothing.
    """

    subcommand: str
    variables: dict[str, str]
    unknown: tuple[str, ...] = ()
    stray: int = 0


def is_edge_command(words: Sequence[str]) -> bool:
    """Return whether a command line is that of Edge: it has the name of the program, or one of its subcommands."""
    return any(is_program(word) or word in SUBCOMMANDS for word in words)


def read_edge_command(words: Sequence[str]) -> EdgeCommand:
    """Return what a command line of Edge says. The program's name may stand before it, and what starts it."""
    programs = [number for number, word in enumerate(words) if is_program(word)]
    rest = deque(words[programs[-1] + 1 :] if programs else words)
    reader = _CommandReader()
    while rest:
        reader.take(rest)
    variables = {name: ",".join(values) for name, values in reader.variables.items()}
    return EdgeCommand(reader.subcommand, variables, tuple(dict.fromkeys(reader.unknown)), reader.stray)


def is_program(word: str) -> bool:
    """Return whether a word of a command line is the program of Edge."""
    return os.path.basename(word) == PROGRAM


class _CommandReader:
    """Collects what the words say."""

    def __init__(self) -> None:
        self.subcommand = ""
        self.variables: dict[str, list[str]] = {}
        self.unknown: list[str] = []
        self.stray = 0

    def take(self, rest: deque[str]) -> None:
        """Read the next word, and the one behind it that is its value. Both are removed from `rest`."""
        word = rest.popleft()
        if word in SUBCOMMANDS and not self.subcommand:
            self.subcommand = word
        elif word.startswith("--"):
            flag, equals, value = word.partition("=")
            self._set(BY_VARIABLE.get(flag[2:].upper().replace("-", "_")), flag, value if equals else None, rest)
        elif word.startswith("-") and len(word) > 1:
            row = BY_VARIABLE.get(SHORT[self.subcommand].get(word[1], ""))
            self._set(row, word[:2], word[2:].removeprefix("=") or None, rest)
        else:
            self.stray += 1

    def _set(self, row: EdgeVariable | None, flag: str, value: str | None, rest: deque[str]) -> None:
        """Keep the value of a flag: the one attached to it, or the next word unless the flag is a switch."""
        if row is None:
            self.unknown.append(printable(flag))
        if row is not None and row.takes is Takes.NOTHING:
            self.variables[row.name] = [value or "true"]
            return
        if value is None and rest and not rest[0].startswith("--") and rest[0] not in SUBCOMMANDS:
            value = rest.popleft()
        if row is not None and value is not None:
            before = self.variables.get(row.name, []) if row.takes is Takes.LIST else []
            self.variables[row.name] = before
            before.append(value)
