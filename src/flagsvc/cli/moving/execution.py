"""Executes the plan of a move. Each request and each piece of flags is its own transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.client import AdminClient, quote_path_part
from flagsvc.cli.batch.files import FlagFile
from flagsvc.cli.batch.pieces import Piece
from flagsvc.cli.batch.server_errors import AdminApiError
from flagsvc.cli.moving.planning import NAMES_PER_REQUEST, MovePlan, ProjectEnvironment
from flagsvc.cli.moving.steps import AdminRequest, MoveStep
from flagsvc.core.errors import FlagsvcError
from flagsvc.settings.kinds import printable

CONFLICT = 409


class StoppedError(FlagsvcError):
    """The server rejected a part of the move; the parts before it stay."""


def execute(plan: MovePlan, target: AdminClient) -> None:
    """Execute a plan. Raises StoppedError, and AdminApiError if the server gives no usable answer."""
    send_steps(plan.steps, target)
    for project, names in plan.revive.items():
        send_names("revive", project, names, target)
    for place in plan.places:
        if place.pieces:
            import_pieces(place, target)
    for project, names in plan.archive.items():
        send_names("archive", project, names, target)
    send_steps(plan.users, target)


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


def import_pieces(place: ProjectEnvironment, target: AdminClient) -> None:
    """Import the flags of a project's environment piece by piece."""
    done = 0
    for piece in place.pieces:
        with tables.progress(f"importing {len(piece.names)} flags"):
            import_piece(piece, place, target)
        done += len(piece.names)
    pieces = f" in {len(place.pieces)} pieces" if len(place.pieces) > 1 else ""
    print(f"moved: {tables.format_count(done, 'flag')} into {describe_target(place)}{pieces}")


def import_piece(piece: Piece, place: ProjectEnvironment, target: AdminClient) -> None:
    """Validate and import some flags. Raises StoppedError, and AdminApiError."""
    try:
        lists = session.validate_request(target, FlagFile(piece.request, bare=False), piece.request)
        if session.is_rejected(lists):
            tables.show_problems({**lists, "warnings": []})
            raise StoppedError(f"the server would refuse flags of {describe_target(place)}: the errors above say why")
        target.import_(piece.request)
    except AdminApiError as error:
        raise stop(f"flags of {describe_target(place)}", error) from None


def send_names(verb: str, project: str, names: list[str], target: AdminClient) -> None:
    """Revive flags before their import, or archive flags after it."""
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
    if isinstance(error, session.SchemaError):
        tables.show_violations(error.violations)
    text = f"{what}: {error}"
    if error.kind in (*session.REJECTIONS, "schema"):
        return StoppedError(text)
    return AdminApiError(error.kind, text, status=error.status)
