"""Reads the flag server's address, token and connection settings from the command line and the environment."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from flagsvc.cli.parser import parse_seconds
from flagsvc.core.errors import ConfigurationError
from flagsvc.core.files import read_file
from flagsvc.http.client.addresses import shown, web_parts
from flagsvc.http.client.outbound import Outbound
from flagsvc.settings.kinds import printable
from flagsvc.settings.places import LARGEST_SECRET

if TYPE_CHECKING:
    from flagsvc.http.client.trust import Trust

DEFAULT_TIMEOUT_S = 60.0
URL_VARIABLES = ("FLAGSVC_URL", "UNLEASH_URL")
API_SUFFIX = re.compile(r"(/api(/admin(/features-batch)?)?)?\Z")
"""Paths that may follow the server's own address in --url."""

ABOUT_TOKENS = """\
token
  A personal access token of a user. Everybody on this machine can see a token on the command line;
  {file} or {variable} keep it private. It is never printed.
"""
ABOUT_CONNECTIONS = """\
connection
  HTTP_PROXY, HTTPS_PROXY and NO_PROXY apply. SSL_CERT_FILE, FLAGSVC_UPSTREAM_CA and {ca} name additional authorities to
  trust, FLAGSVC_UPSTREAM_CERT and FLAGSVC_UPSTREAM_KEY a client certificate. Redirects are not followed.
"""


class Side(NamedTuple):
    """How a command line names a server: a single one by --url and plain options, one of two by a prefix of each option."""

    word: str = ""

    @property
    def address(self) -> str:
        """The argument with the server's address."""
        return self.word.upper() or "--url"

    @property
    def variable(self) -> str:
        """The variable with the token; with the suffix `_FILE`, the variable with the path of its file."""
        return f"FLAGSVC_{self.word.upper() or 'ADMIN'}_TOKEN"

    @property
    def tokens(self) -> str:
        """The ways to give a token, for messages."""
        return f"{self.option('token-file')}, {self.variable} or {self.option('token')}"

    @property
    def smaller(self) -> str:
        """Advice for a too large request, for messages."""
        if self.word:
            return f"raise the limit of {self.address}, or of a reverse proxy in front of it"
        return "export fewer flags into each file (--features, --tag)"

    def option(self, name: str) -> str:
        """Return the name of an option on the command line."""
        return f"--{self.word}-{name}" if self.word else f"--{name}"

    def value(self, args: Namespace, name: str) -> Any:
        return getattr(args, self.option(name)[2:].replace("-", "_"))


ONE, FROM, TO = Side(), Side("from"), Side("to")
NOTES = ABOUT_TOKENS.format(file="--token-file", variable=ONE.variable) + "\n" + ABOUT_CONNECTIONS.format(ca="--ca-file")
"""The notes on token and connection, for the help of a command with one server."""


@dataclass(frozen=True)
class Target:
    """A flag server: `url` is its address without `/api`; `seconds` limits each step of a request. The repr hides secrets."""

    url: str
    token: str = field(default="", repr=False)
    seconds: float = DEFAULT_TIMEOUT_S
    outbound: Outbound = field(default_factory=Outbound)
    trust: Trust | None = None
    side: Side = ONE

    @property
    def shown(self) -> str:
        """The address for messages."""
        return shown(self.url)


def add_target_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the server and the connection to it."""
    group = parser.add_argument_group("server")
    group.add_argument("--url", metavar="URL", help="address of the flag server, with or without /api [FLAGSVC_URL]")
    add_connection_arguments(group, ONE)
    add_timeout_argument(group)


def add_connection_arguments(group: Any, side: Side) -> None:
    """Add the arguments for the connection to a server, without its address, to a group."""
    tokens = group.add_mutually_exclusive_group()
    tokens.add_argument(
        side.option("token"), metavar="TOKEN", help=f"token, visible to everybody on this machine [{side.variable}]"
    )
    text = f"file that holds the token [{side.variable}_FILE]"
    tokens.add_argument(side.option("token-file"), metavar="FILE", help=text)
    group.add_argument(side.option("ca-file"), metavar="FILE", help="certificates (PEM) of authorities to trust as well")
    text = "accept any certificate; an attacker in between can read the token [HTTP_OPTIONS_REJECT_UNAUTHORIZED=false]"
    group.add_argument(side.option("insecure"), action="store_true", help=text)


def add_timeout_argument(group: Any) -> None:
    """Add the argument for the time limit to a group."""
    text = f"time limit of each step of a request [default: {DEFAULT_TIMEOUT_S:g}]"
    group.add_argument("--timeout", metavar="SECONDS", type=parse_seconds, default=DEFAULT_TIMEOUT_S, help=text)


def read_target(args: Namespace, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the single server of the arguments and the environment; raises ConfigurationError."""
    address = args.url or next((environ[name] for name in URL_VARIABLES if environ.get(name)), "")
    return build_target(address, args, ONE, environ)


def build_target(address: str, args: Namespace, side: Side, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the server at an address, with the settings from arguments and environment; raises ConfigurationError."""
    from flagsvc.cli.client import read_connection

    option, path = side.option("ca-file"), side.value(args, "ca-file")
    more = [] if path is None else [(option, path)]
    insecure = side.value(args, "insecure")
    outbound, trust = read_connection(environ, insecure=insecure, more_authorities=more)
    url, token = strip_address(address, side), read_token(args, side, environ)
    return Target(url, token, args.timeout, outbound, trust, side)


def strip_address(url: str, side: Side) -> str:
    """Return a flag server's own address, without `/api` and the rest of the path, user, password and query."""
    text = url.strip()
    if not text:
        missing = "the address of the flag server is missing"
        raise ConfigurationError([f"{side.address}: {missing}" if side.word else f"{missing}: give --url or set FLAGSVC_URL"])
    parts = web_parts(text)
    if parts is None or not text.isprintable():
        raise ConfigurationError([f"{side.address}: `{printable(shown(text))}` is not an http or https URL"])
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return API_SUFFIX.sub("", address.rstrip("/"))


def read_token(args: Namespace, side: Side, environ: Mapping[str, str]) -> str:
    """Return the token, empty without one; raises ConfigurationError for a file without a token. No message contains it."""
    given, file = (side.value(args, name) for name in ("token", "token-file"))
    if given is not None:
        return check_token(side.option("token"), given)
    if file is not None:
        return check_token(side.option("token-file"), read_secret_file(side.option("token-file"), file))
    if environ.get(side.variable, "").strip():
        return check_token(side.variable, environ[side.variable])
    path = environ.get(f"{side.variable}_FILE", "").strip()
    return check_token(path, read_secret_file(f"{side.variable}_FILE", path)) if path else ""


def read_secret_file(name: str, path: str) -> str:
    try:
        return read_file(path, LARGEST_SECRET).decode()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "not a text").lower()
        raise ConfigurationError([f"{name}: cannot read `{printable(path)}`: {reason}"]) from None


def check_token(name: str, token: str) -> str:
    """Return a token for a header; raises ConfigurationError if a header cannot contain it."""
    text = token.strip()
    if not text:
        raise ConfigurationError([f"{name}: holds no token"])
    if not (text.isascii() and text.isprintable()):
        raise ConfigurationError([f"{name}: the token holds a character that no header can carry"])
    return text


def warn_insecure(target: Target, program: str) -> None:
    """Warn on standard error about an insecure connection."""
    if target.trust is not None and not target.trust.reject_unauthorized and target.url.startswith("https:"):
        print(f"{program}: warning: the certificate of `{target.shown}` is not checked", file=sys.stderr)
