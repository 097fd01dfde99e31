"""What forms share that change something: a digest of what they were made from, one transaction, and the form with its errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Shape, ShapeError, check
from flagsvc.pages.forms import Form, read_whole
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.page import see_other
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.store import Tx

CONFLICT = 409
DIGEST_BYTES = 12
SAVE, PREVIEW = "save", "preview"
"""The buttons of every form that edits. Any other one changes the form only."""


@dataclass
class Look:
    """How the page of a form looks: its status, what is wrong, whether it shows a preview, and a conflict.

    With a conflict, and `by_whom`, it says who made the last change.
    """

    status: int = 200
    problems: list[str] = field(default_factory=list)
    preview: bool = False
    conflict: bool = False
    by_whom: bool = False


class ChangedMeanwhileError(Exception):
    """What a form was made from has changed, so the form is not saved unseen."""


def digest_of(stored: Any) -> str:
    """Return a digest of a JSON value. A form carries the digest of what it was made from."""
    text = json.dumps(stored, sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()


def require_unchanged(stored: Any, digest: str) -> None:
    """Raise ChangedMeanwhileError if a value is not the one of a digest."""
    if digest_of(stored) != digest:
        raise ChangedMeanwhileError


def problems_of(error: CallerError | ShapeError) -> tuple[int, list[str]]:
    """Return the status and the messages of an error, for the page with the form."""
    if isinstance(error, ShapeError):
        return 400, [str(each["message"]) for each in error.details]
    return error.status, [str(each.get("message", error.message)) for each in error.details]


def reasons_of(error: CallerError | ShapeError) -> tuple[int, list[str]]:
    """Return what `problems_of` returns, with the message of an error that has reasons before them."""
    status, found = problems_of(error)
    first = [error.message] if isinstance(error, CallerError) and status != 400 else []
    return status, list(dict.fromkeys((*first, *found)))


def checked(shape: Shape, body: Json) -> Json:
    """Return a body as the admin API reads it. Raises ShapeError (400)."""
    read = check(shape, body)
    assert isinstance(read, dict)
    return read


def differences(parts: Mapping[str, str], theirs: Json, mine: Json) -> list[Json]:
    """Return the parts in which two forms differ, each with both versions; `parts` says what people call each member."""
    return [
        {"part": title, "theirs": theirs[name], "mine": mine[name]}
        for name, title in parts.items()
        if theirs[name] != mine[name]
    ]


def changed_meanwhile(*problems: str, by_whom: bool = True) -> Look:
    """Return the look of a page where nothing was done, because someone else changed the same; `by_whom` tells who it was."""
    return Look(CONFLICT, list(problems), by_whom=by_whom)


class Rows(NamedTuple):
    """Rows of a form: what its buttons call one, the most of them, and an empty one. The hidden field `things` has their number."""

    thing: str
    most: int
    empty: Json

    def places(self, form: Form) -> range:
        return range(min(read_whole(form.text(f"{self.thing}s")) or 0, self.most))

    def press(self, rows: list[Json], button: str) -> None:
        """Change rows as a button says: `add-thing`, `remove-thing:2`, `thing-up:2`, `thing-down:2`. Others change nothing."""
        action, _, place = button.partition(":")
        at = read_whole(place)
        if action == f"add-{self.thing}" and len(rows) < self.most:
            rows.append(deepcopy(self.empty))
        elif at is None or at >= len(rows):
            return
        elif action == f"remove-{self.thing}":
            rows.pop(at)
        elif action == f"{self.thing}-up" and at > 0:
            rows.insert(at - 1, rows.pop(at))
        elif action == f"{self.thing}-down":
            rows.insert(at + 1, rows.pop(at))


def press(
    call: ApiCall,
    rows: Iterable[tuple[Rows, list[Json]]],
    save: Callable[[], Answer],
    again: Callable[[Look], Answer],
    problems: Sequence[str] = (),
) -> Answer:
    """Do what the button of a form says: save it, show what saving changes, or change the rows of the form.

    A form with `problems` is not saved.
    """
    do = call.form.text("do") or PREVIEW
    if do == SAVE and not problems:
        return save()
    for kind, found in rows:
        kind.press(found, do)
    asked = do in (SAVE, PREVIEW)
    return again(Look(400 if do == SAVE else 200, list(problems) if asked else [], preview=asked))


def base_of(call: ApiCall, typed: Json | None, look: Look, stored: Any) -> str:
    """Return the digest that a form carries: that of what it was made from; after a conflict, of what is stored now."""
    return call.form.text("base") if typed is not None and not look.conflict else digest_of(stored)


def make(call: ApiCall, work: Callable[[Tx], Json], again: Callable[[Look], Answer]) -> Answer:
    """Make something in one transaction, and return the page that shows it; or the form with what is wrong."""
    try:
        with call.store.writing(call.actor, "page") as tx:
            data = work(tx)
    except (CallerError, ShapeError) as error:
        return again(Look(*problems_of(error)))
    return Answer(data)


def attempt(
    call: ApiCall,
    work: Callable[[Tx], object],
    again: Callable[[Look], Answer],
    *goal: str,
    changed: Look | None = None,
) -> Answer:
    """Do a change in one transaction, and go to the page whose path has the segments `goal`.

    `again` shows the form of a refused change: with the reasons, and after another person's change with both versions. A form
    that has nothing typed has `changed_meanwhile` as `changed` instead.
    """
    try:
        with call.store.writing(call.actor, "page") as tx:
            work(tx)
    except ChangedMeanwhileError:
        return again(changed or Look(CONFLICT, conflict=True))
    except (CallerError, ShapeError) as error:
        return again(Look(*reasons_of(error)))
    return see_other(call, *goal, done=tx)
