"""Move the flags of a flag server to another, with all that they need there, after showing what that would change.

FROM and TO are addresses of flag servers, ours or another of the family, with or without /api. What FROM has is made on TO or
changed to be alike; what only TO has stays as it is. FROM is only read.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.consent import consent
from flagsvc.cli.batch.refusals import CannotAskError
from flagsvc.cli.batch.target import (
    ABOUT_CONNECTIONS,
    ABOUT_TOKENS,
    FROM,
    TO,
    add_connection_arguments,
    add_timeout_argument,
    target_at,
    warn_of,
)
from flagsvc.cli.export import listed
from flagsvc.cli.import_ import NO_USER, counted
from flagsvc.cli.moving.doing import StoppedError, do, where
from flagsvc.cli.moving.looking import MovePlan, MoveRequest, look
from flagsvc.cli.moving.steps import MoveStep
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.kinds import printable

EPILOG = f"""\
what is moved, in this order
  projects that are missing, where TO makes projects over its API; environments that a project of TO lacks; custom strategy
  types; context fields, of those that are there only the legal values that are missing; tag types that are missing;
  segments with their constraints; of each environment the flags with their strategies in their order, variants, tags, links
  and parents, in pieces of fewer than 512000 bytes; archived flags (one that only TO has archived is revived); users that
  are missing, without a password and without a mail.

what is not moved
  Secrets of API tokens, passwords, roles in projects, favourites, metrics, events, change requests, release plans.

again
  A second run moves what changed meanwhile, and says so where nothing did. After a run that stopped, the next goes on.

{ABOUT_TOKENS.format(file="--from-token-file, --to-token-file", variable="the variables")}
{ABOUT_CONNECTIONS.format(ca="each --…-ca-file")}
examples
  flagsvc move https://old.example.com https://new.example.com --from-token-file old.token --to-token-file new.token --dry-run
  flagsvc move https://old.example.com https://new.example.com --from-token-file old.token --to-token-file new.token --yes
  flagsvc move OLD NEW --project shop,billing --to-project default --environment production …

exit code: 0 moved, or nothing to move; with --dry-run: shown, and TO has not checked the flags yet, which it does piece by piece
as they are moved; 1 TO refused a part of it; 2 a server could not be asked, or there was no terminal to ask whether to go on
"""
GO_ON = "what was moved before this stays; the next run goes on from there"


def add_arguments(parser: ArgumentParser) -> None:
    """Put the arguments of the command on its parser."""
    session.describe(parser, EPILOG)
    parser.add_argument("source", metavar="FROM", help="address of the server whose flags are moved")
    parser.add_argument("target", metavar="TO", help="address of the server that gets them")
    parser.add_argument(
        "--project", metavar="NAMES", type=listed, default=[], help="these projects of FROM [default: all]"
    )
    text = "project of TO that gets all flags [default: the project of the same name]"
    parser.add_argument("--to-project", metavar="ID", help=text)
    text = "these environments [default: those that both servers have]"
    parser.add_argument("--environment", metavar="NAMES", type=listed, default=[], help=text)
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would change, flag by flag, and change nothing"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask whether to go on")
    for side in (FROM, TO):
        add_connection_arguments(parser.add_argument_group(side.address), side)
    add_timeout_argument(parser.add_argument_group("both"))


def run(args: Namespace) -> int:
    """Look at both servers, show, ask, move, and return 0, 1 or 2."""
    return session.guarded("move", lambda: move(args))


def move(args: Namespace) -> int:
    """Do it step by step; raises CannotAskError and ConfigurationError."""
    with ExitStack() as open_:
        source, target = (open_.enter_context(client) for client in clients(args))
        if target.may_not_import():
            print(f"flagsvc move: nothing was moved: {NO_USER.format(tokens=TO.tokens)}", file=sys.stderr)
            return 1
        with tables.progress("looking at both servers"):
            plan = look(source, target, MoveRequest(tuple(args.project), tuple(args.environment), args.to_project))
        show(plan, in_full=args.dry_run)
        if plan.empty:
            print(f"0 changes: {nothing(plan, target.target.shown)}")
            return 0
        if args.dry_run:
            print("nothing was moved: this was a dry run")
            return 0
        code = consent("move", "Move this?", "nothing was moved", yes=args.yes)
        return moved(plan, target) if code is None else code


def clients(args: Namespace) -> Iterator[AdminClient]:
    """Give a session with each of the two servers; raises ConfigurationError."""
    found = [target_at(args.source, args, FROM), target_at(args.target, args, TO)]
    if found[0].url == found[1].url:
        raise ConfigurationError([f"FROM and TO are the same server: `{found[0].shown}`"])
    for target in found:
        warn_of(target, "flagsvc move")
        yield AdminClient(target)


def show(plan: MovePlan, *, in_full: bool) -> None:
    """Show what would change, flag by flag or in numbers, and what stays behind."""
    rows = [made(step) for step in (*plan.steps, *plan.users)]
    left = [("yellow", "! stays behind", printable(text, 300), ()) for text in plan.left]
    tables.show(("", "What"), [*rows, *left])
    for place in plan.places:
        print(f"{where(place)}: {counted(place.found)}")
        if in_full:
            tables.changes(place.found)
    for text in plan.warnings:
        print(f"flagsvc move: warning: {text}", file=sys.stderr)


def nothing(plan: MovePlan, shown: str) -> str:
    """Return why nothing is moved, without a promise that what was shown contradicts."""
    if plan.left:
        return f"nothing to move, {tables.number(len(plan.left), 'thing')} {'stays' if len(plan.left) == 1 else 'stay'} behind"
    return "nothing to move, as far as the warnings allow to say" if plan.warnings else f"{shown} has all of it"


def made(step: MoveStep) -> tables.Row:
    """Return what is shown of one step."""
    sign = f"{tables.SIGNS[step.kind]} {step.kind}"
    return tables.COLOURS[step.kind], sign, f"{step.title} {printable(step.name, 300)}", ()


def moved(plan: MovePlan, target: AdminClient) -> int:
    """Move, and return 0, or 1 where the server refused a part."""
    try:
        do(plan, target)
    except KeyboardInterrupt:
        print(f"flagsvc move: stopped: {GO_ON}", file=sys.stderr)
        raise
    except StoppedError as error:
        print(f"flagsvc move: stopped: {error}; {GO_ON}", file=sys.stderr)
        return 1
    except CannotAskError as error:
        raise CannotAskError(error.kind, f"stopped: {error}; {GO_ON}", status=error.status) from None
    return 0
