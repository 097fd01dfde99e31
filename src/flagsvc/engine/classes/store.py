"""The programs of the classes that are asked for most, within a bound in bytes (decision 0007). Compiled.

A program pays once its class is asked for again. A class gets a program at its second sighting: classes that come once cost no more
than a number each. Programs have a budget of look-ups, so that classes that are invented cannot cost much.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from librt.vecs import vec
from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.classes.compiler import ClassCompiler
from flagsvc.engine.classes.fields import ContextClasses, FieldTests
from flagsvc.engine.classes.program import ClassProgram, SharedPieces
from flagsvc.engine.classes.rollouts import RolloutNumbers
from flagsvc.engine.context import Context
from flagsvc.engine.features import Toggle
from flagsvc.engine.fragments import AnswerPieces
from flagsvc.engine.lists import RELEASED, AnswerList, Container, Lists, ListViews
from flagsvc.engine.options import CompileOptions
from flagsvc.engine.reads import Moments
from flagsvc.engine.run import Memory

SLOTS: Final = 8192
"""The number of hashes of classes that were seen once; a power of two."""
SLICE: Final = 512
"""Entries that one request compiles."""
PRICE: Final = 200
"""Look-ups that pay for a program."""
CREDIT: Final = 256 * PRICE
"""The most look-ups that are saved up, and what a new store has."""
ENTRY: Final = 16
"""Bytes that an entry of a list takes in a program, before it is compiled, about."""
FIXED: Final = 1000
"""Bytes of a class beside its program, its key and its texts."""
TEXT: Final = 60
"""Bytes of a text without its characters."""
WINDOW: Final = 4096
"""Look-ups after which it is judged whether enough of them found a program."""
RETRY: Final = 64
"""Windows after which fields that were left out are taken again."""
MAX_USES: Final = 255
"""Uses of a class that are counted, until others need its memory."""
DELAYS: Final = 64
"""Classes that are asked for and kept when others need memory, before one is dropped all the same: no request waits for more."""
FOLLOWED_USES: Final = 4
"""Uses of a class from which on it is worth a program in the next snapshot, before it is asked for there."""
FOLLOWED_SLICE: Final = 256
"""Entries that are followed in one step."""
RELEASED_CLASSES: Final = 2
"""Classes that are released at once: a program has thousands of references."""
VALUES: Final = 8
"""The part of the memory for classes that values of fields may take: one of so many."""

# the costs of work, in the time that compiling one byte of a feature takes
TEST_COST: Final = 8
TESTED: Final = 32
"""Toggles whose constraints are collected in one step."""
USER_COST: Final = 8
FOLLOWED_COST: Final = 8
"""The cost of following one entry to the next snapshot."""


@mypyc_attr(acyclic=True)
class ClassCounts:
    """The look-ups of all snapshots, one after the other: those that found a program, and the others."""

    def __init__(self) -> None:
        self.hits: int = 0
        self.misses: int = 0


@mypyc_attr(acyclic=True)
class KnownClass:
    """A class in one list: its program, or the compiler while it works. `sample` is a context of the class."""

    def __init__(self, mark: str, sample: Context, listed: bool, compiler: ClassCompiler, size: int) -> None:
        self.mark = mark
        self.sample = sample
        self.listed: bool = listed
        self.compiler: ClassCompiler | None = compiler
        self.program: ClassProgram | None = None
        self.size: i64 = size
        self.uses: i64 = 1

    def advance(self, count: i64) -> i64:
        """Compile the next entries. Return by how much the size grew."""
        compiler = self.compiler
        if compiler is None or not compiler.advance(count):
            return 0
        self.program = compiler.program()
        self.compiler = None
        before = self.size
        self.size += self.program.size - ENTRY * len(compiler.answered.entries)
        return self.size - before


class ClassStore(Lists):
    """The programs of one snapshot, with at most `limit` bytes, of which `classes` may have some.

    A class gets a program when it was seen `sightings` times, 1 or 2. `counts` are those of the snapshots before, too.
    """

    def __init__(self, classes: ContextClasses, memory: Memory, limit: int, sightings: int, counts: ClassCounts) -> None:
        super().__init__(memory)
        self.classes = classes
        self.limit: i64 = limit - classes.room
        self.at_once: bool = sightings == 1
        self.version: i64 = classes.version
        self.known: dict[str, KnownClass] = {}
        self.size: i64 = 0
        self.rollouts = RolloutNumbers()
        # what the programs of each list share, by the mark of the list
        self.shared: dict[str, SharedPieces] = {}
        self.seen_once: vec[i64] = vec[i64]([0] * SLOTS)
        self.credit: i64 = CREDIT
        self.counts = counts
        self.window_hits: i64 = 0
        self.window_left: i64 = WINDOW
        self.windows_left: i64 = RETRY

    def fill(self, context: Context, answered: AnswerList, answer: AnswerPieces) -> None:
        """Add the fragments of a list: by the program of the context's class, if it has one."""
        try:
            program = self.find(context, answered)
            if program is not None:
                program.fill(context, answer)
                return
        except (TypeError, AttributeError):
            # an enricher set a property to a value that is not text: only toggles that read it are off
            pass
        super().fill(context, answered, answer)

    def find(self, context: Context, answered: AnswerList) -> ClassProgram | None:
        """Return the program of a context's class for a list, if there is one. Raises TypeError if a field is not a text."""
        self.window_left -= 1
        if self.window_left == 0:
            # before the key, which is valid for the fields of now
            self.judge()
        classes = self.classes
        classes.earn(len(answered.entries))
        listed = len(classes.users.holding(context)) > 0
        key = classes.key(context, answered.mark, listed)
        if classes.version != self.version:
            self.forget()
        if self.credit < CREDIT:
            self.credit += 1
        program = None if key is None else self.program(key, context, listed, answered)
        if program is None:
            self.counts.misses += 1
        else:
            self.counts.hits += 1
            self.window_hits += 1
        return program

    def program(self, key: str, context: Context, listed: bool, answered: AnswerList) -> ClassProgram | None:
        """Return the program of a class, or do some of the work on it."""
        found = self.known.get(key)
        if found is None:
            found = self.begin(key, context, listed, answered)
            if found is None:
                return None
        elif found.uses < MAX_USES:
            found.uses += 1
        if found.program is None:
            self.size += found.advance(SLICE)
            self.evict()
        return found.program

    def begin(self, key: str, context: Context, listed: bool, answered: AnswerList) -> KnownClass | None:
        """Begin the program of a class, if it was seen before and the budget allows it."""
        if not self.at_once:
            number: i64 = hash(key)
            slot = number & (SLOTS - 1)
            if self.seen_once[slot] != number:
                self.seen_once[slot] = number
                return None
            if self.credit < PRICE:
                return None
        self.credit -= PRICE
        return self.add(key, self.classes.sample(context), listed, answered)

    def add(self, key: str, sample: Context, listed: bool, answered: AnswerList) -> KnownClass | None:
        """Add a class that has no program yet. Others that are asked for least give way. None if it alone exceeds the bound."""
        size = first_size(key, sample, answered)
        if size > self.limit:
            return None
        self.size += size
        self.evict()
        shared = self.shared.setdefault(answered.mark, SharedPieces())
        shared.classes += 1
        compiler = ClassCompiler(self.classes, answered, shared, self.memory, sample, listed, self.rollouts)
        made = KnownClass(answered.mark, sample, listed, compiler, size)
        self.known[key] = made
        return made

    def evict(self) -> None:
        """Drop classes until the rest is within the bound. Each use since the last time delays that, by halves, a few times."""
        delays: i64 = DELAYS
        while self.taken() > self.limit and self.known:
            key = next(iter(self.known))
            oldest = self.known.pop(key)
            oldest.uses >>= 1
            if oldest.uses > 0 and delays > 0:
                delays -= 1
                self.known[key] = oldest
            else:
                self.drop(oldest)
        if not self.known:
            self.rollouts = RolloutNumbers()

    def drop(self, gone: KnownClass) -> None:
        """Give back what a class takes that is known no more."""
        self.size -= gone.size
        shared = self.shared[gone.mark]
        shared.classes -= 1
        if shared.classes == 0:
            del self.shared[gone.mark]

    def taken(self) -> i64:
        """Return the bytes that all programs take, and what they share."""
        return self.size + self.rollouts.size

    def forget(self) -> None:
        """Forget every class, because the fields of classes changed."""
        self.version = self.classes.version
        self.known = {}
        self.shared = {}
        self.size = 0
        self.rollouts = RolloutNumbers()

    def judge(self) -> None:
        """Leave fields out of the classes if most look-ups of the last window found no program. Later, take all fields again."""
        missed = 2 * self.window_hits < WINDOW
        self.window_left = WINDOW
        self.window_hits = 0
        self.windows_left -= 1
        if self.windows_left == 0:
            self.windows_left = RETRY
            if self.classes.dropped:
                self.classes.restore()
        elif missed and self.classes.fields:
            self.classes.narrow()
        self.classes.begin_window()

    def follow(self, former: ClassStore, lists: dict[str, AnswerList]) -> Iterator[int]:
        """Compile the classes that the former snapshot was asked for most, and yield the cost of each step."""
        self.credit = former.credit
        self.seen_once = former.seen_once
        self.windows_left = former.windows_left
        for each in sorted(former.known.values(), key=number_of_uses, reverse=True):
            answered = lists.get(each.mark)
            if each.uses < FOLLOWED_USES:
                return
            if answered is None or each.program is None:
                continue
            key = self.classes.key(each.sample, each.mark, each.listed)
            if key is None or key in self.known:
                continue
            size = max(each.size, first_size(key, each.sample, answered))
            if self.taken() + size > self.limit:
                return
            made = self.add(key, each.sample, each.listed, answered)
            while made is not None and made.program is None:
                self.size += made.advance(FOLLOWED_SLICE)
                yield FOLLOWED_COST * FOLLOWED_SLICE
            if self.taken() > self.limit:
                # it is larger than its former one
                self.drop(self.known.pop(key))
                self.evict()
                return

    def containers(self) -> list[tuple[Container, int]]:
        """Return what has most of the memory of classes."""
        found: list[tuple[Container, int]] = [(each.runs, RELEASED) for each in self.shared.values()]
        return [*found, (self.classes.users.users, RELEASED), (self.known, RELEASED_CLASSES)]


def class_lists(
    memory: Memory,
    options: CompileOptions,
    toggles: dict[str, Toggle],
    moments: set[float],
    views: dict[bytes, ListViews],
    former: Lists | None,
) -> Generator[int, None, Lists]:
    """Return what answers the lists of a snapshot, and yield the costs of the steps. `former` did so for the snapshot before."""
    if not options.class_bytes:
        return Lists(memory)
    tests = FieldTests()
    for at, toggle in enumerate(toggles.values()):
        tests.add(toggle)
        if at % TESTED == 0:
            yield TESTED * TEST_COST
    before = former if isinstance(former, ClassStore) else None
    classes = ContextClasses(Moments(moments), tests, options.class_bytes // VALUES)
    for users in classes.finish(None if before is None else before.classes):
        yield USER_COST * users
    counts = ClassCounts() if before is None else before.counts
    store = ClassStore(classes, memory, options.class_bytes, options.class_sightings, counts)
    if before is not None:
        lists: dict[str, AnswerList] = {}
        for view in views.values():
            lists[view.listed.mark] = view.listed
            lists[view.complete.mark] = view.complete
        yield from store.follow(before, lists)
    return store


def number_of_uses(known: KnownClass) -> int:
    """Return how often a class was asked for, about."""
    return int(known.uses)


def first_size(key: str, sample: Context, answered: AnswerList) -> i64:
    """Return what a class is taken to need, in bytes, until its program is compiled."""
    return FIXED + 2 * len(key) + text_size(sample) + ENTRY * len(answered.entries)


def text_size(context: Context) -> int:
    """Return the bytes of a sample's texts, at most: a character may take 4."""
    texts = [context.app_name or "", context.environment or "", *context.properties, *context.properties.values()]
    return sum([TEXT + 4 * len(text) for text in texts])
