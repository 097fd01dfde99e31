"""Changing several flags: before it is done, what happens to each flag, or why it is left out; one transaction, with one undo.

Each change is a row of `CHANGES`, which calls what the admin API calls for several flags of a project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

from sqlalchemy import Row

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import ShapeError
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.pages.edits import CONFLICT, ChangedMeanwhileError, Look, digest_of
from flagsvc.server.pages.flag import EVERYONE, back_of
from flagsvc.server.pages.flag_search import ADDRESS, read_search
from flagsvc.server.pages.flags import SWITCH, environment_choices, is_protected
from flagsvc.server.pages.page import change, go_to
from flagsvc.server.pages.problems import Problem, reasons_of
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError, bad_data
from flagsvc.server.store.resources import (
    dependencies,
    environments,
    feature_archive,
    feature_environments,
    feature_search,
    features,
    tag_types,
    tags,
)
from flagsvc.server.store.resources.feature_views import sentences_of, states_of
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import LONGEST_TAG, SHORTEST_TAG, tag_problems

MOST: Final = 500
"""The most flags that are changed at once."""
NONE_TICKED: Final = "Tick at least one flag."
LIST: Final = "/flags"
SHOWN: Final = 3
"""Sentences of a flag that a line of the preview has, and flags that depend on it."""


class Wanted(NamedTuple):
    """What a form says beside the flags: the environment and the tag, each empty where the change needs none."""

    environment: str = ""
    tag: str = ""

    def as_tag(self) -> Json:
        kind, _, value = self.tag.partition(":")
        return {"type": kind, "value": value}


class Ticked:
    """The ticked flags, and what decides about them. Each part is read when it is first needed."""

    def __init__(self, tx: Tx, actor: Actor, names: Sequence[str], wanted: Wanted, permission: str) -> None:
        self._tx = tx
        self.wanted = wanted
        self.names = names
        self.rows: dict[str, Row[Any]] = {row.name: row for row in features.find_all(tx, names)}
        place = {"environment": wanted.environment} if wanted.environment else {}
        self.allowed = {name for name, row in self.rows.items() if actor.may(permission, project=row.project, **place)}

    @cached_property
    def kept_by(self) -> dict[str, list[str]]:
        """The flags that others depend on, which are not archived with them, and those others."""
        going = [name for name in self.allowed if self.rows[name].archived_at is None]
        children = dependencies.children_by_parent(self._tx, going)
        return {parent: children[parent] for parent in dependencies.parents_of_others(self._tx, going)}

    @cached_property
    def parents(self) -> dict[str, list[Json]]:
        return dependencies.parents_of_all(self._tx, self.rows)

    @cached_property
    def on_in(self) -> dict[str, list[str]]:
        """The environments in which flags are on, by flag, those in which pages ask first."""
        states = states_of(self._tx, self.rows)
        found = {name: sorted(states[name], key=lambda each: not is_protected(each.type)) for name in self.rows}
        return {name: [each.environment for each in rows if each.enabled] for name, rows in found.items()}

    @cached_property
    def states(self) -> dict[str, bool]:
        """Whether flags are on in the environment; a flag that is not in it is left out."""
        found = feature_environments.read_states(self._tx, self.wanted.environment, self.rows)
        return {name: each.enabled for name, each in found.items()}

    @cached_property
    def sentences(self) -> dict[str, list[str]]:
        """For whom flags are on in the environment where they are on there."""
        found = sentences_of(self._tx, list(self.rows))
        place = self.wanted.environment
        return {
            name: [each["words"] for each in found.get((name, place), ()) if not each["disabled"]] or [EVERYONE]
            for name in self.rows
        }

    @cached_property
    def tagged(self) -> set[str]:
        """The flags that have the tag."""
        return {each[0] for each in tags.find_held(self._tx, self.rows, [self.wanted.as_tag()])}

    def is_archived(self, name: str) -> bool:
        return self.rows[name].archived_at is not None


Say: TypeAlias = Callable[[Ticked, str], str]
"""Says something about a ticked flag."""
Carry: TypeAlias = Callable[[Tx, str, Sequence[str], Wanted], None]
"""Changes flags of a project."""


class Change(NamedTuple):
    """A change of several flags.

    `title` asks, with places for the number of flags, the environment and the tag, and `button` says yes. `obstacle` says why a
    flag is left out; it is empty for a flag that is changed, and `words` say what happens to that. `carry` calls what the
    `operation` of the admin API calls.
    """

    button: str
    title: str
    path: str
    operation: str
    permission: str
    obstacle: Say
    words: Say
    carry: Carry


def list_some(values: Sequence[str], joint: str = ", ") -> str:
    """Return the first values, and how many more there are."""
    more = len(values) - SHOWN
    return joint.join(values[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def archive_obstacle(ticked: Ticked, name: str) -> str:
    if ticked.is_archived(name):
        return "it is archived already"
    children = ticked.kept_by.get(name, ())
    return f"{list_some(children)} depend{'s' if len(children) == 1 else ''} on it" if children else ""


def archive_words(ticked: Ticked, name: str) -> str:
    on = ticked.on_in[name]
    told = f"is archived. It is on in {list_some(on)} now" if on else "is archived. It is off everywhere"
    parents = [each["feature"] for each in ticked.parents[name]]
    return f"{told}, and no longer depends on {list_some(parents)}." if parents else f"{told}."


def switch_obstacle(ticked: Ticked, name: str, *, enabled: bool) -> str:
    if ticked.is_archived(name):
        return "it is archived"
    if name not in ticked.states:
        return f"it is not in {ticked.wanted.environment}"
    return f"it is {'on' if enabled else 'off'} already" if ticked.states[name] is enabled else ""


def switch_words(ticked: Ticked, name: str, *, enabled: bool) -> str:
    whom = list_some(ticked.sentences[name], "; or ")
    return f"becomes on for: {whom}." if enabled else f"becomes off. Now it is on for: {whom}."


def change_tags(tx: Tx, project: str, names: Sequence[str], wanted: Wanted, *, added: bool) -> None:
    tag = [wanted.as_tag()]
    tags.change_tags_of_features(tx, project, names, tag if added else [], [] if added else tag)


def switches(enabled: bool) -> Change:
    state = "on" if enabled else "off"
    return Change(
        f"Switch {state}",
        f"Switch {{flags}} {state} in {{environment}}?",
        f"/change-flags/:environment/{state}",
        f"bulkToggleFeaturesEnvironment{state.title()}",
        SWITCH,
        partial(switch_obstacle, enabled=enabled),
        partial(switch_words, enabled=enabled),
        lambda tx, project, names, wanted: feature_environments.switch(tx, project, wanted.environment, names, enabled=enabled),
    )


CHANGES: Final[Mapping[str, Change]] = {
    "archive": Change(
        "Archive",
        "Archive {flags}?",
        "/change-flags/archive",
        "archiveFeatures",
        "DELETE_FEATURE",
        archive_obstacle,
        archive_words,
        lambda tx, project, names, wanted: feature_archive.archive_all(tx, project, names),
    ),
    "revive": Change(
        "Revive",
        "Revive {flags}?",
        "/change-flags/revive",
        "reviveFeatures",
        "UPDATE_FEATURE",
        lambda ticked, name: "" if ticked.is_archived(name) else "it is not archived",
        lambda ticked, name: "is revived, and off everywhere.",
        lambda tx, project, names, wanted: feature_archive.revive_all(tx, project, names),
    ),
    "tag": Change(
        "Add the tag",
        "Add the tag {tag} to {flags}?",
        "/change-flags/tag",
        "addTagToFeatures",
        "UPDATE_FEATURE",
        lambda ticked, name: "it has this tag already" if name in ticked.tagged else "",
        lambda ticked, name: f"gets the tag {ticked.wanted.tag}.",
        partial(change_tags, added=True),
    ),
    "untag": Change(
        "Remove the tag",
        "Remove the tag {tag} from {flags}?",
        "/change-flags/untag",
        "addTagToFeatures",
        "UPDATE_FEATURE",
        lambda ticked, name: "" if name in ticked.tagged else "it does not have this tag",
        lambda ticked, name: f"loses the tag {ticked.wanted.tag}.",
        partial(change_tags, added=False),
    ),
    "on": switches(True),
    "off": switches(False),
}


class Line(NamedTuple):
    """What happens to a flag: `words`, or why it is left out, `obstacle`. One of the two is empty."""

    name: str
    project: str
    words: str
    obstacle: str


def plan(tx: Tx, actor: Actor, kind: Change, names: Sequence[str], wanted: Wanted) -> list[Line]:
    """Return what a change does to each ticked flag. Raises CallerError (400, 404) and ShapeError for what no flag can get."""
    require_possible(tx, kind, names, wanted)
    ticked = Ticked(tx, actor, names, wanted, kind.permission)
    return [_line(ticked, kind, name) for name in names]


def require_possible(tx: Tx, kind: Change, names: Sequence[str], wanted: Wanted) -> None:
    if not names:
        raise bad_data(NONE_TICKED)
    if len(names) > MOST:
        raise bad_data(f"{len(names):,} flags are ticked. At most {MOST} are changed at once.")
    if "{environment}" in kind.title and not environments.environment_exists(tx, wanted.environment):
        raise bad_data(Problem("Choose an environment.", "environment"))
    if "{tag}" in kind.title:
        require_tag(tx, **wanted.as_tag())


def require_tag(tx: Tx, *, type: str, value: str) -> None:
    """Raise CallerError (400) for what is no tag, or has an unknown type."""
    known = [each["name"] for each in tag_types.list_types(tx)]
    problem = ""
    if not value:
        problem = "Write a tag as its type and its value, such as simple:web."
    elif type not in known:
        problem = f"There is no tag type {type}. There are {', '.join(known)}."
    elif tag_problems(type, value):
        problem = f"The value of a tag has {SHORTEST_TAG} to {LONGEST_TAG} characters."
    if problem:
        raise bad_data(Problem(problem, "tag"))


def _line(ticked: Ticked, kind: Change, name: str) -> Line:
    row = ticked.rows.get(name)
    if row is None:
        return Line(name, "", "", "there is no such flag")
    missing = "" if name in ticked.allowed else f"it needs {kind.permission}"
    obstacle = missing or kind.obstacle(ticked, name)
    return Line(name, row.project, "" if obstacle else kind.words(ticked, name), obstacle)


def carry_out(tx: Tx, kind: Change, lines: Sequence[Line], wanted: Wanted) -> None:
    """Change the flags of some lines, but for those that are left out. Raises CallerError."""
    changed = [each for each in lines if not each.obstacle]
    for project in dict.fromkeys(each.project for each in changed):
        kind.carry(tx, project, [each.name for each in changed if each.project == project], wanted)


def read_names(call: ApiCall) -> list[str]:
    """Return the ticked flags, each once; if all that fit the filters are wanted, those."""
    if not call.form.has("all"):
        return list(dict.fromkeys(call.form.texts("flag")))
    given = {name: text for name, text in parse_qsl(call.form.text("all")) if name in ADDRESS}
    with call.store.reading() as tx:
        return feature_search.list_names(tx, read_search(given, 1))


def read_wanted(call: ApiCall) -> Wanted:
    named = call.params.get("environment") or call.form.text("environment")
    return Wanted(named, call.form.text("tag"))


def ask(call: ApiCall) -> Answer:
    """Return the preview of the change whose button was pressed. Raises CallerError (400) for an unknown button."""
    name = call.form.text("do")
    if name not in CHANGES:
        raise bad_data(f"There is no change {name}")
    return preview(name, call, Look())


def preview(name: str, call: ApiCall, look: Look) -> Answer:
    """Return what a change does to each flag, and the form that does it."""
    kind, names, wanted = CHANGES[name], read_names(call), read_wanted(call)
    wanted = Wanted(*(text if f"{{{part}}}" in kind.title else "" for part, text in wanted._asdict().items()))
    lines: list[Line] = []
    with call.store.reading() as tx:
        try:
            lines = plan(tx, call.actor, kind, names, wanted)
        except (CallerError, ShapeError) as error:
            look.status, look.problems = reasons_of(error)
        protected = wanted.environment in environments.list_protected(tx)
        known = environment_choices(tx)
    changed = [each for each in lines if not each.obstacle]
    count = len(changed) if lines else len(names)
    flags = changed[0].name if count == 1 and changed else f"{count} flag{'' if count == 1 else 's'}"
    data = {
        "do": name,
        "button": kind.button,
        "title": kind.title.format(flags=flags, **wanted._asdict()),
        "in_environment": ":environment" in kind.path,
        "wanted": wanted._asdict(),
        "names": names,
        "environments": known,
        "lines": [each._asdict() for each in lines],
        "changed": len(changed),
        "base": digest_of(lines),
        "protected": protected,
        "back": back_of(call.form.text("back")) or LIST,
        "problems": look.problems,
        "conflict": look.conflict,
    }
    return Answer(data, look.status)


def submit(name: str, call: ApiCall) -> Answer:
    """Do a change in one transaction, if it is still what was shown, and go back to the list."""
    kind, wanted = CHANGES[name], read_wanted(call)
    try:
        with call.store.writing(call.actor, "page") as tx:
            lines = plan(tx, call.actor, kind, read_names(call), wanted)
            require_same(lines, call.form.text("base"))
            carry_out(tx, kind, lines, wanted)
    except ChangedMeanwhileError:
        return preview(name, call, Look(CONFLICT, conflict=True))
    except (CallerError, ShapeError) as error:
        return preview(name, call, Look(*reasons_of(error)))
    return go_to(call, back_of(call.form.text("back")) or LIST, tx)


def require_same(lines: Sequence[Line], digest: str) -> None:
    """Raise ChangedMeanwhileError if something else would happen than what was shown."""
    if digest_of(lines) != digest:
        raise ChangedMeanwhileError


def find_project(permission: str, call: ApiCall) -> str | None:
    """Return a project of a ticked flag in which the caller has a permission; None without one."""
    with call.store.reading() as tx:
        rows = features.find_all(tx, read_names(call)[:MOST])
    place = call.params.get("environment")
    mine = (row.project for row in rows if call.actor.may(permission, row.project, place))
    return next(mine, None)


TEMPLATE: Final = "flag_bulk.html"


def routes() -> Iterator[Route]:
    """Yield the route of the preview, and one for each change. Somebody may do it who may change one of the flags."""
    yield change("/change-flags", ask, template=TEMPLATE, reads=True, summary="What a change of several flags does.")
    for name, kind in CHANGES.items():
        route = change(kind.path, partial(submit, name), template=TEMPLATE, stands_for=kind.operation)
        yield replace(route, project_of=partial(find_project, kind.permission))


ROUTES = tuple(routes())
