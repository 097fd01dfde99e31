"""Naming patterns match as JavaScript's regular expressions do (import validation, 4.1 and 10)."""

from __future__ import annotations

import time

import pytest

import javascript
from flagsvc.flagstore.batch.patterns import LONGEST, compile_pattern

CASES = [
    ("[a-z]+", ["abc"], ["Abc", "ab1", ""]),
    ("a|b", ["ax", "xb"], ["x", "ba"]),  # no group round the pattern
    (r"[a-z]-\d", ["a-1"], ["a-١", "a-1\n"]),
    (r"\w+", ["a_1"], ["é", "a-b"]),
    (r"\s", ["\u00a0", "\ufeff", "\u2028"], ["x", "\u0085"]),
    (".", ["é", "-"], ["\n", "\u2028", "😀"]),
    ("..", ["😀"], ["a"]),
    (r"😀", ["😀"], ["a"]),
    (r"\ud83d.", ["😀"], ["a"]),
    (r"a\b-\bb", ["a-b"], ["ab"]),
    ("a{,2}", ["a{,2}"], ["a", "aa"]),
    ("a{2}", ["aa"], ["a", "aaa"]),
    (r"\u{3}", ["uuu"], ["\x03"]),
    (r"\A\z\Q", ["AzQ"], [""]),
    ("[[:alpha:]]+", [":]", "a]"], ["a", "q"]),
    (r"[\w-a]", ["-", "z"], ["é"]),
    ("[]", [], ["", "a"]),
    ("[^]", ["\n", "a"], ["", "ab"]),
    (r"\101\x41", ["AA"], ["101"]),
    (r"\cA[\cA]", ["\x01\x01"], ["cA"]),
    (r"\c", ["\\c"], ["c"]),
    ("a$b|c$", ["c"], ["a$b"]),
    ("(?:ab?){2,3}", ["aba", "abab"], ["ab"]),
    ("x*?y+?z??", ["xxyy", "yz"], ["x"]),
]
"""A pattern, names that match it, names that do not: in time linear in the name."""

GOING_BACK = [
    (r"(?!.*--)[a-z-]+", ["a-b"], ["a--b", "A"]),
    (r"(?=.*\d)[a-z\d]+", ["ab1"], ["ab"]),
    (r"(?:[a-z](?<!x))+", ["abc"], ["axb"]),
    (r"a(?<=a)b", ["ab"], ["b"]),
    (r"(a|b)\1", ["aa", "bb"], ["ab"]),
    (r"(?<n>a|b)-\k<n>", ["a-a"], ["a-b"]),
    (r"\2(a)(b)", ["ab"], ["bab"]),
    (r"(\1a)", ["a"], ["aa"]),
    (r"(?:(a)|b)\1", ["aa", "b"], ["ba"]),
    (r"\k", ["k"], [""]),
    (r"(?:a{90}){12}|a{1200}", [], ["a", "a" * 99]),
    (r"(?=a)*b", ["b"], ["a"]),
]
"""The same, where one must go back and try again."""

INVALID = [
    "(",
    ")",
    "a**",
    "a++",
    "*",
    "a|*",
    "a{2,1}",
    "[z-a]",
    "[",
    "(?i)a",
    "(?P<n>a)",
    "(?<n>a)(?<n>b)",
    "(?",
    "x{1}{2}",
]
INVALID += ["\\b+", "(?<=a)*", "(?<a", r"(?<n>a)\k", r"(?<n>a)\k<m>"]


@pytest.mark.parametrize(("pattern", "good", "bad"), CASES + GOING_BACK)
def test_names_match_as_in_javascript(pattern: str, good: list[str], bad: list[str]) -> None:
    """What JavaScript takes is taken, and nothing else."""
    matches = compile_pattern(pattern)
    assert [name for name in good if not matches(name)] == []
    assert [name for name in bad if matches(name)] == []


@pytest.mark.parametrize("pattern", INVALID)
def test_an_invalid_pattern_is_none(pattern: str) -> None:
    """A pattern that JavaScript refuses lets every name pass."""
    assert compile_pattern(pattern)("Any name")


def test_the_cases_are_javascript() -> None:
    """Node agrees with every case here."""
    match = """([pattern, names]) => {
        try { const one = new RegExp('^' + pattern + '$'); return names.map((name) => one.test(name)); }
        catch { return null; }
    }"""
    cases = [[pattern, good + bad] for pattern, good, bad in CASES + GOING_BACK] + [[each, ["x"]] for each in INVALID]
    expected = [[True] * len(good) + [False] * len(bad) for _, good, bad in CASES + GOING_BACK]
    assert javascript.apply(match, cases) == expected + [None] * len(INVALID)


def test_a_hostile_pattern_takes_linear_time() -> None:
    """What would keep a pattern matcher that goes back busy for ever is done at once."""
    begun = time.monotonic()
    assert not compile_pattern("(a+)+b")("a" * 100_000)
    assert time.monotonic() - begun < 5


def test_going_back_is_only_for_short_names() -> None:
    """A name that no feature may have does not match where one would have to go back."""
    matches = compile_pattern("(?!b)a+")
    assert matches("a" * LONGEST)
    assert not matches("a" * (LONGEST + 1))


def test_a_check_that_cannot_be_made_is_told() -> None:
    """Behind a look back of no fixed length nothing matches, rather than everything."""
    assert not compile_pattern("(?<=a*)b")("b")


def test_nesting_beyond_all_measure_is_no_failure() -> None:
    """A pattern deeper than can be read lets every name pass, as one that is invalid."""
    assert compile_pattern("(" * 50_000 + ")" * 50_000)("a")
