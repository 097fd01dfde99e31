"""Env files as people write them."""

from __future__ import annotations

import pytest

from flagsvc.cli.migrating.env_files import parse_env
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
    """A variable that has no value is named."""
    assert parse_env("A=${NONE}$NIX", SHELL.get).missing == ["NONE", "NIX"]
    assert parse_env("A=${NONE}$NIX", SHELL.get, braces_only=True).missing == ["NONE"]


def test_raw() -> None:
    """Compose's format `raw` takes every value as it is."""
    assert parse_env('A="x" # y\nB=$C', SHELL.get, raw=True).values == {"A": '"x" # y', "B": "$C"}


def test_values_that_double() -> None:
    """Variables that each name the one before twice are refused; the error names the file and the variable."""
    text = "A0=0123456789\n" + "\n".join(f"A{n + 1}=${{A{n}}}$A{n}" for n in range(40))
    with pytest.raises(ConfigurationError, match=r"^`a.env`: with `A15` it gets more than 1048576 characters$"):
        parse_env(text, SHELL.get, "a.env")
    assert len(parse_env(text.partition("A15")[0], SHELL.get).values["A14"]) == 10 * 2**14
