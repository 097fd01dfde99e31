"""A compiled configuration, immutable: it answers a context with bytes and cannot raise (specification: Endpoints)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from flagsvc.engine.canonical import CacheKeys
from flagsvc.engine.context import Context
from flagsvc.engine.features import Toggle, ToggleOutcome
from flagsvc.engine.fragments import NAMED, PLAIN, AnswerPieces, AnswerShape, encode, fragment
from flagsvc.engine.lists import RELEASED, Container, Lists, ListViews, ListViewsBuilder
from flagsvc.engine.parts import Lineage
from flagsvc.engine.reads import Reads
from flagsvc.engine.run import Fault, Memory, Run

MAX_NAMED: Final = 16 * 1024 * 1024
"""Bytes of the largest answer to a look-up by name.

Without it, a short body that repeats a long toggle would make a huge answer.
"""


@mypyc_attr(allow_interpreted_subclasses=True)
class Snapshot:
    """One configuration, ready to answer.

    `revision` is a hex digest, equal in all replicas and after restarts. `names` maps each toggle to the names of its variants.
    `cache_keys` knows what of a context decides the answer, so that equal answers are found without an evaluation. The next
    configuration can reuse `lineage`. `views` are the list answers of each shape that was asked for, by its name. `scope` is empty,
    or tells which part of a configuration this is. `lists` answers contexts from the entries of a view.
    """

    def __init__(
        self,
        revision: str,
        toggles: dict[str, Toggle],
        names: dict[str, frozenset[str]],
        views: dict[bytes, ListViews],
        memory: Memory,
        reads: Reads,
        feature_state: bool,
        lineage: Lineage,
        lists: Lists,
        scope: str = "",
    ) -> None:
        self.revision = revision
        self.toggles = toggles
        self.names = names
        self.views = views
        self.memory = memory
        # the text after the name of an unknown toggle
        self.unknown_suffix: bytes = fragment("", False, None, False, feature_state)[len(NAMED) + 2 :]
        self.cache_keys = CacheKeys(reads, revision)
        self.lineage = lineage
        self.lists = lists
        self.scope = scope

    def view(self, shape: AnswerShape) -> ListViews:
        """Return the list answers in a shape. The first request makes them; later snapshots have them from the start."""
        found = self.views.get(shape.name)
        if found is None:
            builder = ListViewsBuilder(shape, None, self.toggles, self.scope)
            for toggle in self.toggles.values():
                builder.add(toggle)
            found = builder.finish()
            self.views[shape.name] = found
        return found

    def enabled(self, context: Context, shape: AnswerShape = PLAIN) -> bytes:
        """Return the JSON list of the toggles that are on for the context (specification: GET /proxy)."""
        return self.listing(context, False, shape).join()

    def all(self, context: Context, shape: AnswerShape = PLAIN) -> bytes:
        """Return the JSON list of every toggle, on or off (specification: GET /proxy/all)."""
        return self.listing(context, True, shape).join()

    def listing(self, context: Context, everything: bool, shape: AnswerShape) -> AnswerPieces:
        """Return the list of the toggles that are on, or of `everything`, in pieces."""
        view = self.view(shape)
        answer = AnswerPieces([], 0)
        self.lists.fill(context, view.complete if everything else view.listed, answer)
        answer.surround(shape)
        return answer

    def named(self, context: Context, names: list[str], shape: AnswerShape = PLAIN) -> tuple[bytes, list[bool]]:
        """Return the JSON list of the requested toggles, in their order, and whether each is on (specification: POST /proxy).

        An unknown name is off. A repeated name is decided once, also an unknown one, because the time of an answer must not
        reveal the names of toggles. Instead of an answer of more than MAX_NAMED bytes, empty bytes are returned.
        """
        run = Run(context, self.memory)
        outcomes: dict[str, ToggleOutcome] = {}
        parts: list[bytes] = []
        states: list[bool] = []
        for name in names:
            outcome = outcomes.get(name)
            toggle = self.toggles.get(name)
            if outcome is None:
                outcome = self.unknown_outcome(name) if toggle is None else toggle.outcomes[toggle.outcome(run)]
                outcomes[name] = outcome
            parts.append(shape.fragment(outcome, toggle))
            states.append(outcome.enabled)
        size = sum([len(part) for part in parts])
        if size > MAX_NAMED:
            return b"", states
        answer = AnswerPieces(parts, size)
        answer.surround(shape)
        return answer.join(), states

    def unknown_outcome(self, name: str) -> ToggleOutcome:
        return ToggleOutcome(False, None, NAMED + encode(name) + self.unknown_suffix)

    def decide(self, context: Context, name: str) -> tuple[bool, str]:
        """Return whether one toggle is on, and the name of its variant (`disabled` for none)."""
        toggle = self.toggles.get(name)
        if toggle is None:
            return False, "disabled"
        outcome = toggle.outcomes[toggle.outcome(Run(context, self.memory))]
        return outcome.enabled, "disabled" if outcome.variant is None else outcome.variant

    def take_faults(self) -> list[Fault]:
        """Return the exceptions of custom strategies and of toggles since the last call, each with its name."""
        faults = self.memory.faults
        if faults:
            self.memory.faults = []
        return faults

    def containers(self) -> list[tuple[Container, int]]:
        """Return the lists and dicts whose content takes most of the memory, each with the number of items to release at once.

        Once nothing else refers to the snapshot, emptying these bit by bit releases the memory bit by bit.
        """
        found: list[tuple[Container, int]] = [(self.toggles, RELEASED), (self.names, RELEASED)]
        for view in self.views.values():
            for answered in (view.listed, view.complete):
                found.append((answered.entries, RELEASED))
        if self.scope:
            # the rest belongs to the whole snapshot
            return found
        lineage = self.lineage
        found.append((lineage.parts, RELEASED))
        found.append((lineage.sources, RELEASED))
        found.append((lineage.pool.predicates, RELEASED))
        return found + self.lists.containers()
