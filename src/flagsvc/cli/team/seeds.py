"""`flagsvc server seed apply`: a seed file as the wanted state of the flag server's database."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from flagsvc.cli.batch.tables import format_count
from flagsvc.cli.commands import Subcommand
from flagsvc.cli.team.opening import add_database_arguments, command_actor, open_database, resolve_database
from flagsvc.settings.kinds import printable

if TYPE_CHECKING:
    from flagsvc.server.store.seed.wanted import Change

DRIFT = 3
"""The exit code of a plan with changes."""
LONGEST = 300
"""The most characters of a line."""
TEXT = """Make the database what a seed file says, in one transaction, or show with --plan what that would change.

What the file does not name stays: flags, users and all else, and keys that an entry leaves out. Nothing is deleted, except from
lists that an entry names: they are whole. The strategies of a flag in an environment are such a list.
"""
NOTES = """\
database
  The command works on the database itself, whether the server runs or not. A running server notices a change within a
  second. FLAGSVC_DATABASE_URL, or --config with its table [server], name the database as for `flagsvc server`.

examples
  flagsvc server seed apply flags.yaml --plan
  flagsvc server seed apply flags.yaml

exit code: 0 done, or the database is as the file says; 1 the database cannot be used; 2 the usage or the file is wrong, or the
database does not allow it; 3 with --plan there are changes
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the file, `--plan` and the database."""
    parser.add_argument("file", metavar="FILE", help="seed file, JSON or YAML")
    parser.add_argument(
        "--plan", action="store_true", help="show the changes, make none, and exit with 3 if there are any"
    )
    add_database_arguments(parser, NOTES)


def run(args: Namespace) -> int:
    """Apply a seed, or plan it, and return 0, or 3 for a plan with changes. Raises SeedError with every problem of the file."""
    resolve_database(args)
    from flagsvc.server.store.seed.file import read_seed
    from flagsvc.server.store.seed.wanted import apply_wanted, plan_seed

    seed = read_seed(args.file)
    with open_database(args) as store:
        changes = (plan_seed if args.plan else apply_wanted)(store, seed, command_actor())
    for line in lines_of(changes):
        print(printable(line, LONGEST))
    print(f"flagsvc server seed apply: {summary(args, changes)}", file=sys.stderr)
    return DRIFT if args.plan and changes else 0


def lines_of(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the lines of changes: a sentence, and below it what is different."""
    for change in changes:
        yield change.words
        for each in change.members:
            before, after = (json.dumps(each[side], ensure_ascii=False, default=str) for side in ("before", "after"))
            yield f"    {each['name']}: {before} → {after}"


def summary(args: Namespace, changes: Sequence[Change]) -> str:
    """Return what was done, or would be."""
    if not changes:
        return f"nothing to change: the database is as `{printable(args.file, 300)}` says"
    return f"{format_count(len(changes), 'change')}{', a plan: nothing is written' if args.plan else ' made'}"


APPLY = Subcommand(TEXT, add_arguments, run)
