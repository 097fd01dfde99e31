"""Which flag server, with which token, over which connection: from the command line and the environment."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from flagsvc.core.errors import ConfigurationError
from flagsvc.http.client.addresses import shown, web_parts
from flagsvc.settings.kinds import printable
from flagsvc.settings.load import LARGEST_SECRET, resolve

if TYPE_CHECKING:
    import ssl

    from flagsvc.core.certificates import CertificateFiles
    from flagsvc.http.client.outbound import Outbound

SECONDS = 60.0
URL_VARIABLES = ("FLAGSVC_URL", "UNLEASH_URL")
CONNECTION = (
    *("httpProxy", "httpsProxy", "noProxy", "httpOptions.rejectUnauthorized"),
    *("upstreamCa", "upstreamCert", "upstreamKey", "upstreamKeyPassword"),
)
"""The options of the proxy that a connection to a flag server depends on; here they come from their variables alone."""
BELOW = re.compile(r"(/api(/admin(/features-batch)?)?)?/*$")
"""What may follow the server's own address in --url."""

ABOUT_TOKENS = """\
token
  A personal access token of a user. Anybody on this machine can see a token on the command line:
  {file} or {variable} keep it to yourself. It is never printed.
"""
ABOUT_CONNECTIONS = """\
connection
  HTTP_PROXY, HTTPS_PROXY and NO_PROXY are obeyed; SSL_CERT_FILE, FLAGSVC_UPSTREAM_CA and {ca} name authorities to trust
  beside the usual ones, FLAGSVC_UPSTREAM_CERT and FLAGSVC_UPSTREAM_KEY a certificate to show. Redirects are not followed.
"""


class Side(NamedTuple):
    """How a command line names a server: the only one by --url and plain options, one of two by a word before each option."""

    word: str = ""

    @property
    def address(self) -> str:
        """What holds the server's address."""
        return self.word.upper() or "--url"

    @property
    def variable(self) -> str:
        """The variable that holds the token; with `_FILE` behind it, the file that does."""
        return f"FLAGSVC_{self.word.upper() or 'ADMIN'}_TOKEN"

    @property
    def tokens(self) -> str:
        """What a token can be given with, as messages say it."""
        return f"{self.option('token-file')}, {self.variable} or {self.option('token')}"

    @property
    def smaller(self) -> str:
        """What helps where a request is too large."""
        if self.word:
            return f"raise the limit of {self.address}, or of a reverse proxy in front of it"
        return "export fewer flags into each file (--features, --tag)"

    def option(self, name: str) -> str:
        """Return an option as it is typed."""
        return f"--{self.word}-{name}" if self.word else f"--{name}"

    def value(self, args: Namespace, name: str) -> Any:
        """Return what was given for an option."""
        return getattr(args, self.option(name)[2:].replace("-", "_"))


ONE, FROM, TO = Side(), Side("from"), Side("to")
NOTES = (
    ABOUT_TOKENS.format(file="--token-file", variable=ONE.variable) + "\n" + ABOUT_CONNECTIONS.format(ca="--ca-file")
)
"""Token and connection, for the help of a command with one server."""


@dataclass(frozen=True)
class Target:
    """A flag server: `url` is its own address without `/api`; `seconds` bound each step of a request. No repr has a secret."""

    url: str
    token: str = field(default="", repr=False)
    seconds: float = SECONDS
    ca_file: str | None = None
    reject_unauthorized: bool = True
    upstream_ca: str | None = None
    own: CertificateFiles | None = None
    http_proxy: str | None = field(default=None, repr=False)
    https_proxy: str | None = field(default=None, repr=False)
    no_proxy: tuple[str, ...] = ()
    side: Side = ONE

    @property
    def shown(self) -> str:
        """The address as messages name it."""
        return shown(self.url)

    def outbound(self) -> Outbound:
        """Return which outbound proxy a request takes."""
        from flagsvc.http.client.outbound import Outbound

        return Outbound(self.http_proxy, self.https_proxy, self.no_proxy)

    def tls(self) -> ssl.SSLContext:
        """Return the TLS settings; raises ConfigurationError for a file that cannot be used."""
        import ssl

        from flagsvc.http.client.trust import Trust

        context = Trust(self.reject_unauthorized, self.upstream_ca, self.own).context()
        if self.ca_file:
            try:
                context.load_verify_locations(self.ca_file)
            except OSError as error:  # ssl.SSLError is one
                reason = (error.strerror or "") if type(error) is not ssl.SSLError else "no certificate is in it"
                option = self.side.option("ca-file")
                raise ConfigurationError([f"{option}: cannot use `{self.ca_file}`: {reason.lower()}"]) from None
        return context


def seconds(text: str) -> float:
    """Return a number of seconds, more than 0 and up to a day."""
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number <= 86_400:
        raise ArgumentTypeError("expected a number of seconds up to 86400")
    return number


def add_target_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that say which server and how to reach it."""
    group = parser.add_argument_group("server")
    group.add_argument("--url", metavar="URL", help="address of the flag server, with or without /api [FLAGSVC_URL]")
    add_connection_arguments(group, ONE)
    add_timeout_argument(group)


def add_connection_arguments(group: Any, side: Side) -> None:
    """Add to a group of arguments how to reach a server, but not its address."""
    tokens = group.add_mutually_exclusive_group()
    tokens.add_argument(
        side.option("token"), metavar="TOKEN", help=f"token, for all on this machine to see [{side.variable}]"
    )
    text = f"file that holds the token [{side.variable}_FILE]"
    tokens.add_argument(side.option("token-file"), metavar="FILE", help=text)
    group.add_argument(
        side.option("ca-file"), metavar="FILE", help="certificates (PEM) of authorities to trust as well"
    )
    text = "take any certificate: whoever is in between reads the token [HTTP_OPTIONS_REJECT_UNAUTHORIZED=false]"
    group.add_argument(side.option("insecure"), action="store_true", help=text)


def add_timeout_argument(group: Any) -> None:
    """Add to a group of arguments how long to wait."""
    text = f"patience with each step of a request [default: {SECONDS:g}]"
    group.add_argument("--timeout", metavar="SECONDS", type=seconds, default=SECONDS, help=text)


def target_of(args: Namespace, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the one server that the arguments and the environment name; raises ConfigurationError."""
    address = args.url or next((environ[name] for name in URL_VARIABLES if environ.get(name)), "")
    return target_at(address, args, ONE, environ)


def target_at(address: str, args: Namespace, side: Side, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the server at an address, reached as the arguments of its side and the environment say; raises ConfigurationError."""
    resolved = resolve(environ, None, {})
    wrong = [resolved.problems[name] for name in CONNECTION if name in resolved.problems]
    if wrong:
        raise ConfigurationError(wrong)
    http, https, exempt, strict, authorities, cert, key, password = (resolved.values[name] for name in CONNECTION)
    return Target(
        url=own_address(address, side),
        token=token_of(args, side, environ),
        seconds=args.timeout,
        ca_file=side.value(args, "ca-file"),
        reject_unauthorized=strict and not side.value(args, "insecure"),
        upstream_ca=authorities,
        own=None if cert is None else own_certificate(cert, key, password),
        http_proxy=http,
        https_proxy=https,
        no_proxy=exempt,
        side=side,
    )


def own_certificate(cert: str, key: str | None, password: str | None) -> CertificateFiles:
    """Return the certificate to show to the server."""
    from flagsvc.core.certificates import CertificateFiles
    from flagsvc.http.client.trust import OWN

    return CertificateFiles(OWN, cert, key, password)


def own_address(url: str, side: Side) -> str:
    """Return the address of a flag server itself, without `/api` and what may follow, user, password, query."""
    text = url.strip()
    if not text:
        missing = "the address of the flag server is missing"
        raise ConfigurationError(
            [f"{side.address}: {missing}" if side.word else f"{missing}: give --url or set FLAGSVC_URL"]
        )
    parts = web_parts(text)
    if parts is None or not text.isprintable():
        raise ConfigurationError([f"{side.address}: `{printable(shown(text))}` is not an http or https URL"])
    return BELOW.sub("", f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def token_of(args: Namespace, side: Side, environ: Mapping[str, str]) -> str:
    """Return the token, empty where none is given; raises ConfigurationError for a file without one, and never shows it."""
    given, file = (side.value(args, name) for name in ("token", "token-file"))
    if given is not None:
        return clean(side.option("token"), given)
    if file is not None:
        return clean(side.option("token-file"), secret_in(side.option("token-file"), file))
    if environ.get(side.variable, "").strip():
        return clean(side.variable, environ[side.variable])
    path = environ.get(f"{side.variable}_FILE", "").strip()
    return clean(path, secret_in(f"{side.variable}_FILE", path)) if path else ""


def secret_in(name: str, path: str) -> str:
    """Return the text of a file that holds a secret."""
    try:
        with Path(path).open("rb") as file:
            return file.read(LARGEST_SECRET).decode()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "not a text").lower()
        raise ConfigurationError([f"{name}: cannot read `{printable(path)}`: {reason}"]) from None


def clean(name: str, token: str) -> str:
    """Return a token as a header carries it; raises ConfigurationError where none can."""
    text = token.strip()
    if not text:
        raise ConfigurationError([f"{name}: holds no token"])
    if not (text.isascii() and text.isprintable()):
        raise ConfigurationError([f"{name}: the token holds a character that no header can carry"])
    return text


def warn_of(target: Target, program: str) -> None:
    """Say on standard error what is risky about a connection."""
    if not target.reject_unauthorized and target.url.startswith("https:"):
        print(f"{program}: warning: the certificate of `{target.shown}` is not checked", file=sys.stderr)
