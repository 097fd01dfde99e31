"""People: the list of users, making one, whose first access is shown once, and one person with roles, sessions and accounts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.server.api.admin.sessions import link_path
from flagsvc.server.api.admin.users import CREATE
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import row_id
from flagsvc.server.pages.edits import Look, checked, differences, make
from flagsvc.server.pages.my_access import usual_day
from flagsvc.server.pages.page import change, page
from flagsvc.server.pages.resource import Resource, Seen
from flagsvc.server.pages.tokens import LAST_SECOND, public_root
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import identities, personal_tokens, sessions, users
from flagsvc.server.store.store import Tx

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


def rows(tx: Tx) -> list[Json]:
    """Return every user with the name of the root role."""
    return [titled(each) | {"role": ROLE_NAMES[each["rootRole"]]} for each in users.list_users(tx)["users"]]


def show(call: ApiCall) -> Answer:
    """Return the form of a new user."""
    return show_form(dict.fromkeys(FIELDS, "") | {"rootRole": "Viewer", "access": LINK}, Look())


def show_form(form: Json, look: Look) -> Answer:
    data = {"form": form, "roles": list(users.ROLES), "access": list(ACCESS), "problems": look.problems, "made": None}
    return Answer(data, look.status)


def create(call: ApiCall) -> Answer:
    """Make a user, and show in this answer only what the user signs in with."""
    form = {name: call.form.text(name) for name in (*FIELDS, "access")}

    def work(tx: Tx) -> Json:
        made = users.create(tx, checked(CREATE, {name: form[name] for name in FIELDS if form[name]}))
        access = first_token(tx, made["id"]) if form["access"] == TOKEN else new_link(call, tx, made["id"])
        return {"made": titled(made), "access": access}

    return make(call, work, partial(show_form, form))


def new_link(call: ApiCall, tx: Tx, user: int) -> Json:
    """Create a link that signs a user in once, and return its address."""
    made = sessions.invite(tx, user)
    return {"title": "Sign-in link", "secret": f"{public_root(call)}{link_path(made['code'])}"}


def first_token(tx: Tx, user: int) -> Json:
    """Create a personal token of a user, and return its secret."""
    wanted = {"description": FIRST_TOKEN, "expiresAt": f"{usual_day(tx)}{LAST_SECOND}"}
    return {"title": "Personal token", "secret": personal_tokens.create(tx, user, wanted)["secret"]}


PARTS = {"name": "Name", "email": "Email address", "rootRole": "Root role"}
"""What the form changes."""
ADMIN_ROLE = ROLE_NAMES[users.ROLE_NUMBERS[users.ADMINISTRATOR]]


def find(tx: Tx, number: int) -> Json:
    """Return what the form shows and changes of a user. Raises CallerError (404)."""
    user = users.get(tx, number)
    return {name: user.get(name) or "" for name in ("name", "email")} | {"rootRole": ROLE_NAMES[user["rootRole"]]}


def more(seen: Seen) -> Json:
    call, tx, number = seen.call, seen.tx, seen.key
    return {
        "person": titled(users.get(tx, number)),
        "roles": list(users.ROLES),
        "sessions": sessions.list_sessions(tx, number, call.caller.session),
        "accounts": identities.list_accounts(tx, number),
        "is_admin": seen.own["rootRole"] == ADMIN_ROLE,
        "made": None,
        "tokens": [each["description"] for each in personal_tokens.list_tokens(tx, number)],
        "project_roles": next(each["projectRoles"] for each in users.list_with_roles(tx) if each["id"] == number),
        "is_me": call.actor.is_user and call.actor.id == number,
    }


def invite(call: ApiCall) -> Answer:
    """Make a link that signs the user in once, and show it in this answer only."""
    with call.store.writing(call.actor, "page") as tx:
        made = new_link(call, tx, row_id(call))
    shown = PERSON.show(call)
    return replace(shown, body=shown.body | {"made": made})


def end_session(call: ApiCall, tx: Tx, user: int) -> None:
    sessions.end_sessions(tx, user, row_id(call, "sessionId"))


def end_sessions(_call: ApiCall, tx: Tx, user: int) -> None:
    sessions.end_sessions(tx, user)


def unlink(call: ApiCall, tx: Tx, user: int) -> None:
    """Unlink a user from an account elsewhere."""
    identities.unlink(tx, user, call.params["accountId"])


NEW = "/people/new"
PERSON = Resource(
    name="person",
    plural="people",
    word="user",
    key="id",
    read_key=row_id,
    members=("person", "people"),
    operations=("createUser", "updateUser", "deleteUser"),
    rows=rows,
    find=find,
    change=users.change,
    remove=users.remove,
    read=lambda form: {name: form.text(name) for name in PARTS},
    body_of=lambda shown, _stored: shown,
    compare=partial(differences, PARTS),
    more=more,
    sentence="The {} was not deleted: someone changed it meanwhile. This is what it is now.",
    stays=True,
    new=NEW,
    reads="ADMIN",
    lacks=("may", "permission", "may_delete", "delete_permission"),
    list_lacks=("may_create", "permission"),
)
OWN = PERSON.own

ROUTES = (
    page(NEW, show, "person_new.html", "The form of a new user.", permission="ADMIN"),
    change(NEW, create, template="person_new.html", stands_for="createUser"),
    *PERSON.routes(),
    PERSON.form(f"{OWN}/sign-in-link", invite, "createSignInLink"),
    change(f"{OWN}/sessions/end", PERSON.does(end_sessions), stands_for="endSessionsOfUser"),
    change(f"{OWN}/sessions/:sessionId/end", PERSON.does(end_session), stands_for="endSessionOfUser"),
    change(f"{OWN}/accounts/:accountId/unlink", PERSON.does(unlink), stands_for="unlinkAccountOfUser"),
)
