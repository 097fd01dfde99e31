"""`/api/admin/user-admin`: administrators list, create, change and delete users, and unlink accounts elsewhere (decision 0034)."""

from __future__ import annotations

from functools import partial

from flagsvc.http.shapes import Anything, Array, Boolean, Enum, Integer, Named, Nullable, Object, OneOf, String
from flagsvc.server.api.route import Route, by_path, reading, row_id, writing
from flagsvc.server.store.resources import identities, users

DATE = Nullable(String(format="date-time"))
ROLE = OneOf(
    Integer(minimum=0, example=1),
    Enum("Admin", "Editor", "Viewer", "Owner", "Member", "Reader", example="Admin"),
)
CREATE = Named(
    "createUserSchema",
    Object(
        {
            "username": String(description="The username; required without an email address.", example="anna"),
            "email": String(description="The email address; required without a username.", example="anna@example.com"),
            "name": String(description="The full name of the user.", example="Anna Berg"),
            "password": String(description="Must be absent or empty: users authenticate with personal tokens."),
            "rootRole": ROLE,
            "sendEmail": Boolean(description="Has no effect: no mail is sent.", example=False),
        },
        required=("rootRole",),
        closed=True,
        description="A user to create.",
    ),
)
MEMBERS = {
    "id": Integer(),
    "accountType": Enum("User", "Service Account"),
    "name": Nullable(String()),
    "username": Nullable(String()),
    "email": String(),
    "imageUrl": String(description="Always empty."),
    "inviteLink": String(description="Always empty: there are no passwords to set."),
    "loginAttempts": Integer(minimum=0),
    "seenAt": DATE,
    "createdAt": String(format="date-time"),
    "scimId": Nullable(String()),
    "companyRole": Nullable(String()),
    "productUpdatesEmailConsent": Nullable(Boolean()),
}
USER = Named(
    "userSchema",
    Object(
        {**MEMBERS, "rootRole": Integer(minimum=0), "seatType": Nullable(String())},
        required=("id",),
        closed=True,
        description="A user.",
    ),
)
CREATED = Named(
    "createUserResponseSchema",
    Object(
        {**MEMBERS, "rootRole": ROLE, "seatType": Nullable(String()), "emailSent": Boolean()},
        required=("id",),
        closed=True,
        description="The created user, with the root role as sent.",
    ),
)
ROOT_ROLE = Named(
    "roleSchema",
    Object(
        {"id": Integer(minimum=0), "type": String(), "name": String(), "description": String()},
        required=("id", "type", "name"),
        closed=True,
        description="A root role.",
    ),
)
USERS = Named(
    "usersSchema",
    Object(
        {"users": Array(USER), "rootRoles": Array(ROOT_ROLE)},
        required=("users",),
        closed=True,
        description="The users, and the root roles that a user may have.",
    ),
)
UPDATE = Named(
    "updateUserSchema",
    Object(
        {
            "email": String(description="The email address.", example="anna@example.com"),
            "name": String(description="The full name of the user.", example="Anna Berg"),
            "rootRole": ROLE,
        },
        description="A user with new content.",
    ),
)
NAMES = Named(
    "usersGroupsBaseSchema",
    Object(
        {
            "users": Array(
                Object(
                    {name: MEMBERS[name] for name in ("id", "accountType", "name", "username", "email")},
                    required=("id",),
                )
            ),
            "groups": Array(Anything(), description="Always empty: there are no groups."),
        },
        required=("users", "groups"),
        description="The names of the users.",
    ),
)
COUNTS = Named(
    "adminCountSchema",
    Object(
        {name: Integer(minimum=0) for name in ("password", "noPassword", "service")},
        required=("password", "noPassword", "service"),
        closed=True,
        description="How many administrators there are; none has a password.",
    ),
)


PATH = "/api/admin/user-admin"
route = partial(Route, tag="Users")


ACCOUNT = Object(
    {
        "id": String(),
        "issuer": String(description="The issuer of the account; `header` for a proxy in front that names persons."),
        "subject": String(description="The user at the issuer, or the name in the header."),
        "createdAt": String(format="date-time"),
    },
    required=("id", "issuer", "subject", "createdAt"),
)
ACCOUNTS = Named("accountsSchema", Object({"accounts": Array(ACCOUNT)}, required=("accounts",)))


ACCOUNTS_PATH = f"{PATH}/:id/accounts"

ROUTES = (
    route(
        path=PATH,
        handler=reading(by_path(users.list_users)),
        operation="getUsers",
        summary="List users and root roles",
        permission="ADMIN",
        result=USERS,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(users.create), location="{id}"),
        operation="createUser",
        summary="Create a user",
        description="There are no passwords and no mails: create a personal token for the user.",
        permission="ADMIN",
        body=CREATE,
        status=201,
        result=CREATED,
    ),
    route(
        path=f"{PATH}/access",
        handler=reading(lambda tx, call: {"users": users.list_names(tx), "groups": []}),
        operation="getBaseUsersAndGroups",
        summary="List the names of the users",
        description="For those who give roles in a project.",
        result=NAMES,
    ),
    route(
        path=f"{PATH}/admin-count",
        handler=reading(lambda tx, call: {"password": 0, "noPassword": users.count_administrators(tx), "service": 0}),
        operation="getAdminCount",
        summary="Count the administrators",
        permission="ADMIN",
        result=COUNTS,
    ),
    route(
        path=f"{PATH}/:id",
        handler=reading(by_path(users.get)),
        operation="getUser",
        summary="Show a user",
        permission="ADMIN",
        result=USER,
    ),
    route(
        path=f"{PATH}/:id",
        method="PUT",
        handler=writing(by_path(users.change)),
        operation="updateUser",
        summary="Change a user",
        description="Absent and empty members stay unchanged.",
        permission="ADMIN",
        body=UPDATE,
        result=CREATED,
    ),
    route(
        path=f"{PATH}/:id",
        method="DELETE",
        handler=writing(by_path(users.remove)),
        operation="deleteUser",
        summary="Delete a user",
        description="The user's personal tokens are refused at once. 403 for the only administrator.",
        permission="ADMIN",
    ),
    route(
        path=ACCOUNTS_PATH,
        handler=reading(lambda tx, call: {"accounts": identities.list_accounts(tx, row_id(call))}),
        operation="getAccountsOfUser",
        summary="List the accounts elsewhere that a user is linked to",
        permission="ADMIN",
        result=ACCOUNTS,
    ),
    route(
        path=f"{ACCOUNTS_PATH}/:accountId",
        method="DELETE",
        handler=writing(by_path(identities.unlink)),
        operation="unlinkAccountOfUser",
        summary="Unlink a user from an account elsewhere",
        description="The sessions of the user that were opened in its way end.",
        permission="ADMIN",
    ),
)
