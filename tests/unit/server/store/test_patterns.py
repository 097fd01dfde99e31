"""Naming patterns match as JavaScript's regular expressions do (import validation 4.1, rule 5; 10).

Generated naming patterns match as node's RegExp does: with RE2 where it supports them, and always with our own search.
"""

from __future__ import annotations

import contextlib
import random
import time
import tracemalloc

import pytest

from flagsvc.server.store.naming_pattern import NamingPattern
from flagsvc.server.store.patterns import StepBudget, UncheckedNameError, compile_pattern
from flagsvc.server.store.patterns.budget import NAME_STEPS, REQUEST_STEPS
from flagsvc.server.store.patterns.characters import InvalidPattern
from flagsvc.server.store.patterns.grammar import MAX_CHARACTERS, MAX_DEPTH, parse
from flagsvc.server.store.patterns.pattern import SEARCH_LOCK, LinearPattern, Pattern, TooLargeForRe2
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
    (r"(?!.*--)[a-z-]+", ["a-b"], ["a--b", "A"]),
    (r"(?=.*\d)[a-z\d]+", ["ab1"], ["ab"]),
    (r"(?:[a-z](?<!x))+", ["abc"], ["axb"]),
    (r"a(?<=a)b", ["ab"], ["b"]),
    (r"(?<=a*)b", ["b"], ["ab"]),
    (r"(a|b)\1", ["aa", "bb"], ["ab"]),
    (r"(?<n>a|b)-\k<n>", ["a-a"], ["a-b"]),
    (r"\2(a)(b)", ["ab"], ["bab"]),
    (r"(\1a)", ["a"], ["aa"]),
    (r"(?:(a)|b)\1", ["aa", "b"], ["ba"]),
    (r"\k", ["k"], [""]),
    (r"(?:a{90}){12}|a{1200}", ["a" * 1080, "a" * 1200], ["a", "a" * 99]),
    (r"(?=a)*b", ["b"], ["a"]),
    (r"(?:(a)|(b)|(c))+\1\2\3", ["abcc", "aa"], ["ab", "aba", "c", "d"]),  # each iteration of a loop resets its groups
    (r"(?:(a)|b)*\1c", ["abc", "baac"], ["bac", "ab"]),
    (r"(z)((a+)?(b+)?(c))*\1\3", ["zcz", "zaacbbbcacza", "zacza"], ["zaacbbbcacz", "zacz"]),
    (r"(?:a?){3}b|(?=x)(?:)*x", ["b", "aaab", "x"], ["aaaab"]),
    (r"(?=(a+))a*b\1", ["aba", "aabaa"], ["ab", "aaba"]),  # a look-ahead is not tried again after it matched
    (r"(?=(a+))(?:a*b\1)+", ["aba", "aabaa"], ["abb"]),
    (r"(?!(a)b)\1a+", ["aa", "a"], ["ab"]),
    (r"(?<=^(a+)(a+))b|a+(?<=^(\d+)(\d+)|(a)+)b", ["aab"], ["b"]),
    (r"\d+(?<=^(\d+)(\d+))-\1-\2", ["1053-1-053"], ["1053-105-3"]),  # backwards, the last group is the greedy one
    (r"ab+(?<=\1(b))", ["abb"], ["ab"]),
    (r"a+?\Bb", ["ab", "aab"], ["a", "b"]),
    (r"a\B-|\B-a", ["--a"], ["a-", "-a-"]),
    (r"é\B|\B", ["", "é", "-"], ["a"]),
    (r"[^\d](?=.)[\s\S]", ["ab", "😀"], ["a😀", "1b", "a"]),
    (r"(?=[\ud000-\uffff])[^a][^a]", ["😀", "\ud800\udc00"], ["ab", "é"]),
    (r"(\ud83d)\1.", ["\ud83d\ud83d\ude00"], ["😀😀"]),
    (r"(?=\u0061)\x61\141", ["aa"], ["ba"]),
    (r"(?<$_é>a)(?<\u{62}>b)\k<$_é>\k<b>", ["abab"], ["abba"]),
    (r"(?=a)(a{2,3}?)(a*)\2", ["aaaa", "aa"], ["aaaaab"]),
    (r"(?=.)x{0,99999999999999999999}a{0}", ["xx"], ["", "a"]),
    (r"(?=a)a{99999999999999999999,}", [], ["aaa"]),
    (r"(?=.)[\c1\c_\ca][\c]\c", ["\x11\\\\c", "\x1fc\\c", "\x01c\\c"], ["1\\\\c"]),
    (r"(?=.)\8\9\18[\1\8]", ["89\x0188", "89\x018\x01"], ["8918"]),
]
"""The same, for patterns that need backtracking."""

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
INVALID += [
    "\\b+",
    "(?<=a)*",
    "(?<a",
    r"(?<n>a)\k",
    r"(?<n>a)\k<m>",
    r"(?<n>a)[\k]",
    "(?<1>a)",
    r"(?<\u{110000}>a)",
    "[\\",
]
INVALID += ["(?<>a)", "(?<\u200d>a)", "(?=a)**", "(?<n>a", "a{2}{3}", "(?i:a)"]


def matches(pattern: str, name: str, budget: StepBudget | None = None) -> bool:
    """Return whether a name matches a pattern, with a new budget unless one is given."""
    return compile_pattern(pattern).matches(name, budget or StepBudget())


@pytest.mark.parametrize(("pattern", "good", "bad"), CASES + GOING_BACK)
def test_names_match_as_in_javascript(pattern: str, good: list[str], bad: list[str]) -> None:
    """A name matches exactly if it matches in JavaScript."""
    assert [name for name in good if not matches(pattern, name)] == []
    assert [name for name in bad if matches(pattern, name)] == []


@pytest.mark.parametrize("pattern", INVALID)
def test_an_invalid_pattern_is_none(pattern: str) -> None:
    """An invalid pattern accepts every name."""
    assert matches(pattern, "Any name")


@pytest.mark.programs
def test_the_cases_are_javascript() -> None:
    """Node gives the same result for every case of this file."""
    match = """([pattern, names]) => {
        try { const one = new RegExp('^' + pattern + '$'); return names.map((name) => one.test(name)); }
        catch { return null; }
    }"""
    cases = [[pattern, good + bad] for pattern, good, bad in CASES + GOING_BACK] + [[each, ["x"]] for each in INVALID]
    expected = [[True] * len(good) + [False] * len(bad) for _, good, bad in CASES + GOING_BACK]
    assert javascript.apply(match, cases) == expected + [None] * len(INVALID)


def refusal(pattern: str, name: str, budget: StepBudget | None = None) -> str:
    """Return the reason of the `UncheckedNameError` for a name."""
    with pytest.raises(UncheckedNameError) as found:
        matches(pattern, name, budget)
    return found.value.reason


FREEZING = [
    (r"(?=a)(a+)+b", "a" * 32),
    (r"(a|aa)+\1b", "a" * 100),
    (r"(?=(((a*)*)*)*b)a", "a" * 100),
    (r"a*(?<=b(a|aa|aaa)*)c", "a" * 100 + "c"),
    (r"(?!(.*)*(.*)*(.*)*x)y", "-" * 100),
    (r"(?:(?:a?){1000}){1000}b", "a" * 100),
    (r"(a*)*(a*)*\1b", "a" * 5_000),
    (r"(?=.*){2000000000,}a", "b"),
    (r"(?:a?){2000000000}b", "a"),
]
"""Patterns, each with a name for which backtracking takes very long."""


@pytest.mark.parametrize(("pattern", "name"), FREEZING)
def test_a_pattern_that_would_not_end_is_told(pattern: str, name: str) -> None:
    """A check that needs too many steps raises UncheckedNameError and uses up the steps of one name."""
    budget = StepBudget()
    assert refusal(pattern, name, budget) == "it takes too many steps"
    assert budget.left == REQUEST_STEPS - NAME_STEPS


def test_the_names_of_a_request_share_its_steps() -> None:
    """All names of a request share one budget of steps. When it is used up, further names are not checked."""
    budget = StepBudget(5 * NAME_STEPS // 2)
    found = [refusal(r"(?=a)(a+)+b", "a" * size, budget) for size in range(30, 34)]
    assert found == ["it takes too many steps"] * 4
    assert budget.left == 0
    assert refusal("[a-z]+", "a", budget) == "it takes too many steps"


def test_a_usual_pattern_leaves_steps_for_thousands_of_names() -> None:
    """Five hundred names of about fifty characters use less than a tenth of a request's budget, also with a look-ahead."""
    for pattern in (
        r"(?!.*--)[a-z][a-z0-9-]*",
        r"[a-z]+(?:[._-][a-z0-9]+){1,100}",
        r"(team|squad)-(?=.{2,60}$).+(?<!-)",
    ):
        budget = StepBudget()
        for number in range(500):
            assert matches(pattern, f"team-{number}-some-name-that-is-as-long-as-they-are-told", budget)
        assert REQUEST_STEPS - budget.left < REQUEST_STEPS / 10


def test_a_hostile_pattern_takes_linear_time() -> None:
    """RE2 matches a pattern that would backtrack exponentially, also for a very long name."""
    assert not matches("(a+)+b", "a" * 100_000)


def test_what_re2_runs_waits_for_no_search() -> None:
    """RE2 checks names while another search holds the search lock."""
    with SEARCH_LOCK:
        assert matches("[a-z]+", "a")


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        (r"(?=a)a+", True),
        (r"([a-z])\1+", True),
        (r"(?!.*--)[a-z0-9-]+", True),
        (r"(?=.*[0-9])(?=.*[a-z])[a-z0-9-]+", False),
    ],
)
def test_a_name_of_any_length_gets_the_answer_of_a_usual_pattern(pattern: str, fits: bool) -> None:
    """A long name gets more steps, so that usual patterns with look-around and references succeed."""
    assert matches(pattern, "a" * 60_000) is fits


def test_long_names_are_checked_as_well() -> None:
    """A name that is too long for a feature is also checked, as long as the steps suffice."""
    assert matches("(?!b)a+", "a" * 1_000)
    assert not matches("(?!b)a+", "b" * 1_000)
    assert matches("(?!b)a+", "a" * (NAME_STEPS + 1))
    assert refusal("(?!b)a+", "a" * (REQUEST_STEPS + 1)) == "it takes too many steps"
    assert refusal("(?:a?b?){500}c", "ab" * 200_000) == "it takes too many steps"


def nested(depth: int) -> str:
    """Return a pattern of nested groups, each repeated."""
    return "(?:a|b" * depth + ")*" * depth


@pytest.mark.parametrize("reference", ["", r"(z)?\1"])
def test_groups_nest_up_to_a_bound(reference: str) -> None:
    """Nesting up to the limit is parsed. Beyond the limit the error has the position."""
    assert matches(nested(MAX_DEPTH) + reference, "abab")
    assert not matches(nested(MAX_DEPTH) + reference, "c")
    reason = refusal("x" + nested(MAX_DEPTH + 1), "a")
    assert reason == f"its groups are nested more than {MAX_DEPTH} deep, at character {2 + MAX_DEPTH * len('(?:a|b')}"
    assert refusal("(" * 9_000, "a").startswith("its groups are nested more than")


def test_a_pattern_has_a_longest() -> None:
    """A pattern that is too long is not parsed."""
    assert matches("a" * MAX_CHARACTERS, "a" * MAX_CHARACTERS)
    assert refusal("a" * (MAX_CHARACTERS + 1), "a") == f"it is longer than {MAX_CHARACTERS:,} characters"


LARGE = [
    "a{1000}{1000}{1000}", "(?:[^a]{0,1000}){9}", "(?:a{0,1000}){0,1000}", r"\S" * 5_000, "(?:a?b?){500}c", "[^a]" * 2_500,
    "[" + "".join(chr(0x100 + 2 * each) for each in range(9_000)) + "]", "(?:" * 49 + "a" + "){2}" * 49, "a{9999}" * 1_400,
    "[[\\]" * 2_000, "(?<" * 3_000, "a|" * 4_999, "x?" * 4_999, r"(?=a)" + "(?:a{0,99})" * 900, r"(a)\1" + r"\S" * 4_900,
]  # fmt: skip
"""Patterns that are large, or become large when their counts are expanded."""


@pytest.mark.parametrize("pattern", LARGE)
def test_a_large_pattern_is_read_in_bounded_time_and_memory(pattern: str) -> None:
    """Parsing takes less than two seconds and eight megabytes. The check of a name then stays within its steps."""
    tracemalloc.start()
    try:
        compiled = compile_pattern(pattern)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000
    begun = time.process_time()
    compile_pattern.__wrapped__(pattern)
    assert time.process_time() - begun < 2
    with contextlib.suppress(UncheckedNameError):
        compiled.matches("a" * 100, StepBudget())


def test_what_re2_would_take_long_to_read_is_left_out() -> None:
    """The expansion of counts is limited, because RE2 needs two seconds for forty ranges of a thousand."""
    with pytest.raises(TooLargeForRe2):
        LinearPattern(parse("a{0,1000}" * 40))
    assert matches("a{0,1000}" * 40, "a" * 90)
    assert not matches("a{0,1000}" * 2, "b")
    with pytest.raises(TooLargeForRe2):
        LinearPattern(parse("(?:[^a]{0,1000}){9}"))


def test_what_was_not_checked_holds_no_search() -> None:
    """The verdicts of a request keep none of the states of searches that were given up, each of which has megabytes."""
    naming = NamingPattern("(){2147483647}", None, None)
    tracemalloc.start()
    try:
        verdicts = [naming.verdict(f"name-{number}") for number in range(20)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(isinstance(each, UncheckedNameError) for each in verdicts)
    assert held < 2_000_000


PATTERNS = 4_000
NAMES = 6
SEED = 12
UNITS = ["a", "b", "A", "_", "1", "-", ".", " ", "\n", "\u2028", "é", "\ud83d", "\ude00", "\x08", "k", "\\", "]", "{"]
ATOMS = [
    *(
        "a",
        "b",
        "a",
        "b",
        "1",
        "-",
        "_",
        ".",
        "é",
        "😀",
        "]",
        "}",
        "{",
        "{,2}",
        "[ab]",
        "[^a]",
        "[a-z]",
        "[\\w-]",
        "[^\\d\\s]",
    ),
    *(
        "[]",
        "[^]",
        "[b-]",
        "[\\b]",
        "[\\u0061-\\x7a]",
        "[\\ud83d-\\uffff]",
        "[\\W_]",
        "[\\1\\8\\c1]",
        "\\d",
        "\\D",
        "\\w",
        "\\W",
    ),
    *(
        "\\s",
        "\\S",
        "\\x61",
        "\\u0062",
        "\\u{2}",
        "\\ud83d",
        "\\141",
        "\\0",
        "\\cH",
        "\\c",
        "\\q",
        "\\-",
        "\\.",
        "\\8",
        "[-\\x20]",
    ),
]
EDGES = ["^", "$", "\\b", "\\B", "\\b", "\\B"]
REFERENCES = ["\\1", "\\2", "\\3", "\\1", "\\2", "\\k<n>"]
QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{0,2}", "{1,3}?", "{2,}", "{1,}?", "{0,1}"]
FEW = ["a", "b", "a", "b", "a", "."]
"""The atoms of half of the patterns. They are few, so that back references match often."""
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
    """Return the result of each of our searches for each name, or None if the pattern is invalid."""
    try:
        node = parse(pattern)
    except InvalidPattern:
        return None
    compiled = Pattern(node)
    found = [[each] for each in (compiled._match_by_steps(name, StepBudget()) for name in given)]
    for name, said in zip(given, found, strict=True):
        linearly = compiled._match_linear(name, StepBudget())
        said.extend([] if linearly is None else [linearly])
    return found


@pytest.mark.programs
def test_generated_patterns_match_as_in_javascript() -> None:
    """Node, RE2 and our own search give the same result for every pattern and name, also on which patterns are invalid."""
    draw = random.Random(SEED)
    made = Patterns(draw)
    cases = [(made.pattern(), names(draw)) for _ in range(PATTERNS)]
    test = """([pattern, names]) => {
        try { const one = new RegExp('^' + pattern + '$'); return names.map((name) => one.test(name)); }
        catch { return null; }
    }"""
    expected = javascript.apply(test, cases)
    counts = {"invalid": 0, "linear": 0, "by steps": 0, "matching": 0}
    wrong = []
    for (pattern, given), said in zip(cases, expected, strict=True):
        found = ours(pattern, given)
        if found is None or said is None:
            counts["invalid"] += 1
            wrong += [] if found == said else [(pattern, said, found)]
            continue
        for name, is_match, verdicts in zip(given, said, found, strict=True):
            counts["linear" if len(verdicts) > 1 else "by steps"] += 1
            counts["matching"] += is_match
            if set(verdicts) != {is_match}:
                wrong.append((pattern, name, is_match, verdicts))  # type: ignore[arg-type]
    assert wrong == []
    assert min(counts.values()) > 100, counts
