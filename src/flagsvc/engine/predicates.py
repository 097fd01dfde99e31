"""Predicates: compiled constraints and segments, each a yes or no for one run.

All that the configuration decides is decided here once: lists are sets, versions and dates parsed, patterns compiled. A predicate
that several strategies share has a slot in the run's memory and is tested at most once per request. A test never raises.
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
"""The slot of a predicate that only one strategy asks for: beyond every run's memory."""


@mypyc_attr(acyclic=True)
class Predicate:
    """A yes or no. `slot` is the place of its memo in a run, if it has one.

    Snapshots share predicates, and a slot is given, once and for good, when a second strategy asks for the predicate. It may be
    beyond the memory of a snapshot that is older than that.
    """

    def __init__(self) -> None:
        self.slot: i64 = NO_SLOT

    def test(self, run: Run) -> bool:
        """Decide for this run."""
        return False

    def holds(self, run: Run) -> bool:
        """Decide for this run, at most once where the predicate is shared."""
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
    """Holds for everyone."""

    def test(self, run: Run) -> bool:
        """Hold."""
        return True


@mypyc_attr(acyclic=True)
class Never(Predicate):
    """Never holds, inverted or not; `reason` says why (an unknown operator, a missing segment, …)."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason

    def test(self, run: Run) -> bool:
        """Do not hold."""
        return False


@mypyc_attr(acyclic=True)
class SegmentPredicate(Predicate):
    """Holds when every constraint of the segment holds."""

    def __init__(self, identity: str, name: str, parts: list[Predicate]) -> None:
        super().__init__()
        self.identity = identity
        self.name = name
        self.parts = parts

    def test(self, run: Run) -> bool:
        """Hold when every part holds."""
        for part in self.parts:
            if not part.holds(run):
                return False
        return True


@mypyc_attr(acyclic=True)
class FieldPredicate(Predicate):
    """A predicate on one context field; `negate` is the constraint's `inverted`."""

    def __init__(self, kind: i64, name: str, negate: bool) -> None:
        super().__init__()
        self.kind: i64 = kind
        self.name = name
        self.negate = negate


@mypyc_attr(acyclic=True)
class InList(FieldPredicate):
    """IN, and NOT_IN as its negation: an absent field is in no list."""

    def __init__(self, kind: i64, name: str, negate: bool, values: set[str]) -> None:
        super().__init__(kind, name, negate)
        self.values = values

    def test(self, run: Run) -> bool:
        """Hold when the field's text is one of the values."""
        value = run.context.read(self.kind, self.name)
        return (value is not None and value in self.values) != self.negate


@mypyc_attr(acyclic=True)
class TextPredicate(FieldPredicate):
    """A predicate on a field's text, lower-cased first where the constraint asks for it."""

    def __init__(self, kind: i64, name: str, negate: bool, values: tuple[str, ...], insensitive: bool) -> None:
        super().__init__(kind, name, negate)
        self.insensitive = insensitive
        self.values: tuple[str, ...] = tuple([lower(value) for value in values]) if insensitive else values

    def matches(self, text: str) -> bool:
        """Decide for a text that is there."""
        return False

    def test(self, run: Run) -> bool:
        """Hold when the field is there and its text matches."""
        value = run.context.read(self.kind, self.name)
        if value is None:
            return self.negate
        return self.matches(lower(value) if self.insensitive else value) != self.negate


@mypyc_attr(acyclic=True)
class StartsWith(TextPredicate):
    """STR_STARTS_WITH: the text starts with one of the values."""

    def matches(self, text: str) -> bool:
        """Decide for a text that is there."""
        return text.startswith(self.values)


@mypyc_attr(acyclic=True)
class EndsWith(TextPredicate):
    """STR_ENDS_WITH: the text ends with one of the values."""

    def matches(self, text: str) -> bool:
        """Decide for a text that is there."""
        return text.endswith(self.values)


@mypyc_attr(acyclic=True)
class Contains(TextPredicate):
    """STR_CONTAINS: one of the values is somewhere in the text."""

    def matches(self, text: str) -> bool:
        """Decide for a text that is there."""
        for value in self.values:
            if value in text:
                return True
        return False


@mypyc_attr(acyclic=True)
class Matches(FieldPredicate):
    """REGEX: the pattern is found somewhere in the text, in linear time."""

    def __init__(self, kind: i64, name: str, negate: bool, pattern: Regex, text: str) -> None:
        super().__init__(kind, name, negate)
        self.pattern = pattern
        self.text = text

    def test(self, run: Run) -> bool:
        """Hold when the field is there and the pattern is found in it."""
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
        """Hold when the field is an address in one of the networks."""
        value = run.context.read(self.kind, self.name)
        return (value is not None and self.networks.matches(value)) != self.negate


@mypyc_attr(acyclic=True)
class Comparison(FieldPredicate):
    """A predicate that orders the field against one value; `accepts` is the set of LESS, EQUAL, GREATER that satisfy it."""

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
        """Hold when the field's number stands in the asked order to the value."""
        text = run.context.read(self.kind, self.name)
        if text is None:
            return self.negate
        return (order(jsnumber.parse(text), self.value) & self.accepts != 0) != self.negate


@mypyc_attr(acyclic=True)
class SemverComparison(Comparison):
    """SEMVER_*: compares strict semantic versions. A field that is none fails, before `negate` is applied."""

    def __init__(self, kind: i64, name: str, negate: bool, accepts: i64, value: SemVer, text: str) -> None:
        super().__init__(kind, name, negate, accepts)
        self.value = value
        self.text = text

    def test(self, run: Run) -> bool:
        """Hold when the field's version stands in the asked order to the value."""
        text = run.context.read(self.kind, self.name)
        version = None if text is None else parse_semver(text, lenient=False)
        if version is None:
            return self.negate
        return (sign(compare(version, self.value)) & self.accepts != 0) != self.negate


@mypyc_attr(acyclic=True)
class DateComparison(Comparison):
    """DATE_*: always the context's current time (else now), whatever field the constraint names."""

    def __init__(self, negate: bool, accepts: i64, value: float) -> None:
        super().__init__(0, "currentTime", negate, accepts)
        self.value = value

    def test(self, run: Run) -> bool:
        """Hold when the time of the evaluation stands in the asked order to the value."""
        given = run.context.current_time
        time = run.context.now if given is None else given
        return (order(time, self.value) & self.accepts != 0) != self.negate


def order(left: float, right: float) -> i64:
    """Return LESS, EQUAL or GREATER, or 0 when either is not a number."""
    if left < right:
        return LESS
    if left > right:
        return GREATER
    return EQUAL if left == right else 0


def sign(difference: i64) -> i64:
    """Return LESS, EQUAL or GREATER of a three-way comparison's result."""
    if difference < 0:
        return LESS
    return GREATER if difference > 0 else EQUAL
