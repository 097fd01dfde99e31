"""Importing flags from a file or a pasted text: what the validation finds, what changes, and then the import.

The text stays in the form between the steps, so that the page works without script and the server keeps nothing of it.
"""

from __future__ import annotations

from typing import Final

from flagsvc.core.state_export import about_state_export
from flagsvc.http import json_text
from flagsvc.http.media import UTF8
from flagsvc.http.messages import HttpError
from flagsvc.http.shapes import ShapeError, check
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.errors import ApiError, invalid
from flagsvc.server.api.nul import find_nul_pointers, make_nul_detail
from flagsvc.server.pages.edits import SAVE, Look, problems_of
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.pages.plans import preview_plans, try_plans
from flagsvc.server.shapes.batch import IMPORT
from flagsvc.server.store.batch.planning import ImportRequest
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import environments, projects
from flagsvc.server.store.store import Tx

NO_TEXT: Final = "Choose a file, or paste a text."
DATA: Final = "data"
"""The member of a whole request that has its data set."""


def show(call: ApiCall) -> ApiAnswer:
    """Return the empty form; the address may name the project and the environment."""
    return show_page(call, read_typed(call, ""), Look())


def read_typed(call: ApiCall, text: str) -> Json:
    """Return what the form or the address names, and a text."""
    named = {name: call.form.text(name) or call.first_value(name) or "" for name in ("project", "environment")}
    return named | {"text": text}


def submit(call: ApiCall) -> ApiAnswer:
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
        raise ApiError(400, {"message": f"It {about}."})
    is_request = isinstance(value, dict) and DATA in value
    whole = value if isinstance(value, dict) and is_request else {DATA: value}
    sent = check(IMPORT, whole | {"project": typed["project"], "environment": typed["environment"]})
    body = json_text.whole(sent)
    assert isinstance(sent, dict) and isinstance(body, dict)
    for place in find_nul_pointers("/body", body):
        raise invalid([make_nul_detail(place)])
    return ImportRequest(body, sent)


def refusal_of(error: ShapeError | HttpError) -> tuple[int, list[str]]:
    """Return the status and the messages of what is no request."""
    if isinstance(error, ShapeError):
        return problems_of(error)
    details = error.body.get("details", []) if isinstance(error, ApiError) else []
    told = [str(each["message"]) for each in details] or [error.message.replace("the body", "The text", 1)]
    return error.status, told


def show_page(call: ApiCall, typed: Json, look: Look) -> ApiAnswer:
    """Return the page, with what the import changes if the look has a preview."""
    found: Json | None = None
    try:
        if look.preview:
            request = read_request(typed)
            found = preview_plans(call, lambda tx: [request], look)
    except (ShapeError, HttpError) as error:
        look.status, look.problems = refusal_of(error)
    with call.store.reading() as tx:
        listed = choices(tx)
    problems = [str(json_text.whole(each)) for each in look.problems]  # a page can show no half of a surrogate pair
    data = {"form": typed, "choices": listed, "problems": problems, "changed": look.conflict, "found": found}
    return ApiAnswer(data, look.status)


def choices(tx: Tx) -> dict[str, list[Json]]:
    """Return the projects and environments to choose from."""
    return {
        "project": [{"value": each["id"], "text": each["name"]} for each in projects.list_names(tx)],
        "environment": [{"value": each["name"], "text": each["name"]} for each in environments.list_plain(tx)],
    }


TEMPLATE = "import.html"
ROUTES = (
    page("/import", show, TEMPLATE, "The form to import flags."),
    change("/import", submit, "Import flags.", template=TEMPLATE, stands_for="importToggles"),
)
