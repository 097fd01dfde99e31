"""Addresses as links keep them: one spelling for what leads to the same place (import validation 6.3, step 6).

An address is read as browsers read it (https is added, backslashes are slashes, dots in a path are followed), and loses user and
password, the default port, `www.`, doubled and last slashes, and what only campaigns use (`utm_…`); the query is sorted. An address
of another scheme, like `mailto:`, stays as it is.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from flagsvc.engine.values.text import trim

PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
OURS = ("http", "https", "file")
BLANKS = "".join(map(chr, range(0x21)))
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
BEGINNING = re.compile(r"(?:\w+:)?//", re.ASCII)
RELATIVE = re.compile(r"\.*/")
DATA = re.compile(r"data:([^,]*?),([^#]*?)(?:#(.*))?\Z", re.DOTALL)
TEXT_FRAGMENT = re.compile(r"#?:~:text.*?\Z", re.IGNORECASE)
CAMPAIGN = re.compile(r"utm_\w+", re.IGNORECASE | re.ASCII)
WWW = re.compile(r"www\.(?!www\.)[a-z\-\d]{1,63}\.[a-z.\-\d]{2,63}\Z", re.ASCII)
INNER = re.compile(r"(\b[a-z][a-z\d+\-.]{1,50}://)", re.ASCII)
OCTETS = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
FORBIDDEN = re.compile(r"[\x00-\x20\"#%/:<>?@\[\\\]^`{|}\x7f]")
NUMBER = re.compile(r"0[xX][0-9A-Fa-f]*|[0-9]+")
KEPT = "!$&'()*+,-./:;=@_~%|[]^\\"
KEPT_IN_QUERY = KEPT.replace("'", "") + "?`{}"
KEPT_IN_FRAGMENT = KEPT + "?#{}"
NOT_DECODED = ";/?:@&=+$,#"


class BadUrl(ValueError):  # noqa: N818  (a verdict on the text)
    """No address."""


@dataclass
class Url:
    """The parts of an address. `query` and `fragment` come without their marks; empty where there are none."""

    scheme: str
    host: str
    port: str
    path: str
    query: str
    fragment: str

    def text(self) -> str:
        """Return the address."""
        port = f":{self.port}" if self.port else ""
        query = f"?{self.query}" if self.query else ""
        fragment = f"#{self.fragment}" if self.fragment else ""
        return f"{self.scheme}://{self.host}{port}{self.path}{query}{fragment}"


def normalized(address: str) -> str:
    """Return an address in the one spelling that is kept. Raises `BadUrl`."""
    text = trim(address)
    if text[:5].lower() == "data:":
        return _data(text)
    if _is_foreign(text):
        return text
    if RELATIVE.match(text) and not text.startswith("//"):
        raise BadUrl(address)
    if text.startswith("//"):
        text = f"https:{text[2:]}"
    elif not BEGINNING.match(text):
        text = f"https:{text}"
    url = parse(text)
    for step in STEPS:
        step(url)
    found = url.text()
    return found.removesuffix("/") if not url.fragment else found


def _data(text: str) -> str:
    """Return a `data:` address: its media type in lower case, nothing that goes without saying."""
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


def _is_foreign(text: str) -> bool:
    """Return whether an address has a scheme that is none of ours; a dot in it makes it a host."""
    found = SCHEME.match(text.strip(BLANKS))
    if found is None or "." in found[1]:
        return False
    scheme = found[1].lower()
    if scheme in OURS:
        return False
    try:
        return scheme not in PORTS or bool(parse(text))
    except BadUrl:
        return False


def parse(text: str) -> Url:
    """Return the parts of an address with a host. Raises `BadUrl`."""
    clean = re.sub("[\t\n\r]", "", text.strip(BLANKS))
    found = SCHEME.match(clean)
    if found is None:
        raise BadUrl(text)
    scheme = found[1].lower()
    rest, _, fragment = clean[found.end() :].partition("#")
    rest, _, query = rest.partition("?")
    rest = rest.replace("\\", "/")
    if scheme == "file":
        authority, path = _file_parts(rest)
    elif scheme in PORTS:
        authority, mark, path = rest.lstrip("/").partition("/")
        path = mark + path
    else:
        raise BadUrl(text)
    host, port = _authority(authority, scheme)
    url = Url(scheme, host, port, "", escaped(query, KEPT_IN_QUERY), escaped(fragment, KEPT_IN_FRAGMENT))
    set_path(url, path)
    return url


def _file_parts(rest: str) -> tuple[str, str]:
    """Return host and path of a `file:` address."""
    if not rest.startswith("//"):
        return "", rest
    authority, mark, path = rest[2:].partition("/")
    return authority, mark + path


def _authority(authority: str, scheme: str) -> tuple[str, str]:
    """Return host and port, without user and password; the default port is none."""
    place = authority.rpartition("@")[2]
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::([0-9]*))?", place)
    if found is None or (not found[1] and scheme != "file") or (scheme == "file" and found[2]):
        raise BadUrl(authority)
    port = found[2].lstrip("0") or "0" if found[2] else ""
    if port and int(port[:6]) > 0xFFFF:
        raise BadUrl(authority)
    host = parse_host(found[1]) if found[1] else ""
    return ("" if scheme == "file" and host == "localhost" else host), ("" if port == PORTS.get(scheme) else port)


def parse_host(text: str) -> str:
    """Return a host as it is written: lower case, punycode, addresses in their shortest form. Raises `BadUrl`."""
    if text.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(text[1:-1]).compressed}]"
        except ValueError:
            raise BadUrl(text) from None
    name = unquote_to_bytes(text).decode("utf-8", "replace")
    try:
        host = name.lower() if name.isascii() else name.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise BadUrl(text) from None
    if not host or FORBIDDEN.search(host):
        raise BadUrl(text)
    return _numeric(host)


def _numeric(host: str) -> str:
    """Return a host as an IPv4 address where its last label is a number."""
    parts = host.removesuffix(".").split(".")
    if not NUMBER.fullmatch(parts[-1]):
        return host
    try:
        numbers = [_number(each) for each in parts]
    except ValueError:
        raise BadUrl(host) from None
    if len(numbers) > 4 or any(each > 255 for each in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        raise BadUrl(host)
    start = sum(each << 8 * (3 - place) for place, each in enumerate(numbers[:-1]))
    return str(ipaddress.IPv4Address(start + numbers[-1]))


def _number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text[2:] or "0", 16)
    return int(text, 8 if len(text) > 1 and text.startswith("0") else 10)


def escaped(text: str, kept: str) -> str:
    """Return a text with what an address cannot hold in octets."""
    return quote(text.encode("utf-8", "replace"), safe=kept)


def set_path(url: Url, path: str) -> None:
    """Give an address a path: dots are followed, and it begins with a slash."""
    written: list[str] = []
    segments = path.replace("\\", "/").removeprefix("/").split("/")
    for place, segment in enumerate(segments):
        plain = segment.lower().replace("%2e", ".")
        if plain == "..":
            written = written[:-1]
        if plain in (".", ".."):
            written += [""] if place == len(segments) - 1 else []
        else:
            written.append(escaped(segment, KEPT))
    url.path = "/" + "/".join(written)


def _drop_text_fragment(url: Url) -> None:
    if url.fragment:
        url.fragment = TEXT_FRAGMENT.sub("", f"#{url.fragment}").removeprefix("#")


def _join_slashes(url: Url) -> None:
    """Make one slash of several, but behind the scheme of an address within the path."""
    pieces = INNER.split(url.path)
    set_path(url, "".join(each if place % 2 else re.sub("/{2,}", "/", each) for place, each in enumerate(pieces)))


def _decode_path(url: Url) -> None:
    try:
        set_path(url, decoded(url.path, NOT_DECODED).replace("\\", "%5C"))
    except BadUrl:
        return


def decoded(text: str, kept: str = "") -> str:
    """Return a text with its octets as letters, but those in `kept`. Raises `BadUrl` where they are no UTF-8."""
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


def _shorten_host(url: Url) -> None:
    host = url.host.removesuffix(".")
    url.host = host.removeprefix("www.") if WWW.match(host) else host


def _sort_query(url: Url) -> None:
    """Sort the parameters by name, without those of campaigns; one without an equals sign stays so."""
    pairs = [_pair(each) for each in url.query.split("&") if each]
    dropped = {name for name, _ in pairs if CAMPAIGN.match(name)}
    left = [pair for pair in pairs if pair[0] not in dropped]
    before = _form(left) if dropped else url.query
    query = _form(sorted(left, key=lambda pair: pair[0].encode("utf-16-be", "surrogatepass")))
    with suppress(BadUrl):
        query = escaped(decoded(query), KEPT_IN_QUERY)
    for part in before.split("&"):
        if part and "=" not in part:
            query = _without_equals(query, decoded(part))
    url.query = query


def _without_equals(query: str, name: str) -> str:
    text = f"?{query}".replace(f"?{name}=", f"?{name}", 1).replace(f"&{name}=", f"&{name}", 1)
    return escaped(text[1:], KEPT_IN_QUERY)


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return _field(name), _field(value)


def _field(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def _form(pairs: list[tuple[str, str]]) -> str:
    def written(text: str) -> str:
        return quote(text.encode("utf-8", "replace"), safe="*-._ ").replace("~", "%7E").replace(" ", "+")

    return "&".join(f"{written(name)}={written(value)}" for name, value in pairs)


def _drop_last_slash(url: Url) -> None:
    set_path(url, url.path.removesuffix("/"))


STEPS: tuple[Callable[[Url], None], ...] = (
    _drop_text_fragment,
    _join_slashes,
    _decode_path,
    _shorten_host,
    _sort_query,
    _drop_last_slash,
)
"""What makes the one spelling of an address, in this order."""
