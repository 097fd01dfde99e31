"""Dependencies between toggles, resolved for one snapshot (behaviour: Dependencies).

A toggle that has parents or children is a copy of the shared one, so that nothing of one snapshot is written into another's.
"""

from __future__ import annotations

from flagsvc.engine.features import DYNAMIC, OFF, ParentToggle, Toggle, ToggleOutcome
from flagsvc.engine.model import DependencySpec
from flagsvc.engine.parts import Part


class Links:
    """Ties the toggles of one snapshot; `parts` are its features by name, `tied` the copies by name.

    `memos` is the number of toggles that others depend on.
    """

    def __init__(self, parts: dict[str, Part], folding: bool) -> None:
        self.parts = parts
        self.folding = folding
        self.tied: dict[str, Toggle] = {}
        self.memos = 0

    def child(self, part: Part) -> None:
        """Tie a toggle to its parents: one that is missing or has parents itself makes the child off."""
        shared = part.shared()
        if shared.constant == OFF and self.folding:
            return
        toggle = self.copied(shared)
        reason = self.reason_left_out(part)
        for spec in part.dependencies:
            if reason:
                break
            parent = self.toggle(self.parts[spec.feature])
            if not self.folding or parent.constant == DYNAMIC:
                toggle.depend(ParentToggle(self.memoised(parent), [accepts(spec, each) for each in parent.outcomes]))
            elif not accepts(spec, parent.outcomes[parent.constant]):
                reason = f"its parent `{parent.name}` never comes out as it must"
        if reason:
            toggle.turn_off(reason)
        elif self.folding and toggle.parents:
            toggle.constant = DYNAMIC

    def reason_left_out(self, part: Part) -> str:
        """Return why the dependencies can hold for nobody, whatever the parents do; the empty text where they can."""
        for spec in part.dependencies:
            parent = self.parts.get(spec.feature)
            if parent is None:
                return f"its parent `{spec.feature}` is missing"
            if parent.dependencies:
                return f"its parent `{spec.feature}` has a parent itself"
        return ""

    def toggle(self, part: Part) -> Toggle:
        """Return a part's toggle as this snapshot has it."""
        shared = part.shared()
        return self.tied.get(shared.name, shared)

    def memoised(self, toggle: Toggle) -> Toggle:
        """Return a parent as this snapshot has it, with a place in the memory of runs."""
        tied = self.copied(toggle)
        if tied.memo < 0:
            tied.memo = self.memos
            self.memos += 1
        return tied

    def copied(self, shared: Toggle) -> Toggle:
        """Return the snapshot's own copy of a toggle, made when it is asked for first."""
        tied = self.tied.get(shared.name)
        if tied is None:
            tied = shared.copy()
            self.tied[shared.name] = tied
        return tied


def accepts(spec: DependencySpec, outcome: ToggleOutcome) -> bool:
    """Return whether an outcome of the parent satisfies the dependency (behaviour: Dependencies)."""
    if not spec.enabled:
        return not outcome.enabled
    if not spec.variants:
        return outcome.enabled
    return outcome.enabled and ("disabled" if outcome.variant is None else outcome.variant) in spec.variants
