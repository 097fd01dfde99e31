"""Naming patterns match as JavaScript's regular expressions do (import validation 4.1, rule 5; 10).

Generated naming patterns match as node's RegExp does: with RE2 where it supports them, and always with the package `regex`.
"""

from __future__ import annotations

import random
import threading
import time
import tracemalloc

import pytest

from flagsvc.server.store.naming_pattern import NamingPattern, pattern_problems
from flagsvc.server.store.patterns import InvalidPattern, SearchTime, UncheckedNameError, compile_pattern
from flagsvc.server.store.patterns.grammar import MAX_CHARACTERS, MAX_DEPTH, parse
from flagsvc.server.store.patterns.matching import (
    MAX_PARTS,
    NAME_SECONDS,
    REGEX_LOCK,
    REQUEST_SECONDS,
    compile_re2,
    compile_regex,
    encode_text,
    translate,
)
from support import javascript

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
    (r"\t[\v]\f", ["\t\v\f"], ["tvf"]),
    ("(?:a{500}){3}", ["a" * 1500], ["a" * 500]),
    ("(?:ab?){2,3}", ["aba", "abab"], ["ab"]),
    ("x*?y+?z??", ["xxyy", "yz"], ["x"]),
]
"""A pattern, names that match and names that do not. The time is linear in the length of the name."""

GOING_BACK = [
    (r"(?=\u0061)\x61\141", ["aa"], ["ba"]),
    (r"(?!.*--)[a-z-]+", ["a-b"], ["a--b", "A"]),
    (r"(?=.*\d)[a-z\d]+", ["ab1"], ["ab"]),
    (r"(?:[a-z](?<!x))+", ["abc"], ["axb"]),
    (r"a(?<=a)b", ["ab"], ["b"]),
    (r"(?<=a*)b", ["b"], ["ab"]),
    (r"\k", ["k"], [""]),
    (r"(?:a{90}){12}|a{1200}", ["a" * 1080, "a" * 1200], ["a", "a" * 99]),
    (r"(?=a)*b", ["b"], ["a"]),
    (r"(?:a?){3}b|(?=x)(?:)*x", ["b", "aaab", "x"], ["aaaab"]),
    (r"(?<=^(a+)(a+))b|a+(?<=^(\d+)(\d+)|(a)+)b", ["aab"], ["b"]),
    (r"a+?\Bb", ["ab", "aab"], ["a", "b"]),
    (r"a\B-|\B-a", ["--a"], ["a-", "-a-"]),
    (r"é\B|\B", ["", "é", "-"], ["a"]),
    (r"[^\d](?=.)[\s\S]", ["ab", "😀"], ["a😀", "1b", "a"]),
    (r"(?=[\ud000-\uffff])[^a][^a]", ["😀", "\ud800\udc00"], ["ab", "é"]),
    (r"(?=.)x{0,99999999999999999999}a{0}", ["xx"], ["", "a"]),
    (r"(?=a)a{2,99999999999999999999}", ["aaa"], ["a"]),
    (r"(?=.)[\c1\c_\ca][\c]\c", ["\x11\\\\c", "\x1fc\\c", "\x01c\\c"], ["1\\\\c"]),
    (r"(?=.)\8\9\18[\1\8]", ["89\x0188", "89\x018\x01"], ["8918"]),
]
"""The same, for patterns with look-around, and for patterns that are too large for RE2."""

REFERENCES_TO_GROUPS = [
    *(*(r"(a|b)\1", r"(?<n>a|b)-\k<n>", r"\2(a)(b)", r"(\1a)", r"(?:(a)|(b)|(c))+\1\2\3", r"(?=(a+))(?:a*b\1)+"), r"(?!(a)b)\1a+"),
    *(r"\d+(?<=^(\d+)(\d+))-\1-\2", r"(\ud83d)\1.", r"(?<$_é>a)(?<\u{62}>b)\k<$_é>\k<b>", r"a*(?<=(?:(a)|){1,2})\1b"),
]
"""Patterns that JavaScript takes, and no engine here runs."""
MATCH = """([pattern, names]) => {
    try { const one = new RegExp('^' + pattern + '$'); return names.map((name) => one.test(name)); }
    catch { return null; }
}"""
"""What node says of names and a pattern; null for a pattern that is none."""
INVALID = [
    *("(", ")", "a**", "a++", "*", "a|*", "a{2,1}", "[z-a]", "[", "(?i)a", "(?P<n>a)", "(?<n>a)(?<n>b)", "(?"),
    *("x{1}{2}", "\\b+", "(?<=a)*", "(?<a", r"(?<n>a)\k", r"(?<n>a)\k<m>", r"(?<n>a)[\k]", "(?<1>a)"),
    *(r"(?<\u{110000}>a)", "[\\", "(?<>a)", "(?<\u200d>a)", "(?=a)**", "(?<n>a", "a{2}{3}", "(?i:a)"),
]


def verdict(pattern: str, name: str) -> bool | UncheckedNameError:
    """Return whether a name matches a pattern, or why that cannot be checked."""
    return NamingPattern(pattern, None, None).verdict(name)


@pytest.mark.parametrize(("pattern", "good", "bad"), CASES + GOING_BACK)
def test_names_match_as_in_javascript(pattern: str, good: list[str], bad: list[str]) -> None:
    """A name matches exactly if it matches in JavaScript."""
    assert [name for name in good if verdict(pattern, name) is not True] == []
    assert [name for name in bad if verdict(pattern, name) is not False] == []


@pytest.mark.parametrize("pattern", REFERENCES_TO_GROUPS)
def test_a_reference_to_a_group_is_refused(pattern: str) -> None:
    """Such a pattern cannot be saved, and where it is stored, no name can be checked."""
    assert refusal(pattern, "a") == "it refers to a group"
    sentence = f'The naming pattern "{pattern}" cannot be checked: it refers to a group; '
    assert pattern_problems(pattern, None, None) == [f"{sentence}have the pattern made without references to groups"]


@pytest.mark.parametrize("pattern", INVALID)
def test_an_invalid_pattern_is_none(pattern: str) -> None:
    """An invalid pattern accepts every name."""
    assert verdict(pattern, "Any name") is True
    assert pattern_problems(pattern, None, None) == [f'The naming pattern "{pattern}" is not a regular expression of JavaScript']


@pytest.mark.programs
def test_the_cases_are_javascript() -> None:
    """Node gives the same result for every case of this file."""
    rows = CASES + GOING_BACK
    cases = [[pattern, good + bad] for pattern, good, bad in rows] + [[each, ["x"]] for each in INVALID]
    expected = [[True] * len(good) + [False] * len(bad) for _, good, bad in rows]
    assert javascript.apply(MATCH, cases) == expected + [None] * len(INVALID)
    assert None not in javascript.apply(MATCH, [[each, ["x"]] for each in REFERENCES_TO_GROUPS])


def refusal(pattern: str, name: str) -> str:
    """Return the reason why a name cannot be checked."""
    found = verdict(pattern, name)
    assert isinstance(found, UncheckedNameError)
    return found.reason


FREEZING = [
    (r"(?=a)(a|aa)+[bc]", "a" * 100),
    (r"a*(?<=b(a|aa|aaa)*)c", "a" * 100 + "c"),
    (r"(?=a)(?:a?){2000}[bc]", "a" * 100),
    (r"(?=a)(?:.*.*.*.*.*.*.*x|y)", "a" * 1_000),
    (r"(?:(?=.*[xy])?.)*[xy]", "a" * 100_000),
]
"""Patterns, each with a name for which backtracking takes very long."""


@pytest.mark.parametrize(("pattern", "name"), FREEZING)
def test_a_pattern_that_would_not_end_is_told(pattern: str, name: str) -> None:
    """A check that takes too long ends after the time of one name, and other threads run meanwhile."""
    found: list[bool | UncheckedNameError] = []
    left = SearchTime()
    thread = threading.Thread(target=lambda: found.append(left.verdict(compile_pattern(pattern), name)))
    thread.start()
    rounds = 0
    while thread.is_alive():
        time.sleep(0.001)
        rounds += 1
    assert [str(each) for each in found] == ["it takes too long"]
    assert REQUEST_SECONDS - left.left < 3 * NAME_SECONDS
    assert rounds >= 5


def test_the_names_of_a_request_share_its_time() -> None:
    """All names of a request share a time. When it is used up, further names are not checked."""
    left = SearchTime(NAME_SECONDS / 2)
    search = compile_pattern(r"(?=a)(a|aa)+[bc]")
    assert str(left.verdict(search, "a" * 100)) == "it takes too long"
    left.left = 0
    assert str(left.verdict(search, "b")) == "it takes too long"
    assert str(left.verdict(compile_pattern("[a-z]+"), "a")) == "it takes too long"


def test_a_usual_pattern_leaves_time_for_thousands_of_names() -> None:
    """Five hundred names of about fifty characters use less than a fifth of a request's time, also with a look-ahead."""
    for pattern in (r"(?!.*--)[a-z][a-z0-9-]*", r"[a-z]+(?:[._-][a-z0-9]+){1,100}", r"(team|squad)-(?=.{2,60}$).+(?<!-)"):
        left, search = SearchTime(), compile_pattern(pattern)
        for number in range(500):
            assert left.verdict(search, f"team-{number}-some-name-that-is-as-long-as-they-are-told") is True
        assert REQUEST_SECONDS - left.left < REQUEST_SECONDS / 5


def test_what_re2_runs() -> None:
    """RE2 matches what would backtrack exponentially, also for a long name, and while `regex` is busy with another name. RE2 gets
    no pattern that it would read for seconds, such as forty ranges of a thousand; `regex` runs these patterns."""
    assert verdict("(a+)+b", "a" * 100_000) is False
    with REGEX_LOCK:
        assert verdict("[a-z]+", "a") is True
    assert verdict("a{0,1000}" * 40, "a" * 90) is True
    assert verdict("a{0,1000}" * 2, "b") is False
    assert verdict("(?:[^a]{0,1000}){9}", "b" * 100) is True


@pytest.mark.parametrize(
    ("pattern", "fits"), [(r"(?=a)a+", True), (r"(?!.*--)[a-z0-9-]+", True), (r"(?=.*[0-9])(?=.*[a-z])[a-z0-9-]+", False)]
)
def test_a_name_of_any_length_gets_the_answer_of_a_usual_pattern(pattern: str, fits: bool) -> None:
    """The time of a name suffices for long names and usual patterns with look-around, but not for every pattern."""
    assert verdict(pattern, "a" * 60_000) is fits
    assert refusal("(?:a?b?){500}c", "ab" * 200_000) == "it takes too long"


def nested(depth: int) -> str:
    """Return a pattern of nested groups, each repeated."""
    return "(?:a|b" * depth + ")*" * depth


@pytest.mark.parametrize("rest", ["", "(?!z)"])
def test_groups_nest_up_to_a_bound(rest: str) -> None:
    """Nesting up to the limit is parsed. Beyond the limit the error has the position."""
    assert verdict(nested(MAX_DEPTH) + rest, "abab") is True
    assert verdict(nested(MAX_DEPTH) + rest, "c") is False
    reason = refusal("x" + nested(MAX_DEPTH + 1), "a")
    assert reason == f"its groups are nested more than {MAX_DEPTH} deep, at character {2 + MAX_DEPTH * len('(?:a|b')}"
    assert refusal("(" * 9_000, "a").startswith("its groups are nested more than")


def test_a_pattern_has_a_longest() -> None:
    """A pattern that is too long is not parsed."""
    assert verdict("a" * (MAX_PARTS - 2), "a" * (MAX_PARTS - 2)) is True
    assert refusal("a" * (MAX_CHARACTERS + 1), "a") == f"it is longer than {MAX_CHARACTERS:,} characters"


TOO_LARGE = [
    *(r"(?=a)a{99999999999999999999,}", "(?=.*){2000000000,}a", "(?:(?:a?){1000}){1000}b", "a{9999}" * 1_400),
    *("(?:" * 49 + "a" + "){2}" * 49, r"\S" * 5_000, "(?:(?!a{1,99})|" * 25 + ")+" * 25),
]
"""Patterns that become large when their counts are written out."""


@pytest.mark.parametrize("pattern", TOO_LARGE)
def test_a_pattern_that_is_too_large_is_refused(pattern: str) -> None:
    """No engine gets such a pattern: it cannot be saved, and where it is stored, no name can be checked."""
    reason = f"it has more than {MAX_PARTS:,} parts when its counts are written out"
    assert refusal(pattern, "a") == reason
    sentence = f'The naming pattern "{pattern}" cannot be checked: {reason}; have the pattern made simpler'
    assert pattern_problems(pattern, None, None) == [sentence]


def test_an_example_that_cannot_be_checked_is_refused() -> None:
    """A pattern is not saved with an example that takes too long to check."""
    (problem,) = pattern_problems(r"(?=a)(a|aa)+[bc]", "a" * 100, None)
    assert problem.startswith('The naming pattern "(?=a)(a|aa)+[bc]" cannot be checked: it takes too long; use shorter names')


LARGE = [
    *TOO_LARGE, "a{1000}{1000}{1000}",
    "(?:[^a]{0,1000}){9}", "(?:a{0,1000}){0,1000}", "(?:a?b?){500}c", "[^a]" * 2_500, "a{0,1000}" * 40,
    "[" + "".join(chr(0x100 + 2 * each) for each in range(9_000)) + "]", "[[\\]" * 2_000, "(?<" * 3_000, "a|" * 4_999, "x?" * 4_999,
    r"(?=a)" + "(?:a{0,99})" * 900, r"(?=a)" + r"\S" * 900, r"(?=a)" + "(a)" * 3_000,
    r"(a)\1" + r"\S" * 900, "".join(rf"(a)\{number}" for number in range(1, 1_500)),
    "(?=" * 50 + ")*" * 50, "(?!z)(?:" + "|" * 4_000 + "a){4990}",
]  # fmt: skip
"""Patterns that are large, or become large when their counts are expanded."""


@pytest.mark.parametrize("pattern", LARGE)
def test_a_large_pattern_is_read_in_bounded_time_and_memory(pattern: str) -> None:
    """The pattern is refused, or compiled and searched, in less than 64 MB and four seconds, with memory being traced."""
    compile_pattern.cache_clear()
    tracemalloc.start()
    begun = time.process_time()
    try:
        NamingPattern(pattern, None, None).verdict("a" * 100)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64_000_000
    assert time.process_time() - begun < 4


PATTERNS = 1_500
NAMES = 6
SEED = 12
UNITS = ["a", "b", "A", "_", "1", "-", ".", " ", "\n", "\u2028", "é", "\ud83d", "\ude00", "\x08", "k", "\\", "]", "{"]
ATOMS = [
    *("a", "b", "a", "b", "1", "-", "_", ".", "é", "😀", "]", "}", "{", "{,2}", "[ab]", "[^a]", "[a-z]", "[\\w-]"),
    *("[^\\d\\s]", "[]", "[^]", "[b-]", "[\\b]", "[\\u0061-\\x7a]", "[\\ud83d-\\uffff]", "[\\W_]", "[\\1\\8\\c1]"),
    *("\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\x61", "\\u0062", "\\u{2}", "\\ud83d", "\\141", "\\0", "\\cH"),
    *("\\c", "\\q", "\\-", "\\.", "\\8", "[-\\x20]"),
]
EDGES = ["^", "$", "\\b", "\\B", "\\b", "\\B"]
REFERENCES = ["\\1", "\\2", "\\3", "\\1", "\\2", "\\k<n>"]
QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{0,2}", "{1,3}?", "{2,}", "{1,}?", "{0,1}"]
FEW = ["a", "b", "a", "b", "a", "."]
"""The atoms of half of the patterns. With few atoms back references match often."""
OPENINGS = ["(", "(", "(", "(?:", "(?:", "(?=", "(?!", "(?<=", "(?<!"]
BROKEN = ["(", ")", "[", "\\", "**", "{2}{3}", "(?", "(?<", "(?i:a)", "+", "a{3,1}", "(?<n>"]


class Patterns:
    """Makes patterns. Most are valid, some are not."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._named = False
        self._atoms = ATOMS
        self._edges = 0.06

    def pattern(self) -> str:
        """Return a pattern with at most one named group."""
        self._named = False
        self._atoms, self._edges = self._draw.choice([(ATOMS, 0.06), (FEW, 0.01)])
        made = self._choice(3)
        if self._draw.random() < 0.05:
            at = self._draw.randint(0, len(made))
            made = made[:at] + self._draw.choice(BROKEN) + made[at:]
        return made

    def _choice(self, depth: int) -> str:
        ways = 1 + (self._draw.random() < 0.25) + (self._draw.random() < 0.1)
        return "|".join("".join(self._term(depth) for _ in range(self._draw.randint(0, 3))) for _ in range(ways))

    def _term(self, depth: int) -> str:
        kind = self._draw.random()
        if kind < self._edges:
            return self._draw.choice(EDGES)
        if kind < 0.2:
            return self._quantified(self._draw.choice(REFERENCES))
        if kind < 0.6 and depth:
            opening = self._draw.choice(OPENINGS)
            if opening == "(" and not self._named and self._draw.random() < 0.2:
                opening, self._named = "(?<n>", True
            made = f"{opening}{self._choice(depth - 1)})"
            return made if opening in ("(?<=", "(?<!") else self._quantified(made)
        return self._quantified(self._draw.choice(self._atoms))

    def _quantified(self, made: str) -> str:
        return made + (self._draw.choice(QUANTIFIERS) if self._draw.random() < 0.4 else "")


def names(draw: random.Random) -> list[str]:
    """Return short names. Most consist of few letters, some of any characters."""
    made = []
    for _ in range(NAMES):
        pool = draw.choice(["ab", "ab", "ab1", UNITS])
        made.append("".join(draw.choice(pool) for _ in range(draw.randint(0, 7))))
    return made


def ours(pattern: str, given: list[str]) -> list[list[bool]] | None:
    """Return the result of each engine for each name, if any runs the pattern, or None if the pattern is invalid."""
    try:
        text = translate(parse(pattern))
    except InvalidPattern:
        return None
    except UncheckedNameError:
        return [[] for _ in given]
    engines = [compile_regex(text), compile_re2(text)]
    return [[engine(encode_text(name), 5) for engine in engines if engine is not None] for name in given]


@pytest.mark.programs
def test_generated_patterns_match_as_in_javascript() -> None:
    """Node, RE2 and `regex` give the same result for every pattern without references, also on which patterns are invalid."""
    draw = random.Random(SEED)
    made = Patterns(draw)
    cases = [(made.pattern(), names(draw)) for _ in range(PATTERNS)]
    expected = javascript.apply(MATCH, cases)
    counts = {"invalid": 0, "refused": 0, "going back": 0, "linear": 0, "matching": 0}
    wrong = []
    for (pattern, given), said in zip(cases, expected, strict=True):
        found = ours(pattern, given)
        if found is None or said is None:
            counts["invalid"] += 1
            wrong += [] if found == said else [(pattern, said, found)]
            continue
        for name, is_match, verdicts in zip(given, said, found, strict=True):
            counts[["refused", "going back", "linear"][len(verdicts)]] += 1
            counts["matching"] += is_match
            if not set(verdicts) <= {is_match}:
                wrong.append((pattern, name, is_match, verdicts))  # type: ignore[arg-type]
    assert wrong == []
    assert min(counts.values()) > 50, counts
