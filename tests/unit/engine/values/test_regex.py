"""Patterns in RE2's syntax."""

from __future__ import annotations

import random
import time

import pytest

from flagsvc.engine.values import regex
from support import javascript

INVALID = [
    "(", ")", "[a", "a**", "*", "a{2,1}", "a{1001}", "((a{100}){100}){100}", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)",
    "(?>a)", "(?x)a", "\\1", "\\Z", "\\u0041", "\\", "[z-a]", "\\p{Foo}", "[[:foo:]]", "(?P=n)", "\\C", "a\\\\\\C",
    "\\Qa\\E\\C", "(?P<n>a)(?P<n>b)", "(?<n>b)(?P<n>a)", "(?P<é>a)", "(?P<>a)", "(?P<n-1>a)",
]  # fmt: skip

FOUND = [
    ("", "", True), ("", "x", True), ("b", "abc", True), ("^b", "abc", False), ("c$", "abc", True),
    ("B", "abc", False), ("(?i)B", "abc", True), ("a.c", "a\nc", False), ("(?s)a.c", "a\nc", True),
    ("^b", "a\nb", False), ("(?m)^b", "a\nb", True), ("a.c", "a😀c", True), ("\\d", "\u0663", False),
    ("\\w", "é", False), ("\\bé", "é", False), ("\\pL", "é", True), ("\\p{Greek}", "Ω", True),
    ("\\x{1F600}", "😀", True), ("\\QC\\C\\E", "xC\\Cx", True), ("\\\\C", "\\C", True), ("[\\\\C]", "C", True),
    ("[[:alpha:]C]", "1", False), ("\\Qa.b", "a.b", True), ("[]a]", "]", True), ("[^]a]", "]", False),
    ("(?P<a>x)(?<b>y)", "xy", True), ("[(?P<a>](?P<a>x)", "<x", True), ("a{,2}", "a{,2}", True),
    (".", "\ud800", True), ("\ufffd", "\udc00", True), ("😀", "\ud83d\ude00", True), ("\\p{Lu}", "\ud800", False),
    ("a\0b", "a\0b", True),
]  # fmt: skip


@pytest.mark.parametrize("pattern", INVALID)
def test_an_invalid_pattern_is_none(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A pattern that the reference's engine refuses gives None, and nothing is printed."""
    assert regex.compile_regex(pattern, False) is None and regex.compile_regex(pattern, True) is None
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("pattern", "text", "found"), FOUND)
def test_searches_anywhere(pattern: str, text: str, found: bool) -> None:
    """The search is unanchored, by code points, and `.` takes no line feed."""
    compiled = regex.compile_regex(pattern, False)
    assert compiled is not None and compiled.search(text) is found


@pytest.mark.parametrize(("pattern", "text"), [("abc", "xABCx"), ("[a-z]É", "Qé"), ("σ", "ς"), ("k", "\u212a"), ("ſ", "S")])
def test_ignores_case_where_asked(pattern: str, text: str) -> None:
    """Letters of any case match, by Unicode's simple folding, and only when asked for."""
    folded, exact = regex.compile_regex(pattern, True), regex.compile_regex(pattern, False)
    assert folded is not None and folded.search(text) and exact is not None and not exact.search(text)


def test_time_is_linear_in_the_text() -> None:
    """A pattern that makes a backtracking engine hang does not hang this one."""
    compiled = regex.compile_regex("(a*)*(a|a)*b", False)
    started = time.process_time()
    assert compiled is not None and not compiled.search("a" * 100_000)
    assert time.process_time() - started < 2


PIECES = [
    "a", "b", "é", "Ω", "😀", "[a-c]", "[^a]", "[[:alpha:]]", "[[:^digit:]]", "[\\d_]", "\\d", "\\D", "\\w", "\\W",
    "\\s", "\\S", "\\b", "^", "$", "\\A", "\\z", "\\Z", ".", "\\pL", "\\p{Greek}", "\\P{Lu}", "\\p{^Lu}", "\\pN",
    "\\p{Latin}", "\\p{Foo}", "\\x41", "\\x{1F600}", "\\x{110000}", "\\101", "\\1", "\\0", "\\8", "\\C", "\\X", "\\R",
    "\\a", "\\f", "\\t", "\\n", "\\r", "\\e", "\\Qa.b\\E", "\\Q", "\\E", "\\.", "\\-", "\\_", "\\é", "\\", "\\u0041",
    "(?i)", "(?s)", "(?m)", "(?U)", "(?-i)", "(?i:b)", "(?x)", "(?u)", "(?P<n>a)", "(?<n>b)", "(?<m>c)", "(?P=n)",
    "(?=a)", "(?!a)", "(?<=a)", "(?>a)", "(?#c)", "(?:a|b)", "(a|b)", "()", "(", ")", "|", "||", "[", "]", "[]a]",
    "[^]a]", "[a", "[z-a]", "[a-\\d]", "[--a]", "[a-]", "[\\]]", "[[.a.]]", "[[:foo:]]", "[\\pL\\d]", "[\\Qa\\E]",
    "{", "}", "{,2}", "{2}", "a{2,}", "a{2,1}", "a{1001}", "a{0}", "x*", "x+", "x?", "x*?", "x+?", "x??", "x**",
    "x*+", "a{2}{3}", "*", "+", "?", "(?:)", "ſ", "K", "σ", "ß", "İ", "ı", "(|a)*", "(a*)*", "(a*)+", "\\p{Any}",
    "\\p{Zs}", "\\P{^Greek}", "\\p", "\\p{", "[[:word:]]", "(?is).", "(?P<>a)", "(?P<1>a)", "(?P<é>a)", "\u2028",
    "\n", "\r", "\0", "a b",
]  # fmt: skip
TEXTS = [
    "a", "b", "c", "ab", "ABC", "é", "É", "Ω", "ω", "σ", "ς", "Σ", "😀", "1", "9", "_", "ſ", "s", "K", "k", "\u212a",
    "ß", "ẞ", "İ", "i", "I", "ı", "x", "xx", "aaaa", "-", "]", "[", "\\", "{", "}", "E", "Q", "a.b", "ǅ", "µ", "μ",
    "Å", "å", "θ", "ϴ", " ", "\n", "\r\n", "\t", "", "\u2028", "\u0085", "\0",
]  # fmt: skip


@pytest.mark.programs
def test_compiles_and_finds_as_npm_re2js_does() -> None:
    """Random patterns compile in both or in none, and are found alike; `\\B` is left out: C++ also finds it inside a character."""
    draw = random.Random(8)
    cases = [[pattern, folded, text] for pattern in PIECES for folded in (False, True) for text in TEXTS]
    for _ in range(1_500):
        pattern, folded = "".join(draw.choice(PIECES) for _ in range(draw.randint(2, 4))), draw.random() < 0.4
        cases += [[pattern, folded, "".join(draw.choice(TEXTS) for _ in range(draw.randint(0, 4)))] for _ in range(5)]
    function = """([pattern, folded, text]) => {
        const { RE2JS } = require('re2js')
        try { return RE2JS.compile(pattern, folded ? RE2JS.CASE_INSENSITIVE : 0).matcher(text).find() } catch { return null }
    }"""
    wrong = []
    for (pattern, folded, text), answer in zip(  # type: ignore[assignment]
        cases, javascript.apply(function, cases, package="unleash-client"), strict=True
    ):
        compiled = regex.compile_regex(pattern, folded)
        if (compiled.search(text) if compiled else None) != answer:  # type: ignore[arg-type]
            wrong.append((pattern, folded, text, answer))
    assert not wrong, wrong[:10]


@pytest.mark.programs
def test_the_named_differences_exist() -> None:
    """Every difference that the module lists exists. A difference that no longer exists must be removed from the list."""
    cases = [["\\p{LC}", "a"], ["\\p{Emoji}", "😀"], ["\\p{Cs}", "\ud800"], ["\ufffd", "\ud800"], ["\\B", "I漢Q"]]
    function = """([pattern, text]) => {
        const { RE2JS } = require('re2js')
        return RE2JS.compile(pattern).matcher(text).find()
    }"""
    answers = javascript.apply(function, cases, package="unleash-client")
    ours = [
        compiled and compiled.search(text)
        for compiled, text in ((regex.compile_regex(pattern, False), text) for pattern, text in cases)
    ]
    assert (answers, ours) == ([True, True, True, False, False], [None, None, False, True, True])


def test_a_large_pattern_compiles_in_time() -> None:
    """Looking for names takes no longer than the pattern is long."""
    pattern = "".join(f"(?P<n{index}>[[:alpha:]])" for index in range(800)) + "\\Q" + "[" * 12_000
    started = time.process_time()
    assert regex.compile_regex(pattern, False) is not None
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("piece", "most"),
    [
        ("a{0,1000}", regex.MOST_CHOICES // 1000),
        ("a?", regex.MOST_CHOICES),
        ("[[:^alpha:]]?", regex.LONGEST // 13),
        ("\\pL", regex.MOST_CLASSES),
        ("|\\P{Lu}", regex.MOST_CLASSES),
        ("é", regex.LONGEST // 2),
    ],
)
def test_compiling_takes_little_time(piece: str, most: int) -> None:
    """One piece more than may be is costly and so no pattern; so many are not, and compile in half a second, for sure in 1.5."""
    assert not regex.is_costly(piece * most, len(regex.encode(piece * most)))
    assert regex.is_costly(piece * (most + 1), len(regex.encode(piece * (most + 1))))
    for case_insensitive in (False, True):
        started = time.process_time()
        regex.compile_regex(piece * most, case_insensitive)
        assert regex.compile_regex(piece * (most + 1), case_insensitive) is None
        assert regex.compile_regex(piece * 100 * most, case_insensitive) is None
        assert time.process_time() - started < 1.5
    assert regex.compile_regex(piece, False) is not None


def test_large_patterns_that_people_write_compile() -> None:
    """A list of a thousand addresses, a text of any length up to some bound, letters of every script."""
    addresses = "|".join(f"somebody\\.{number}@example\\.com" for number in range(1_000))
    for pattern in (f"^({addresses})$", "^.{1,1000}$", "[\\pL\\pN._-]{1,64}@[\\pL\\pN.-]{1,253}", "[0-9]{2,4}-" * 1_000):
        assert regex.compile_regex(pattern, True) is not None


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        ("|".join(f"(?:a?b?){{500}}c{number}" for number in range(200)), 80),
        ("(?s)" + "|".join(f"[ab]*a[ab]{{900}}c{number}" for number in range(200)), 180),
        ("(?s)" + "|".join(f".*a.{{900}}c{number}" for number in range(60)), 80),
    ],
)
def test_a_hostile_pattern_takes_little_time(pattern: str, most: int) -> None:
    """For any length of text: if a search could take long, there is no search and no match."""
    compiled = regex.compile_regex(pattern, False)
    assert compiled is not None
    assert compiled.search("ab" * most + "x") is False
    assert regex.MOST_STEPS / compiled.size > most
    hostile = "".join(random.Random(1).choice("ab") for _ in range(4096))
    for text in (hostile, hostile[: regex.MOST_STEPS // compiled.size]):
        started = time.process_time()
        assert not compiled.search(text)
        assert time.process_time() - started < 2


def test_a_usual_pattern_is_looked_for_in_the_longest_text() -> None:
    """Ordinary patterns are far below the limit: thousands of words, letters of every script, thousands of characters."""
    for pattern in (
        "|".join(f"word{number:05}" for number in range(5_000)) + "|é$",
        r"^\pL{1,5}[\pL\d._%+-]+@[\pL\d.-]+\.[A-Za-z]{2,24}|é$",
        r"(?i)(\w+\s?){2,50}é$",
    ):
        compiled = regex.compile_regex(pattern, False)
        assert compiled is not None and compiled.search("x" * 2000 + "é"), compiled.size  # type: ignore[union-attr]


@pytest.mark.parametrize("pattern", ["[" * 100_000, "(?<" * 100_000, "[[:" * 100_000, "[a-z" * 50_000 + "\\", "\\Q" * 100_000])
def test_looking_for_names_is_linear_in_any_text(pattern: str) -> None:
    """This also holds for invalid patterns, such as those with unclosed classes."""
    started = time.process_time()
    regex.is_portable(pattern)
    assert time.process_time() - started < 1
