"""People: the list of users, making one, whose first access is shown once, and one person with roles, sessions and accounts."""

from __future__ import annotations

from flagsvc.http.shapes import ShapeError, check
from flagsvc.server.api.admin.sessions import link_path
from flagsvc.server.api.admin.users import CREATE, UPDATE
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import row_id
from flagsvc.server.pages.edits import (
    Look,
    attempt,
    changed_meanwhile,
    checked,
    differences,
    digest_of,
    problems_of,
    require_unchanged,
)
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.my_access import usual_day
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.pages.tokens import LAST_SECOND, public_root
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources import identities, personal_tokens, sessions, users
from flagsvc.server.store.store import Tx

ADMIN = "ADMIN"
LINK, TOKEN = "link", "token"
ACCESS = (
    {"value": LINK, "text": "a link that signs in once, within 15 minutes"},
    {"value": TOKEN, "text": "a personal token, for 90 days"},
)
"""What a new user gets to sign in with."""
FIRST_TOKEN = "first token"  # noqa: S105  (a description, no secret)
FIELDS = ("name", "username", "email", "rootRole")
ROLE_NAMES = {each["id"]: each["name"] for each in users.ROLES}
"""Number of a root role → its name."""


def titled(user: Json) -> Json:
    """Return a user with every name, empty where there is none, and `title`: the name to show."""
    names = {key: user.get(key) or "" for key in ("name", "username", "email")}
    return user | names | {"title": names["name"] or names["username"] or names["email"]}


def list_all(call: ApiCall) -> ApiAnswer:
    """Return every user."""
    with call.store.reading() as tx:
        found = [titled(each) | {"role": ROLE_NAMES[each["rootRole"]]} for each in users.list_users(tx)["users"]]
    return ApiAnswer({"people": found})


def show(call: ApiCall) -> ApiAnswer:
    """Return the form of a new user."""
    return show_form(dict.fromkeys(FIELDS, "") | {"rootRole": "Viewer", "access": LINK}, Look())


def show_form(form: Json, look: Look) -> ApiAnswer:
    """Return the page of the form."""
    data = {"form": form, "roles": list(users.ROLES), "access": list(ACCESS), "problems": look.problems, "made": None}
    return ApiAnswer(data, look.status)


def create(call: ApiCall) -> ApiAnswer:
    """Make a user, and show in this answer only what the user signs in with."""
    form = {name: call.form.text(name) for name in (*FIELDS, "access")}
    try:
        body = check(CREATE, {name: form[name] for name in FIELDS if form[name]})
        assert isinstance(body, dict)
        with call.store.writing(call.actor, "page") as tx:
            made = users.create(tx, body)
            access = first_token(tx, made["id"]) if form["access"] == TOKEN else new_link(call, tx, made["id"])
    except (CallerError, ShapeError) as error:
        status, problems = problems_of(error)
        return show_form(form, Look(status, problems))
    return ApiAnswer({"made": titled(made), "access": access})


def new_link(call: ApiCall, tx: Tx, user: int) -> Json:
    """Create a link that signs a user in once, and return its address."""
    made = sessions.invite(tx, user)
    return {"title": "Sign-in link", "secret": f"{public_root(call)}{link_path(made['code'])}"}


def first_token(tx: Tx, user: int) -> Json:
    """Create a personal token of a user, and return its secret."""
    wanted = {"description": FIRST_TOKEN, "expiresAt": f"{usual_day(tx)}{LAST_SECOND}"}
    return {"title": "Personal token", "secret": personal_tokens.create(tx, user, wanted)["secret"]}


FORM = "person_new.html"


PARTS = {"name": "Name", "email": "Email address", "rootRole": "Root role"}
"""What the form changes."""
ADMIN_ROLE = ROLE_NAMES[users.ROLE_NUMBERS[users.ADMINISTRATOR]]
CHANGED = "The user was not deleted: someone changed it meanwhile. This is what it is now."


def show_person(call: ApiCall) -> ApiAnswer:
    """Return the page of a user."""
    return show_page(call, None, Look())


def stored_form(tx: Tx, number: int) -> Json:
    """Return what the form shows of a stored user. Raises CallerError (404)."""
    user = users.get(tx, number)
    return {name: user.get(name) or "" for name in ("name", "email")} | {"rootRole": ROLE_NAMES[user["rootRole"]]}


def show_page(call: ApiCall, typed: Json | None, look: Look, made: Json | None = None) -> ApiAnswer:
    """Return the page: with what was typed, or with what is stored. Raises CallerError (404)."""
    number = row_id(call)
    with call.store.reading() as tx:
        stored = stored_form(tx, number)
        user = titled(users.get(tx, number))
        tokens = [each["description"] for each in personal_tokens.list_tokens(tx, number)]
        roles = next(each["projectRoles"] for each in users.list_with_roles(tx) if each["id"] == number)
        found = sessions.list_sessions(tx, number, call.caller.session)
        accounts = identities.list_accounts(tx, number)
        last = last_change(call, tx, look, "user", number)
    form = typed or stored
    kept = call.form.text("base") if typed is not None and not look.conflict else digest_of(stored)
    data: Json = {
        "person": user,
        "form": form,
        "base": kept,
        "roles": list(users.ROLES),
        "sessions": found,
        "accounts": accounts,
        "is_admin": stored["rootRole"] == ADMIN_ROLE,
        "made": made,
    }
    data |= {"tokens": tokens, "project_roles": roles, "problems": look.problems, "changed": look.conflict}
    data |= {"conflict_rows": differences(PARTS, stored, form) if look.conflict else [], "last_change": last}
    return ApiAnswer(data | {"is_me": call.actor.is_user and call.actor.id == number}, look.status)


def update_person(call: ApiCall) -> ApiAnswer:
    """Save the form, unless someone else changed the user since it was shown."""
    number, form = row_id(call), {name: call.form.text(name) for name in PARTS}

    def work(tx: Tx) -> None:
        body = checked(UPDATE, form)
        require_unchanged(stored_form(tx, number), call.form.text("base"))
        users.change(tx, number, body)

    return attempt(call, work, lambda look: show_page(call, form, look), "people", str(number))


def invite(call: ApiCall) -> ApiAnswer:
    """Make a link that signs the user in once, and show it in this answer only."""
    with call.store.writing(call.actor, "page") as tx:
        made = new_link(call, tx, row_id(call))
    return show_page(call, None, Look(), made)


def end_session(call: ApiCall) -> ApiAnswer:
    """End one session of the user."""
    number = row_id(call)
    with call.store.writing(call.actor, "page") as tx:
        sessions.end_sessions(tx, number, row_id(call, "sessionId"))
    return see_other(call, "people", str(number), done=tx)


def end_sessions(call: ApiCall) -> ApiAnswer:
    """End every session of the user."""
    number = row_id(call)
    with call.store.writing(call.actor, "page") as tx:
        sessions.end_sessions(tx, number)
    return see_other(call, "people", str(number), done=tx)


def unlink(call: ApiCall) -> ApiAnswer:
    """Unlink the user from an account elsewhere."""
    number = row_id(call)
    with call.store.writing(call.actor, "page") as tx:
        identities.unlink(tx, number, call.params["accountId"])
    return see_other(call, "people", str(number), done=tx)


def remove(call: ApiCall) -> ApiAnswer:
    """Delete the user, unless someone else changed it since it was shown."""
    number = row_id(call)

    def work(tx: Tx) -> None:
        require_unchanged(stored_form(tx, number), call.form.text("base"))
        users.remove(tx, number)

    changed = changed_meanwhile(CHANGED)
    return attempt(call, work, lambda look: show_page(call, None, look), "people", changed=changed)


TEMPLATE = "person.html"
OWN = "/people/:id"

ROUTES = (
    page("/people", list_all, "people.html", "The list of users.", permission=ADMIN),
    page("/people/new", show, FORM, "The form of a new user.", permission=ADMIN),
    change("/people/new", create, "Create a user.", template=FORM, permission=ADMIN, stands_for="createUser"),
    page(OWN, show_person, TEMPLATE, "The page of a user.", permission=ADMIN),
    change(OWN, update_person, "Change a user.", template=TEMPLATE, permission=ADMIN, stands_for="updateUser"),
    change(
        f"{OWN}/sign-in-link",
        invite,
        "Create a sign-in link of a user.",
        template=TEMPLATE,
        permission=ADMIN,
        stands_for="createSignInLink",
    ),
    change(
        f"{OWN}/sessions/end",
        end_sessions,
        "End the sessions of a user.",
        permission=ADMIN,
        stands_for="endSessionsOfUser",
    ),
    change(
        f"{OWN}/sessions/:sessionId/end",
        end_session,
        "End a session of a user.",
        permission=ADMIN,
        stands_for="endSessionOfUser",
    ),
    change(
        f"{OWN}/accounts/:accountId/unlink",
        unlink,
        "Unlink a user from an account elsewhere.",
        permission=ADMIN,
        stands_for="unlinkAccountOfUser",
    ),
    change(f"{OWN}/delete", remove, "Delete a user.", template=TEMPLATE, permission=ADMIN, stands_for="deleteUser"),
)
