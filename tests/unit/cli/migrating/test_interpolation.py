"""`$NAME` and `${NAME…}` in texts, as docker compose replaces them."""

from __future__ import annotations

import pytest

from flagsvc.cli.migrating.env_files import Filled, Meter, fill
from flagsvc.core.errors import ConfigurationError

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
