"""One flow for the pages of every resource: the list, the form of a new one and of a stored one, saving, deleting, other buttons.

A `Resource` describes what is particular to one. Its operations of the admin API say who may, and which body a form stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Shape
from flagsvc.pages.forms import Form
from flagsvc.pages.templates import segment
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Handler, Route
from flagsvc.server.api.routes import OPERATIONS
from flagsvc.server.pages.edits import (
    Look,
    Rows,
    attempt,
    base_of,
    changed_meanwhile,
    checked,
    press,
    require_unchanged,
)
from flagsvc.server.pages.flags import project_choices
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, page, render, see_other
from flagsvc.server.store.checks import Json
from flagsvc.server.store.store import Tx

MAKE, WRITE, DELETE = 0, 1, 2
"""The places of a resource's operations."""
OF_TEMPLATES: Final = ("key", "rows")
"""Members of every page that its template has, and its data as JSON has not."""
NOT_DELETED: Final = "It was not deleted: someone changed this {} meanwhile. This is what it is now."
NOT_DONE: Final = "Nothing was done: someone changed this {} meanwhile. This is what it is now."


class Seen(NamedTuple):
    """What a page shows: the stored object with its key, both None for a new object, and two forms.

    `own` is the form of what is stored; `typed` is what was typed, None for nothing.
    """

    call: ApiCall
    tx: Tx
    look: Look
    key: Any
    stored: Json | None
    own: Json
    typed: Json | None

    @property
    def form(self) -> Json:
        return self.typed or self.own


@dataclass(frozen=True, kw_only=True, eq=False)
class Resource:
    """What is particular to the pages of a resource.

    `name` and `plural` name its paths and templates; `word` is what people call it, if not its name. `members` are the members of
    the data that have the key of one, and the list. `operations` of the admin API create, change and delete one. `key` is the
    parameter of the path, which `read_key` reads. `new` is the path of the form of a new one, if not the usual one. `reads` is the
    permission to see the pages.

    `rows` returns all; `find` returns one, or raises CallerError (404); `create`, `change` and `remove` write. Without `create`
    the module has the form of a new one itself.

    `shown_of` makes a form of what is stored, and `read` of what was typed. `body_of` returns the body of the admin API for a form,
    given what is stored, None for a new one. `compare` returns the parts in which two forms differ. `rows_of` returns the rows of a
    form that its buttons change; without it every button saves. `problems` returns what is wrong with a form before it is saved,
    given what is stored, None for a new one. `more` returns members that only this page has, or that differ;
    `list_more` does so for the list, given its rows. `lacks` and `list_lacks` are the members that the data does not have.

    `kept` is what of a stored one must not have changed when it is saved, and `whole` when it is deleted. `sentence` says that it
    has changed, and `retyped` what was typed, where no table compares. `last_change` calls the whole `thing`; `place` is the part
    of an event's place that is the key. `project_of` returns the project in which the caller needs the permission. `stays` tells
    that after a change the page is that of the one, and not the list.
    """

    name: str
    plural: str
    members: tuple[str, str]
    operations: tuple[str, str, str]
    rows: Callable[[Tx], list[Json]]
    find: Callable[[Tx, Any], Json]
    change: Callable[[Tx, Any, Json], object]
    remove: Callable[[Tx, Any], object]
    read: Callable[[Form], Json]
    body_of: Callable[[Json, Json | None], Json]
    create: Callable[[Tx, Json], object] | None = None
    new_form: Json = field(default_factory=dict)
    compare: Callable[[Json, Json], list[Json]] = lambda _own, _form: []
    more: Callable[[Seen], Json] = lambda _seen: {}
    list_more: Callable[[ApiCall, Tx, list[Json], Look], Json] = lambda _call, _tx, _rows, _look: {}
    rows_of: Callable[[Json], Iterable[tuple[Rows, list[Json]]]] | None = None
    problems: Callable[[Tx, Form, Json, Json | None], Sequence[str]] = lambda _tx, _form, _typed, _stored: ()
    shown_of: Callable[[Json], Json] = lambda stored: stored
    kept: Callable[[Json], Any] = lambda stored: stored
    whole: Callable[[Tx, Json], Any] = lambda _tx, stored: stored
    key: str = "name"
    read_key: Callable[[ApiCall, str], Any] = lambda call, name: call.params[name]
    word: str = ""
    thing: str = ""
    place: str = ""
    project_of: Callable[[Json], str | None] = lambda stored: stored.get("project")
    sentence: str = NOT_DELETED
    retyped: Callable[[Json], str] | None = None
    stays: bool = False
    new: str = ""
    reads: str = ""
    lacks: Sequence[str] = ()
    list_lacks: Sequence[str] = ()

    @property
    def label(self) -> str:
        """What people call one."""
        return self.word or self.name

    @property
    def path(self) -> str:
        return f"/{self.plural.replace(' ', '-')}"

    @property
    def own(self) -> str:
        """The path of one, with its parameter."""
        return f"{self.path}/:{self.key}"

    def address(self, key: object) -> str:
        """Return the path of the one with a key; None: of a new one."""
        return self._new_path if key is None else f"{self.path}/{segment(str(key))}"

    @property
    def _new_path(self) -> str:
        return self.new or f"/new-{self.name.replace(' ', '-')}"

    def needs(self, place: int) -> tuple[str, ...]:
        """Return the permissions, any of which is enough for the operation at a place."""
        needed = OPERATIONS[self.operations[place]].permission
        return (needed,) if isinstance(needed, str) else needed

    def _shape(self, place: int) -> Shape:
        shape = OPERATIONS[self.operations[place]].body
        assert shape is not None
        return shape

    def may_make(self, call: ApiCall, tx: Tx) -> bool:
        """Return whether the caller may make one: for all projects, or in one of them."""
        needed, is_of_projects = self.needs(MAKE), OPERATIONS[self.operations[MAKE]].project_of is not None
        return may_any(call, needed, None) or (is_of_projects and bool(makes_in(call, tx, needed)))

    def _key_of(self, call: ApiCall) -> Any:
        """Return the key in the path; None for a new one. Raises ShapeError (400), CallerError (404)."""
        return self.read_key(call, self.key) if self.key in call.params else None

    def show_list(self, call: ApiCall, look: Look | None = None) -> Answer:
        look = look or Look()
        with call.store.reading() as tx:
            rows = self.rows(tx)
            data = {"may_create": self.may_make(call, tx), "permission": self.needs(MAKE)[0]}
            data |= self.list_more(call, tx, rows, look)
        return Answer({"rows": rows, self.members[1]: rows} | data, look.status)

    def show(self, call: ApiCall) -> Answer:
        """Return the form of a stored or a new object. Raises CallerError (404)."""
        return self.show_page(call, None, Look())

    def show_page(self, call: ApiCall, typed: Json | None, look: Look) -> Answer:
        """Return the page of the form: with the typed values, or with the stored values. Raises CallerError (404)."""
        key = self._key_of(call)
        with call.store.reading() as tx:
            stored = None if key is None else self.find(tx, key)
            own = self._first_form(call) if stored is None else self.shown_of(stored)
            seen = Seen(call, tx, look, key, stored, own, typed)
            more = self.more(seen)
            thing = self.label if look.conflict else self.thing or self.label
            last = last_change(call, tx, look, thing, key, **({self.place: key} if self.place else {}))
            needed = self.needs(MAKE if stored is None else WRITE)
            project = None if stored is None else self.project_of(stored)
            may = self.may_make(call, tx) if stored is None else may_any(call, needed, project)
        data = {
            "key": key,
            self.members[0]: key,
            "form": seen.form,
            "base": base_of(call, typed, look, None if stored is None else self.kept(stored)),
            "changed": look.conflict,
            "conflict_rows": self.compare(own, seen.form) if look.conflict else [],
            "last_change": last,
            "may": may,
            "permission": needed[0],
            "may_delete": may_any(call, self.needs(DELETE), project),
            "delete_permission": self.needs(DELETE)[0],
            "problems": look.problems,
        }
        return Answer(data | more, look.status)

    def _first_form(self, call: ApiCall) -> Json:
        """Return the form of a new one. The address may fill its name in."""
        name = call.first_value("name") if "name" in self.new_form else None
        return self.new_form | ({"name": name} if name else {})

    def submit(self, call: ApiCall) -> Answer:
        """Do what the button of the form says: save, or change the form."""
        typed = self.read(call.form)
        if self.rows_of is None:
            return self._save(call, typed)
        rows, problems = self.rows_of(typed), partial(self._problems_of, call, typed)
        return press(call, rows, partial(self._save, call, typed), partial(self.show_page, call, typed), problems)

    def _problems_of(self, call: ApiCall, typed: Json) -> Sequence[str]:
        """Return what is wrong with a form, before it is saved. Raises CallerError (404)."""
        key = self._key_of(call)
        with call.store.reading() as tx:
            return self.problems(tx, call.form, typed, None if key is None else self.find(tx, key))

    def _save(self, call: ApiCall, typed: Json) -> Answer:
        """Save a form in one transaction, unless someone else changed what it was made from."""
        key = self._key_of(call)

        def work(tx: Tx) -> None:
            if key is None:
                assert self.create is not None
                self.create(tx, checked(self._shape(MAKE), self.body_of(typed, None)))
                return
            stored = self.find(tx, key)
            require_unchanged(self.kept(stored), call.form.text("base"))
            self.change(tx, key, checked(self._shape(WRITE), self.body_of(typed, stored)))

        def again(look: Look) -> Answer:
            return self.show_page(call, None if look.by_whom else typed, look)

        changed = None if self.retyped is None else self._changed(self.retyped(typed))
        return attempt(call, work, again, *self._goal(key if self.stays else None), changed=changed)

    def _goal(self, key: object) -> tuple[str, ...]:
        """Return the segments of the page after a change: the one with a key; None: the list."""
        return (self.path[1:], *([] if key is None else [str(key)]))

    def _changed(self, *more: str) -> Look:
        return changed_meanwhile(self.sentence.format(self.label), *more)

    def unchanged(self, work: Callable[[Tx, Any], object], *, stays: bool) -> Handler:
        """Return a handler that does work on a stored one, unless someone else changed it since it was shown.

        It shows it afterwards, or the list if it no longer `stays`.
        """

        def handler(call: ApiCall) -> Answer:
            key = self._key_of(call)

            def unchanged(tx: Tx) -> None:
                require_unchanged(self.whole(tx, self.find(tx, key)), call.form.text("base"))
                work(tx, key)

            again = partial(self.show_page, call, None)
            return attempt(call, unchanged, again, *self._goal(key if stays else None), changed=self._changed())

        return handler

    def does(self, work: Callable[[ApiCall, Tx, Any], object]) -> Handler:
        """Return a handler that does work on a stored one, and goes to its page."""

        def handler(call: ApiCall) -> Answer:
            key = self._key_of(call)
            with call.store.writing(call.actor, "page") as tx:
                work(call, tx, key)
            return see_other(call, *self._goal(key), done=tx)

        return handler

    def form(self, path: str, handler: Handler, operation: str, template: str = "") -> Route:
        """Return the route of a form whose answer is the page of one, or another page that `template` names."""
        shown = partial(self._render, template_of(template or self.name))
        return replace(change(path, handler, stands_for=operation), render=shown)

    def page(self, path: str, handler: Handler, name: str, summary: str) -> Route:
        """Return the route of a page. `name` names its template."""
        template = template_of(name)
        route = page(path, handler, template, summary, permission=self.reads)
        return replace(route, render=partial(self._render, template))

    def _render(self, template: str, call: ApiCall, answer: Answer) -> Answer:
        """Return an answer with the page of its data, or with the data."""
        if isinstance(answer.body, dict):
            lacks = (*OF_TEMPLATES, *(self.list_lacks if "rows" in answer.body else self.lacks))
            data = {name: value for name, value in answer.body.items() if name not in lacks}
            answer = replace(answer, body=data if call.as_data else answer.body | {"resource": self})
        return render(template, call, answer)

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of the list and of the form."""
        new, word = self._new_path, self.label
        made, changed, removed = self.operations
        of_new = (
            self.page(new, self.show, self.name, f"The form of a new {word}."),
            self.form(new, self.submit, made),
        )
        return (
            self.page(self.path, self.show_list, self.plural, f"The list of {self.plural}."),
            *(of_new if self.create is not None else ()),
            self.page(self.own, self.show, self.name, f"The page of the {word}."),
            self.form(self.own, self.submit, changed),
            self.form(f"{self.own}/delete", self.unchanged(self.remove, stays=False), removed),
        )


def template_of(name: str) -> str:
    return f"{name.replace(' ', '_')}.html"


def may_any(call: ApiCall, permissions: Sequence[str], project: str | None) -> bool:
    return any(call.actor.may(each, project=project) for each in permissions)


def makes_in(call: ApiCall, tx: Tx, permissions: Sequence[str]) -> list[Json]:
    """Return the projects for which the caller may make something, by a right for all projects or for each."""
    return [each for each in project_choices(tx) if may_any(call, permissions, each["value"])]
