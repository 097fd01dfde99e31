"""Lists of values as people paste them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.pages.values import read_values, show_values


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
    ],
)
def test_reading(text: str, values: list[str]) -> None:
    """Values are on lines or separated by commas, without blanks around them; quotes keep all that is inside."""
    assert read_values(text) == values


@given(st.lists(st.text(st.sampled_from('ab ,"\n\té'), max_size=8), unique=True))
def test_what_is_shown_is_read_again(values: list[str]) -> None:
    """A text that shows values is read as the same values."""
    assert read_values(show_values(values)) == values


def test_a_hostile_text_takes_linear_time() -> None:
    """Many quotes that are never closed are read at once."""
    text = '""x\n' * 50_000 + '"' * 50_000
    assert len(read_values(text)) == 2
