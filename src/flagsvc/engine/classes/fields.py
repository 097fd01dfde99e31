"""The class of a context: what the constraints of a configuration make of its fields, without who the user is. Compiled.

Two contexts of one class get the same from every constraint, apart from those that look at an identifier: user, session, address.
A field counts by its pattern: the results of all constraints on it. So a value that no constraint knows makes no class of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.classes.users import UserLists
from flagsvc.engine.context import CURRENT_TIME, REMOTE_ADDRESS, SESSION_ID, USER_ID, Context
from flagsvc.engine.features import Toggle
from flagsvc.engine.predicates import (
    Comparison,
    DateComparison,
    FieldPredicate,
    InList,
    InNetwork,
    Matches,
    Predicate,
    SegmentPredicate,
    TextPredicate,
)
from flagsvc.engine.reads import Moments
from flagsvc.engine.run import Memory, Run
from flagsvc.engine.strategies import UserIds

MAX_PATTERNS: Final = 512
"""The patterns of one field. A field with more of them is no part of a class."""
MANY_CLASSES: Final = 512
"""More combinations of patterns than these are too many for a store whose look-ups find nothing."""
VALUE: Final = 120
"""Bytes of a value whose pattern is remembered, without its characters."""
CHARACTER: Final = 4
"""Bytes of a character, at most."""
TOO_MANY: Final = ""
"""Stands for the pattern of a field that has too many."""
UNKNOWN: Final = ""
"""Stands for the pattern of a value that is not remembered."""
LISTED: Final = "+"
"""Stands in a key for a user who may be in a list."""

# What testing a value costs: one for a look-up in a set, more for what takes longer.
MAX_WORK: Final = 50_000
"""The most work that is saved up, and what new classes have: some 2 ms."""
CHARACTERS: Final = 64
"""A value of so many characters costs twice as much."""
ENTRIES: Final = 4
"""Entries of a list whose look-up earns the work of one."""


def work_of(test: FieldPredicate) -> i64:
    if isinstance(test, Matches):
        return 100
    if isinstance(test, InNetwork):
        return 10
    if isinstance(test, Comparison):
        return 5
    if isinstance(test, TextPredicate):
        return 1 + len(test.values) // 4
    return 1


@mypyc_attr(acyclic=True)
class FieldClasses:
    """The patterns of one context field. `tests` are all predicates on the field, and `work` is what they cost.

    `starved` counts the values that were not tested, because no work was left.
    """

    def __init__(self, kind: i64, name: str, tests: list[FieldPredicate]) -> None:
        self.kind: i64 = kind
        self.name = name
        self.tests = tests
        self.work: i64 = 0
        for each in tests:
            self.work += work_of(each)
        self.starved: i64 = 0
        self.values: dict[str, str] = {}
        self.patterns: dict[bytes, str] = {}
        self.absent: str = UNKNOWN

    def pattern(self, context: Context) -> str:
        """Return the pattern of a context as one character, or UNKNOWN."""
        value = context.read(self.kind, self.name)
        if value is None:
            return self.absent
        known = self.values.get(value)
        return UNKNOWN if known is None else known

    def find(self, context: Context) -> str:
        """Test every predicate, and return the pattern of the results, or TOO_MANY."""
        run = Run(context, NO_MEMORY)
        results = bytes([1 if each.test(run) else 0 for each in self.tests])
        found = self.patterns.get(results)
        if found is None:
            if len(self.patterns) >= MAX_PATTERNS:
                return TOO_MANY
            found = chr(len(self.patterns))
            self.patterns[results] = found
        return found

    def width(self) -> i64:
        """Return how much speaks for leaving the field out: values that were not tested, then the number of patterns."""
        return self.starved * (MAX_PATTERNS + 1) + len(self.patterns)


NO_MEMORY: Final = Memory(0, 0, False)
"""For predicates that are tested outside of an evaluation."""


@mypyc_attr(acyclic=True)
class FieldTests:
    """Collects the constraints of toggles: by the name of their field, the lists of users, and the names of other `identifiers`."""

    def __init__(self) -> None:
        self.by_field: dict[str, dict[int, FieldPredicate]] = {}
        self.lists: dict[int, set[str] | frozenset[str]] = {}
        self.identifiers: set[str] = set()
        # those that were added: many strategies share a segment
        self.segments: set[int] = set()

    def add(self, toggle: Toggle) -> None:
        if toggle.constant >= 0:
            return
        strategy = toggle.head
        while strategy is not None:
            if isinstance(strategy, UserIds):
                self.lists[id(strategy.users)] = strategy.users
            for condition in strategy.conditions:
                self.add_predicate(condition)
            strategy = strategy.following

    def add_predicate(self, predicate: Predicate) -> None:
        """Add a constraint, or those of a segment."""
        if isinstance(predicate, SegmentPredicate):
            if id(predicate) not in self.segments:
                self.segments.add(id(predicate))
                for part in predicate.parts:
                    self.add_predicate(part)
        elif isinstance(predicate, InList) and predicate.kind == USER_ID:
            self.lists[id(predicate.values)] = predicate.values
        elif isinstance(predicate, FieldPredicate):
            if by_identifier(predicate):
                self.identifiers.add(predicate.name)
            else:
                self.by_field.setdefault(predicate.name, {})[id(predicate)] = predicate


class ContextClasses:
    """Tells the classes of contexts for one snapshot, after the steps of `finish`.

    `dropped` are the names of fields that are no part of a class, because their values make too many. `version` changes with them.
    `open_names` are these, and the identifiers that constraints read. The values whose pattern is remembered take at most `room`
    bytes; `size` is what they take.
    """

    def __init__(self, moments: Moments, tests: FieldTests, room: int) -> None:
        self.moments = moments
        self.room: i64 = room
        self.size: i64 = 0
        self.work_left: i64 = MAX_WORK
        self.tests = tests
        self.all_fields: list[FieldClasses] = []
        self.fields: list[FieldClasses] = []
        self.dropped: set[str] = set()
        self.identifiers = sorted(tests.identifiers)
        self.open_names: list[str] = list(self.identifiers)
        self.version: i64 = 0
        self.users = UserLists()

    def finish(self, former: ContextClasses | None) -> Iterator[int]:
        """Make the tables, and yield the number of users of each step. What did not change is taken from `former`."""
        known = {} if former is None else {each.name: each for each in former.all_fields}
        for name in sorted(self.tests.by_field):
            tests = list(self.tests.by_field[name].values())
            same = known.get(name)
            if same is None or not are_same(same.tests, tests):
                same = FieldClasses(tests[0].kind, name, tests)
            self.all_fields.append(same)
        self.fields = list(self.all_fields)
        if former is not None:
            self.size = former.size
            self.work_left = former.work_left
            for name in former.dropped:
                self.drop(name)
        lists = list(self.tests.lists.values())
        before = UserLists() if former is None else former.users
        if before.has_just(lists):
            self.users = before
        else:
            yield from self.users.read(lists, before)
        self.tests = FieldTests()

    def key(self, context: Context, mark: str, listed: bool) -> str | None:
        """Return the class of a context, after `mark`; None if finding the class would be too much work.

        `listed` tells whether the user may be in a list. Raises TypeError if a field is not a text.
        """
        for name in self.open_names:
            require_text(context.properties.get(name))
        parts = [mark]
        for field in self.fields:
            pattern = field.pattern(context) or self.classify(field, context)
            if not pattern:
                return None
            parts.append(pattern)
        if listed:
            parts.append(LISTED)
        if self.moments.exist:
            parts.append(str(self.moments.position(context)))
        return "".join(parts)

    def classify(self, field: FieldClasses, context: Context) -> str:
        """Return the pattern of a value that is not remembered, and remember it; an empty text if that is too much work.

        Raises TypeError if it is not a text.
        """
        value = context.read(field.kind, field.name)
        require_text(value)
        length: i64 = 0 if value is None else len(value)
        work = field.work * (1 + length // CHARACTERS)
        if work > self.work_left:
            field.starved += 1
            return UNKNOWN
        self.work_left -= work
        found = field.find(context)
        if not found:
            self.drop(field.name)
        elif value is None:
            field.absent = found
        else:
            self.remember(field, value, found)
        return found

    def remember(self, field: FieldClasses, value: str, pattern: str) -> None:
        """Remember the pattern of a value. When there is no room, all values are forgotten."""
        size = VALUE + CHARACTER * len(value)
        if size > self.room:
            return
        if self.size + size > self.room:
            for each in self.all_fields:
                each.values = {}
            self.size = 0
        self.size += size
        field.values[value] = pattern

    def earn(self, entries: i64) -> None:
        """Save up work for the look-up of a list of so many entries."""
        self.work_left = min(self.work_left + 1 + entries // ENTRIES, MAX_WORK)

    def sample(self, context: Context) -> Context:
        """Return a context of the same class that holds nothing else of the given one. No list holds its user."""
        names = {each.name for each in self.all_fields}
        properties: dict[str, str] = {}
        for name in names:
            # an enricher may set a property to None, which counts as absent
            text = context.properties.get(name)
            if text is not None:
                properties[name] = text
        return Context(
            app_name=context.app_name if "appName" in names else None,
            environment=context.environment if "environment" in names else None,
            current_time=context.current_time,
            properties=properties,
            now=context.now,
        )

    def drop(self, name: str) -> None:
        """Leave a field out of the classes from now on. Keys from before this are not valid any more."""
        self.version += 1
        self.dropped.add(name)
        self.open_names.append(name)
        self.fields = [each for each in self.fields if each.name != name]

    def narrow(self) -> None:
        """Leave the widest field out of the classes from now on, and further ones until few classes are left."""
        many = MANY_CLASSES + 1
        while many > MANY_CLASSES and self.fields:
            widest = self.fields[0]
            many = 1
            for each in self.fields:
                if each.width() > widest.width():
                    widest = each
                many *= max(1, len(each.patterns))
            many //= max(1, len(widest.patterns))
            self.drop(widest.name)

    def begin_window(self) -> None:
        """Begin to count the values that are not tested."""
        for each in self.fields:
            each.starved = 0

    def restore(self) -> None:
        """Take all fields again, those that were left out with new patterns. Keys from before this are not valid any more."""
        self.version += 1
        self.all_fields = [
            FieldClasses(each.kind, each.name, each.tests) if each.name in self.dropped else each for each in self.all_fields
        ]
        self.dropped = set()
        self.open_names = list(self.identifiers)
        self.fields = list(self.all_fields)

    def is_open(self, predicate: FieldPredicate, listed: bool) -> bool:
        """Return whether the predicate can differ within a class, whose users are in lists or not."""
        if isinstance(predicate, DateComparison):
            return False
        if predicate.kind == USER_ID and isinstance(predicate, InList):
            return listed
        return by_identifier(predicate) or predicate.name in self.dropped


def by_identifier(predicate: FieldPredicate) -> bool:
    """Return whether a predicate looks at something that most contexts have for themselves. Dates are compared by position."""
    return (
        isinstance(predicate, DateComparison)
        or predicate.kind == USER_ID
        or predicate.kind == SESSION_ID
        or predicate.kind == REMOTE_ADDRESS
        or predicate.kind == CURRENT_TIME
    )


def require_text(value: object) -> None:
    """Raise TypeError if a property is not a text: toggles that read it are off, and a class without it cannot know."""
    if value is not None and not isinstance(value, str):
        raise TypeError("a property is not a text")


def are_same(left: Sequence[object], right: Sequence[object]) -> bool:
    """Return whether two lists have the same objects in the same order."""
    if len(left) != len(right):
        return False
    for at, each in enumerate(left):
        if each is not right[at]:
            return False
    return True
