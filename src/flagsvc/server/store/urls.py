"""Normalizes the addresses of links, so that equal targets have equal texts (import validation 6.3, step 6).

Ada, the parser of Node.js, parses an address as browsers do. An address without a scheme gets https. User and password, the default
port, `www.`, doubled and trailing slashes, and campaign parameters (`utm_…`) are removed. The query is sorted. An address with
another scheme, like `mailto:`, does not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote, unquote_to_bytes

from can_ada import URL, parse

from flagsvc.engine.values.text import trim

OURS = ("http:", "https:", "file:")
BEGINNING = re.compile(r"(?:\w+:)?//", re.ASCII)
RELATIVE = re.compile(r"\.*/")
DATA = re.compile(r"data:([^,]*?),([^#]*?)(?:#(.*))?\Z", re.DOTALL)
TEXT_FRAGMENT = re.compile(r"#?:~:text.*", re.IGNORECASE)
CAMPAIGN = re.compile(r"utm_\w+", re.IGNORECASE | re.ASCII)
WWW = re.compile(r"www\.(?!www\.)[a-z\-\d]{1,63}\.[a-z.\-\d]{2,63}\Z", re.ASCII)
INNER = re.compile(r"(\b[a-z][a-z\d+\-.]{1,50}://)", re.ASCII)
OCTETS = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
SPECIAL = re.compile(r"(\$[$&`])")
NOT_DECODED = ";/?:@&=+$,#"
MAX_BARE = 1000
"""The most parameters without an equals sign: the query is searched for each."""
MAX_GROWTH = 1000
"""The most characters by which one of them may lengthen the query: a "$`" in a name repeats all that precedes the name."""


class BadUrl(ValueError):  # noqa: N818  (a verdict on the text)
    """A text is not an address."""


def normalized(address: str) -> str:
    """Return the normalized form of an address. Raises `BadUrl`."""
    text = trim(address)
    if text[:5].lower() == "data:":
        return _data(text)
    if _has_other_scheme(text):
        return text
    if RELATIVE.match(text) and not text.startswith("//"):
        raise BadUrl(address)
    if text.startswith("//"):
        text = f"https:{text[2:]}"
    elif not BEGINNING.match(text):
        text = f"https:{text}"
    url = parsed(text)
    for step in STEPS:
        step(url)
    return url.href if url.hash else url.href.removesuffix("/")


def parsed(text: str) -> URL:
    """Return the parts of an address. Half of a surrogate pair becomes U+FFFD, as in JavaScript. Raises `BadUrl`."""
    try:
        return parse(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except ValueError:
        raise BadUrl(text) from None


def _data(text: str) -> str:
    """Return a normalized `data:` address: its media type in lower case, without default parameters."""
    found = DATA.match(text)
    if found is None:
        raise BadUrl(text)
    media = found[1].split(";")
    base64 = media[-1] == "base64"
    if base64:
        media.pop()
    kind = media.pop(0).lower() if media else ""
    attributes = [each for each in map(_attribute, media) if each]
    attributes += ["base64"] if base64 else []
    if attributes or (kind and kind != "text/plain"):
        attributes.insert(0, kind)
    content = trim(found[2]) if base64 else found[2]
    return f"data:{';'.join(attributes)},{content}" + (f"#{found[3]}" if found[3] else "")


def _attribute(text: str) -> str:
    key, *rest = (trim(each) for each in text.split("="))
    value = rest[0] if rest else ""
    if key == "charset":
        value = value.lower()
        if value == "us-ascii":
            return ""
    return f"{key}={value}" if value else key


def _has_other_scheme(text: str) -> bool:
    """Return whether an address has another scheme than http or https. A text with a dot is a host."""
    try:
        scheme = parsed(text).protocol
    except BadUrl:
        return False
    return "." not in scheme and scheme not in OURS


def decoded(text: str, kept: str = "") -> str:
    """Return a text with its percent escapes decoded, except those in `kept`. Raises `BadUrl` if the bytes are not UTF-8."""
    if re.search("%(?![0-9A-Fa-f]{2})", text):
        raise BadUrl(text)
    return OCTETS.sub(lambda found: _letters(found[0], kept), text)


def _letters(octets: str, kept: str) -> str:
    try:
        text = unquote_to_bytes(octets).decode("utf-8")
    except UnicodeDecodeError:
        raise BadUrl(octets) from None
    if not any(letter in kept for letter in text):
        return text
    written, place = "", 0
    for letter in text:
        size = 3 * len(letter.encode())
        written += octets[place : place + size] if letter in kept else letter
        place += size
    return written


def _drop_user(url: URL) -> None:
    url.username = url.password = ""


def _drop_text_fragment(url: URL) -> None:
    url.hash = TEXT_FRAGMENT.sub("", url.hash)


def _join_slashes(url: URL) -> None:
    """Replace several slashes by one, except after the scheme of an address within the path."""
    pieces = INNER.split(url.pathname)
    url.pathname = "".join(each if place % 2 else re.sub("/{2,}", "/", each) for place, each in enumerate(pieces))


def _decode_path(url: URL) -> None:
    with suppress(BadUrl):
        url.pathname = decoded(url.pathname, NOT_DECODED).replace("\\", "%5C")


def _shorten_host(url: URL) -> None:
    if url.hostname:
        url.hostname = url.hostname.removesuffix(".")
        if WWW.match(url.hostname):
            url.hostname = url.hostname.removeprefix("www.")


def _sort_query(url: URL) -> None:
    """Sort the parameters by name, without campaign parameters. A parameter without an equals sign keeps that form."""
    query = url.search.removeprefix("?")
    pairs = [_pair(each) for each in query.split("&") if each]
    dropped = {name for name, _ in pairs if CAMPAIGN.match(name)}
    left = [pair for pair in pairs if pair[0] not in dropped]
    before = _form(left) if dropped else query
    url.search = _form(sorted(left, key=lambda pair: pair[0].encode("utf-16-be", "surrogatepass")))
    with suppress(BadUrl):
        url.search = decoded(url.search)
    bare = [part for part in before.split("&") if part and "=" not in part]
    if len(bare) > MAX_BARE:
        raise BadUrl(query)
    search = url.search
    for part in bare:
        search = _without_equals(search, decoded(part))
    url.search = search


def _without_equals(search: str, name: str) -> str:
    """Return a query in which one name has no equals sign. A `$` in the name means what it does in JavaScript's `replace`.

    Raises `BadUrl` if the query grows by more than MAX_GROWTH.
    """
    for mark in "?&":
        before, found, after = search.partition(f"{mark}{name}=")
        if found:
            meant = {"$$": "$", "$&": found, "$`": before}
            pieces = [before, mark, *(meant.get(each, each) for each in SPECIAL.split(name)), after]
            if sum(map(len, pieces)) > len(search) + MAX_GROWTH:
                raise BadUrl(name)
            search = "".join(pieces)
    return search


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return _field(name), _field(value)


def _field(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def _form(pairs: list[tuple[str, str]]) -> str:

    def written(text: str) -> str:
        return quote(text.encode("utf-8", "replace"), safe="*-._ ").replace("~", "%7E").replace(" ", "+")

    return "&".join(f"{written(name)}={written(value)}" for name, value in pairs)


def _drop_last_slash(url: URL) -> None:
    url.pathname = url.pathname.removesuffix("/")


STEPS: tuple[Callable[[URL], None], ...] = (
    _drop_user,
    _drop_text_fragment,
    _join_slashes,
    _decode_path,
    _shorten_host,
    _sort_query,
    _drop_last_slash,
)
"""The steps of normalization, in order."""
