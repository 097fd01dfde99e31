"""Takes the variables of a real Unleash server that mean the same here, where nothing of ours gives the option (decision 0065).

It makes one PostgreSQL URL of the variables in which a real server takes its database piece by piece. Pure.

| There | In the URL |
|---|---|
| no variable about TLS, or only DATABASE_SSL_REJECT_UNAUTHORIZED=false | `sslmode=require`: TLS, with any certificate |
| DATABASE_SSL=false | `sslmode=disable` |
| DATABASE_SSL=true or `{}`, or a file of certificates | `sslmode=verify-full`, by DATABASE_SSL_CA_FILE or the system |
| DATABASE_SSL={"rejectUnauthorized": false} | `sslmode=require` |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from flagsvc.settings.edge import Fate
from flagsvc.settings.kinds import BOOLEANS, MOST_HINTS, PORT, RefusedError, is_blank, printable, quoted
from flagsvc.settings.network import bracketed
from flagsvc.settings.normalise import Given
from flagsvc.settings.option import ALIAS, PREFIX
from flagsvc.settings.real_server import BY_VARIABLE, ROWS

DATABASE = "database"
HOST = "DATABASE_HOST"
WHOLE = ("environment DATABASE_URL", "environment DATABASE_URL_FILE")
"""The sources of a whole URL whose name a real server knows too."""
VARIABLE = "environment "


class Adopted(NamedTuple):
    """What is taken from the variables of a real server: values by option name, problems by option name, and warnings."""

    given: dict[str, Given]
    problems: dict[str, str]
    warnings: list[str]


def adopt(environment: Mapping[str, str], given: Mapping[str, Given]) -> Adopted:
    """Return what the environment gives to options that are not `given`, or given as a whole URL that lacks parameters."""
    there = {row.name: environment[row.name] for row in ROWS if not is_blank(environment.get(row.name))}
    found = Adopted({}, {}, [])
    for name, value in there.items():
        option = BY_VARIABLE[name].option
        if option and option not in given:
            found.given[option] = Given(value, VARIABLE + name)
        elif option and given[option].value != value:
            found.warnings.extend(_not_used([name], given[option].source))
    _adopt_database({name: value for name, value in there.items() if name in PARTS}, given.get(DATABASE), found)
    return found


def _adopt_database(parts: Mapping[str, str], entry: Given | None, found: Adopted) -> None:
    """Take the URL of the database from its parts, or add parameters to a whole one."""
    whole = entry is not None and entry.source in WHOLE
    used = [name for name in parts if name in TLS_PARTS] if whole else list(parts)
    rest = [name for name in parts if name not in used]
    if entry is not None and not whole:
        found.warnings.extend(_not_used(used, entry.source))
        return
    if entry is None and HOST not in parts:
        found.warnings.extend([f"{VARIABLE}{', '.join(used)}: no effect without {HOST}"] * bool(used))
        return
    sources = [entry.source.removeprefix(VARIABLE), *used] if entry is not None else used
    source = VARIABLE + ", ".join(sources)
    try:
        made = extended(str(entry.value), parts) if entry is not None else compose(parts)
    except UrlRefusedError as refusal:
        found.given[DATABASE] = Given("", source)  # of a refused value only the source counts
        found.problems[DATABASE] = f"{DATABASE} ({VARIABLE}{refusal.variable}): {refusal}"
        return
    found.warnings.extend(_not_used(rest, entry.source) if entry is not None else ())
    found.warnings.extend(f"{VARIABLE}{text}" for text in made.unread)
    if entry is None or made.url != entry.value:
        found.given[DATABASE] = Given(made.url, source)


def _not_used(names: list[str], source: str) -> Iterator[str]:
    """Yield a warning about variables in whose place another one counts, unless that one is ours."""
    name = source.removeprefix(VARIABLE)
    if names and name != source and not name.startswith((PREFIX, ALIAS)):
        yield f"{VARIABLE}{', '.join(names)}: not used, {name} is given"


def adopted_text(sources: Mapping[str, str]) -> str:
    """Return which options have the values of variables of a real server; the empty text if there are none."""
    taken = {option: source.removeprefix(VARIABLE) for option, source in sources.items() if _is_adopted(source)}
    return ", ".join(f"{option} from {names.replace(', ', ' + ')}" for option, names in taken.items())


def _is_adopted(source: str) -> bool:
    """Return whether a value came from a variable that has a row here and is not one of ours, too."""
    names = source.removeprefix(VARIABLE).split(", ")
    rows = [BY_VARIABLE[name] for name in names if name in BY_VARIABLE]
    return source.startswith(VARIABLE) and any(row.option or row.fate is Fate.COMBINED for row in rows)


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
