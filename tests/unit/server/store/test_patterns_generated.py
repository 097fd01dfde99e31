"""Generated naming patterns match as node's RegExp does: with RE2 where it supports them, and always with our own search."""

from __future__ import annotations

import random

import pytest

from flagsvc.server.store.patterns import StepBudget
from flagsvc.server.store.patterns.characters import InvalidPattern
from flagsvc.server.store.patterns.grammar import parse
from flagsvc.server.store.patterns.pattern import Pattern
from support import javascript

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
