"""Print a configuration of flagsvc that does what another proxy was told: Unleash Edge or npm `@unleash/proxy`.

It reads the variables of this process, env files, a service of a compose file, a container of Kubernetes manifests, the values of a
Helm chart, or Edge's command line behind `--`. What has no equivalent, and what is different, is on standard error, a line each.
"""

from __future__ import annotations

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping

from flagsvc.cli.batch import files
from flagsvc.cli.migrating.compose_files import Service
from flagsvc.cli.migrating.edge import translate_edge
from flagsvc.cli.migrating.migration import (
    ENVIRONMENT,
    About,
    Migration,
    Peer,
    Value,
    check,
    write_json,
    write_toml,
    write_variables,
)
from flagsvc.cli.migrating.sources import Source, peer_of, read_source
from flagsvc.cli.parser import CommandParser, ParagraphFormatter
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.kinds import BOOLEANS, printable
from flagsvc.settings.load import resolve
from flagsvc.settings.normalise import FOLLOWS
from flagsvc.settings.option import ALIAS, PREFIX
from flagsvc.settings.table import OPTIONS
from flagsvc.settings.unread import unread

# ---- the variables of the reference proxy, npm `@unleash/proxy`: each means the same here (behaviour: Drop-in)

APP_NAME = "UNLEASH_APP_NAME"
AUTHORITIES = "NODE_EXTRA_CA_CERTS"
UNVERIFIED = "NODE_TLS_REJECT_UNAUTHORIZED"
JSON_LOGGER = "JSON_LOGGER"
DEFAULT = "default"


def readable() -> dict[str, str]:
    """Return the names of variables as the reference has them, with their options: without our prefix, and those of files."""
    return {
        variable.name: option.name
        for option in OPTIONS
        for variable in option.variables
        if not variable.holds_path and not variable.name.startswith(PREFIX)
    }


def translate_reference(given: Mapping[str, str]) -> Migration:
    """Return what the variables of the reference mean here. A value that it guesses at, and flagsvc refuses, becomes a note."""
    migration = Migration(Peer.PROXY)
    names = readable()
    resolved = resolve({name: value for name, value in given.items() if name in names}, None, {})
    for option in OPTIONS:
        source = resolved.sources.get(option.name, DEFAULT)
        if source == DEFAULT or source.endswith(FOLLOWS):
            continue
        if option.name in resolved.problems:
            migration.note_problem(resolved.problems[option.name], option.name, source)
        elif resolved.values[option.name] not in ((), "", None):
            migration.options[option.name] = native(resolved.values[option.name])
    migration.set_default("variantFeatureState", True, "variants as the reference gives them: SDKs read featureEnabled")
    _translate_node(given, migration)
    _note_differences(given, migration)
    return migration


def native(value: object) -> Value:
    """Return a normalised value as a file has it: a list for several, `name:value` for a pair."""
    if isinstance(value, tuple):
        return [":".join(item) if isinstance(item, tuple) else str(item) for item in value]
    return value if isinstance(value, bool | int) else str(value)


def _translate_node(given: Mapping[str, str], migration: Migration) -> None:
    """Set what variables of Node.js say about the upstream."""
    if AUTHORITIES in given:
        migration.set("upstreamCa", given[AUTHORITIES].strip(), AUTHORITIES)
        migration.note(About.CHANGED, AUTHORITIES, "it is Node's: here upstreamCa has the authorities")
    if given.get(UNVERIFIED, "").strip() == "0":
        migration.set("httpOptions.rejectUnauthorized", False, UNVERIFIED)
        migration.note(About.CHANGED, UNVERIFIED, "it is Node's: here httpOptions.rejectUnauthorized is false")


def _note_differences(given: Mapping[str, str], migration: Migration) -> None:
    """Add notes on what the reference reads in another way, and on what it does without being told."""
    if APP_NAME not in given:
        text = "unset: the flag server sees the application `flagsvc-proxy`, not `unleash-proxy`"
        migration.note(About.CHANGED, APP_NAME, text)
    if BOOLEANS.get(given.get(JSON_LOGGER, "true").strip().lower()) is False:
        migration.note(About.CHANGED, JSON_LOGGER, "the reference takes every text for true, flagsvc takes this for false")
    if "UNLEASH_PROXY_SECRETS" in given and "UNLEASH_PROXY_CLIENT_KEYS" not in given:
        migration.note(About.CHANGED, "UNLEASH_PROXY_SECRETS", "the keys are clientKeys here")
    for text in unread({name: value for name, value in given.items() if name.startswith(ALIAS)}):
        name, _, rest = text.removeprefix(ENVIRONMENT).partition(": ")
        migration.note(About.IGNORED, name, rest)


# ---- the command

FORMATS: dict[str, Callable[[Migration], str]] = {"toml": write_toml, "variables": write_variables}
JSON = "json"
MOUNTED = "mount the result, owned by the user of the image (65532), and name it in FLAGSVC_CONFIG"
GIVEN = {
    "toml": MOUNTED,
    "variables": "name the result as `env_file`",
    JSON: "put the `variables` of the result into `environment`",
}
"""Form of a result → how a service of a compose file gets it."""
IN_CLUSTER = {
    "toml": MOUNTED,
    "variables": "put a Secret of the result (`kubectl create secret generic NAME --from-env-file FILE`) into `envFrom`",
    JSON: "put the `variables` of the result into `env`",
}
"""Form of a result → how a container of a cluster gets it."""
CHANGE = {
    "service": ("use an image of flagsvc; remove `entrypoint`, `command` and the former variables", GIVEN),
    "container": (
        "use an image of flagsvc; remove `command`, `args` and the variables that the result has",
        IN_CLUSTER,
    ),
    "chart": ("flagsvc needs a manifest of its own in place of the chart: use an image of flagsvc", IN_CLUSTER),
}
"""Kind of a service → what it needs, and how it gets the result."""
NEXT = "next: {0}`flagsvc config{1}` shows what is in effect, and `flagsvc proxy{1}` starts with it"
"""The last line, with gaps for what to do first, and for the argument."""
FIRST = {
    "toml": "",
    "variables": "with these variables set, ",
    JSON: "with the `variables` of the result set, ",
}
"""Form of a result → what to do first. A file is named by an argument."""
OWNER_ONLY = 0o600
REST = "edge_command"
EPILOG = """\
The result holds secrets. A message never does.

--backup stores what the other proxy has kept, so that flagsvc starts with flags while the flag server is away. The folder is
Edge's BACKUP_FOLDER, or the one with `unleash-backup-NAME.json` of the reference. It is stored in the storage of the result, or
in that of --into.

examples
  flagsvc migrate > flagsvc.toml
  flagsvc migrate --env-file edge.env --format variables --output flagsvc.env
  flagsvc migrate --compose compose.yaml --service edge --output flagsvc.toml
  flagsvc migrate --kubernetes deployment.yaml --kubernetes secret.yaml --output flagsvc.toml
  flagsvc migrate --helm values.yaml --env-file secrets.env --output flagsvc.toml
  flagsvc migrate -- edge --upstream-url https://flags.example.com --tokens '*:production.secret'

exit code: 0; 1 something is left to do, which lines with `to do` say; 2 there is nothing to move over, or it cannot be read
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command. What stands behind `--` is the command line of Edge."""
    parser.epilog, parser.formatter_class = EPILOG, ParagraphFormatter
    if isinstance(parser, CommandParser):
        parser.rest = REST
    parser.add_argument("--from", dest="peer", choices=tuple(Peer), help="what is moved over [default: what is found]")
    text = "file of variables, as docker or a shell has it; may be repeated, later ones win"
    parser.add_argument("--env-file", metavar="FILE", action="append", default=[], help=text)
    text = "docker compose file; --env-file, or else `.env` beside it, has values for ${NAME}"
    parser.add_argument("--compose", metavar="FILE", help=text)
    text = "Kubernetes manifests; may be repeated. --env-file has values of Secrets that are not among them"
    parser.add_argument("--kubernetes", metavar="FILE", action="append", default=[], help=text)
    text = "values of the Helm chart unleash-edge or unleash-proxy; --env-file has values of Secrets"
    parser.add_argument("--helm", metavar="FILE", help=text)
    text = "service of the compose file, or container of the manifests [default: the only proxy]"
    parser.add_argument("--service", metavar="NAME", help=text)
    parser.add_argument("--format", choices=tuple(FORMATS), default="toml", help="what to write [default: toml]")
    parser.add_argument("--json", action="store_true", help="write options, variables and notes as JSON")
    parser.add_argument("--output", metavar="FILE", help="file to write, for its owner only [default: standard output]")
    parser.add_argument("--force", action="store_true", help="replace FILE, and what is stored, where it exists")
    parser.add_argument("--backup", metavar="FOLDER", help="folder with a backup of the other proxy: store it")
    parser.add_argument("--into", metavar="FOLDER", help="folder to store the backup in; it becomes the storage")
    text = "list the callers that Edge's backup knows, so that they need not be looked up"
    parser.add_argument("--backup-tokens", action="store_true", help=text)


def run(args: Namespace) -> int:
    """Translate, write, and return 0, or 1 if something is left to do. Raises ConfigurationError and StoreError."""
    path = None if args.output in (None, "-") else args.output
    if path:
        files.check_writable(path, force=args.force)
    if not args.backup and (args.into or args.backup_tokens):
        raise ConfigurationError(["`--into` and `--backup-tokens` say what to do with a backup: give `--backup`"])
    source = read_source(args, os.environ)
    migration = translate(source, args.peer)
    form = JSON if args.json else args.format
    if source.service is not None:
        note_service(source.service, form, migration)
    stored = store_backup(migration, args) if args.backup else []
    check(migration)
    content = (write_json if args.json else FORMATS[args.format])(migration).encode("utf-8", "backslashreplace")
    files.write_output(content, path, force=args.force, mode=OWNER_ONLY)
    written = [f"written to `{printable(path, 300)}`"] if path else []
    for line in [*map(str, migration.in_order()), *stored, *written, how_to_go_on(form, path)]:
        print(f"flagsvc migrate: {line}", file=sys.stderr)
    return 0 if migration.complete else 1


def translate(source: Source, chosen: str | None) -> Migration:
    """Return what a source means here. Raises ConfigurationError if it is no configuration of a peer."""
    given = source.variables
    is_edge = peer_of(source, chosen) is Peer.EDGE
    migration = translate_edge(given, source.subcommand) if is_edge else translate_reference(given)
    for note in source.notes:
        migration.note(*note)
    return migration


def note_service(service: Service, form: str, migration: Migration) -> None:
    """Add notes on what else a service or container has to change, for a result of this form."""
    name = f"{service.kind} {service.name}"
    note_references(service, migration)
    text, given = CHANGE[service.kind]
    migration.note(About.CHANGED, name, f"{text}; {given[form]}")
    if service.health:
        migration.note(About.CHANGED, name, "its health check is `flagsvc health`, which the image has already")
    port = migration.options.get("port", 3000)
    for other in dict.fromkeys(service.ports):
        if other != port:
            migration.note(About.CHANGED, name, f"nothing listens at its port {other}: flagsvc listens at {port}")


def note_references(service: Service, migration: Migration) -> None:
    """Add notes on variables whose value stands elsewhere: they stay if flagsvc reads them, and else have to be given."""
    own = readable() if migration.peer is Peer.PROXY else {}
    for name, place in service.references.items():
        if name in own:
            migration.elsewhere.add(own[name])
            migration.note(About.CHANGED, name, f"leave it in the container: flagsvc reads it, too, from {place}")
        else:
            text = f"it comes from {place}: give what it says with `--env-file`, or add the manifest that has it"
            migration.note(About.NEEDED, name, text)


def how_to_go_on(form: str, path: str | None) -> str:
    """Return the last line: which commands take a result of this form, in this file."""
    file = printable(shlex.quote(path), 300) if path else "FILE"
    return NEXT.format(FIRST[form], "" if FIRST[form] else f" --config {file}")


def store_backup(migration: Migration, args: Namespace) -> list[str]:
    """Store a backup, and return a line for each configuration. Raises ConfigurationError and StoreError."""
    from flagsvc.cli.migrating import backups

    backup = backups.read_backup(args.backup)
    folder = backups.choose_folder(migration, args.into)
    lines = []
    for each in backups.seed(migration, backup, folder, force=args.force):
        of = f" of `{each.environment}`" if each.environment else ""
        odd = f", {each.malformed} of them malformed" if each.malformed else ""
        lines.append(f"stored in `{printable(str(folder), 300)}`: {each.flags} flags{of}{odd}")
    if args.backup_tokens:
        count = backups.list_callers(migration, backup.tokens)
        text = f"{count} keys of the backup are accepted without asking, also after they are revoked: remove them later"
        migration.note(About.CHANGED, "--backup-tokens", text)
    elif backup.tokens:
        text = f"{len(backup.tokens)} tokens are looked up at the flag server when they come; `--backup-tokens` lists them"
        migration.note(About.CHANGED, "--backup", text)
    return lines
