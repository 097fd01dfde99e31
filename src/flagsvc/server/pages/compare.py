"""Two environments side by side: only the flags that differ, in words; and copying those that are ticked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlencode

from flagsvc.http.answers import Answer
from flagsvc.server.api.admin.search import read_number
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.edits import Look
from flagsvc.server.pages.flag_search import ADDRESS, PAGE_SIZE, read_active_search, read_query
from flagsvc.server.pages.flags import MAX_PAGE, choices, read_filters
from flagsvc.server.pages.page import change, page
from flagsvc.server.pages.plans import beside, preview_plans, submit_plans
from flagsvc.server.pages.problems import Problem, problems_of
from flagsvc.server.store.batch.exporting import read_flag_states
from flagsvc.server.store.batch.planning import ImportRequest, make_copies
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.resources import environments, feature_search, features
from flagsvc.server.store.resources.feature_views import read_segment_specs
from flagsvc.server.store.store import Tx

SOURCE, TARGET = "from", "to"
FILTERS: Final = (SOURCE, TARGET, *ADDRESS)
"""What the address may have besides the number of the page."""
FLAG, ALL = "flag", "all"
"""The fields of the form: a ticked flag, and whether all that differ are wanted, on every page."""
NEEDED: Final = "UPDATE_FEATURE"
"""The permission that every import needs; others depend on what changes."""
NOT_TWO: Final = Problem("Choose two different environments.", TARGET)
NONE_TICKED: Final = Problem("Tick at least one flag.", FLAG)


class Pair(NamedTuple):
    """The environment to copy from, and the one to copy into. Both are empty where there are not two."""

    source: str
    target: str


class Difference(NamedTuple):
    """A flag that differs. A flag in both environments can be copied."""

    name: str
    copyable: bool


def choose_pair(known: Sequence[str], given: dict[str, str]) -> Pair:
    """Return the environments of an address; where it names none, the first ones. Raises CallerError (400, 404)."""
    wanted = {name: given[name] for name in (SOURCE, TARGET) if name in given}
    for name, environment in wanted.items():
        if environment not in known:
            raise not_found(Problem(f"There is no environment {environment}. Choose another one.", name))
    source = given.get(SOURCE) or next((each for each in known if each not in wanted.values()), "")
    target = given.get(TARGET) or next((each for each in known if each != source), "")
    if source == target:
        raise bad_data(NOT_TWO)
    return Pair(source, target)


def find_differences(call: ApiCall, tx: Tx, pair: Pair, given: dict[str, str]) -> list[Difference]:
    """Return the flags of the filters that differ, in the order of the address."""
    differing = call.server.differing.find(tx, *pair)
    names = feature_search.list_names(tx, read_active_search(given, 1))
    return [Difference(name, differing[name]) for name in names if name in differing]


def list_environments(tx: Tx) -> list[str]:
    """Return the names of the environments, in order."""
    return [each["name"] for each in environments.list_plain(tx)]


def make_requests(call: ApiCall, tx: Tx) -> list[ImportRequest]:
    """Return the imports that copy the ticked flags. Raises CallerError (400, 404)."""
    given = read_filters(call, FILTERS)
    pair = choose_pair(list_environments(tx), given)
    names = call.form.texts(FLAG)
    if call.form.has(ALL):
        names = [each.name for each in find_differences(call, tx, pair, given) if each.copyable]
    if not names:
        raise bad_data(NONE_TICKED)
    return make_copies(tx, names, pair.source, [pair.target])


def submit(call: ApiCall) -> Answer:
    """Show what a copy changes, or copy."""
    filters = read_filters(call, FILTERS)
    return submit_plans(call, partial(make_requests, call), partial(show_page, call), "compare", query=filters)


def show_page(call: ApiCall, look: Look | None = None) -> Answer:
    """Return a page of the flags that differ, with what a copy changes if the look has a preview."""
    look = look or Look()
    found = preview_plans(call, partial(make_requests, call), look)
    with call.store.reading() as tx:
        known = list_environments(tx)
        listed = list_page(call, tx, known, look)
        offered = choices(tx)
    data = listed | {
        "all": call.form.has(ALL),
        "environments": [{"value": each, "text": each} for each in known],
        "choices": offered,
        "problems": [*look.problems, *read_query(read_filters(call, ADDRESS)).problems],
        "changed": look.conflict,
        "found": found,
    }
    return Answer(data, look.status)


def list_page(call: ApiCall, tx: Tx, known: Sequence[str], look: Look) -> Json:
    """Return a page of the flags that differ, and its address. An error becomes the status and the problems of the look."""
    given = read_filters(call, FILTERS)
    pair, listed = Pair("", ""), list[Difference]()
    try:
        pair = choose_pair(known, given)
        listed = find_differences(call, tx, pair, given)
    except CallerError as error:
        look.status, look.problems = problems_of(error)
    number = read_number(call.first_value("page"), 1, least=1, most=MAX_PAGE)
    rows = describe(tx, pair, listed[(number - 1) * PAGE_SIZE : number * PAGE_SIZE])
    ticked = dict.fromkeys(call.form.texts(FLAG))
    shown = {each["name"] for each in rows}
    return {
        "flags": [
            each | {"ticked": each["name"] in ticked, "needs": needs_of(call, each["project"], pair.target)} for each in rows
        ],
        "ticked_elsewhere": [name for name in ticked if name not in shown],
        "total": len(listed),
        "copyable": sum(each.copyable for each in listed),
        "page": number,
        "pages": max(1, -(-len(listed) // PAGE_SIZE)),
        "filters": {name: given.get(name, "") for name in FILTERS} | {SOURCE: pair.source, TARGET: pair.target},
        "address": urlencode(given | {SOURCE: pair.source, TARGET: pair.target}),
        "back": urlencode(given | {SOURCE: pair.target, TARGET: pair.source}),
    }


def needs_of(call: ApiCall, project: str, environment: str) -> str:
    """Return the permission that every copy needs if the user lacks it; empty for one who has it."""
    return "" if call.actor.may(NEEDED, project=project, environment=environment) else NEEDED


def describe(tx: Tx, pair: Pair, listed: Sequence[Difference]) -> list[Json]:
    """Return flags with their words in both environments."""
    names = [each.name for each in listed]
    left, right = (read_flag_states(tx, names, each) for each in pair)
    rows = {row.name: row for row in features.find_all(tx, names)}
    segments = read_segment_specs(tx)
    found = []
    for each in listed:
        row = rows[each.name]
        one, other = beside(each.name, left[each.name], right[each.name], segments)
        told = {"name": row.name, "project": row.project, "type": row.type, "stale": row.stale}
        found.append(told | {"copyable": each.copyable, SOURCE: one, TARGET: other})
    return found


TEMPLATE = "compare.html"
ROUTES = (
    page("/compare", show_page, TEMPLATE, "Two environments side by side."),
    change("/compare", submit, template=TEMPLATE, stands_for="importToggles"),
)
