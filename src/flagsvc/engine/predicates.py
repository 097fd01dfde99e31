"""Predicates: compiled constraints and segments. Each answers true or false for a run.

All that the configuration decides is decided here once: lists are sets, versions and dates are parsed, patterns are compiled. A
predicate that several strategies share has a slot in the run's memory and is tested at most once for each request. A test never
raises.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.run import Run
from flagsvc.engine.values import jsnumber
from flagsvc.engine.values.cidr import CidrSet
from flagsvc.engine.values.regex import Regex
from flagsvc.engine.values.semver import SemVer, compare
from flagsvc.engine.values.semver import parse as parse_semver
from flagsvc.engine.values.text import lower

LESS: Final = 1
EQUAL: Final = 2
GREATER: Final = 4


NO_SLOT: Final = 1_000_000_000_000
"""The slot of a predicate that only one strategy uses. It is outside of every run's memory."""


@mypyc_attr(acyclic=True)
class Predicate:
    """A test of a run. `slot` is the place of its result in the memory of a run, if it has one.

    Snapshots share predicates. A predicate gets its slot when a second strategy uses it, and keeps it. The slot may be outside
    of the memory of an older snapshot.
    """

    def __init__(self) -> None:
        self.slot: i64 = NO_SLOT

    def test(self, run: Run) -> bool:
        return False

    def holds(self, run: Run) -> bool:
        """Return the result for this run. A shared predicate is tested at most once."""
        if self.slot >= run.slots:
            return self.test(run)
        known = run.predicates[self.slot]
        if known >= 0:
            return known == 1
        answer = self.test(run)
        run.predicates[self.slot] = 1 if answer else 0
        return answer


@mypyc_attr(acyclic=True)
class Always(Predicate):
    """Holds for every context."""

    def test(self, run: Run) -> bool:
        return True


@mypyc_attr(acyclic=True)
class Never(Predicate):
    """Never holds, inverted or not. `reason` says why (an unknown operator, a missing segment, …)."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason

    def test(self, run: Run) -> bool:
        return False


@mypyc_attr(acyclic=True)
class SegmentPredicate(Predicate):
    """Holds when every constraint of the segment holds. They read `fields`, and compare the time with `moments`."""

    def __init__(self, identity: str, name: str, parts: list[Predicate]) -> None:
        super().__init__()
        self.identity = identity
        self.name = name
        self.parts = parts
        dates = [part.value for part in parts if isinstance(part, DateComparison)]
        self.moments: frozenset[float] = frozenset(dates)
        fields = [part for part in parts if isinstance(part, FieldPredicate) and not isinstance(part, DateComparison)]
        self.fields: frozenset[str] = frozenset([part.name for part in fields])

    def test(self, run: Run) -> bool:
        """Return whether every part holds."""
        for part in self.parts:
            if not part.holds(run):
                return False
        return True


@mypyc_attr(acyclic=True)
class FieldPredicate(Predicate):
    """A predicate on one context field. `negate` is the constraint's `inverted`."""

    def __init__(self, kind: i64, name: str, negate: bool) -> None:
        super().__init__()
        self.kind: i64 = kind
        self.name = name
        self.negate = negate


@mypyc_attr(acyclic=True)
class InList(FieldPredicate):
    """IN, and NOT_IN as its negation. An absent field is in no list."""

    def __init__(self, kind: i64, name: str, negate: bool, values: set[str]) -> None:
        super().__init__(kind, name, negate)
        self.values = values

    def test(self, run: Run) -> bool:
        """Return whether the field's text is one of the values."""
        value = run.context.read(self.kind, self.name)
        return (value is not None and value in self.values) != self.negate


@mypyc_attr(acyclic=True)
class TextPredicate(FieldPredicate):
    """A predicate on a field's text, in lower case if the constraint ignores case."""

    def __init__(self, kind: i64, name: str, negate: bool, values: tuple[str, ...], insensitive: bool) -> None:
        super().__init__(kind, name, negate)
        self.insensitive = insensitive
        self.values: tuple[str, ...] = tuple([lower(value) for value in values]) if insensitive else values

    def matches(self, text: str) -> bool:
        """Return the result for a present text."""
        return False

    def test(self, run: Run) -> bool:
        """Return whether the field is present and its text matches."""
        value = run.context.read(self.kind, self.name)
        if value is None:
            return self.negate
        return self.matches(lower(value) if self.insensitive else value) != self.negate


@mypyc_attr(acyclic=True)
class StartsWith(TextPredicate):
    """STR_STARTS_WITH: the text starts with one of the values."""

    def matches(self, text: str) -> bool:
        """Return the result for a present text."""
        return text.startswith(self.values)


@mypyc_attr(acyclic=True)
class EndsWith(TextPredicate):
    """STR_ENDS_WITH: the text ends with one of the values."""

    def matches(self, text: str) -> bool:
        """Return the result for a present text."""
        return text.endswith(self.values)


@mypyc_attr(acyclic=True)
class Contains(TextPredicate):
    """STR_CONTAINS: the text contains one of the values."""

    def matches(self, text: str) -> bool:
        """Return the result for a present text."""
        for value in self.values:
            if value in text:
                return True
        return False


@mypyc_attr(acyclic=True)
class Matches(FieldPredicate):
    """REGEX: the text contains a match of the pattern. The time is linear."""

    def __init__(self, kind: i64, name: str, negate: bool, pattern: Regex, text: str) -> None:
        super().__init__(kind, name, negate)
        self.pattern = pattern
        self.text = text

    def test(self, run: Run) -> bool:
        """Return whether the field is present and contains a match of the pattern."""
        value = run.context.read(self.kind, self.name)
        return (value is not None and self.pattern.search(value)) != self.negate


@mypyc_attr(acyclic=True)
class InNetwork(FieldPredicate):
    """IN_CIDR: the address is in one of the networks of its own family."""

    def __init__(self, kind: i64, name: str, negate: bool, values: tuple[str, ...], networks: CidrSet) -> None:
        super().__init__(kind, name, negate)
        self.values = values
        self.networks = networks

    def test(self, run: Run) -> bool:
        """Return whether the field is an address in one of the networks."""
        value = run.context.read(self.kind, self.name)
        return (value is not None and self.networks.matches(value)) != self.negate


@mypyc_attr(acyclic=True)
class Comparison(FieldPredicate):
    """Compares the field with one value. `accepts` is the set of LESS, EQUAL, GREATER that satisfy it."""

    def __init__(self, kind: i64, name: str, negate: bool, accepts: i64) -> None:
        super().__init__(kind, name, negate)
        self.accepts: i64 = accepts


@mypyc_attr(acyclic=True)
class NumberComparison(Comparison):
    """NUM_*: compares numbers as JavaScript's Number reads them. A text that is not a number fails, before `negate` is applied."""

    def __init__(self, kind: i64, name: str, negate: bool, accepts: i64, value: float) -> None:
        super().__init__(kind, name, negate, accepts)
        self.value = value

    def test(self, run: Run) -> bool:
        """Return whether the field's number compares with the value as required."""
        text = run.context.read(self.kind, self.name)
        if text is None:
            return self.negate
        return (order(jsnumber.parse(text), self.value) & self.accepts != 0) != self.negate


@mypyc_attr(acyclic=True)
class SemverComparison(Comparison):
    """SEMVER_*: compares strict semantic versions. A field that is not a version fails, before `negate` is applied."""

    def __init__(self, kind: i64, name: str, negate: bool, accepts: i64, value: SemVer, text: str) -> None:
        super().__init__(kind, name, negate, accepts)
        self.value = value
        self.text = text

    def test(self, run: Run) -> bool:
        """Return whether the field's version compares with the value as required."""
        text = run.context.read(self.kind, self.name)
        version = None if text is None else parse_semver(text, lenient=False)
        if version is None:
            return self.negate
        return (sign(compare(version, self.value)) & self.accepts != 0) != self.negate


@mypyc_attr(acyclic=True)
class DateComparison(Comparison):
    """DATE_*: compares the context's current time (else `now`). The field that the constraint names does not matter."""

    def __init__(self, negate: bool, accepts: i64, value: float) -> None:
        super().__init__(0, "currentTime", negate, accepts)
        self.value = value

    def test(self, run: Run) -> bool:
        """Return whether the time of the evaluation compares with the value as required."""
        given = run.context.current_time
        time = run.context.now if given is None else given
        return (order(time, self.value) & self.accepts != 0) != self.negate


def order(left: float, right: float) -> i64:
    """Return LESS, EQUAL or GREATER; 0 if either is not a number."""
    if left < right:
        return LESS
    if left > right:
        return GREATER
    return EQUAL if left == right else 0


def sign(difference: i64) -> i64:
    """Return LESS, EQUAL or GREATER for the result of a three-way comparison."""
    if difference < 0:
        return LESS
    return GREATER if difference > 0 else EQUAL
