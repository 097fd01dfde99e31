"""What was given: the variables of another proxy and its command line, from the environment, env files or a compose file."""

from __future__ import annotations

import os.path
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from flagsvc.cli.documents import read_text
from flagsvc.cli.migrating import compose_files, env_files
from flagsvc.cli.migrating.compose_files import Service, read_services
from flagsvc.cli.migrating.detection import IMAGES, check_chosen, describe_marks, find_peer, looks_like_peer
from flagsvc.cli.migrating.edge_commands import EDGE, OFFLINE, PROBES, is_edge_command, read_edge_command
from flagsvc.cli.migrating.env_files import parse_env
from flagsvc.cli.migrating.migration import About, Note, Peer
from flagsvc.core.errors import ConfigurationError
from flagsvc.core.extras import require
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
    if args.service and not args.compose:
        raise ConfigurationError(["`--service` chooses a service of a compose file: give `--compose` as well"])
    source = _read_compose(args, environment) if args.compose else _read_variables(args, environment)
    if args.edge_command:
        add_command(source, args.edge_command)
    source.variables = {
        name: value for name, value in source.variables.items() if not is_blank(value) and not is_injected(name, value)
    }
    return source


def peer_of(source: Source, chosen: str | None) -> Peer:
    """Return the program that a source configures, `chosen` if the user has said it. Raises ConfigurationError."""
    if chosen:
        check_chosen(Peer(chosen), source.variables, source.where)
        return Peer(chosen)
    if source.has_edge_command:
        return Peer.EDGE
    return find_peer(source.variables, source.service.image if source.service else "", source.where)


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


def _read_compose(args: Namespace, environment: Mapping[str, str]) -> Source:
    """Return a service of a compose file. `.env` beside the file has values for `${…}`, as docker compose has it."""
    if find_spec("yaml") is None:
        require("cli")
    source = Source("", {})
    beside = os.path.join(os.path.dirname(args.compose), ".env")
    paths = args.env_file or ([beside] if os.path.isfile(beside) else [])
    values = _read_env_files(paths, environment, source) | dict(environment)
    text = read_text(args.compose, compose_files.LARGEST)
    service = choose_service(read_services(text, args.compose, values.get), args)
    source.where = f"service `{service.name}` of `{printable(args.compose, 300)}`"
    source.variables, source.service = service.variables, service
    if is_edge_command(service.words) and IMAGES[Peer.PROXY] not in service.image:
        add_command(source, service.words)
    source.notes += [Note(About.IGNORED, f"service {service.name}", text) for text in service.odd]
    source.notes += [_missing(name) for name in dict.fromkeys(service.missing)]
    return source


def choose_service(services: Sequence[Service], args: Namespace) -> Service:
    """Return the service that the arguments name, or the only one that looks like a peer. Raises ConfigurationError."""
    names = {service.name: service for service in services}
    if args.service:
        if args.service in names:
            return names[args.service]
        hint = nearest(args.service, list(names)) or f"the services are {', '.join(names)}"
        raise ConfigurationError([f"no service `{printable(args.service)}`; {hint}"])
    likely = [service for service in services if looks_like_peer(service)]
    if len(likely) == 1:
        return likely[0]
    shown = f"`{printable(args.compose, 300)}`"
    if likely:
        found = ", ".join(service.name for service in likely)
        raise ConfigurationError([f"several services of {shown} can be moved over; choose with `--service`: {found}"])
    looked = f"looked for images named {' or '.join(IMAGES.values())}, and for {describe_marks()}"
    found = ", ".join(names)
    raise ConfigurationError([f"no service of {shown} can be moved over; {looked}; choose with `--service`: {found}"])


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
