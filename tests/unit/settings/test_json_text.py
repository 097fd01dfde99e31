"""JSON in a variable: the place of an error, and keys that come twice."""

from __future__ import annotations

import re

import pytest

from flagsvc.settings.kinds import read_json, repeated_keys


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
        read_json(text)
    assert str(raised.value) == problem and raised.value.__cause__ is None


@pytest.mark.parametrize(
    "text",
    ['{"a": {"clientKeys": ["s3cret"],}}', '{"a": {"clientKeys": ["s3cret",]}}', '{"a": {\n"b": "s3cret"\n,}\n}'],
)
def test_a_trailing_comma(text: str) -> None:
    """The place is told: that of the comma or, before Python 3.13, of what comes behind it."""
    comma = re.search(r",(?=[}\]])", text)
    with pytest.raises(ValueError, match=r".") as raised:
        read_json(text)
    line, column = map(int, re.findall(r"line (\d+), column (\d+)\)$", str(raised.value))[0])
    assert comma is not None and "s3cret" not in str(raised.value)
    before = text[: comma.start()]
    first = before.count("\n") + 1, comma.start() - before.rfind("\n")
    assert (line, column) in (first, (first[0], first[1] + 1))


def test_keys_that_come_twice() -> None:
    """They are found in every object, each once, with the keys that lead there. The same key in two objects is none."""
    text = '{"a": {"k": 1, "l": {"m": 1, "m": 2}, "k": 3, "k": 4}, "b": [{"k": 1}, {"k": 1, "k": 2}], "a2": 1, "a2": 2}'
    assert list(repeated_keys(read_json(text))) == [((), "a2"), (("a",), "k"), (("a", "l"), "m"), (("b",), "k")]
    assert list(repeated_keys(read_json('{"a": {"k": 1}, "b": {"k": 1}}'))) == []
    assert list(repeated_keys([{"a": 1}, 5, None])) == []


def test_any_depth() -> None:
    """What can be read can be searched."""
    depth = 900
    deep = read_json('{"a":' * depth + '{"k": 1, "k": 2}' + "}" * depth)
    [(path, key)] = repeated_keys(deep)
    assert (len(path), key) == (depth, "k")
