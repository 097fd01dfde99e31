"""Every kind of option value: which values it accepts, refuses and shows.

The options that limit callers have safe defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flagsvc.settings import headers
from flagsvc.settings import kinds as of
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.roles import GROUP_ROLES
from flagsvc.settings.storage import NAME_PREFIX, parse_storage
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

FILES = of.extension_files("strategies", "docs/how-to/custom-strategies.md")
INTEGER, INTEGER_OR_NONE = of.integer(0, 100).parse, of.integer(5, 9, or_none=True).parse
SIZE_OR_NONE = of.SIZE_OR_NONE.parse
TAKEN: dict[Callable[[Any], object], list[tuple[object, object]]] = {
    # words in any letter case (behaviour: Odd values)
    of.parse_boolean: [
        *((value, True) for value in ("true", "TRUE", "1", "t", "T", "yes", "Yes", "on", " on ", True)),
        *((value, False) for value in ("false", "False", "0", "f", "no", "NO", "off", " off", False)),
    ],
    INTEGER: [("0", 0), (" 7 ", 7), ("+7", 7), ("007", 7), (7, 7), ("100", 100), ("7\x1f", 7)],
    # 0 means none, although it is below the minimum
    INTEGER_OR_NONE: [("0", 0), (0, 0), ("5", 5), (9, 9)],
    # without a unit, or with b, kB or MB
    of.parse_size: [*(("65536", 65536), ("64kB", 65536), ("64 KB", 65536), ("1MB", 1048576), ("5b", 5), (1, 1)), ("1 mb", 1048576)],
    SIZE_OR_NONE: [(0, 0), ("0", 0), ("0 kB", 0), ("2kB", 2048)],
    # white space around a value comes from shells and files
    of.parse_text: [(" a b\r\n", "a b")],
    of.parse_header_value: [("*:dev.abc", "*:dev.abc")],
    # any letter case, and common other names
    of.LOG_LEVEL.parse: [*(("warn", "warn"), ("WARN", "warn"), ("warning", "warn"), ("critical", "fatal"), (" debug ", "debug"))],
    # two encodings (behaviour: Hash)
    of.HASH_ENCODING.parse: [("utf8", "utf8"), ("UTF-8", "utf8"), ("low-byte", "low-byte")],
    # a text is split at commas and line ends, the items of a list are not
    of.TEXTS.parse: [
        ("a,b", ("a", "b")),
        ("a , b,,", ("a", "b")),
        ("a\nb\r\n", ("a", "b")),
        (["a", " b ", ""], ("a", "b")),
        (("a", "b"), ("a", "b")),
        ([], ()),
        (",", ()),
        ("a,a,b", ("a", "b")),
        (["a,b"], ("a,b",)),
        ({"a"}, ("a",)),
    ],
    # split at the first colon (behaviour: Names of variables)
    of.parse_tags: [
        ("a:b", (("a", "b"),)),
        ("a:b:c", (("a", "b:c"),)),
        ("a:b, c : d", (("a", "b"), ("c", "d"))),
        (["a:b", ("c", "d")], (("a", "b"), ("c", "d"))),
        ({"a": "b"}, (("a", "b"),)),
        ([["a", "b"]], (("a", "b"),)),
        ((("a", "b"),), (("a", "b"),)),
        ([], ()),
    ],
    # a text with commas, a path, or a list
    FILES.parse: [
        ("a.py", ("a.py",)),
        ("a.py, dir/b.py", ("a.py", "dir/b.py")),
        (Path("a.py"), ("a.py",)),
        ([Path("a.py"), "b.py", ""], ("a.py", "b.py")),
        ([], ()),
    ],
    # a folder, a server or none; in code it may be a path
    parse_storage: [
        *((same, same) for same in ("none", "file:///var/lib/flags", "redis://h", "unix:///run/redis.sock?db=3")),
        ("NONE", "none"),
        (Path("/var/lib/my flags"), "file:///var/lib/my%20flags"),
        (Path("/a%20b"), "file:///a%2520b"),
        ("/var/lib/my flags", "file:///var/lib/my%20flags"),
        ("/a%20b", "file:///a%2520b"),
        ("/var/lib/flags/", "file:///var/lib/flags"),
        ("Redis://h:1/2", "redis://h:1/2"),
        ("valkey://u:p@h", "redis://u:p@h"),
        ("valkeys://h", "rediss://h"),
    ],
    NAME_PREFIX.parse: [(text, text) for text in ("flagsvc", "a", "eu:flags/{1}._-", "x" * 100)],
    # names of headers become lower case, methods upper case
    headers.parse_header_name: [("X-Client-Key", "x-client-key")],
    headers.ANSWER_HEADER.parse: [("Age", "age")],
    headers.METHODS.parse: [("get, Post", ("GET", "POST"))],
    headers.HEADER_NAMES.parse: [("*", ("*",))],
    headers.UPSTREAM_HEADERS.parse: [
        ("X-One: 1, X-Two: a:b", (("x-one", "1"), ("x-two", "a:b"))),
        ("X-One: 1, 2\nX-Two: 3\n", (("x-one", "1, 2"), ("x-two", "3"))),
        ({"X-One": "1"}, (("x-one", "1"),)),
        (["X-One: 1", ("X-Two", "2")], (("x-one", "1"), ("x-two", "2"))),
        ((), ()),
    ],
    # a pair is split at its last equals sign, so that a group may be a distinguished name
    GROUP_ROLES.parse: [
        ("a=admin", (("a", "admin"),)),
        ("cn=devs=editor\nb=member:shop", (("cn=devs", "editor"), ("b", "member:shop"))),
        ({"a,b": "viewer", "c": ["owner:shop", "member:x"]}, (("a,b", "viewer"), ("c", "owner:shop"), ("c", "member:x"))),
        (' {"a,b=c": "viewer", "{x": ["admin", "member:x"]} ', (("a,b=c", "viewer"), ("{x", "admin"), ("{x", "member:x"))),
        ("{}", ()),
        ([("a", "admin"), ["b", "viewer"], "a=admin"], (("a", "admin"), ("b", "viewer"))),
        ([], ()),
    ],
}
REFUSED: dict[Callable[[Any], object], tuple[object, ...]] = {
    # `JSON_LOGGER=flase` must not become true
    of.parse_boolean: ("", "ja", "2", "truee", 1, 0, None, [True], 1.0),
    INTEGER: (*("-1", "101", -1, 101, "5000ms", "5_0", "0x10", "1.0", 1.0, True, "", "٣", "9" * 5000, None), [1]),
    INTEGER_OR_NONE: ("4", "10", -1, "x", None),
    of.parse_size: ("0", 0, -1, "1m", "1GB", "-5", "", True, 2**31, "3000MB", None),
    SIZE_OR_NONE: (-1, "1GB", True, 2**31, None),
    # control characters, what is not UTF-8, and values that are no text
    of.parse_text: ("a\nb", "a\x00", "\x7f", "\ud800", 5, None, b"a"),
    of.TEXTS.parse: (5, None, {"a": "b"}, b"a", [5], ["a", None], True),
    of.parse_tags: ("a", ":b", "a:", "a:b,c", [5], [("a", "b", "c")], [("a", 5)], 5),
    FILES.parse: (5, [5], [True], [{"a": 1}], [["a.py"]], {"a": "b"}, "a\x00.py", object()),
    parse_storage: (
        *("cache", "nonee", "h:6379/0", "user@h/0", "s3://bucket", "file:", 5, "", Path("\x00"), "redis://", "redis:h"),
        *("redis://:6379", "redis://h:port", "redis://h:70000", "redis://[::1", "redis://a b/0", "redis://h/first"),
        *("redis://h/1/2", "redis://h/9999999999", "redis://h?db=1", "redis://:pass#word@h", "redis://h/0#1"),
        *("unix://run/redis.sock", "unix:///", "unix:redis.sock", "unix:///run/redis.sock?db=x"),
        *("unix:///run/redis.sock?password=x", "unix:///run/redis.sock?db=1&db=2"),
    ),
    # what needs quoting in an access rule of the server
    NAME_PREFIX.parse: ("", "a b", "ä", "x" * 101, "a\nb", 5, "a*"),
    headers.parse_header_name: ("", "a b", "a:b", "ä", 5, "a,b"),
    # what answers already have, and invalid names
    headers.ANSWER_HEADER.parse: (
        *("ETag", "content-length", "Set-Cookie", "Access-Control-Allow-Origin", "a b", "a\r\nb", ""),
        *("Content-Security-Policy", "Link", "Expires", "X-Content-Type-Options"),
    ),
    # no name, no value, a name that comes twice or that the proxy itself sends, and what no header can carry
    headers.UPSTREAM_HEADERS.parse: (
        *("X-One", "X One: 1", "Host: x", "Unleash-AppName: x", "Content-Length: 1", "X-One: 1, x-one: 2"),
        *("X-One: \u20ac", 7, [7], [("a",)], ": x"),
    ),
    GROUP_ROLES.parse: (
        *("a", "=admin", "a=", "a=boss", "a=owner", "a=owner:", "a=admin:x", [5], [("a",)], 5, {"a": 5}),
        "a = admin, cn=b,a=admin",
    ),
}
SHOWN: dict[Callable[[Any], object], list[tuple[object, object]]] = {
    # in the largest exact unit
    of.show_size: [(1048576, "1 MB"), (1024, "1 kB"), (1536, "1536"), (102400, "100 kB"), (0, "0")],
    of.show_tags: [((("a", "b:c"), ("d", "e")), "a:b:c, d:e")],
    GROUP_ROLES.show: [((("a", "admin"), ("b", "member:shop")), "a=admin, b=member:shop")],
    # a missing value is a dash; zero and false are values
    of.as_text: [
        *((None, "-"), ("", "-"), ((), "-"), (True, "true"), (False, "false"), (0, "0"), (("a", "b"), "a, b")),
        ("x", "x"),
    ],
    # a mask shows the number of values, but no value
    of.mask: [(None, None), ("", ""), ("x", "***"), (("a", "b"), ("***", "***")), ((), ())],
    # None and white space are blank, zero and an empty list are not
    of.is_blank: [(None, True), ("", True), (" \n", True), ("0", False), (0, False), ([], False)],
}


@pytest.mark.parametrize(("parse", "given", "kept"), [(parse, *row) for parse in TAKEN for row in TAKEN[parse]])
def test_what_is_taken(parse: Callable[[Any], object], given: object, kept: object) -> None:
    """Each parser reads these values, and reads its own results unchanged."""
    assert parse(given) == kept == parse(kept)
    assert type(parse(given)) is type(kept)


@pytest.mark.parametrize(("parse", "given"), [(parse, value) for parse, values in REFUSED.items() for value in values])
def test_what_is_refused(parse: Callable[[Any], object], given: object) -> None:
    """Each parser refuses these values."""
    with pytest.raises(RefusedError):
        parse(given)


@pytest.mark.parametrize(("show", "value", "text"), [(show, *row) for show in SHOWN for row in SHOWN[show]])
def test_what_is_shown(show: Callable[[Any], object], value: object, text: object) -> None:
    """A value is shown as it is written."""
    assert show(value) == text


HINTS: dict[Callable[[Any], object], list[tuple[object, str]]] = {
    # a table was meant for one of several environments: the first of its tables with a plain name is in the hint
    of.ENVIRONMENT.parse: [
        ({"a": {}, "b": {}}, r"^did you mean `\[environments\.a\]`\?$"),
        ({"a": "x", "b": {}}, r"^did you mean `\[environments\.b\]`\?$"),
        ({1: {}}, r"^did you mean `\[environments\.1\]`\?$"),
        ({}, r"^did you mean `\[environments\.NAME\]`\?$"),
        ({"a": "x"}, r"^did you mean `\[environments\.NAME\]`\?$"),
        ({"\n": {}, "a.b": {}}, r"^did you mean `\[environments\.NAME\]`\?$"),
    ],
    of.parse_header_value: [("tökén", "header")],
    # the nearest word, if one is similar
    of.LOG_LEVEL.parse: [("eror", "did you mean `error`"), ("xyz", "^$")],
    # the page that tells how to port it (behaviour: Odd values)
    FILES.parse: [
        (f"good.py,{name}", r"ported to Python, as a list `strategies`: see docs/how-to/custom")
        for name in ("a.js", "a.MJS", "dir/a.cjs", "a.ts")
    ],
    of.parse_logger: [("debug", "`debug`")],
    # the form that takes any group, and the place in JSON; a text with commas is several pairs
    GROUP_ROLES.parse: [
        ("a = admin, cn=b,a=admin", "a role is admin, editor, viewer, owner:PROJECT or member:PROJECT"),
        ("CN=Flag Admins,OU=Groups,DC=corp=admin", "a group with a comma needs JSON"),
        ("Flag Admins,devs=editor", "a group with a comma needs JSON"),
        ('{"a": "admin"', r"it begins with `\{` and is not JSON: .*at line 1, column"),
        ('{"a": "admin", "a": "viewer"}', "a group comes twice: give it a list of roles"),
        ('{"a": "boss"}', "a role is admin, editor"),
    ],
}


@pytest.mark.parametrize(("parse", "given", "hint"), [(parse, *row) for parse in HINTS for row in HINTS[parse]])
def test_what_is_said_of_what_is_refused(parse: Callable[[Any], object], given: object, hint: str) -> None:
    """The message says what was probably meant, or what to do."""
    with pytest.raises(RefusedError, match=hint):
        parse(given)


@pytest.mark.parametrize("group", ["CN=Flag Admins,OU=Groups,DC=corp", "{x", 'a"b\\,', "\u00fc,"])
def test_a_group_with_a_comma_is_shown_as_json(group: str) -> None:
    """The text gives the same pairs again."""
    pairs = ((group, "admin"), ("b", "viewer"), (group, "member:shop"))
    assert set(GROUP_ROLES.parse(GROUP_ROLES.show(pairs))) == set(pairs)


def test_objects_in_code() -> None:
    """Objects are kept unchanged and shown by their type. `warn` may replace `warning`. A provider given as text is refused."""
    strategy = object()
    assert FILES.parse([strategy, "a.py"]) == (strategy, "a.py")
    assert of.name_types((strategy, "a.py")) == ("(object)", "a.py") and of.name_type(None) is None
    logger = SimpleNamespace(**dict.fromkeys(("debug", "info", "warn", "error"), id))
    assert of.parse_logger(logger) is logger
    assert of.parse_object(FILES) is FILES
    with pytest.raises(RefusedError):
        of.parse_object("redis://")


def test_what_is_quoted_is_one_printable_line() -> None:
    """A quoted value is escaped and shortened to one printable line."""
    assert of.quoted("a\x1b[31m\nb\ud800") == "`a\\x1b[31m\\nb\\ud800`"
    shown = of.quoted("x" * 5000)
    assert shown is not None and len(shown) == 82 and shown.endswith("...`")
    assert of.unquoted("secret") is None


def test_nearest() -> None:
    """The suggestion is the nearest name of a list, or the value of the nearest key of a mapping."""
    assert of.nearest("PROT", ["PORT", "HOST"]) == "did you mean `PORT`?"
    assert of.nearest("prot", {"port": "the port"}) == "did you mean `the port`?"
    assert of.nearest("unlike", ["PORT"]) == ""


WITHOUT = {"rateLimitKey", "rateLimitAddress"}
"""The limits without a default: only an operator can know the rate of one caller."""


def test_callers_are_bounded_by_default() -> None:
    """Every option of SECURITY.md's table has a default limit, except the rates."""
    unbounded = {row.name for row in (*OPTIONS, *SERVER_OPTIONS) if row.stops and not (row.default or row.default_text)}
    assert unbounded == WITHOUT


# ---- JSON in a variable: the place of an error, and keys that come twice


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": {"clientKeys": "s3cret"}', "expecting ',' delimiter (at line 1, column 31)"),
        ('{\n "a": s3cret}', "expecting value (at line 2, column 7)"),
        ('{"a": "s3cret\n"}', "invalid control character (at line 1, column 14)"),
        ('{"a": "s3cret', "unterminated string (at line 1, column 7)"),
        ('{"a": "\\s3cret"}', "invalid \\escape (at line 1, column 8)"),
        ('{"a": 1} s3cret', "extra data (at line 1, column 10)"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "a number is too long"),
    ],
)
def test_what_is_no_json(text: str, problem: str) -> None:
    """The error has the reason and the place, and nothing of the text."""
    with pytest.raises(ValueError, match=r".") as raised:
        of.read_json(text)
    assert str(raised.value) == problem and raised.value.__cause__ is None


@pytest.mark.parametrize(
    "text", ['{"a": {"clientKeys": ["s3cret"],}}', '{"a": {"clientKeys": ["s3cret",]}}', '{"a": {\n"b": "s3cret"\n,}\n}']
)
def test_a_trailing_comma(text: str) -> None:
    """The place is told: that of the comma or, before Python 3.13, of what comes behind it."""
    comma = re.search(r",(?=[}\]])", text)
    with pytest.raises(ValueError, match=r".") as raised:
        of.read_json(text)
    line, column = map(int, re.findall(r"line (\d+), column (\d+)\)$", str(raised.value))[0])
    assert comma is not None and "s3cret" not in str(raised.value)
    before = text[: comma.start()]
    first = before.count("\n") + 1, comma.start() - before.rfind("\n")
    assert (line, column) in (first, (first[0], first[1] + 1))


def test_keys_that_come_twice() -> None:
    """Keys that come twice are found in every object, each once, with the keys that lead there. The same key in two objects is
    none. What can be read can be searched, at any depth."""
    text = '{"a": {"k": 1, "l": {"m": 1, "m": 2}, "k": 3, "k": 4}, "b": [{"k": 1}, {"k": 1, "k": 2}], "a2": 1, "a2": 2}'
    assert list(of.repeated_keys(of.read_json(text))) == [((), "a2"), (("a",), "k"), (("a", "l"), "m"), (("b",), "k")]
    assert list(of.repeated_keys(of.read_json('{"a": {"k": 1}, "b": {"k": 1}}'))) == []
    assert list(of.repeated_keys([{"a": 1}, 5, None])) == []
    depth = 900
    deep = of.read_json('{"a":' * depth + '{"k": 1, "k": 2}' + "}" * depth)
    [(path, key)] = of.repeated_keys(deep)
    assert (len(path), key) == (depth, "k")
