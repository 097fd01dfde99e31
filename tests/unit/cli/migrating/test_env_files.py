"""Env files as people write them, and `$NAME` and `${NAME…}` in texts, as docker compose replaces them."""

from __future__ import annotations

import pytest

from flagsvc.cli.migrating.env_files import Filled, Meter, fill, parse_env
from flagsvc.core.errors import ConfigurationError

SHELL = {"HOME": "/root", "TOKEN": "from the shell"}
LINES = [
    ("A=1", {"A": "1"}),
    ("export A=1\n\n# comment\n  export B = 2", {"A": "1", "B": "2"}),
    ("A='one # two' # three\nB=\"x y\"", {"A": "one # two", "B": "x y"}),
    ("A=one # two\nB=one#two\nC=#x\nD= # nothing", {"A": "one", "B": "one#two", "C": "#x", "D": ""}),
    ('A="say \\"hi\\"\\n\\$5"', {"A": 'say "hi"\n$5'}),
    ('A="first\nsecond"\nB=2', {"A": "first\nsecond", "B": "2"}),
    ("A='x\ny'\nB=2", {"A": "x\ny", "B": "2"}),
    ('A="open\nB=2', {"A": '"open', "B": "2"}),
    ("A='x' y\nB=2", {"A": "'x' y", "B": "2"}),
    ("\ufeffA=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
    ("TOKEN\nNONE\nexport HOME", {"TOKEN": "from the shell", "HOME": "/root"}),
    ("A=1\nA=2", {"A": "2"}),
    ("A=a=b==", {"A": "a=b=="}),
    ("A=1\nB=${A}-${HOME}", {"A": "1", "B": "1-/root"}),
    ("A='${HOME}'", {"A": "${HOME}"}),
    ("", {}),
]


@pytest.mark.parametrize(("text", "values"), LINES)
def test_a_line(text: str, values: dict[str, str]) -> None:
    """Quotes, comments, `export`, names alone and several lines are read as docker, compose and shells read them."""
    found = parse_env(text, SHELL.get)
    assert (found.values, found.odd_lines, found.missing) == (values, [], [])


def test_what_is_no_variable() -> None:
    """A line that is something else is counted, behind values of several lines too, and never repeated."""
    found = parse_env('A="x\ny"\nnot a variable\n=5\nB=2\n"C"=1', SHELL.get)
    assert (found.values, found.odd_lines) == ({"A": "x\ny", "B": "2"}, [3, 4, 6])


def test_what_is_missing() -> None:
    """A variable that has no value is named. Compose's format `raw` takes every value as it is."""
    assert parse_env("A=${NONE}$NIX", SHELL.get).missing == ["NONE", "NIX"]
    assert parse_env("A=${NONE}$NIX", SHELL.get, braces_only=True).missing == ["NONE"]
    assert parse_env('A="x" # y\nB=$C', SHELL.get, raw=True).values == {"A": '"x" # y', "B": "$C"}


def test_values_that_double() -> None:
    """Variables that each name the one before twice are refused; the error names the file and the variable."""
    text = "A0=0123456789\n" + "\n".join(f"A{n + 1}=${{A{n}}}$A{n}" for n in range(40))
    with pytest.raises(ConfigurationError, match=r"^`a.env`: with `A15` it gets more than 1048576 characters$"):
        parse_env(text, SHELL.get, "a.env")
    assert len(parse_env(text.partition("A15")[0], SHELL.get).values["A14"]) == 10 * 2**14


VALUES = {"A": "1", "EMPTY": "", "NAME": "A"}
FILLED = [
    ("plain", "plain", ()),
    ("$A-${A}", "1-1", ()),
    ("$$A $${A}", "$A ${A}", ()),
    ("$NONE${NONE}.", ".", ("NONE",)),
    ("${NONE:-b}${NONE-c}${EMPTY:-d}${EMPTY-e}", "bcd", ()),
    ("${A:-b}${A-b}", "11", ()),
    ("${A:+x}${A+x}${EMPTY:+x}${EMPTY+x}${NONE+x}", "xxx", ()),
    ("${NONE:?must be set}${EMPTY:?}${A:?x}${EMPTY?x}", "1", ("NONE", "EMPTY")),
    ("${NONE:-${A}}${NONE:-$EMPTY-$A}${NONE:-${NIX:-z}}", "1-1z", ()),
    ("${NONE:-${NIX}}", "", ("NIX",)),
    ("a $ b $1 ${} ${1} ${A", "a $ b $1 ${} ${1} ${A", ()),
    ("${A!x}$", "${A!x}$", ()),
    ("${${A}} ${A:-${B}", "${1} ${A:-", ("B",)),
    ("}${A}}{}", "}1}{}", ()),
]


@pytest.mark.parametrize(("text", "expected", "missing"), FILLED)
def test_what_compose_does(text: str, expected: str, missing: tuple[str, ...]) -> None:
    """Operators, defaults within defaults and doubled dollar signs mean what they mean to compose."""
    assert fill(text, VALUES.get) == Filled(expected, missing)


def test_braces_only() -> None:
    """In an env file for docker, a lone dollar sign is part of the value."""
    assert fill("pa$$word$A ${A}", VALUES.get, braces_only=True) == Filled("pa$$word$A 1", ())


def test_nesting_has_an_end() -> None:
    """Defaults that are nested deeper than anybody writes stay as they are."""
    deep = "${X:-" * 5000 + "}" * 5000
    assert "${X:-" in fill(deep, VALUES.get).text


@pytest.mark.parametrize("text", ["${" * 300_000, "${" * 300_000 + "}" * 300_000, "${A:-" * 100_000])
def test_braces_without_end(text: str) -> None:
    """The time grows with the text, not with its square: each brace is looked at once, whether it is closed or not."""
    assert fill(text, VALUES.get).text == text


def test_a_meter() -> None:
    """A lookup that counts gives values until they have too many characters together; the error names file and variable."""
    look = Meter("a.env", 5).metered({"A": "123", "B": "45", "C": "6"}.get)
    assert (look("A"), look("NONE"), look("B")) == ("123", None, "45")
    with pytest.raises(ConfigurationError, match=r"^`a.env`: with `C` it gets more than 5 characters$"):
        look("C")
