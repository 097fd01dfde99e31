"""People: the list of users, and making one, whose first access is shown once."""

from __future__ import annotations

from flagsvc.http.shapes import ShapeError, check
from flagsvc.server.api.admin.sessions import link_path
from flagsvc.server.api.admin.users import CREATE
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.edits import Look, problems_of
from flagsvc.server.pages.my_tokens import usual_day
from flagsvc.server.pages.page import change, page
from flagsvc.server.pages.tokens import LAST_SECOND, public_root
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources import personal_tokens, sessions, users
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

ROUTES = (
    page("/people", list_all, "people.html", "The list of users.", permission=ADMIN),
    page("/people/new", show, FORM, "The form of a new user.", permission=ADMIN),
    change("/people/new", create, "Create a user.", template=FORM, permission=ADMIN, stands_for="createUser"),
)
