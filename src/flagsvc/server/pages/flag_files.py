"""Importing flags from a file or a pasted text, and exporting those that are ticked, or all that fit the filters.

Before an import stands what the validation finds and what changes. The text stays in the form between the steps, so that the page
works without script and the server keeps nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from flagsvc.core.state_export import about_state_export
from flagsvc.http import json_text
from flagsvc.http.answers import Answer, encode
from flagsvc.http.media import UTF8
from flagsvc.http.messages import JSON, HttpError
from flagsvc.http.shapes import ShapeError, check
from flagsvc.pages.headers import PAGE_HEADERS
from flagsvc.server.api.admin.batch import make_export
from flagsvc.server.api.admin.search import read_number
from flagsvc.server.api.call import ApiCall, find_nul_pointers, make_nul_detail
from flagsvc.server.api.errors import ApiError, invalid
from flagsvc.server.pages.edits import SAVE, Look
from flagsvc.server.pages.flag_search import ADDRESS, PAGE_SIZE, read_active_search, read_query
from flagsvc.server.pages.flags import (
    MAX_PAGE,
    choices,
    describe,
    environment_choices,
    project_choices,
    read_filters,
)
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.pages.plans import preview_plans, try_plans
from flagsvc.server.pages.problems import Problem, field_of, problems_of
from flagsvc.server.shapes.batch import IMPORT
from flagsvc.server.store.batch.planning import ImportRequest
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.resources import environments, feature_search, features
from flagsvc.server.store.store import Tx

TEXT: Final = "text"
NAMED: Final = ("project", "environment")
NO_TEXT: Final = Problem("Choose a file, or paste a text.", TEXT)
DATA: Final = "data"
"""The member of a whole request that has its data set."""


def show(call: ApiCall) -> Answer:
    """Return the empty form; the address may name the project and the environment."""
    return show_page(call, read_typed(call, ""), Look())


def read_typed(call: ApiCall, text: str) -> Json:
    """Return what the form or the address names, and a text."""
    named = {name: call.form.text(name) or call.first_value(name) or "" for name in NAMED}
    return named | {"text": text}


def submit(call: ApiCall) -> Answer:
    """Show what an import changes, or import. A chosen file counts more than the text, and nothing of it is imported unseen."""
    file = call.form.text("file")
    typed = read_typed(call, file or call.form.text("text"))
    if call.form.text("do") != SAVE or file:
        return show_page(call, typed, Look(preview=True))
    try:
        request = read_request(typed)
    except (ShapeError, HttpError) as error:
        return show_page(call, typed, Look(*refusal_of(error)))
    done = try_plans(call, lambda tx: [request], "import")
    if isinstance(done, Look):
        return show_page(call, typed, done)
    return see_other(call, "history", done=done)


def read_request(typed: Json) -> ImportRequest:
    """Return the request of a form, as the API reads it: of a data set, or of a whole request with one.

    The form's project and environment count. Raises HttpError (400) for what is no JSON or has a NUL, ShapeError.
    """
    if not typed["text"]:
        raise ApiError(400, {"message": NO_TEXT})
    value = json_text.parse(typed["text"].encode(), UTF8, as_sent=True)
    if about := about_state_export(value):
        raise ApiError(400, {"message": Problem(f"It {about}.", TEXT)})
    is_request = isinstance(value, dict) and DATA in value
    whole = value if isinstance(value, dict) and is_request else {DATA: value}
    sent = check(IMPORT, whole | {"project": typed["project"], "environment": typed["environment"]})
    body = json_text.whole(sent)
    assert isinstance(sent, dict) and isinstance(body, dict)
    for place in find_nul_pointers("/body", body):
        raise invalid([make_nul_detail(place)])
    return ImportRequest(body, sent)


def refusal_of(error: ShapeError | HttpError) -> tuple[int, list[Problem]]:
    """Return the status and the problems of what is no request."""
    if isinstance(error, ShapeError):
        place, rule = error.problem
        return 400, [Problem(f"In the text, `{place.removeprefix('/body') or '/'}` {rule}.", TEXT)]
    details = error.body.get("details", []) if isinstance(error, ApiError) else []
    told = [each["message"] for each in details] or [error.message.replace("the body", "The text", 1)]
    return error.status, [Problem(each, TEXT) for each in told]


def of_text(problem: str) -> Problem:
    """Return a problem of the text, if the form has no other field for it. A page can show no half of a surrogate pair."""
    field = field_of(problem)
    return Problem(str(json_text.whole(str(problem))), TEXT if field not in (*NAMED, "") else field)


def show_page(call: ApiCall, typed: Json, look: Look) -> Answer:
    """Return the page, with what the import changes if the look has a preview."""
    found: Json | None = None
    try:
        if look.preview:
            request = read_request(typed)
            found = preview_plans(call, lambda tx: [request], look)
    except (ShapeError, HttpError) as error:
        look.status, look.problems = refusal_of(error)
    with call.store.reading() as tx:
        listed = {"project": project_choices(tx), "environment": environment_choices(tx)}
    problems = [of_text(each) for each in look.problems]
    data = {"form": typed, "choices": listed, "problems": problems, "changed": look.conflict, "found": found}
    return Answer(data, look.status)


TEMPLATE = "import.html"


ENVIRONMENT: Final = "environment"
FILTERS: Final = (ENVIRONMENT, *ADDRESS)
"""What the address may have besides the number of the page."""
ALL: Final = "all"
"""The button that exports every flag of the filters; the other one exports the ticked flags."""
NONE_TICKED: Final = Problem("Tick at least one flag. Nothing is exported yet.", "flag")
NONE_FITS: Final = "No flag fits the filters, so there is nothing to export."
NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")


def choose_environment(tx: Tx, given: dict[str, str]) -> str:
    """Return the environment of an address; the first one where it names none. Raises CallerError (404)."""
    known = [each["name"] for each in environments.list_plain(tx)]
    wanted = given.get(ENVIRONMENT) or next(iter(known), "")
    if wanted not in known:
        raise not_found(Problem(f"There is no environment {wanted}. Choose another one.", ENVIRONMENT))
    return wanted


def choose_flags(call: ApiCall, tx: Tx, given: dict[str, str]) -> list[str]:
    """Return the flags to export, at least one: an export of no name would be one of all. Raises CallerError (400, 404)."""
    if call.form.text("do") == ALL:
        names = feature_search.list_names(tx, read_active_search(given, 1))
        if not names:
            raise bad_data(NONE_FITS)
        return names
    ticked = list(dict.fromkeys(call.form.texts("flag")))
    if not ticked:
        raise bad_data(NONE_TICKED)
    require_active(tx, ticked)
    return ticked


def require_active(tx: Tx, names: Sequence[str]) -> None:
    """Raise CallerError (404) for the first name that is no active flag."""
    known = {row.name for row in features.find_all(tx, names) if row.archived_at is None}
    for name in names:
        if name not in known:
            raise not_found(f"There is no active flag {name}")


def download(call: ApiCall) -> Answer:
    """Return the file, or the form again with the reason why there is none."""
    given = read_filters(call, FILTERS)
    try:
        with call.store.reading() as tx:
            environment = choose_environment(tx, given)
            names = choose_flags(call, tx, given)
    except CallerError as error:
        return show_export_page(call, Look(*problems_of(error)))
    body = encode(make_export(call, {ENVIRONMENT: environment, "features": names}))
    file = f'attachment; filename="flags-{NOT_IN_A_NAME.sub("_", environment)}.json"'.encode()
    return Answer(body, headers=((b"content-type", JSON), (b"content-disposition", file), *PAGE_HEADERS))


def show_export_page(call: ApiCall, look: Look | None = None) -> Answer:
    """Return the page: the flags that fit, with what each is in the environment."""
    look = look or Look()
    given = read_filters(call, FILTERS)
    number = read_number(call.first_value("page"), 1, least=1, most=MAX_PAGE)
    ticked = call.form.texts("flag")
    with call.store.reading() as tx:
        found = feature_search.search(tx, read_active_search(given, number))
        environment = ""
        try:
            environment = choose_environment(tx, given)
        except CallerError as error:
            look.status, look.problems = problems_of(error)
        rows = [row_of(each, environment) for each in describe(tx, found["features"])]
        data = {
            "flags": [each | {"ticked": each["name"] in ticked} for each in rows],
            "total": found["total"],
            "page": number,
            "pages": max(1, -(-found["total"] // PAGE_SIZE)),
            "filters": {name: given.get(name, "") for name in FILTERS} | {ENVIRONMENT: environment},
            "environments": environment_choices(tx),
            "choices": choices(tx),
            "problems": [*look.problems, *read_query(given).problems],
            "address": urlencode(given | {ENVIRONMENT: environment}),
        }
    return Answer(data, look.status)


def row_of(feature: Json, environment: str) -> Json:
    """Return a flag with its state in an environment, None where it is not there."""
    state = next((each for each in feature["environments"] if each["name"] == environment), None)
    kept = {name: feature[name] for name in ("name", "type", "project", "stale", "tags")}
    return kept | {"state": state and {name: state[name] for name in ("enabled", "words")}}


EXPORT_TEMPLATE = "export.html"

ROUTES = (
    page("/import", show, TEMPLATE, "The form to import flags."),
    change("/import", submit, template=TEMPLATE, stands_for="importToggles"),
    page("/export", show_export_page, EXPORT_TEMPLATE, "The form to export flags."),
    change("/export", download, template=EXPORT_TEMPLATE, reads=True, stands_for="exportFeatures"),
)
