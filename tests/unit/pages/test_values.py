"""Lists of values as people paste them."""

from __future__ import annotations

import time
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.pages.forms import as_area, parse_form, read_values, show_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("a", ["a"]),
        (" a , b\n\tc ,,\n\n", ["a", "b", "c"]),
        ("a\na,a", ["a"]),
        ('"a, b", c', ["a, b", "c"]),
        ('"say ""hi"""', ['say "hi"']),
        ('""', [""]),
        ('" a "', [" a "]),
        ('"a" b', ['"a" b']),
        ('"a', ['"a']),
        ('a"b', ['a"b']),
        ('"a\nb"', ["a\nb"]),
        (r'\"a\rb\\r", "c\r"', ["a\rb\\r", r"c\r"]),
        (r'\"a" b', [r'\"a" b']),
        (r"C:\new, \d+", [r"C:\new", r"\d+"]),
        (f'"{"x," * 1000}"', ["x," * 1000]),
    ],
)
def test_reading(text: str, values: list[str]) -> None:
    """Values are on lines or separated by commas, without blanks around them; quotes keep all that is inside."""
    assert read_values(text) == values


ODD = st.text(st.sampled_from('ab ,"\n\r\\\t\x0b\x85\u2028é'), max_size=8)


@given(st.lists(ODD | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), unique=True))
def test_what_is_shown_is_read_again(values: list[str]) -> None:
    """A text that shows values is read as the same values, also after a browser has sent it."""
    shown = show_values(values)
    assert read_values(shown) == values
    sent = urlencode({"values": as_area(shown).replace("\n", "\r\n")})
    assert read_values("".join(parse_form(sent.encode()).texts("values"))) == values


@pytest.mark.parametrize(
    "text",
    [
        '""x\n' * 50_000 + '"' * 50_000,
        '"' * 200_000 + "x",
        '"x"",' * 50_000 + '""',
        '""",' * 50_000 + '"',
        '\\"x"",' * 50_000,
        '"a" ' + " " * 200_000 + "x",
        '"x' + '""' * 100_000 + ",",
    ],
)
def test_a_hostile_text_takes_linear_time(text: str) -> None:
    """Many quotes that are never closed are read at once."""
    started = time.monotonic()
    read_values(text)
    assert time.monotonic() - started < 5
