"""Print a link that signs a user in at the pages of the flag server, once, within 15 minutes.

Only the link goes to standard output. Earlier links of the user are void. Whoever has the link is that user: send it in private.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from flagsvc.cli.health import LOOPBACK
from flagsvc.cli.team.opening import add_database_arguments, command_actor, open_database, resolve_database
from flagsvc.cli.team.users import USER
from flagsvc.http.client.addresses import web_parts
from flagsvc.settings.network import url_at
from flagsvc.settings.places import Resolved

PAGE = "/ui/sign-in"


def parse_address(text: str) -> str:
    """Return the address of a flag server without a slash at the end."""
    parts = web_parts(text.strip())
    if parts is None or not text.isprintable() or parts.query or parts.fragment or "@" in parts.netloc:
        raise ArgumentTypeError("expected an address such as https://flags.example.com")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/").removesuffix("/api").removesuffix("/ui")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the user, the address and the database."""
    parser.add_argument("user", metavar="USER", help=USER)
    text = "address of the server for browsers [default: where its options say that it listens, on this machine]"
    parser.add_argument("--url", metavar="URL", type=parse_address, help=text)
    add_database_arguments(parser)


def run(args: Namespace) -> int:
    """Create a link, print it and return 0."""
    address = args.url or local_address(resolve_database(args))
    with open_database(args) as store, store.writing(command_actor(), "command") as tx:
        from flagsvc.server.store.resources import users
        from flagsvc.server.store.resources.sessions import create_link

        found = users.find_by_name(tx, args.user)
        secret = create_link(tx, found.id)
    print(f"{address}{PAGE}#{secret}")
    name = found.username or found.email
    print(f"flagsvc server sign-in-link: signs in `{name}` once, within 15 minutes", file=sys.stderr)
    return 0


def local_address(resolved: Resolved) -> str:
    """Return the address on this machine where the options say that the server listens."""
    host, port, path, cert = (resolved.values[name] for name in ("host", "port", "basePath", "tlsCert"))
    return url_at(LOOPBACK.get(host, host or ""), port, path, tls=cert is not None)
