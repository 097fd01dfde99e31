"""Every kind of option value: which values it accepts, refuses and shows.

The options that limit callers have safe defaults.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc.settings import kinds as of
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

TRUE = ["true", "TRUE", "1", "t", "T", "yes", "Yes", "on", " on ", True]
FALSE = ["false", "False", "0", "f", "no", "NO", "off", " off", False]


@pytest.mark.parametrize(
    ("value", "expected"), [*((value, True) for value in TRUE), *((value, False) for value in FALSE)]
)
def test_booleans(value: object, expected: bool) -> None:
    """Each of these words is a boolean, in any letter case (behaviour: Odd values)."""
    assert of.parse_boolean(value) is expected


@pytest.mark.parametrize("value", ["", "ja", "2", "truee", 1, 0, None, [True], 1.0])
def test_no_booleans(value: object) -> None:
    """Anything else is refused: `JSON_LOGGER=flase` must not become true."""
    with pytest.raises(RefusedError):
        of.parse_boolean(value)


@pytest.mark.parametrize(
    ("value", "table"),
    [
        ({"a": {}, "b": {}}, "a"),
        ({"a": "x", "b": {}}, "b"),
        ({1: {}}, "1"),
        ({}, "NAME"),
        ({"a": "x"}, "NAME"),
        ({"\n": {}, "a.b": {}}, "NAME"),
    ],
)
def test_a_table_in_place_of_an_environment(value: object, table: str) -> None:
    """It was meant for one of several environments: the first of its tables with a plain name is in the hint."""
    with pytest.raises(RefusedError, match=rf"^did you mean `\[environments\.{table}\]`\?$"):
        of.ENVIRONMENT.parse(value)


@pytest.mark.parametrize(
    ("value", "expected"), [("0", 0), (" 7 ", 7), ("+7", 7), ("007", 7), (7, 7), ("100", 100), ("7\x1f", 7)]
)
def test_integers(value: object, expected: int) -> None:
    """An integer is read from digits or given as one."""
    assert of.integer(0, 100).parse(value) == expected


@pytest.mark.parametrize(("value", "expected"), [("0", 0), (0, 0), ("5", 5), (9, 9)])
def test_integers_or_none(value: object, expected: int) -> None:
    """0 means none, although it is below the minimum."""
    assert of.integer(5, 9, or_none=True).parse(value) == expected


@pytest.mark.parametrize("value", ["4", "10", -1, "x", None])
def test_neither_integers_nor_none(value: object) -> None:
    """Values outside the bounds, other than 0, are refused."""
    with pytest.raises(RefusedError):
        of.integer(5, 9, or_none=True).parse(value)


@pytest.mark.parametrize(
    "value", ["-1", "101", -1, 101, "5000ms", "5_0", "0x10", "1.0", 1.0, True, "", "٣", "9" * 5000, None, [1]]
)
def test_no_integers(value: object) -> None:
    """A number out of range, or a text that is not only digits, is refused."""
    with pytest.raises(RefusedError):
        of.integer(0, 100).parse(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("65536", 65536),
        ("64kB", 65536),
        ("64 KB", 65536),
        ("1MB", 1048576),
        ("1m", None),
        ("5b", 5),
        (1, 1),
        ("1 mb", 1048576),
    ],
)
def test_sizes(value: object, expected: int | None) -> None:
    """A size has no unit, b, kB or MB. `m` is refused."""
    if expected is None:
        with pytest.raises(RefusedError):
            of.parse_size(value)
    else:
        assert of.parse_size(value) == expected


@pytest.mark.parametrize("value", ["0", 0, -1, "1GB", "-5", "", True, 2**31, "3000MB", None])
def test_no_sizes(value: object) -> None:
    """Zero, negative and huge sizes and unknown units are refused."""
    with pytest.raises(RefusedError):
        of.parse_size(value)


def test_a_size_or_none() -> None:
    """With `least=0`, 0 is accepted."""
    assert [of.parse_size(value, least=0) for value in (0, "0", "0 kB", "2kB")] == [0, 0, 0, 2048]
    for value in (-1, "1GB", True, 2**31, None):
        with pytest.raises(RefusedError):
            of.parse_size(value, least=0)


@pytest.mark.parametrize(
    ("size", "text"), [(1048576, "1 MB"), (1024, "1 kB"), (1536, "1536"), (102400, "100 kB"), (0, "0")]
)
def test_sizes_are_shown_in_the_largest_unit(size: int, text: str) -> None:
    """A size is shown in the largest exact unit."""
    assert of.show_size(size) == text


@pytest.mark.parametrize("value", ["a\nb", "a\x00", "\x7f", "\ud800", 5, None, b"a"])
def test_no_texts(value: object) -> None:
    """Control characters, invalid UTF-8 and values that are no text are refused."""
    with pytest.raises(RefusedError):
        of.parse_text(value)


def test_texts_lose_the_blanks_around_them() -> None:
    """White space around a value is removed, because it comes from shells and files."""
    assert of.parse_text(" a b\r\n") == "a b"


def test_a_header_value_is_ascii() -> None:
    """A header value that is not ASCII is refused."""
    assert of.parse_header_value("*:dev.abc") == "*:dev.abc"
    with pytest.raises(RefusedError, match="header"):
        of.parse_header_value("tökén")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("warn", "warn"), ("WARN", "warn"), ("warning", "warn"), ("critical", "fatal"), (" debug ", "debug")],
)
def test_log_levels(value: str, expected: str) -> None:
    """A level is accepted in any letter case and by its common other name."""
    assert of.LOG_LEVEL.parse(value) == expected


def test_an_unknown_word_names_the_nearest() -> None:
    """The error suggests the nearest word if one is similar."""
    with pytest.raises(RefusedError, match="did you mean `error`"):
        of.LOG_LEVEL.parse("eror")
    with pytest.raises(RefusedError) as refusal:
        of.LOG_LEVEL.parse("xyz")
    assert str(refusal.value) == ""


@pytest.mark.parametrize(("value", "expected"), [("utf8", "utf8"), ("UTF-8", "utf8"), ("low-byte", "low-byte")])
def test_hash_encodings(value: str, expected: str) -> None:
    """There are two hash encodings (behaviour: Hash)."""
    assert of.HASH_ENCODING.parse(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
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
)
def test_lists(value: object, expected: tuple[str, ...]) -> None:
    """A text is split at commas and line ends. The items of a list are not split."""
    assert of.TEXTS.parse(value) == expected


@pytest.mark.parametrize("value", [5, None, {"a": "b"}, b"a", [5], ["a", None], True])
def test_no_lists(value: object) -> None:
    """A value that is no list of texts is refused."""
    with pytest.raises(RefusedError):
        of.TEXTS.parse(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a:b", (("a", "b"),)),
        ("a:b:c", (("a", "b:c"),)),
        ("a:b, c : d", (("a", "b"), ("c", "d"))),
        (["a:b", ("c", "d")], (("a", "b"), ("c", "d"))),
        ({"a": "b"}, (("a", "b"),)),
        ([["a", "b"]], (("a", "b"),)),
        ((("a", "b"),), (("a", "b"),)),
        ([], ()),
    ],
)
def test_tags(value: object, expected: tuple[tuple[str, str], ...]) -> None:
    """A tag filter is split at its first colon (behaviour: Names of variables)."""
    assert of.parse_tags(value) == expected


@pytest.mark.parametrize("value", ["a", ":b", "a:", "a:b,c", [5], [("a", "b", "c")], [("a", 5)], 5])
def test_no_tags(value: object) -> None:
    """A tag without name or value is refused."""
    with pytest.raises(RefusedError):
        of.parse_tags(value)


def test_tags_are_shown_as_they_are_written() -> None:
    """Tags are shown in the form in which they are written."""
    assert of.show_tags((("a", "b:c"), ("d", "e"))) == "a:b:c, d:e"


FILES = of.extension_files("strategies", "docs/how-to/custom-strategies.md")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a.py", ("a.py",)),
        ("a.py, dir/b.py", ("a.py", "dir/b.py")),
        (Path("a.py"), ("a.py",)),
        ([Path("a.py"), "b.py", ""], ("a.py", "b.py")),
        ([], ()),
    ],
)
def test_extension_files(value: object, expected: tuple[str, ...]) -> None:
    """Files of code are a text with commas, a path, or a list."""
    assert FILES.parse(value) == expected


def test_extensions_in_code() -> None:
    """Objects are kept unchanged and shown by their type."""
    strategy = object()
    assert FILES.parse([strategy, "a.py"]) == (strategy, "a.py")
    assert of.name_types((strategy, "a.py")) == ("(object)", "a.py")


@pytest.mark.parametrize("name", ["a.js", "a.MJS", "dir/a.cjs", "a.ts"])
def test_javascript_files_say_what_to_do(name: str) -> None:
    """A JavaScript file is refused with the page that tells how to port it (behaviour: Odd values)."""
    with pytest.raises(RefusedError, match=r"ported to Python, as a list `strategies`: see docs/how-to/custom"):
        FILES.parse(f"good.py,{name}")


@pytest.mark.parametrize("value", [5, [5], [True], [{"a": 1}], [["a.py"]], {"a": "b"}, "a\x00.py", object()])
def test_no_extension_files(value: object) -> None:
    """A value that is neither a path nor an object with code is refused."""
    with pytest.raises(RefusedError):
        FILES.parse(value)


def silent(self: object, text: str) -> None:
    """A logger's method that does nothing."""


Warns = type("Warns", (), dict.fromkeys(("debug", "info", "warn", "error"), silent))


def test_a_logger_has_methods() -> None:
    """The error names the missing method of a logger. `warn` may replace `warning`."""
    logger = Warns()
    assert of.parse_logger(logger) is logger
    with pytest.raises(RefusedError, match="`debug`"):
        of.parse_logger("debug")


def test_an_object_is_no_text() -> None:
    """A provider given as text is refused. Any other object is accepted."""
    assert of.parse_object(FILES) is FILES
    with pytest.raises(RefusedError):
        of.parse_object("redis://")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), ("", "-"), ((), "-"), (True, "true"), (False, "false"), (0, "0"), (("a", "b"), "a, b"), ("x", "x")],
)
def test_values_as_text(value: object, text: str) -> None:
    """A value is shown as it is written. A missing value is a dash; zero and false are values."""
    assert of.as_text(value) == text


@pytest.mark.parametrize(
    ("value", "masked"), [(None, None), ("", ""), ("x", "***"), (("a", "b"), ("***", "***")), ((), ())]
)
def test_masks(value: object, masked: object) -> None:
    """A mask shows the number of values, but no value."""
    assert of.mask(value) == masked  # type: ignore[arg-type]


def test_what_is_quoted_is_one_printable_line() -> None:
    """A quoted value is escaped and shortened to one printable line."""
    assert of.quoted("a\x1b[31m\nb\ud800") == "`a\\x1b[31m\\nb\\ud800`"
    shown = of.quoted("x" * 5000)
    assert shown is not None and len(shown) == 82 and shown.endswith("...`")
    assert of.unquoted("secret") is None


@pytest.mark.parametrize(
    ("value", "blank"), [(None, True), ("", True), (" \n", True), ("0", False), (0, False), ([], False)]
)
def test_blank(value: object, blank: bool) -> None:
    """None and white space are blank. Zero and an empty list are not."""
    assert of.is_blank(value) is blank


def test_nearest() -> None:
    """The suggestion is the nearest name of a list, or the value of the nearest key of a mapping."""
    assert of.nearest("PROT", ["PORT", "HOST"]) == "did you mean `PORT`?"
    assert of.nearest("prot", {"port": "the port"}) == "did you mean `the port`?"
    assert of.nearest("unlike", ["PORT"]) == ""


def test_name_of_a_type() -> None:
    """An object in code is shown by its type, because its repr may contain anything."""
    assert of.name_type(None) is None
    assert of.name_type(FILES) == "(Kind)"


WITHOUT = {"rateLimitKey", "rateLimitAddress"}
"""The limits without a default: only an operator can know the rate of one caller."""


def test_callers_are_bounded_by_default() -> None:
    """Every option of SECURITY.md's table has a default limit, except the rates."""
    unbounded = {row.name for row in (*OPTIONS, *SERVER_OPTIONS) if row.stops and not (row.default or row.default_text)}
    assert unbounded == WITHOUT
