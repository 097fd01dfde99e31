"""Commands on the flag server's database as a whole: `flagsvc server backup`, `restore` and `seed apply`.

The first functions open the database for any command, with the server running or not. The database library is imported late.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

from flagsvc.cli.batch.files import check_writable, open_atomically
from flagsvc.cli.batch.session import set_epilog
from flagsvc.cli.batch.tables import format_count, print_columns, print_json
from flagsvc.cli.commands import Subcommand
from flagsvc.cli.parser import UsageError, add_config_argument
from flagsvc.cli.programs import check_database
from flagsvc.core.errors import ConfigurationError, DatabaseError
from flagsvc.settings.kinds import printable
from flagsvc.settings.load import UNREADABLE
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import add_group, given_flags
from flagsvc.settings.server import resolve_server
from flagsvc.settings.table import SERVER_OPTIONS

if TYPE_CHECKING:
    from flagsvc.server.store.actors import Actor
    from flagsvc.server.store.seed.wanted import Change
    from flagsvc.server.store.store import Store, Tx

Row: TypeAlias = dict[str, Any]
DATABASE = "database"
ABOUT_DATABASE = """\
database
  The command works on the database itself, whether the server runs or not. A running server notices a change within a
  second. FLAGSVC_DATABASE_URL, or --config with its table [server], name the database as for `flagsvc server`.
"""
NOTES = f"""\
{ABOUT_DATABASE}
exit code: 0 done; 1 the database cannot be used; 2 the usage is wrong, or the database does not allow it
"""
CURRENT, KNOWN, ANY = WAYS = "open_existing_store", "open_known_store", "open_any_store"
"""How a database is opened: with this version's schema; with that or an older one; also where it is empty."""
LOCKED = "database is locked"
"""What SQLite says when another program holds its lock for too long."""


def add_database_arguments(parser: ArgumentParser, notes: str = NOTES) -> None:
    """Add `--config` and the flags that name the database."""
    set_epilog(parser, notes)
    add_config_argument(parser)
    add_group(parser, DATABASE, [row for row in SERVER_OPTIONS if row.name == DATABASE])


def resolve_database(args: Namespace) -> Resolved:
    """Return the options of the flag server with a valid database. Raises ConfigurationError and MissingExtraError."""
    resolved = resolve_server(os.environ, args.config, given_flags(vars(args), SERVER_OPTIONS))
    check_database(resolved)
    problems = [resolved.problems[name] for name in (UNREADABLE, DATABASE) if name in resolved.problems]
    if problems:
        raise ConfigurationError(problems)
    return resolved


@contextmanager
def open_database(args: Namespace, way: str = CURRENT) -> Iterator[Store]:
    """Yield the database of a command, opened in one of the `WAYS`: it must exist and have this version's schema.

    Raises ConfigurationError, MissingExtraError, DatabaseError, and UsageError for what a store function refuses.
    """
    database = resolve_database(args).values[DATABASE]
    from flagsvc.core.clock import SystemClock
    from flagsvc.core.log import build_logger
    from flagsvc.server.store import store as stores

    with clear_errors():
        store: Store = getattr(stores, way)(database, SystemClock(), build_logger())
        try:
            yield store
        finally:
            store.close()


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what a store function refuses into a UsageError, and say what to do about a locked database."""
    from flagsvc.server.store.errors import CallerError

    try:
        yield
    except CallerError as error:
        raise UsageError("; ".join(each["message"].rstrip(".") for each in error.details)) from None
    except DatabaseError as error:
        hint = ": another program holds its lock; try again" if LOCKED in str(error) else ""
        raise DatabaseError(f"{error}{hint}") from error


def command_actor() -> Actor:
    """Return the author of a command's changes: the user of this machine."""
    from flagsvc.server.store.actors import COMMAND_ID, Actor

    name = "somebody"
    with suppress(OSError, KeyError):  # a container may have no name for its user
        name = getpass.getuser()
    return Actor(COMMAND_ID, f"{name} (command line)", root_role="admin")


def list_command(
    text: str,
    what: str,
    heads: Sequence[str],
    read: Callable[[Tx], Sequence[Row]],
    cells: Callable[[Row], Sequence[object]],
) -> Subcommand:
    """Return the command that prints what `read` returns: as JSON, or the `cells` of each row below `heads`."""

    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help=f"print the {what} as JSON")
        add_database_arguments(parser)

    def run(args: Namespace) -> int:
        with open_database(args) as store, store.reading() as tx:
            rows = read(tx)
        if args.json:
            print_json(rows)
        else:
            print_columns(heads, map(cells, rows))
        return 0

    return Subcommand(text, add_arguments, run)


STANDARD = "-"
MODE = 0o600
"""Only the owner of a backup may read it: it has names, mail addresses and the hashes of secrets."""
IN_MEMORY = 16 * 1024 * 1024
"""The most bytes of standard input that are held in memory; more go into a temporary file."""
GZIP = b"\x1f\x8b"
"""What every file of gzip begins with."""
BACKUP_TEXT = """Write the whole database into a file, consistent while servers run.

It has flags, segments, projects, environments, users, tokens, events, applications and usage. Sessions of the pages and sign-in
links are left out. Secrets of tokens are in it as in the database: as hashes alone.
"""
RESTORE_TEXT = """Make a database what it was at a backup, in one transaction. The database may be of the other kind, or empty.

The whole file is checked before anything changes. Proxies and running servers see the change; all sessions of the pages end.
"""
BACKUP_NOTES = f"""\
{NOTES}
examples
  flagsvc server backup flags.backup
  flagsvc server backup - --database postgresql://flags@db/flags | ssh backup.example.com 'cat > flags.backup'
"""
RESTORE_NOTES = f"""\
{NOTES}
examples
  flagsvc server restore flags.backup --database postgresql://flags@db/flags
  flagsvc server restore flags.backup --replace
"""


def add_backup_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="file to write, for its owner alone; - for standard output")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")
    add_database_arguments(parser, BACKUP_NOTES)


def backup(args: Namespace) -> int:
    """Write a backup and return 0. Raises StoreError where the file cannot be written, BackupError for a row that is too long."""
    if args.file != STANDARD:
        check_writable(args.file, force=args.force)
    with open_database(args, KNOWN) as store, open_output(args) as sink:
        from flagsvc.server.store.backup.tables import write_backup

        counts = write_backup(store, sink)
    place = "" if args.file == STANDARD else f" to `{printable(args.file, 300)}`"
    print(f"flagsvc server backup: {summary(counts)} written{place}", file=sys.stderr)
    return 0


@contextmanager
def open_output(args: Namespace) -> Iterator[BinaryIO]:
    """Yield the file to write, or standard output. Raises UsageError where that is a terminal."""
    if args.file != STANDARD:
        with open_atomically(args.file, force=args.force, mode=MODE) as sink:
            yield sink
    elif sys.stdout.isatty():
        raise UsageError("a backup is not for a terminal: name a file, or send standard output to one")
    else:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


def summary(counts: Mapping[str, int]) -> str:
    """Return how much is in a backup."""
    return f"{format_count(counts.get('features', 0), 'flag')} and {format_count(sum(counts.values()), 'row')} in all"


def add_restore_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="backup to read; - for standard input")
    text = "delete all that the database has; without it, a database in use is refused"
    parser.add_argument("--replace", action="store_true", help=text)
    add_database_arguments(parser, RESTORE_NOTES)


def restore(args: Namespace) -> int:
    """Restore a backup and return 0. Raises BackupError, and ConfigurationError where the file cannot be read."""
    resolve_database(args)
    with open_input(args.file) as source:
        from flagsvc.server.store.backup.restoring import check_backup, restore_backup
        from flagsvc.server.webhooks.addons import parameters_problem

        header = check_backup(source)
        with open_database(args, ANY) as store:
            done = restore_backup(store, source, command_actor(), parameters_problem, replace=args.replace)
    for note in done.notes:
        print(f"flagsvc server restore: {note}", file=sys.stderr)
    print(f"restored {summary(done.counts)}, as of {printable(header.created[:16].replace('T', ' '))} UTC")
    return 0


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Yield the file to read; of standard input, or of a pipe, a copy. Raises ConfigurationError."""
    with ExitStack() as opened:
        try:
            file = sys.stdin.buffer if path == STANDARD else opened.enter_context(open(path, "rb"))
            yield file if file.seekable() else opened.enter_context(copy_of(file))
        except OSError as error:
            reason = (error.strerror or "failed").lower()
            raise ConfigurationError([f"`{printable(path, 300)}` cannot be read: {reason}"]) from None


@contextmanager
def copy_of(file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a temporary copy of what a pipe gives. Without the beginning of gzip a pipe has no backup, and is not read on."""
    with SpooledTemporaryFile(IN_MEMORY) as copy:
        copy.write(start := file.read(len(GZIP)))
        if start == GZIP:
            shutil.copyfileobj(file, copy)
        yield cast("BinaryIO", copy)


BACKUP = Subcommand(BACKUP_TEXT, add_backup_arguments, backup)
RESTORE = Subcommand(RESTORE_TEXT, add_restore_arguments, restore)


DRIFT = 3
"""The exit code of a plan with changes."""
LONGEST = 300
"""The most characters of a line."""
SEED_TEXT = """Make the database what a seed file says, in one transaction, or show with --plan what that would change.

What the file does not name stays: flags, users and all else, and keys that an entry leaves out. Nothing is deleted, except from
lists that an entry names: they are whole. The strategies of a flag in an environment are such a list.
"""
SEED_NOTES = f"""\
{ABOUT_DATABASE}
examples
  flagsvc server seed apply flags.yaml --plan
  flagsvc server seed apply flags.yaml

exit code: 0 done, or the database is as the file says; 1 the database cannot be used; 2 the usage or the file is wrong, or the
database does not allow it; 3 with --plan there are changes
"""


def add_seed_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="seed file, JSON or YAML")
    parser.add_argument("--plan", action="store_true", help="show the changes, make none, and exit with 3 if there are any")
    add_database_arguments(parser, SEED_NOTES)


def apply_seed(args: Namespace) -> int:
    """Apply a seed, or plan it, and return 0, or 3 for a plan with changes. Raises SeedError with every problem of the file."""
    resolve_database(args)
    from flagsvc.server.store.seed.file import read_seed
    from flagsvc.server.store.seed.wanted import apply_wanted, plan_seed

    seed = read_seed(args.file)
    with open_database(args) as store:
        changes = (plan_seed if args.plan else apply_wanted)(store, seed, command_actor())
    for line in lines_of_changes(changes):
        print(printable(line, LONGEST))
    print(f"flagsvc server seed apply: {seed_summary(args, changes)}", file=sys.stderr)
    return DRIFT if args.plan and changes else 0


def lines_of_changes(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the lines of changes: a sentence, and below it what is different."""
    for change in changes:
        yield change.words
        for each in change.members:
            before, after = (json.dumps(each[side], ensure_ascii=False, default=str) for side in ("before", "after"))
            yield f"    {each['name']}: {before} → {after}"


def seed_summary(args: Namespace, changes: Sequence[Change]) -> str:
    """Return what was done, or would be."""
    if not changes:
        return f"nothing to change: the database is as `{printable(args.file, 300)}` says"
    return f"{format_count(len(changes), 'change')}{', a plan: nothing is written' if args.plan else ' made'}"


APPLY = Subcommand(SEED_TEXT, add_seed_arguments, apply_seed)
