"""Exporting flags of an environment as a file: those that are ticked, or all that fit the filters. No flag is no export."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from flagsvc.http.messages import JSON
from flagsvc.pages.headers import PAGE_HEADERS
from flagsvc.server.api.admin.batch import make_export
from flagsvc.server.api.admin.search import read_number
from flagsvc.server.api.answers import encode
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.edits import Look, problems_of
from flagsvc.server.pages.flags import MAX_PAGE, PAGE_SIZE, PLAIN_FILTERS, choices, describe, read_search
from flagsvc.server.pages.page import change, page
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.resources import environments, feature_search, features
from flagsvc.server.store.store import Tx

ENVIRONMENT: Final = "environment"
FILTERS: Final = (ENVIRONMENT, "q", *PLAIN_FILTERS, "tag")
"""What the address may have besides the number of the page."""
ALL: Final = "all"
"""The button that exports every flag of the filters; the other one exports the ticked flags."""
NONE_TICKED: Final = "Tick at least one flag. Nothing is exported yet."
NONE_FITS: Final = "No flag fits the filters, so there is nothing to export."
NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")


def read_address(call: ApiCall) -> dict[str, str]:
    """Return what the address says, without what is empty."""
    return {name: text for name in FILTERS if (text := (call.first_value(name) or "").strip())}


def choose_environment(tx: Tx, given: dict[str, str]) -> str:
    """Return the environment of an address; the first one where it names none. Raises CallerError (404)."""
    known = [each["name"] for each in environments.list_plain(tx)]
    wanted = given.get(ENVIRONMENT) or next(iter(known), "")
    if wanted not in known:
        raise not_found(f"There is no environment {wanted}")
    return wanted


def choose_flags(call: ApiCall, tx: Tx, given: dict[str, str]) -> list[str]:
    """Return the flags to export, at least one: an export of no name would be one of all. Raises CallerError (400, 404)."""
    if call.form.text("do") == ALL:
        names = feature_search.list_names(tx, read_search(given, 1))
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


def show(call: ApiCall) -> ApiAnswer:
    """Return the form."""
    return show_page(call, Look())


def download(call: ApiCall) -> ApiAnswer:
    """Return the file, or the form again with the reason why there is none."""
    given = read_address(call)
    try:
        with call.store.reading() as tx:
            environment = choose_environment(tx, given)
            names = choose_flags(call, tx, given)
    except CallerError as error:
        return show_page(call, Look(*problems_of(error)))
    body = encode(make_export(call, {ENVIRONMENT: environment, "features": names}))
    file = f'attachment; filename="flags-{NOT_IN_A_NAME.sub("_", environment)}.json"'.encode()
    return ApiAnswer(body, headers=((b"content-type", JSON), (b"content-disposition", file), *PAGE_HEADERS))


def show_page(call: ApiCall, look: Look) -> ApiAnswer:
    """Return the page: the flags that fit, with what each is in the environment."""
    given = read_address(call)
    number = read_number(call.first_value("page"), 1, least=1, most=MAX_PAGE)
    ticked = call.form.texts("flag")
    with call.store.reading() as tx:
        found = feature_search.search(tx, read_search(given, number))
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
            "environments": [{"value": each["name"], "text": each["name"]} for each in environments.list_plain(tx)],
            "choices": choices(tx),
            "problems": look.problems,
            "address": urlencode(given | {ENVIRONMENT: environment}),
        }
    return ApiAnswer(data, look.status)


def row_of(feature: Json, environment: str) -> Json:
    """Return a flag with its state in an environment, None where it is not there."""
    state = next((each for each in feature["environments"] if each["name"] == environment), None)
    kept = {name: feature[name] for name in ("name", "type", "project", "stale", "tags")}
    return kept | {"state": state and {name: state[name] for name in ("enabled", "words")}}


TEMPLATE = "export.html"
ROUTES = (
    page("/export", show, TEMPLATE, "The form to export flags."),
    change("/export", download, "Export flags.", template=TEMPLATE, reads=True, stands_for="exportFeatures"),
)
