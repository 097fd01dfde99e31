"""`flagsvc server token`: API tokens of proxies and SDKs, and personal tokens of users, on the database."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import UTC, date, datetime, time
from typing import Any

from flagsvc.cli.batch.tables import day_and_minute, print_json
from flagsvc.cli.commands import Subcommand
from flagsvc.cli.export import parse_names
from flagsvc.cli.parser import UsageError
from flagsvc.cli.team.database import NOTES, add_database_arguments, command_actor, list_command, open_database

PERSONAL = "personal"
TYPES = ("backend", "frontend", PERSONAL)
ALL = "*"
CREATE_TEXT = """Create a token of a proxy or an SDK, or a personal token of a user, and print its secret once.

Only the secret goes to standard output. An administrator who has lost every token gets a new one here, and all others keep theirs.
"""
EXAMPLES = f"""\
{NOTES}
examples
  flagsvc server token create laptop --user ada
  flagsvc server token create proxy --environment production
  flagsvc server token create web --type frontend --environment production --project shop --expires 2030-01-31
"""
HEADS = ("ID", "TYPE", "NAME", "FOR", "BEGINS WITH", "CREATED", "EXPIRES", "LAST SEEN")


def parse_expiry(text: str) -> str:
    """Return a day or a time in the future as the store takes it; a day ends the token as it begins (UTC)."""
    try:
        found: date = datetime.fromisoformat(text) if len(text) > len("2030-01-31") else date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError("expected a day or a time, such as 2030-01-31 or 2030-01-31T12:00:00Z") from None
    moment = found if isinstance(found, datetime) else datetime.combine(found, time())
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    if moment <= datetime.now(UTC):
        raise ArgumentTypeError("expected a time in the future")
    return moment.isoformat()


def add_create_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the token, for people")
    parser.add_argument("--user", metavar="USER", help="user who gets a personal token: username, address or id")
    text = "backend for proxies and services, frontend for pages and apps [default: backend, with --user personal]"
    parser.add_argument("--type", choices=TYPES, help=text)
    parser.add_argument("--environment", metavar="NAME", help="environment that it reads; needed without --user")
    parser.add_argument("--project", metavar="NAMES", type=parse_names, help="projects that it reads [default: all]")
    text = "day or time when it ends [default: never]"
    parser.add_argument("--expires", metavar="TIME", type=parse_expiry, help=text)
    parser.add_argument("--json", action="store_true", help="print the token as JSON, with its secret")
    add_database_arguments(parser, EXAMPLES)


def create(args: Namespace) -> int:
    """Create a token, print its secret and return 0."""
    check_usage(args)
    with open_database(args) as store, store.writing(command_actor(), "command") as tx:
        created = create_personal(tx, args) if args.user else create_for_client(tx, args)
    if args.json:
        print_json(created)
    else:
        print(created["secret"])
    end = f" until {args.expires}" if args.expires else ""
    print(f"flagsvc server token create: created {describe(created)}{end}; its secret is shown only now", file=sys.stderr)
    return 0


def check_usage(args: Namespace) -> None:
    """Raise UsageError for options that do not belong together."""
    if args.user and (args.type not in (None, PERSONAL) or args.environment or args.project):
        raise UsageError("a token with --user is personal: it takes no --environment, no --project and no other --type")
    if args.type == PERSONAL and not args.user:
        raise UsageError("a personal token needs --user")
    if not args.user and not args.environment:
        raise UsageError("missing: --environment NAME for a token of a proxy or an SDK, or --user USER for a personal one")


def create_personal(tx: Any, args: Namespace) -> dict[str, Any]:
    from flagsvc.server.store.resources import personal_tokens, users

    owner = users.find_by_name(tx, args.user)
    made = personal_tokens.create(tx, owner.id, {"description": args.name, "expiresAt": args.expires})
    named = {"name": args.name, "type": PERSONAL, "user": owner.username or owner.email, "environment": None}
    return {"id": made["id"], **named, "projects": [ALL], "expiresAt": made["expiresAt"], "secret": made["secret"]}


def create_for_client(tx: Any, args: Namespace) -> dict[str, Any]:
    """Create a token of a proxy or an SDK and return it with its secret."""
    from flagsvc.server.store.resources import api_tokens

    wanted = {"tokenName": args.name, "type": args.type or TYPES[0], "environment": args.environment}
    made = api_tokens.create(tx, {**wanted, "projects": args.project or [ALL], "expiresAt": args.expires})
    kept = api_tokens.list_all(tx)[-1]
    members = ("id", "name", "type", "user", "environment", "projects", "expiresAt")
    return {key: kept[key] for key in members} | {"secret": made["secret"]}


def describe(token: dict[str, Any]) -> str:
    """Return a token in words, without its secret."""
    return f"the {token['type']} token `{token['name']}` for {scope(token)}"


def scope(token: dict[str, Any]) -> str:
    """Return what a token is for: a user, or an environment and projects."""
    if token["user"]:
        return str(token["user"])
    projects = "all projects" if token["projects"] == [ALL] else ", ".join(token["projects"])
    return f"{token['environment'] or 'all environments'}, {projects}"


def list_tokens(tx: Any) -> list[dict[str, Any]]:
    from flagsvc.server.store.resources import api_tokens

    return api_tokens.list_all(tx)


def list_row(token: dict[str, Any]) -> tuple[object, ...]:
    end = day_and_minute(token["expiresAt"]) or "never"
    times = day_and_minute(token["createdAt"]), f"{end} (over)" if token["expired"] else end
    seen = day_and_minute(token["seenAt"]) or "never"
    return token["id"], token["type"], token["name"], scope(token), f"{token['beginsWith']}…", *times, seen


def add_revoke_arguments(parser: ArgumentParser) -> None:
    text = "number of a token, from `flagsvc server token list`"
    parser.add_argument("id", metavar="ID", nargs="+", type=parse_id, help=text)
    add_database_arguments(parser)


def parse_id(text: str) -> int:
    """Return the number of a token. The message does not repeat the text, which may be a secret."""
    if not (text.isascii() and text.isdecimal() and len(text) < 18):
        raise ArgumentTypeError("expected the number of a token, which `flagsvc server token list` shows")
    return int(text)


def revoke(args: Namespace) -> int:
    """Delete tokens in one transaction, say which, and return 0."""
    with open_database(args) as store, store.writing(command_actor(), "command") as tx:
        from flagsvc.server.store.resources import api_tokens

        gone = [api_tokens.revoke(tx, number) for number in dict.fromkeys(args.id)]
    for each in gone:
        print(f"revoked {describe(each)}")
    return 0


CREATE = Subcommand(CREATE_TEXT, add_create_arguments, create)
LIST = list_command("List every token of the flag server, without the secrets.", "tokens", HEADS, list_tokens, list_row)
REVOKE = Subcommand(
    "Delete tokens. Running servers refuse them within a second; sessions that a personal token opened end.",
    add_revoke_arguments,
    revoke,
)
