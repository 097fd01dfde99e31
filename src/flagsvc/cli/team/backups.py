"""`flagsvc server backup` and `restore`: the whole database as a file, of either kind, with the server running or not."""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from flagsvc.cli.batch.files import check_writable, open_atomically
from flagsvc.cli.batch.tables import format_count
from flagsvc.cli.commands import Subcommand
from flagsvc.cli.parser import UsageError
from flagsvc.cli.team.opening import (
    ANY,
    KNOWN,
    NOTES,
    add_database_arguments,
    command_actor,
    open_database,
    resolve_database,
)
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.kinds import printable

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
    """Add the file, `--force` and the database."""
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
    """Add the file, `--replace` and the database."""
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
