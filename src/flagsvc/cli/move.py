"""Move the flags of a flag server to another, with everything that they need there, after it shows the changes.

FROM and TO are addresses of flag servers, ours or another of the family, with or without /api. The command creates or changes on
TO what FROM has; what only TO has stays unchanged. FROM is only read.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.client import AdminClient, quote_path_part
from flagsvc.cli.batch.server_errors import AdminApiError
from flagsvc.cli.batch.tables import confirm
from flagsvc.cli.batch.target import (
    ABOUT_CONNECTIONS,
    ABOUT_TOKENS,
    FROM,
    TO,
    add_connection_arguments,
    add_timeout_argument,
    build_target,
    warn_insecure,
)
from flagsvc.cli.export import parse_names
from flagsvc.cli.import_ import NO_USER, format_counts
from flagsvc.cli.moving.checking import Checker, RefusedError, leave_out
from flagsvc.cli.moving.planning import (
    NAMES_PER_REQUEST,
    MovePlan,
    MoveRequest,
    Piece,
    ProjectEnvironment,
    make_plan,
    without_flags,
)
from flagsvc.cli.moving.resources import AdminRequest, MoveStep
from flagsvc.core.errors import ConfigurationError, FlagsvcError
from flagsvc.server.store.batch.facts import ImportProblem
from flagsvc.settings.kinds import printable

EPILOG = f"""\
what is moved, in this order
  missing projects, if the API of TO can create projects; environments that a project of TO lacks; custom strategy types;
  missing context fields, and missing legal values of existing ones; missing tag types; segments with their constraints; for
  each environment the flags with their strategies in order, variants, tags, links and parents, in pieces of fewer than 512000
  bytes; archived flags (one that is archived only on TO is revived); missing users, without a password and without a mail.

what is not moved
  Secrets of API tokens, passwords, roles in projects, favourites, metrics, events, change requests, release plans.

what cannot be moved
  The command asks TO before it changes anything, and names each flag that TO would refuse. It then moves nothing, or with
  --skip-failing the other flags. A flag that fails in one environment is left out of all, and so is the child of a flag that is
  left out and that TO does not have.

further runs
  A second run moves only what has changed since. After a run that stopped, the next one continues.

{ABOUT_TOKENS.format(file="--from-token-file, --to-token-file", variable="the variables")}
{ABOUT_CONNECTIONS.format(ca="each --…-ca-file")}
examples
  flagsvc move https://old.example.com https://new.example.com --from-token-file old.token --to-token-file new.token --dry-run
  flagsvc move https://old.example.com https://new.example.com --from-token-file old.token --to-token-file new.token --yes
  flagsvc move OLD NEW --project shop,billing --to-project default --environment production …

exit code: 0 moved, or nothing to move, or with --dry-run all of it can be moved; 1 a flag cannot be moved, or TO rejected a
part; 2 a request to a server failed, or there was no terminal to ask for confirmation
"""
SKIP_HINT = "the errors above name the flags that cannot be moved; --skip-failing moves the others"
RESUME_HINT = "what was moved before this stays; the next run goes on from there"


def add_arguments(parser: ArgumentParser) -> None:
    session.set_epilog(parser, EPILOG)
    parser.add_argument("source", metavar="FROM", help="address of the server whose flags are moved")
    parser.add_argument("target", metavar="TO", help="address of the server that gets them")
    parser.add_argument("--project", metavar="NAMES", type=parse_names, default=[], help="these projects of FROM [default: all]")
    text = "project of TO that gets all flags [default: the project of the same name]"
    parser.add_argument("--to-project", metavar="ID", help=text)
    text = "these environments [default: those that both servers have]"
    parser.add_argument("--environment", metavar="NAMES", type=parse_names, default=[], help=text)
    parser.add_argument("--dry-run", action="store_true", help="show what would change, flag by flag, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    text = "move the others where flags cannot be moved; these are listed at the end, with exit code 1"
    parser.add_argument("--skip-failing", action="store_true", help=text)
    for side in (FROM, TO):
        add_connection_arguments(parser.add_argument_group(side.address), side)
    add_timeout_argument(parser.add_argument_group("both"))


@session.command("move")
def run(args: Namespace) -> int:
    """Read both servers, show the changes, ask for confirmation, and move; raises AdminApiError and ConfigurationError."""
    with ExitStack() as open_:
        source, target = (open_.enter_context(client) for client in open_clients(args))
        if target.is_admin_token():
            print(f"flagsvc move: nothing was moved: {NO_USER.format(tokens=TO.tokens)}", file=sys.stderr)
            return 1
        with tables.progress("looking at both servers"):
            plan = make_plan(source, target, MoveRequest(tuple(args.project), tuple(args.environment), args.to_project))
            try:
                problems = Checker(plan, target).problems()
            except RefusedError as error:
                print(f"flagsvc move: nothing was moved: the server would refuse it: {error}", file=sys.stderr)
                return 1
        if args.skip_failing:
            leave_out(plan, problems)
        show_plan(plan, in_full=args.dry_run)
        if plan.empty and not problems:
            print(f"0 changes: {nothing_to_move(plan, target.target.shown)}")
            return 0
        if problems and not args.skip_failing:
            show_failing(problems)
            print(f"flagsvc move: nothing was moved: {SKIP_HINT}", file=sys.stderr)
            return 1
        if args.dry_run or plan.empty:
            show_failing(problems)
            print(f"nothing was moved{': this was a dry run' if args.dry_run else ''}")
            return 1 if problems else 0
        code = confirm("move", "Move this?", "nothing was moved", yes=args.yes)
        return run_move(plan, target, problems, skip=args.skip_failing) if code is None else code


def show_failing(problems: Sequence[ImportProblem]) -> None:
    """Show the flags that cannot be moved, each with its places."""
    tables.show_import_problems(problems, ())
    if count := len({each.flag for each in problems} - {""}):
        print(f"cannot be moved: {tables.format_count(count, 'flag')}")


def open_clients(args: Namespace) -> Iterator[AdminClient]:
    """Yield a client for each of the two servers; raises ConfigurationError."""
    found = [build_target(args.source, args, FROM), build_target(args.target, args, TO)]
    if found[0].url == found[1].url:
        raise ConfigurationError([f"FROM and TO are the same server: `{found[0].shown}`"])
    for target in found:
        warn_insecure(target, "flagsvc move")
        yield AdminClient(target)


def show_plan(plan: MovePlan, *, in_full: bool) -> None:
    """Show the changes, flag by flag or as counts, and what stays behind."""
    rows = [step_row(step) for step in (*plan.steps, *plan.users)]
    left = [("yellow", "! stays behind", printable(text, 300), ()) for text in plan.left]
    tables.print_rows(("", "What"), [*rows, *left])
    for place in plan.places:
        print(f"{describe_target(place)}: {format_counts(place.found)}")
        if in_full:
            tables.show_changes(place.found)
    for text in plan.warnings:
        print(f"flagsvc move: warning: {text}", file=sys.stderr)


def nothing_to_move(plan: MovePlan, shown: str) -> str:
    """Return why nothing is moved; claim that TO has everything only if nothing stays behind and there are no warnings."""
    if plan.left:
        stay = "stays" if len(plan.left) == 1 else "stay"
        return f"nothing to move, {tables.format_count(len(plan.left), 'thing')} {stay} behind"
    return "nothing to move, except what the warnings name" if plan.warnings else f"{shown} has all of it"


def step_row(step: MoveStep) -> tables.Row:
    sign = f"{tables.SIGNS[step.kind]} {step.kind}"
    return tables.COLOURS[step.kind], sign, f"{step.title} {printable(step.name, 300)}", ()


def run_move(plan: MovePlan, target: AdminClient, problems: Sequence[ImportProblem], *, skip: bool) -> int:
    """Move, and return 0, or 1 if a part cannot be moved: `problems`, and what the server refuses now."""
    try:
        problems = [*problems, *execute(plan, target, skip=skip)]
    except KeyboardInterrupt:
        print(f"flagsvc move: stopped: {RESUME_HINT}", file=sys.stderr)
        raise
    except StoppedError as error:
        print(f"flagsvc move: stopped: {error}; {RESUME_HINT}", file=sys.stderr)
        return 1
    except AdminApiError as error:
        raise AdminApiError(error.kind, f"stopped: {error}; {RESUME_HINT}", status=error.status) from None
    show_failing(problems)
    return 1 if problems else 0


CONFLICT = 409
ABOUT_FLAGS = ("refused", "conflict", "not-found")
"""Kinds of errors of an import that may concern one flag."""


class StoppedError(FlagsvcError):
    """The server rejected a part of the move; the parts before it stay."""


def execute(plan: MovePlan, target: AdminClient, *, skip: bool = False) -> list[ImportProblem]:
    """Execute a plan, and return what the server refused of flags: these are left out from there on.

    Raises StoppedError, without `skip` also for the first refused flag; and AdminApiError if the server gives no usable answer.
    """
    send_steps(plan.steps, target)
    for project, names in plan.revive.items():
        send_names("revive", project, names, target)
    refused: list[ImportProblem] = []
    for whole in plan.places:
        place = whole.without({each.flag for each in refused})
        if place.pieces:
            refused += import_pieces(place, target, skip=skip)
    failed = {each.flag for each in refused}
    for project in plan.archive.keys() | plan.revive.keys():
        back = plan.revive.get(project, [])
        wanted = [name for name in plan.archive.get(project, []) if name not in failed or name in back]
        wanted += [name for name in back if name in failed and name not in wanted]
        send_names("archive", project, wanted, target)
    send_steps(plan.users, target)
    return refused


def send_steps(steps: Iterable[MoveStep], target: AdminClient) -> None:
    """Send the steps one by one, and print how many of each kind were sent."""
    done: Counter[str] = Counter()
    for step in steps:
        try:
            for request in step.requests:
                send_request(request, target)
        except AdminApiError as error:
            raise stop(f"{step.title} `{printable(step.name)}`", error) from None
        done[step.title] += 1
    for title, count in done.items():
        print(f"moved: {tables.format_count(count, title)}")


def send_request(request: AdminRequest, target: AdminClient) -> None:
    """Send a request. Raises AdminApiError, but not if what it adds is there already and may be."""
    try:
        target.send(request.method, request.path, request.body)
    except AdminApiError as error:
        if not (request.may_exist and error.status == CONFLICT):
            raise


def import_pieces(place: ProjectEnvironment, target: AdminClient, *, skip: bool) -> list[ImportProblem]:
    """Import the flags of a project's environment piece by piece, and return what the server refused."""
    refused: list[ImportProblem] = []
    for piece in place.pieces:
        with tables.progress(f"importing {len(piece.names)} flags"):
            refused += import_piece(piece, place, target, skip=skip)
    done = sum(len(piece.names) for piece in place.pieces) - len(refused)
    pieces = f" in {len(place.pieces)} pieces" if len(place.pieces) > 1 else ""
    print(f"moved: {tables.format_count(done, 'flag')} into {describe_target(place)}{pieces}")
    return refused


def import_piece(piece: Piece, place: ProjectEnvironment, target: AdminClient, *, skip: bool) -> list[ImportProblem]:
    """Import some flags, and return what the server refused. A piece that it refuses goes again in halves, down to the flag.

    Raises StoppedError and AdminApiError, without `skip` also for a refused flag.
    """
    try:
        target.import_(piece.request)
    except AdminApiError as error:
        if error.kind not in ABOUT_FLAGS:
            raise stop(f"flags of {describe_target(place)}", error) from None
        middle = len(piece.names) // 2
        halves = (piece.names[:middle], piece.names[middle:]) if middle else ()
        if not halves and not skip:
            raise stop(f"flag `{printable(piece.names[0])}` of {describe_target(place)}", error) from None
        if not halves:
            return [ImportProblem("refused", piece.names[0], f"environment {place.environment}", str(error))]
        rest = (without_flags(piece, half) for half in reversed(halves))
        return [each for half in rest for each in import_piece(half, place, target, skip=skip)]
    return []


def send_names(verb: str, project: str, names: list[str], target: AdminClient) -> None:
    """Revive flags before their import, or archive flags after it."""
    if not names:
        return
    for first in range(0, len(names), NAMES_PER_REQUEST):
        some = {"features": names[first : first + NAMES_PER_REQUEST]}
        try:
            target.send("POST", f"/api/admin/projects/{quote_path_part(project)}/{verb}", some)
        except AdminApiError as error:
            raise stop(f"archived flags of project `{printable(project)}`", error) from None
    print(f"moved: {tables.format_count(len(names), f'{verb}d flag')} of project `{printable(project)}`")


def describe_target(place: ProjectEnvironment) -> str:
    return f"project `{printable(place.project)}`, environment `{printable(place.environment)}`"


def stop(what: str, error: AdminApiError) -> FlagsvcError:
    """Return an error with its subject: a StoppedError if the server rejected the request."""
    text = f"{what}: {error}"
    if error.kind in session.REJECTIONS:
        return StoppedError(text)
    return AdminApiError(error.kind, text, status=error.status)
