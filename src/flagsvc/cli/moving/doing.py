"""What a move has to do, done: each request and each piece of flags is a transaction of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.client import AdminClient, in_path
from flagsvc.cli.batch.files import FlagFile
from flagsvc.cli.batch.pieces import Piece
from flagsvc.cli.batch.refusals import CannotAskError
from flagsvc.cli.moving.looking import NAMES_AT_ONCE, MovePlan, ProjectEnvironment
from flagsvc.cli.moving.steps import MoveStep
from flagsvc.core.errors import FlagsvcError
from flagsvc.settings.kinds import printable


class StoppedError(FlagsvcError):
    """The server does not take a part of what is moved; what was moved before stays."""


def do(plan: MovePlan, target: AdminClient) -> None:
    """Carry out a plan. Raises StoppedError, and CannotAskError where the server gives no answer to the point."""
    send_all(plan.steps, target)
    for project, names in plan.revive.items():
        send_names("revive", project, names, target)
    for place in plan.places:
        if place.pieces:
            import_all(place, target)
    for project, names in plan.archive.items():
        send_names("archive", project, names, target)
    send_all(plan.users, target)


def send_all(steps: Iterable[MoveStep], target: AdminClient) -> None:
    """Do steps one by one, and say how many of each kind were done."""
    done: Counter[str] = Counter()
    for step in steps:
        try:
            for request in step.requests:
                target.send(request.method, request.path, request.body)
        except CannotAskError as error:
            raise stopped(f"{step.title} `{printable(step.name)}`", error) from None
        done[step.title] += 1
    for title, count in done.items():
        print(f"moved: {tables.number(count, title)}")


def import_all(place: ProjectEnvironment, target: AdminClient) -> None:
    """Import the flags of a place piece by piece."""
    done = 0
    for piece in place.pieces:
        with tables.progress(f"importing {len(piece.names)} flags"):
            import_(piece, place, target)
        done += len(piece.names)
    pieces = f" in {len(place.pieces)} pieces" if len(place.pieces) > 1 else ""
    print(f"moved: {tables.number(done, 'flag')} into {where(place)}{pieces}")


def import_(piece: Piece, place: ProjectEnvironment, target: AdminClient) -> None:
    """Validate and import some flags. Raises StoppedError, and CannotAskError."""
    try:
        lists = session.validated(target, FlagFile(piece.request, bare=False), piece.request)
        if session.refused(lists):
            tables.problems({**lists, "warnings": []})
            raise StoppedError(f"the server would refuse flags of {where(place)}: the errors above say why")
        target.import_(piece.request)
    except CannotAskError as error:
        raise stopped(f"flags of {where(place)}", error) from None


def send_names(verb: str, project: str, names: list[str], target: AdminClient) -> None:
    """Revive flags before they are imported, or archive those that are imported and off."""
    for first in range(0, len(names), NAMES_AT_ONCE):
        some = {"features": names[first : first + NAMES_AT_ONCE]}
        try:
            target.send("POST", f"/api/admin/projects/{in_path(project)}/{verb}", some)
        except CannotAskError as error:
            raise stopped(f"archived flags of project `{printable(project)}`", error) from None
    print(f"moved: {tables.number(len(names), f'{verb}d flag')} of project `{printable(project)}`")


def where(place: ProjectEnvironment) -> str:
    """Return where flags are imported into."""
    return f"project `{printable(place.project)}`, environment `{printable(place.environment)}`"


def stopped(what: str, error: CannotAskError) -> FlagsvcError:
    """Return an error with what it is about: a StoppedError where the server answered with no."""
    if isinstance(error, session.SchemaError):
        tables.violations(error.violations)
    text = f"{what}: {error}"
    if error.kind in (*session.REFUSED, "schema"):
        return StoppedError(text)
    return CannotAskError(error.kind, text, status=error.status)
