"""What forms share that change something: a digest of what they were made from, one transaction, and the form with its errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Shape, ShapeError, check
from flagsvc.pages.forms import Form, read_whole
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.page import see_other
from flagsvc.server.pages.problems import problems_of, reasons_of
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
    problems: Sequence[str] = ()
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


def checked(shape: Shape, body: Json) -> Json:
    """Return a body as the admin API reads it. Raises ShapeError (400)."""
    read = check(shape, body)
    assert isinstance(read, dict)
    return read


def differences(parts: Mapping[str, str], theirs: Json, mine: Json) -> list[Json]:
    """Return the parts in which two forms differ, each with both versions; `parts` says what people call each member."""
    return [
        {"part": title, "theirs": theirs[name], "mine": mine[name]} for name, title in parts.items() if theirs[name] != mine[name]
    ]


def changed_meanwhile(*problems: str, by_whom: bool = True) -> Look:
    """Return the look of a page where nothing was done, because someone else changed the same; `by_whom` tells who it was."""
    return Look(CONFLICT, problems, by_whom=by_whom)


class Told(NamedTuple):
    """What a button did to the rows of a form: the id of the row where the eye is, and a sentence."""

    row: str
    words: str


class Rows(NamedTuple):
    """Rows of a form: what its buttons call one, the most of them, and an empty one. The hidden field `things` has their number.

    `named` is the member that a button can set.
    """

    thing: str
    most: int
    empty: Json
    named: str = ""

    def places(self, form: Form) -> range:
        return range(min(read_whole(form.text(f"{self.thing}s")) or 0, self.most))

    def press(self, rows: list[Json], button: str) -> Told | None:
        """Change rows as a button says, and tell what it did: `add-thing`, `remove-thing:2`, `thing-up:2`, `thing-down:2`.

        `name-thing:2:text` sets the member that has a name. Any other button changes nothing: None.
        """
        action, _, rest = button.partition(":")
        place, _, name = rest.partition(":")
        at = read_whole(place)
        if action == f"add-{self.thing}" and len(rows) < self.most:
            rows.append(deepcopy(self.empty))
            return self._told(len(rows), "is added")
        if at is None or at >= len(rows):
            return None
        if action == f"remove-{self.thing}":
            rows.pop(at)
            return self._told(at + 1, f"is removed; {len(rows)} {'is' if len(rows) == 1 else 'are'} left", min(at + 1, len(rows)))
        if action == f"name-{self.thing}" and self.named:
            rows[at][self.named] = name
            return self._told(at + 1, f"has the {self.named} {name} now")
        steps = {f"{self.thing}-up": -1, f"{self.thing}-down": 1}
        to = at + steps.get(action, 0)
        if action not in steps or not 0 <= to < len(rows):
            return None
        rows.insert(to, rows.pop(at))
        return self._told(at + 1, f"is {self.thing} {to + 1} now", to + 1)

    def _told(self, number: int, words: str, row: int | None = None) -> Told:
        return Told(f"{self.thing}-{number if row is None else row}", f"{self.thing.capitalize()} {number} {words}.")


def press(
    call: ApiCall,
    rows: Iterable[tuple[Rows, list[Json]]],
    save: Callable[[], Answer],
    again: Callable[[Look], Answer],
    problems_of_form: Callable[[], Sequence[str]] = tuple,
) -> Answer:
    """Do what the button of a form says: save it, show what saving changes, or change the rows of the form.

    A form with problems is not saved. They are looked for where it is to be saved or previewed.
    """
    do = call.form.text("do") or PREVIEW
    asked = do in (SAVE, PREVIEW)
    problems = problems_of_form() if asked else ()
    if do == SAVE and not problems:
        return save()
    told = [kind.press(found, do) for kind, found in rows]
    answer = again(Look(400 if do == SAVE else 200, problems, preview=asked))
    pressed = next((each._asdict() for each in told if each is not None), None)
    return replace(answer, body=answer.body | {"told": pressed})


def base_of(call: ApiCall, typed: Json | None, look: Look, stored: Any) -> str:
    """Return the digest that a form carries: that of what it was made from; after a conflict, of what is stored now."""
    return call.form.text("base") if typed is not None and not look.conflict else digest_of(stored)


def make(call: ApiCall, work: Callable[[Tx], Json], again: Callable[[Look], Answer]) -> Answer:
    """Make something in one transaction, and return the page that shows it; or the form with what is wrong."""
    try:
        with call.store.writing(call.actor, "page") as tx:
            data = work(tx)
    except (CallerError, ShapeError) as error:
        return again(Look(*problems_of(error, call.form)))
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
        return again(Look(*reasons_of(error, call.form)))
    return see_other(call, *goal, done=tx)
