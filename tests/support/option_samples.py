"""For every option that text can give a good value and a wrong one, read off its row: a new option needs no line here.

Only a new kind of value needs one, in BY_KIND.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from flagsvc.settings import headers, roles, tokens
from flagsvc.settings import kinds as of
from flagsvc.settings import network as net
from flagsvc.settings.option import Option
from flagsvc.settings.rows import server
from flagsvc.settings.storage import NAME_PREFIX, STORAGE
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

Sample = tuple[str, object]
"""A text that is not the default, and the normalised value that it stands for."""

BAD, SECRET = "not \x01 text", "very-secret\x01"
"""Texts that no kind takes, for an option and for a secret."""

BY_KIND: Mapping[of.Kind, Sample] = {
    of.TEXT: ("some text", "some text"),
    of.ENVIRONMENT: ("some text", "some text"),
    of.TEXTS: ("localhost,.example.com", ("localhost", ".example.com")),
    of.PATH: ("/etc/flagsvc/some.pem", "/etc/flagsvc/some.pem"),
    of.SECRET: ("sample-token", "sample-token"),
    tokens.ADMIN_TOKENS: ("*:*.sample-1, *:*.sample-2", ("*:*.sample-1", "*:*.sample-2")),
    tokens.CLIENT_TOKENS: ("default:development.sample", ("default:development.sample",)),
    of.SECRETS: ("sample-key-1, sample-key-2", ("sample-key-1", "sample-key-2")),
    of.PASSWORD: ("sample-password", "sample-password"),
    of.SIZE: ("3 MB", 3 * 1024 * 1024),
    of.SIZE_OR_NONE: ("3MB", 3 * 1024 * 1024),
    of.TAGS: ("team:web, url:http://x", (("team", "web"), ("url", "http://x"))),
    net.URL: ("https://cdn.example.com/flags.json/", "https://cdn.example.com/flags.json"),
    net.BASE_URL: (" https://flags.example.com/api/ ", "https://flags.example.com/api"),
    net.OUTBOUND_PROXY: ("proxy.example.com:3128", "http://proxy.example.com:3128"),
    net.HOST: ("[::1]", "::1"),
    net.ADDRESS: ("[::1]:9090", "[::1]:9090"),
    net.FILE_MODE: ("600", "0600"),
    net.BASE_PATH: ("base/path/", "/base/path"),
    headers.KEY_HEADER: ("X-Client-Key", "x-client-key"),
    headers.ANSWER_HEADER: ("X-Config-Age", "x-config-age"),
    headers.UPSTREAM_HEADERS: ("X-Gateway: a b, X-Key: c:d", (("x-gateway", "a b"), ("x-key", "c:d"))),
    headers.UPSTREAM_NAME: ("X-Upstream-Key", "x-upstream-key"),
    headers.HEADER_NAMES: ("X-One,X-Two", ("X-One", "X-Two")),
    headers.METHODS: ("get,POST,options", ("GET", "POST", "OPTIONS")),
    net.TRUST: ("127.0.0.1, 192.168.1.1/24", ("127.0.0.1", "192.168.1.0/24")),
    net.ORIGINS: ("https://A.example.com, https://*.example.org", ("https://a.example.com", "https://*.example.org")),
    STORAGE: ("valkey://Flags.example.com/2", "redis://Flags.example.com/2"),
    NAME_PREFIX: ("flags:eu", "flags:eu"),
    net.WEB_URL: ("https://flags.example.com/base/", "https://flags.example.com/base"),
    net.ISSUER: ("https://id.example.com/", "https://id.example.com"),
    net.NETWORKS: ("10.1.2.3/24, LOOPBACK", ("10.1.2.0/24", "loopback")),
    net.REACH: ("10.1.2.3/24, ! METADATA", ("10.1.2.0/24", "!metadata")),
    headers.USER_HEADER: ("X-Forwarded-User", "x-forwarded-user"),
    roles.GROUP_ROLES: ("a=admin, b=member:shop", (("a", "admin"), ("b", "member:shop"))),
    server.DATABASE: ("postgresql://me:word@db/flags", "postgresql://me:word@db/flags"),
}
"""The sample of each kind of value but numbers, words and files: those follow from the row."""


def sample(option: Option) -> Sample:
    """Return a good value of an option that is not its default."""
    if isinstance(option.default, bool):
        return ("off", False) if option.default else ("Yes", True)
    if option.kind in BY_KIND:
        return BY_KIND[option.kind]
    if isinstance(option.default, int):
        return str(option.default + 1), option.default + 1
    if told := bounds(option):
        return str(told[0] + 1), told[0] + 1
    if option.kind.metavar == "FILES":
        return "a.py,b.py", ("a.py", "b.py")
    if option.kind.expects.startswith("some of "):
        words = cast("tuple[str, ...]", option.default)
        return words[-1].upper(), words[-1:]
    word = next(word for word in option.kind.words if word != option.default)
    return word.upper(), word


def wrong(option: Option) -> str:
    """Return a text that an option refuses: a number below the range that its kind tells, a word that is none, or no text."""
    if option.secret:
        return SECRET
    if told := bounds(option):
        return str(told[0] - 1)
    return "no-such-word" if option.kind.words else BAD


def bounds(option: Option) -> tuple[int, int] | None:
    """Return the smallest and the largest number of an option's kind; None if it has no range."""
    found = re.search(r"from (-?\d+) to (\d+)$", option.kind.expects)
    return (int(found[1]), int(found[2])) if found else None


SAMPLES = {option.name: sample(option) for option in OPTIONS if not option.in_code_only}
"""The samples of the proxy's options by name."""

GROUPS_HEADER = {"userGroupsHeader": ("X-Forwarded-Groups", "x-forwarded-groups")}
"""The sample of an option that may not have the value of `userHeader`, which has the same kind."""
SERVER_SAMPLES = {option.name: sample(option) for option in SERVER_OPTIONS} | GROUPS_HEADER
"""The samples of the flag server's options by name."""
