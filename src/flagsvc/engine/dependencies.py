"""Links toggles to their parents, for one snapshot (behaviour: Dependencies).

A toggle with parents or children is a copy of the shared toggle, so that no snapshot changes a toggle of another one.
"""

from __future__ import annotations

from flagsvc.engine.features import DYNAMIC, OFF, ParentToggle, Toggle, is_accepted
from flagsvc.engine.parts import Part


class DependencyLinker:
    """Links the toggles of one snapshot. `parts` maps names to features, `copies` maps names to copied toggles.

    `memo_count` is the number of toggles that others depend on.
    """

    def __init__(self, parts: dict[str, Part], folding: bool) -> None:
        self.parts = parts
        self.folding = folding
        self.copies: dict[str, Toggle] = {}
        self.memo_count = 0

    def link_parents(self, part: Part) -> None:
        """Link a toggle to its parents. A parent that is missing or has parents itself turns the toggle off."""
        shared = part.shared()
        if shared.constant == OFF and self.folding:
            return
        toggle = self.own_copy(shared)
        reason = self.broken_dependency_reason(part)
        for spec in part.dependencies:
            if reason:
                break
            parent = self.toggle(self.parts[spec.feature])
            variants = spec.wanted()
            if not self.folding or parent.constant == DYNAMIC:
                toggle.depend(ParentToggle(self.memoised_copy(parent), spec.enabled, variants))
            elif not is_accepted(parent.outcomes[parent.constant], spec.enabled, variants):
                reason = f"its parent `{parent.name}` never comes out as it must"
        if reason:
            toggle.turn_off(reason)
        elif self.folding and toggle.parents:
            toggle.constant = DYNAMIC

    def broken_dependency_reason(self, part: Part) -> str:
        """Return why no outcome of the parents can satisfy the dependencies, or an empty text if one can."""
        for spec in part.dependencies:
            parent = self.parts.get(spec.feature)
            if parent is None:
                return f"its parent `{spec.feature}` is missing"
            if parent.dependencies:
                return f"its parent `{spec.feature}` has a parent itself"
        return ""

    def toggle(self, part: Part) -> Toggle:
        """Return this snapshot's toggle of a part: its own copy, or the shared one."""
        shared = part.shared()
        return self.copies.get(shared.name, shared)

    def memoised_copy(self, toggle: Toggle) -> Toggle:
        """Return this snapshot's copy of a parent, with a slot in the memory of runs."""
        copy = self.own_copy(toggle)
        if copy.memo < 0:
            copy.memo = self.memo_count
            self.memo_count += 1
        return copy

    def own_copy(self, shared: Toggle) -> Toggle:
        """Return this snapshot's copy of a toggle. The first call makes it."""
        copy = self.copies.get(shared.name)
        if copy is None:
            copy = shared.copy()
            self.copies[shared.name] = copy
        return copy
