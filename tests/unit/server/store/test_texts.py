"""Text lengths as JavaScript counts them, and the API's messages about texts."""

from __future__ import annotations

import pytest

from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.texts import split_words, strip_whitespace, text_problem, utf16_length

FACE = "\N{GRINNING FACE}"


@pytest.mark.parametrize(("text", "size"), [("", 0), ("abc", 3), ("é", 1), (FACE, 2), (f"a{FACE}b{FACE}", 6)])
def test_lengths_count_code_units(text: str, size: int) -> None:
    """A character above U+FFFF counts as two."""
    assert utf16_length(text) == size == len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", '"x" is not allowed to be empty.'),
        ("a", '"x" length must be at least 2 characters long. You provided "a".'),
        ("abcde", '"x" length must be less than or equal to 4 characters long. You provided "abcde".'),
        (FACE * 3, f'"x" length must be less than or equal to 4 characters long. You provided "{FACE * 3}".'),
        ("ab", None),
        (FACE * 2, None),
    ],
)
def test_what_is_wrong_with_a_text(text: str, problem: str | None) -> None:
    """Messages about too short and too long texts contain the text; the one about an empty text does not."""
    found = text_problem(text, "x", shortest=2, longest=4)
    assert found == (None if problem is None else {"message": problem})


def test_white_space_is_javascripts() -> None:
    """A byte order mark is white space. An information separator is not."""
    assert strip_whitespace("\ufeff \t\n\u3000x\u2029") == "x"
    assert strip_whitespace("\x1fx\x85") == "\x1fx\x85"


def test_searches_are_bounded() -> None:
    """The words of a search are few, and together short."""
    assert split_words("a, b,,a" + " " * 900) == ["a", "b"]
    with pytest.raises(CallerError) as found:
        split_words("a" * 1001)
    assert [each["message"] for each in found.value.details] == [
        '"query" length must be less than or equal to 1000 characters long.'
    ]
