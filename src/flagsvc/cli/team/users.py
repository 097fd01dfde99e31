"""`flagsvc server user`: the users of the flag server and their roles, on the database."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from flagsvc.cli.batch.tables import confirm, day_and_minute, print_json
from flagsvc.cli.commands import Subcommand
from flagsvc.cli.health import LOOPBACK
from flagsvc.cli.parser import UsageError
from flagsvc.cli.team.database import (
    add_database_arguments,
    command_actor,
    list_command,
    open_database,
    resolve_database,
)
from flagsvc.http.client.addresses import web_parts
from flagsvc.settings.network import url_at
from flagsvc.settings.places import Resolved

ROOT_ROLES = ("admin", "editor", "viewer")
PROJECT_ROLES = {"owner": [4], "member": [5], "none": []}
"""Role in a project → the numbers of the roles that a user then has."""
HEADS = ("ID", "USER", "NAME", "ROLE", "IN PROJECTS", "LAST SEEN")
SIGN_IN_PAGE = "/ui/sign-in"
USER = "username, email address or id of the user"


def add_create_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help="username of the new user")
    parser.add_argument("--email", metavar="ADDRESS", help="email address")
    parser.add_argument("--name", metavar="NAME", help="name for people")
    parser.add_argument("--role", choices=ROOT_ROLES, default="viewer", help="role on the server [default: viewer]")
    parser.add_argument("--json", action="store_true", help="print the user as JSON")
    add_database_arguments(parser)


def create(args: Namespace) -> int:
    wanted = {"username": args.user, "email": args.email, "name": args.name, "rootRole": args.role.title()}
    given = {key: value for key, value in wanted.items() if value is not None}
    with open_database(args) as store, store.writing(command_actor(), "command") as tx:
        from flagsvc.server.store.resources import users

        number = users.create(tx, given)["id"]
        found = next(each for each in list_users(tx) if each["id"] == number)
    if args.json:
        print_json(found)
    else:
        print(f"created the {found['role']} `{found['user']}` with the id {number}")
        follow = f"flagsvc server token create NAME --user {found['user']}"
        print(f"there are no passwords: `{follow}` creates a token to sign in with", file=sys.stderr)
    return 0


def list_users(tx: Any) -> list[dict[str, Any]]:
    """Return every user with the roles."""
    from flagsvc.server.store.resources.users import list_with_roles

    return list_with_roles(tx)


def list_row(user: dict[str, Any]) -> tuple[object, ...]:
    projects = ", ".join(f"{each['project']}: {each['role']}" for each in user["projectRoles"])
    seen = day_and_minute(user["seenAt"]) or "never"
    return user["id"], user["user"], user["name"], user["role"], projects, seen


def add_role_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help=USER)
    text = f"one of {', '.join(ROOT_ROLES)}; with --project one of {', '.join(PROJECT_ROLES)}"
    parser.add_argument("role", metavar="ROLE", choices=(*ROOT_ROLES, *PROJECT_ROLES), help=text)
    parser.add_argument("--project", metavar="ID", help="set the role in this project [default: on the server]")
    add_database_arguments(parser)


def set_role(args: Namespace) -> int:
    known = PROJECT_ROLES if args.project else ROOT_ROLES
    if args.role not in known:
        where = "in a project" if args.project else "on the server: --project ID gives one in a project"
        raise UsageError(f"`{args.role}` is no role {where}; expected one of {', '.join(known)}")
    with open_database(args) as store, store.writing(command_actor(), "command") as tx:
        from flagsvc.server.store.resources import project_access, users

        found = users.find_by_name(tx, args.user)
        if args.project:
            project_access.replace(tx, args.project, found.id, PROJECT_ROLES[args.role])
        else:
            users.change(tx, found.id, {"rootRole": args.role.title()})
    where = f"in the project `{args.project}`" if args.project else "on the server"
    print(f"`{found.username or found.email}` has the role {args.role} {where}")
    return 0


def add_link_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help=USER)
    parser.add_argument("--issuer", metavar="ISSUER", required=True, help="issuer of the account, or `header`")
    parser.add_argument("--subject", metavar="SUBJECT", required=True, help="subject there; the name in the header")
    add_database_arguments(parser)


def link(args: Namespace) -> int:
    """Link a user to an account elsewhere and return 0."""
    with open_database(args) as store, store.writing(command_actor(), "command") as tx:
        from flagsvc.server.store.resources import identities, users

        found = users.find_by_name(tx, args.user)
        identities.link(tx, found, args.issuer.rstrip("/"), args.subject)
    print(f"`{found.username or found.email}` is linked to `{args.subject}` at `{args.issuer}`")
    return 0


def add_unlink_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help=USER)
    parser.add_argument("--issuer", metavar="ISSUER", required=True, help="issuer of the account, or `header`")
    add_database_arguments(parser)


def unlink(args: Namespace) -> int:
    """Unlink a user from the account at an issuer and return 0."""
    with open_database(args) as store, store.writing(command_actor(), "command") as tx:
        from flagsvc.server.store.resources import identities, users

        found = users.find_by_name(tx, args.user)
        subject = identities.unlink_at(tx, found, args.issuer.rstrip("/"))
    print(f"`{found.username or found.email}` is no longer linked to `{subject}` at `{args.issuer}`")
    return 0


def add_remove_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help=USER)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_database_arguments(parser)


def remove(args: Namespace) -> int:
    """Delete a user after confirmation, and return 0; 1 or 2 without confirmation."""
    with open_database(args) as store:
        from flagsvc.server.store.resources import personal_tokens, users

        with store.reading() as tx:
            found = users.find_by_name(tx, args.user)
            count = len(personal_tokens.list_tokens(tx, found.id))
        tokens = f"{count} personal token{'' if count == 1 else 's'}"
        name = found.username or found.email
        question = f"Remove the {found.root_role} `{name}` with {tokens}?"
        code = confirm("server user remove", question, "the user stays", yes=args.yes, shows="")
        if code is not None:
            return code
        with store.writing(command_actor(), "command") as tx:
            users.remove(tx, found.id)
    print(f"removed the {found.root_role} `{name}` with {tokens}")
    return 0


def parse_address(text: str) -> str:
    """Return the address of a flag server without a slash at the end."""
    parts = web_parts(text.strip())
    if parts is None or not text.isprintable() or parts.query or parts.fragment or "@" in parts.netloc:
        raise ArgumentTypeError("expected an address such as https://flags.example.com")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/").removesuffix("/api").removesuffix("/ui")


def add_sign_in_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help=USER)
    text = "address of the server for browsers [default: where its options say that it listens, on this machine]"
    parser.add_argument("--url", metavar="URL", type=parse_address, help=text)
    add_database_arguments(parser)


def sign_in(args: Namespace) -> int:
    """Create a link, print it and return 0."""
    address = args.url or local_address(resolve_database(args))
    with open_database(args) as store, store.writing(command_actor(), "command") as tx:
        from flagsvc.server.store.resources import users
        from flagsvc.server.store.resources.sessions import create_link

        found = users.find_by_name(tx, args.user)
        secret = create_link(tx, found.id)
    print(f"{address}{SIGN_IN_PAGE}#{secret}")
    name = found.username or found.email
    print(f"flagsvc server sign-in-link: signs in `{name}` once, within 15 minutes", file=sys.stderr)
    return 0


def local_address(resolved: Resolved) -> str:
    """Return the address on this machine where the options say that the server listens."""
    host, port, path, cert = (resolved.values[name] for name in ("host", "port", "basePath", "tlsCert"))
    return url_at(LOOPBACK.get(host, host or ""), port, path, tls=cert is not None)


CREATE = Subcommand("Create a user of the flag server. There are no passwords.", add_create_arguments, create)
LIST = list_command("List the users of the flag server with their roles.", "users", HEADS, list_users, list_row)
ROLE = Subcommand("Set the role of a user, on the server or in a project.", add_role_arguments, set_role)
LINK = Subcommand(
    "Link a user to an account at an OpenID provider, or to a name in the header of a proxy in front. An administrator needs that"
    " to sign in there; other users are linked when they first do.",
    add_link_arguments,
    link,
)
UNLINK = Subcommand(
    "Unlink a user from the account at an OpenID provider, or from the name in the header of a proxy in front. The sessions that"
    " were opened this way end.",
    add_unlink_arguments,
    unlink,
)
REMOVE = Subcommand(
    "Delete a user with all personal tokens and sessions. The only administrator stays.", add_remove_arguments, remove
)
SIGN_IN_LINK = Subcommand(
    "Print a link that signs a user in at the pages of the flag server, once, within 15 minutes. Only the link goes to standard"
    " output. Earlier links of the user are void. Whoever has the link is that user: send it in private.",
    add_sign_in_arguments,
    sign_in,
)
