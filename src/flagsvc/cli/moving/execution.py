"""Executes the plan of a move. Each request and each piece of flags is its own transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.client import AdminClient, quote_path_part
from flagsvc.cli.batch.pieces import Piece, without_flags
from flagsvc.cli.batch.server_errors import AdminApiError
from flagsvc.cli.moving.planning import NAMES_PER_REQUEST, MovePlan, ProjectEnvironment
from flagsvc.cli.moving.resources import AdminRequest, MoveStep
from flagsvc.core.errors import FlagsvcError
from flagsvc.settings.kinds import printable

if TYPE_CHECKING:
    from flagsvc.server.store.batch.server_facts import ImportProblem

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
    from flagsvc.server.store.batch.server_facts import ImportProblem

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
    """Return the project and the environment as text."""
    return f"project `{printable(place.project)}`, environment `{printable(place.environment)}`"


def stop(what: str, error: AdminApiError) -> FlagsvcError:
    """Return an error with its subject: a StoppedError if the server rejected the request."""
    text = f"{what}: {error}"
    if error.kind in session.REJECTIONS:
        return StoppedError(text)
    return AdminApiError(error.kind, text, status=error.status)
