"""One PostgreSQL URL of the variables in which a real Unleash server takes its database piece by piece. Pure.

| There | In the URL |
|---|---|
| no variable about TLS, or only DATABASE_SSL_REJECT_UNAUTHORIZED=false | `sslmode=require`: TLS, with any certificate |
| DATABASE_SSL=false | `sslmode=disable` |
| DATABASE_SSL=true or `{}`, or a file of certificates | `sslmode=verify-full`, by DATABASE_SSL_CA_FILE or the system |
| DATABASE_SSL={"rejectUnauthorized": false} | `sslmode=require` |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from flagsvc.settings.kinds import BOOLEANS, MOST_HINTS, PORT, RefusedError, printable, quoted
from flagsvc.settings.network import bracketed

SSL, CA, CERT, KEY = "DATABASE_SSL", "DATABASE_SSL_CA_FILE", "DATABASE_SSL_CERT_FILE", "DATABASE_SSL_KEY_FILE"
REJECT = "DATABASE_SSL_REJECT_UNAUTHORIZED"
SCHEMA, APPLICATION = "DATABASE_SCHEMA", "DATABASE_APPLICATION_NAME"
TLS_PARTS = (SSL, REJECT, CA, CERT, KEY, SCHEMA, APPLICATION)
"""The variables that are parameters of the URL."""
PARTS = (
    *("DATABASE_HOST", "DATABASE_PORT", "DATABASE_NAME", "DATABASE_USERNAME", "DATABASE_PASSWORD"),
    *TLS_PARTS,
)
NAME, PORT_NUMBER, PUBLIC = "unleash", "5432", "public"
"""What a real server takes for a name, a port and a schema that are not given."""
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")
VERIFIED, UNVERIFIED, PLAIN = "verify-full", "require", "disable"
SSL_EXPECTED = "expected true, false, or a JSON object with rejectUnauthorized"
SCHEMES = ("postgres:", "postgresql:")


class UrlRefusedError(ValueError):
    """A variable has a value that it cannot have; the message shows nothing secret."""

    def __init__(self, variable: str, text: str) -> None:
        super().__init__(text)
        self.variable = variable


class Made(NamedTuple):
    """A URL, and a text for each part of a variable that has no place in it."""

    url: str
    unread: list[str]


def compose(parts: Mapping[str, str]) -> Made:
    """Return the URL of the parts, DATABASE_HOST among them. Raises UrlRefusedError."""
    text = {name: value.strip() for name, value in parts.items()}
    host = text["DATABASE_HOST"]
    port = text.get("DATABASE_PORT", PORT_NUMBER)
    try:
        PORT.parse(port)
    except RefusedError:
        raise UrlRefusedError("DATABASE_PORT", f"expected {PORT.expects}, got {quoted(port)}") from None
    if re.search(r"[\s@?#\\]|://", host) or (host.count(":") == 1 and not host.startswith("/")):
        raise UrlRefusedError(
            "DATABASE_HOST", "expected the name or the address of a host, without port, user and scheme"
        )
    user = quote(text.get("DATABASE_USERNAME", ""), safe="")
    password = quote(parts.get("DATABASE_PASSWORD", ""), safe="")
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    socket = host.startswith("/")
    where = "" if socket else f"{bracketed(host.removeprefix('[').removesuffix(']'))}:{port}"
    name = quote(text.get("DATABASE_NAME", NAME), safe="")
    own, unread = _parameters(text, {}, by_default=UNVERIFIED)
    query = ({"host": host, "port": port} if socket else {}) | own
    return Made(_with_query(f"postgresql://{login}{where}/{name}", query), unread)


def extended(url: str, parts: Mapping[str, str]) -> Made:
    """Return a PostgreSQL URL with the parameters of the parts that it does not have. Raises UrlRefusedError."""
    if not url.strip().lower().startswith(SCHEMES):
        return Made(url, [])
    text = {name: value.strip() for name, value in parts.items()}
    try:
        given = dict(parse_qsl(urlsplit(url).query))
    except ValueError:
        return Made(url, [])  # the database option refuses it
    own, unread = _parameters(text, given, by_default="")
    return Made(_with_query(url.strip(), own), unread)


def _with_query(url: str, query: Mapping[str, str]) -> str:
    """Return a URL with parameters behind those that it has."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query, quote_via=quote)}" if query else url


def _parameters(
    text: Mapping[str, str], given: Mapping[str, str], *, by_default: str
) -> tuple[dict[str, str], list[str]]:
    """Return the parameters of the variables that are not `given`, and a text for each part that has no place."""
    found: dict[str, str] = {}
    unread: list[str] = []
    if not {"sslmode", "ssl"} & given.keys():
        mode, unread = _mode(text, by_default)
        found |= {"sslmode": mode} if mode else {}
        found |= {"sslrootcert": text.get(CA, "system")} if mode == VERIFIED else {}
        files = {"sslcert": text.get(CERT), "sslkey": text.get(KEY)} if mode != PLAIN else {}
        found |= {name: path for name, path in files.items() if path}
    schema = text.get(SCHEMA, PUBLIC)
    if not PLAIN_NAME.fullmatch(schema):
        raise UrlRefusedError(SCHEMA, "expected the name of a schema: letters, digits and `_`")
    if schema != PUBLIC:
        found["schema"] = schema
    if APPLICATION in text:
        found["application_name"] = text[APPLICATION]
    return {name: value for name, value in found.items() if name not in given}, unread


def _mode(text: Mapping[str, str], by_default: str) -> tuple[str, list[str]]:
    """Return `sslmode`, and a text for each part of DATABASE_SSL that has no place in a URL. Raises UrlRefusedError."""
    if SSL not in text:
        word = text.get(REJECT, "").lower()
        if word and word not in BOOLEANS:
            raise UrlRefusedError(REJECT, "expected true or false")
        if word:
            return (VERIFIED if BOOLEANS[word] else UNVERIFIED), []
        return (VERIFIED if {CA, CERT, KEY} & text.keys() else by_default), []
    import json  # most starts do not need it

    try:
        wanted = json.loads(text[SSL])
    except (ValueError, RecursionError):
        raise UrlRefusedError(SSL, SSL_EXPECTED) from None
    if wanted is None or isinstance(wanted, bool):
        return (VERIFIED if wanted else PLAIN), []
    if not isinstance(wanted, dict):
        raise UrlRefusedError(SSL, SSL_EXPECTED)
    mode = UNVERIFIED if wanted.get("rejectUnauthorized") is False else VERIFIED
    return mode, [_unread(name) for name in wanted if name != "rejectUnauthorized"][:MOST_HINTS]


def _unread(name: str) -> str:
    """Return what to do about a key of DATABASE_SSL."""
    files = {"ca": CA, "cert": CERT, "key": KEY}
    hint = f"write it into a file and name that in {files[name]}" if name in files else "flagsvc has no equivalent"
    return f"{SSL}: its `{printable(name)}` is not read; {hint}"
