"""API tokens: the list, making one, whose secret is shown once, deleting one, and the day on which one expires."""

from __future__ import annotations

from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Shape
from flagsvc.pages.forms import Form
from flagsvc.server.api.admin.api_tokens import CREATE, CREATE_IN_PROJECT, PERMISSIONS, UPDATE
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import row_id
from flagsvc.server.pages.edits import Look, attempt, checked, differences, digest_of, make, require_unchanged
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources import api_tokens, environments, projects
from flagsvc.server.store.resources.api_tokens import ALL, MASK
from flagsvc.server.store.store import Tx

OF_PROJECT = {verb: f"{verb}_PROJECT_API_TOKEN" for verb in ("READ", "CREATE", "DELETE")}
"""Action on tokens → the permission that allows it in a project."""
TYPES = (
    {"value": "client", "text": "client: for proxies and services"},
    {"value": "frontend", "text": "frontend: for pages and apps"},
)
LAST_SECOND = "T23:59:59Z"
"""The end of the day on which a token expires."""


def list_all(call: ApiCall) -> Answer:
    """Return the tokens that the caller may read."""
    actor = call.actor
    with call.store.reading() as tx:
        names = [each["id"] for each in projects.list_names(tx)]
        found = readable(tx, actor, names)
    shown = [without_secret(each) | {"delete_in": deletes_in(actor, each)} for each in found]
    data = {"tokens": shown, "may_create": bool(makes_in(actor, names)), "is_user": actor.is_user}
    data["may_read"] = has_any(actor, "READ") or any(actor.may(OF_PROJECT["READ"], project=each) for each in names)
    return Answer(data)


def readable(tx: Tx, actor: Actor, names: list[str]) -> list[Json]:
    """Return the tokens that an actor may read by a root role, or by a role in one of the projects."""
    found = {number_of(each): each for each in api_tokens.list_tokens(tx, actor)}
    for project in names:
        if actor.may(OF_PROJECT["READ"], project=project):
            found |= {number_of(each): each for each in api_tokens.list_for_project(tx, project)}
    return [found[number] for number in sorted(found)]


def number_of(token: Json) -> int:
    """Return the id of a token, which its masked secret has."""
    return int(token["secret"].rpartition(MASK)[2])


def without_secret(token: Json) -> Json:
    """Return a token with its id in place of its masked secret."""
    return {key: each for key, each in token.items() if key != "secret"} | {"id": number_of(token)}


def has_any(actor: Actor, verb: str) -> bool:
    """Return whether an actor may do this with the tokens of all projects."""
    return any(actor.may(each) for each in PERMISSIONS[verb])


def makes_in(actor: Actor, names: list[str]) -> list[str]:
    """Return where an actor may make tokens: ALL, or projects."""
    if has_any(actor, "CREATE"):
        return [ALL]
    return [each for each in names if actor.may(OF_PROJECT["CREATE"], project=each)]


def deletes_in(actor: Actor, token: Json) -> str | None:
    """Return by which right an actor may delete a token: ALL, or the project that alone it reads; None if not."""
    if has_any(actor, "DELETE"):
        return ALL
    alone = token["projects"][0] if len(token["projects"]) == 1 and token["projects"] != [ALL] else None
    return alone if alone is not None and actor.may(OF_PROJECT["DELETE"], project=alone) else None


def show(call: ApiCall) -> Answer:
    return show_form(call, {"name": "", "type": "client", "environment": "", "projects": [ALL], "expires": ""}, Look())


def show_form(call: ApiCall, form: Json, look: Look) -> Answer:
    """Return the page of the form: for any projects, or for the one in the path. Raises CallerError (404)."""
    own = call.params.get("projectId", "")
    with call.store.reading() as tx:
        if own:
            projects.find(tx, own)
        names = [each["id"] for each in projects.list_names(tx)]
        known = [each["name"] for each in environments.list_plain(tx)]
    right = OF_PROJECT["CREATE"] if own else PERMISSIONS["CREATE"][1]
    may = call.actor.may(right, project=own) if own else has_any(call.actor, "CREATE")
    data: Json = {"form": form, "project": own, "projects": names, "environments": known, "types": list(TYPES)}
    data |= {"may": may, "permission": right, "makes_in": makes_in(call.actor, names), "problems": look.problems}
    return Answer(data | {"made": None, "root": ""}, look.status)


def read_form(form: Form) -> Json:
    texts = {name: form.text(name) for name in ("name", "type", "environment", "expires")}
    return texts | {"projects": form.texts("projects")}


def body_of(form: Json) -> Json:
    """Return what a form stands for, as the admin API takes it."""
    body = {"tokenName": form["name"], "type": form["type"], "environment": form["environment"]}
    return body | ({"expiresAt": f"{form['expires']}{LAST_SECOND}"} if form["expires"] else {})


def create(call: ApiCall) -> Answer:
    """Make a token, and show its secret in this answer only."""
    form = read_form(call.form)
    return make_one(call, form, CREATE, body_of(form) | {"projects": form["projects"]}, {})


def create_in_project(call: ApiCall) -> Answer:
    """Make a token of the project in the path, and show its secret in this answer only."""
    form, project = read_form(call.form), call.params["projectId"]
    return make_one(call, form, CREATE_IN_PROJECT, body_of(form), {"projects": [project]})


def make_one(call: ApiCall, form: Json, shape: Shape, sent: Json, own: Json) -> Answer:
    """Make a token of what was sent and what the path says; or show the form again with what is wrong."""

    def work(tx: Tx) -> Json:
        made = api_tokens.create(tx, checked(shape, sent) | own)
        return {"made": made, "root": public_root(call), "problems": []}

    return make(call, work, partial(show_form, call, form))


def public_root(call: ApiCall) -> str:
    """Return the address of this server: its public one, or that of the request."""
    host = (call.head.host or b"").decode("latin-1")
    return call.server.url or f"{call.request.scheme}://{host}{call.root}"


def remove(call: ApiCall) -> Answer:
    """Delete a token that the caller may read."""
    with call.store.writing(call.actor, "page") as tx:
        api_tokens.remove(tx, find_token(call, api_tokens.list_tokens(tx, call.actor))["secret"])
    return see_other(call, "tokens", done=tx)


def remove_of_project(call: ApiCall) -> Answer:
    """Delete a token of the project in the path."""
    project = call.params["projectId"]
    with call.store.writing(call.actor, "page") as tx:
        found = find_token(call, api_tokens.list_for_project(tx, project))
        api_tokens.remove_of_project(tx, project, found["secret"])
    return see_other(call, "tokens", done=tx)


def find_token(call: ApiCall, found: list[Json]) -> Json:
    """Return the token in the path. Raises CallerError (404) for any other token."""
    number = row_id(call)
    for each in found:
        if number_of(each) == number:
            return each
    raise not_found("There is no such token")


FORM = "token_new.html"
LIST = "tokens.html"


WRITE = PERMISSIONS["UPDATE"]
PARTS = {"expires": "Expires at the end of"}
DAY = len("2030-01-31")


def show_expiry(call: ApiCall, typed: Json | None = None, look: Look | None = None) -> Answer:
    """Return the page of a token: with the typed values, or with the stored values. Raises CallerError (404)."""
    look = look or Look()
    with call.store.reading() as tx:
        names = [each["id"] for each in projects.list_names(tx)]
        stored = find_token(call, readable(tx, call.actor, names))
    shown = shown_of(stored)
    data = {
        "token": without_secret(stored),
        "form": typed or shown,
        "base": digest_of(stored["expiresAt"]),
        "changed": look.conflict,
        "conflict_rows": differences(PARTS, shown, typed or shown),
        "may": has_any(call.actor, "UPDATE"),
        "permission": WRITE[1],
        "problems": look.problems,
    }
    return Answer(data, look.status)


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored token: the day (UTC) on which it expires, empty for never."""
    return {"expires": (stored["expiresAt"] or "")[:DAY]}


def update_expiry(call: ApiCall) -> Answer:
    """Change when a token expires, unless someone else changed it since it was shown. The same day leaves the time as it is."""
    typed = {"expires": call.form.text("expires")}

    def work(tx: Tx) -> None:
        stored = find_token(call, api_tokens.list_tokens(tx, call.actor))
        require_unchanged(stored["expiresAt"], call.form.text("base"))
        body = checked(UPDATE, {"expiresAt": f"{typed['expires']}{LAST_SECOND}"})
        if typed != shown_of(stored):
            api_tokens.set_expiry(tx, stored["secret"], body["expiresAt"])

    return attempt(call, work, partial(show_expiry, call, typed), "tokens", call.params["id"])


ONE = "token.html"
OWN = "/tokens/:id"

ROUTES = (
    page("/tokens", list_all, LIST, "The list of API tokens."),
    page("/tokens/new", show, FORM, "The form of a new API token."),
    page("/tokens/new/:projectId", show, FORM, "The form of a new API token of a project."),
    change("/tokens/new", create, template=FORM, stands_for="createApiToken"),
    change("/tokens/new/:projectId", create_in_project, template=FORM, stands_for="createProjectApiToken"),
    change("/tokens/:id/delete", remove, stands_for="deleteApiToken"),
    change("/tokens/:id/delete/:projectId", remove_of_project, stands_for="deleteProjectApiToken"),
    page(OWN, show_expiry, ONE, "An API token."),
    change(OWN, update_expiry, template=ONE, stands_for="updateApiToken"),
)
