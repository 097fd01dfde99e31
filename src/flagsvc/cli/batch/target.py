"""Which flag server, with which token, over which connection: from the command line and the environment."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from flagsvc.errors import ConfigurationError
from flagsvc.settings.load import LARGEST_SECRET, resolve
from flagsvc.settings.parse import printable
from flagsvc.upstream.addresses import shown, web_parts

if TYPE_CHECKING:
    import ssl

    from flagsvc.certificates import Pair
    from flagsvc.upstream.outbound import Outbound

SECONDS = 60.0
URL_VARIABLES = ("FLAGSVC_URL", "UNLEASH_URL")
TOKEN_VARIABLE = "FLAGSVC_ADMIN_TOKEN"  # noqa: S105 - the name of a variable
CONNECTION = (
    *("httpProxy", "httpsProxy", "noProxy", "httpOptions.rejectUnauthorized"),
    *("upstreamCa", "upstreamCert", "upstreamKey", "upstreamKeyPassword"),
)
"""The options of the proxy that a connection to a flag server depends on; here they come from their variables alone."""
BELOW = re.compile(r"(/api(/admin(/features-batch)?)?)?/*$")
"""What may follow the server's own address in --url."""

NOTES = f"""\
token
  A personal access token of a user. Anybody on this machine can see a token on the command line: --token-file or
  {TOKEN_VARIABLE} keep it to yourself. It is never printed.

connection
  HTTP_PROXY, HTTPS_PROXY and NO_PROXY are obeyed; SSL_CERT_FILE, FLAGSVC_UPSTREAM_CA and --ca-file name authorities to trust
  beside the usual ones, FLAGSVC_UPSTREAM_CERT and FLAGSVC_UPSTREAM_KEY a certificate to show. Redirects are not followed.
"""


@dataclass(frozen=True)
class Target:
    """A flag server: `url` is its own address without `/api`; `seconds` bound each step of a request. No repr has a secret."""

    url: str
    token: str = field(default="", repr=False)
    seconds: float = SECONDS
    ca_file: str | None = None
    reject_unauthorized: bool = True
    upstream_ca: str | None = None
    own: Pair | None = None
    http_proxy: str | None = field(default=None, repr=False)
    https_proxy: str | None = field(default=None, repr=False)
    no_proxy: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The address as messages name it."""
        return shown(self.url)

    def outbound(self) -> Outbound:
        """Return which outbound proxy a request takes."""
        from flagsvc.upstream.outbound import Outbound

        return Outbound(self.http_proxy, self.https_proxy, self.no_proxy)

    def tls(self) -> ssl.SSLContext:
        """Return the TLS settings; raises ConfigurationError for a file that cannot be used."""
        import ssl

        from flagsvc.upstream.trust import Trust

        context = Trust(self.reject_unauthorized, self.upstream_ca, self.own).context()
        if self.ca_file:
            try:
                context.load_verify_locations(self.ca_file)
            except OSError as error:  # ssl.SSLError is one
                reason = (error.strerror or "") if type(error) is not ssl.SSLError else "no certificate is in it"
                raise ConfigurationError([f"--ca-file: cannot use `{self.ca_file}`: {reason.lower()}"]) from None
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
    tokens = group.add_mutually_exclusive_group()
    tokens.add_argument("--token", help=f"token, for all on this machine to see [{TOKEN_VARIABLE}]")
    tokens.add_argument("--token-file", metavar="FILE", help=f"file that holds the token [{TOKEN_VARIABLE}_FILE]")
    group.add_argument("--ca-file", metavar="FILE", help="certificates (PEM) of authorities to trust as well")
    text = "take any certificate: whoever is in between reads the token [HTTP_OPTIONS_REJECT_UNAUTHORIZED=false]"
    group.add_argument("--insecure", action="store_true", help=text)
    text = f"patience with each step of a request [default: {SECONDS:g}]"
    group.add_argument("--timeout", metavar="SECONDS", type=seconds, default=SECONDS, help=text)


def target_of(args: Namespace, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the server that the arguments and the environment name; raises ConfigurationError."""
    resolved = resolve(environ, None, {})
    wrong = [resolved.problems[name] for name in CONNECTION if name in resolved.problems]
    if wrong:
        raise ConfigurationError(wrong)
    http, https, exempt, strict, authorities, cert, key, password = (resolved.values[name] for name in CONNECTION)
    return Target(
        url=own_address(args.url or next((environ[name] for name in URL_VARIABLES if environ.get(name)), "")),
        token=token_of(args, environ),
        seconds=args.timeout,
        ca_file=args.ca_file,
        reject_unauthorized=strict and not args.insecure,
        upstream_ca=authorities,
        own=None if cert is None else own_certificate(cert, key, password),
        http_proxy=http,
        https_proxy=https,
        no_proxy=exempt,
    )


def own_certificate(cert: str, key: str | None, password: str | None) -> Pair:
    """Return the certificate to show to the server."""
    from flagsvc.certificates import Pair
    from flagsvc.upstream.trust import OWN

    return Pair(OWN, cert, key, password)


def own_address(url: str) -> str:
    """Return the address of a flag server itself, without `/api` and what may follow, user, password, query."""
    text = url.strip()
    if not text:
        raise ConfigurationError(["the address of the flag server is missing: give --url or set FLAGSVC_URL"])
    parts = web_parts(text)
    if parts is None or not text.isprintable():
        raise ConfigurationError([f"--url: `{printable(shown(text))}` is not an http or https URL"])
    return BELOW.sub("", f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def token_of(args: Namespace, environ: Mapping[str, str]) -> str:
    """Return the token, empty where none is given; raises ConfigurationError for a file without one, and never shows it."""
    if args.token is not None:
        return clean("--token", args.token)
    if args.token_file is not None:
        return clean("--token-file", secret_in("--token-file", args.token_file))
    if environ.get(TOKEN_VARIABLE, "").strip():
        return clean(TOKEN_VARIABLE, environ[TOKEN_VARIABLE])
    path = environ.get(f"{TOKEN_VARIABLE}_FILE", "").strip()
    return clean(path, secret_in(f"{TOKEN_VARIABLE}_FILE", path)) if path else ""


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
