"""Compiles a list answer for one class of contexts (decision 0063). Compiled.

Each toggle is followed in the order of an evaluation, up to the first part that can differ within the class. So the program draws
the same random numbers, in the same order, as an evaluation without it.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i32, i64

from flagsvc.engine.classes.fields import ContextClasses
from flagsvc.engine.classes.marks import ADMITTED, DRAWS, INDEX, REFUSED, WHOLE
from flagsvc.engine.classes.program import PLACE, ClassMemory, ClassProgram, SharedPieces
from flagsvc.engine.classes.rollouts import RolloutGroup, RolloutNumbers
from flagsvc.engine.context import Context
from flagsvc.engine.features import FIRST_VARIANT, OFF, Toggle
from flagsvc.engine.lists import AnswerList, ListEntry
from flagsvc.engine.predicates import FieldPredicate, Predicate, SegmentPredicate
from flagsvc.engine.run import Memory, Run
from flagsvc.engine.strategies import (
    CompiledStrategy,
    DefaultRollout,
    Everyone,
    NeverEnabled,
    OwnFieldRollout,
    StickyRollout,
    UserIds,
)
from flagsvc.engine.variants import VariantChoice

NO: Final = 0
YES: Final = 1
OPEN: Final = 2

EVALUATED: Final = -1
"""The outcome of a toggle that must be evaluated as a whole."""
ROLLED_OUT: Final = -2
"""The outcome of a toggle that one rollout or list of users decides, or one draw."""

WORD: Final = 8
"""Bytes of a reference, and of a native integer."""
MARK: Final = 4
"""Bytes of a mark."""
OBJECT: Final = 33
"""Bytes of a bytes object without its content."""
FIXED: Final = 1000
"""Bytes of a program without steps."""
NOTHING: Final[vec[i64]] = vec[i64]()


class ClassCompiler:
    """Compiles the entries of a list for the class of a context, some at a time, in their order.

    `listed` tells whether the users of the class may be in lists. `rollouts` has the numbers that all programs share, and `shared`
    what those of the list do.
    """

    def __init__(
        self,
        classes: ContextClasses,
        answered: AnswerList,
        shared: SharedPieces,
        memory: Memory,
        context: Context,
        listed: bool,
        rollouts: RolloutNumbers,
    ) -> None:
        self.classes = classes
        self.answered = answered
        self.shared = shared
        self.memory = memory
        self.listed: bool = listed
        self.rollouts = rollouts
        # its memory gets what the class decides, and nothing else
        self.run = Run(context, memory)
        # the slots of shared predicates that can differ within the class
        self.opened: set[int] = set()
        self.at: i64 = 0
        # bytes of the decided runs that were joined first for this program
        self.glued: int = 0
        self.marks: vec[i32] = vec[i32]()
        self.admitted: list[bytes] = []
        self.refused: list[bytes] = []
        self.whole: list[ListEntry] = []
        self.groups: dict[str, RolloutGroup] = {}
        self.lists: list[int] = []
        self.decided: list[bytes] = []
        # what the last toggle was followed to: the strategy that is open, or that draws; the outcome if it does not admit
        self.strategy: CompiledStrategy | None = None
        self.otherwise: i64 = OFF

    def advance(self, count: i64) -> bool:
        """Compile the next entries, and return whether all are compiled."""
        entries = self.answered.entries
        end: i64 = len(entries)
        last = min(self.at + count, end)
        while self.at < last:
            self.add(entries[self.at])
            self.at += 1
        return self.at == end

    def program(self) -> ClassProgram:
        """Return the program, when everything is compiled."""
        self.end_decided()
        groups = list(self.groups.values())
        known = ClassMemory(self.memory, NOTHING, NOTHING)
        if self.whole:
            known = ClassMemory(self.memory, self.run.predicates, self.run.parents)
        references = len(self.admitted) + len(self.refused) + len(self.whole)
        natives = len(self.lists) + len(known.predicates) + len(known.parents)
        for group in groups:
            # a copy has no room to grow
            group.steps = group.steps[:]
            natives += len(group.steps)
        size = FIXED + self.glued + MARK * len(self.marks) + WORD * (references + natives)
        return ClassProgram(
            known,
            groups,
            self.shared.draws,
            self.whole,
            self.marks[:],
            self.refused[:],
            self.admitted[:],
            vec[i64](sorted(self.lists)),
            self.classes.users,
            size,
        )

    def add(self, entry: ListEntry) -> None:
        """Add the step of an entry, or its bytes to the decided ones."""
        toggle = entry.toggle
        outcome = self.outcome(toggle)
        if outcome >= 0:
            piece = entry.piece(outcome)
            if piece:
                self.decided.append(piece)
            return
        self.end_decided()
        if outcome == ROLLED_OUT and toggle.memo < 0:
            self.add_rollout(entry)
        else:
            # a toggle that others depend on is evaluated once for all of them, so it must be evaluated as a whole
            self.add_step(WHOLE | len(self.whole) << INDEX, b"")
            self.whole.append(entry)

    def end_decided(self) -> None:
        """Add a step for the bytes that the class decided since the last step."""
        if not self.decided:
            return
        piece = self.decided[0]
        if len(self.decided) > 1:
            joined = b"".join(self.decided)
            piece = self.shared.shared_run(joined)
            if piece is joined:
                self.glued += OBJECT + len(piece)
        self.decided = []
        self.add_step(ADMITTED, piece)

    def add_step(self, mark: int, piece: bytes) -> None:
        self.marks = append(self.marks, i32(mark))
        self.admitted.append(piece)

    def add_rollout(self, entry: ListEntry) -> None:
        """Add the step of a toggle that one rollout, list or draw decides."""
        strategy = self.strategy
        assert strategy is not None
        toggle = entry.toggle
        refused = entry.piece(self.otherwise)
        admitted = toggle.constant_outcome(strategy)
        if admitted < 0:
            always = ADMITTED if isinstance(strategy, Everyone) else 0
            self.add_step(DRAWS | always | self.draw(entry, strategy) << INDEX, refused)
        elif refused:
            self.add_step(REFUSED | len(self.refused) << INDEX, entry.piece(admitted))
            self.refused.append(refused)
        else:
            self.add_step(0, entry.piece(admitted))
        if isinstance(strategy, StickyRollout):
            name = f"{strategy.size & 3}{sticks_to(strategy)}"
            group = self.groups.get(name)
            if group is None:
                group = RolloutGroup(strategy, self.rollouts)
                self.groups[name] = group
            group.add(strategy, len(self.marks) - 1)
        elif isinstance(strategy, UserIds):
            number = self.classes.users.number(strategy.users)
            self.lists.append(number << PLACE | len(self.marks) - 1)

    def draw(self, entry: ListEntry, strategy: CompiledStrategy) -> int:
        """Return the place of the draw of an entry's variant when a strategy is on."""
        choice = drawn(entry.toggle, strategy)
        assert choice is not None
        first = FIRST_VARIANT if strategy.choice is None else strategy.first
        return self.shared.draws.add(choice, [entry.piece(first + index) for index in choice.indexes])

    def outcome(self, toggle: Toggle) -> i64:
        """Return the outcome that the class decides; else ROLLED_OUT with `strategy` and `otherwise` set, or EVALUATED."""
        if toggle.constant >= 0:
            return toggle.constant
        if toggle.memo < 0:
            return self.follow(toggle)
        known = self.run.parents[toggle.memo]
        if known < 0:
            known = self.follow(toggle)
            if known >= 0:
                self.run.parents[toggle.memo] = known
        return known

    def follow(self, toggle: Toggle) -> i64:
        for parent in toggle.parents:
            outcome = self.outcome(parent.toggle)
            if outcome < 0:
                return EVALUATED
            if not parent.accepts(outcome):
                return OFF
        first: CompiledStrategy | None = None
        strategy = toggle.head
        while strategy is not None:
            rule = self.rule(strategy)
            truth = NO if rule == NO else self.conditions(strategy)
            if truth == YES and rule == YES:
                return self.end_follow(toggle, strategy, first)
            if truth != NO:
                if truth == OPEN or first is not None or not is_step(strategy) or is_drawn_whole(toggle, strategy):
                    return EVALUATED
                first = strategy
            strategy = strategy.following
        if first is None:
            return OFF
        self.strategy = first
        self.otherwise = OFF
        return ROLLED_OUT

    def end_follow(self, toggle: Toggle, strategy: CompiledStrategy, first: CompiledStrategy | None) -> i64:
        """Return the outcome where a strategy admits the whole class, or those that the open one before it does not admit."""
        outcome = toggle.constant_outcome(strategy)
        if outcome < 0 and (first is not None or is_drawn_whole(toggle, strategy)):
            return EVALUATED
        if first is not None:
            self.strategy = first
            self.otherwise = outcome
            return ROLLED_OUT
        if outcome >= 0:
            return outcome
        self.strategy = strategy
        self.otherwise = OFF
        return ROLLED_OUT

    def conditions(self, strategy: CompiledStrategy) -> i64:
        """Return whether all conditions hold. Predicates have no effects: any order is right."""
        found: i64 = YES
        for condition in strategy.conditions:
            truth = self.truth(condition)
            if truth == NO:
                return NO
            if truth == OPEN:
                found = OPEN
        return found

    def truth(self, predicate: Predicate) -> i64:
        shared = predicate.slot < self.run.slots
        if shared:
            known = self.run.predicates[predicate.slot]
            if known >= 0:
                return known
            if predicate.slot in self.opened:
                return OPEN
        found: i64 = YES
        if isinstance(predicate, SegmentPredicate):
            for part in predicate.parts:
                truth = self.truth(part)
                if truth == NO:
                    found = NO
                    break
                if truth == OPEN:
                    found = OPEN
        elif isinstance(predicate, FieldPredicate) and self.classes.is_open(predicate, self.listed):
            found = OPEN
        elif not predicate.test(self.run):
            found = NO
        if shared and found == OPEN:
            self.opened.add(predicate.slot)
        elif shared:
            self.run.predicates[predicate.slot] = found
        return found

    def rule(self, strategy: CompiledStrategy) -> i64:
        """Return whether the strategy's own rule admits the class."""
        if isinstance(strategy, Everyone):
            return YES
        if isinstance(strategy, NeverEnabled) or (isinstance(strategy, UserIds) and not self.listed):
            return NO
        return OPEN


def is_step(strategy: CompiledStrategy) -> bool:
    """Return whether a step can decide the rule of a strategy: a rollout, or a list of users."""
    return isinstance(strategy, (StickyRollout, UserIds))


def drawn(toggle: Toggle, strategy: CompiledStrategy) -> VariantChoice | None:
    """Return the choice of a variant when a strategy is on; None if there are no variants."""
    return toggle.choice if strategy.choice is None else strategy.choice


def is_drawn_whole(toggle: Toggle, strategy: CompiledStrategy) -> bool:
    """Return whether the choice of a variant when a strategy is on looks at fields, or has uneven weights."""
    choice = drawn(toggle, strategy)
    return choice is not None and (len(choice.overrides) > 0 or choice.uneven is not None)


def sticks_to(rollout: StickyRollout) -> str:
    """Return a name of the identifier that a rollout sticks to. Rollouts with equal names find the same one."""
    if isinstance(rollout, DefaultRollout):
        return "default"
    return f"own {rollout.field}" if isinstance(rollout, OwnFieldRollout) else f"field {rollout.field}"
