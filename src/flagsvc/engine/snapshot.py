"""A compiled configuration, immutable: it answers a context with bytes and cannot raise (specification: Endpoints)."""

from __future__ import annotations

from typing import Final

from flagsvc.engine.context import Context
from flagsvc.engine.features import OFF, Toggle
from flagsvc.engine.fragments import fragment, joined
from flagsvc.engine.reads import Reads
from flagsvc.engine.run import Memory, Run

MAX_GLUED: Final = 65536
"""Bytes of static toggles that are glued to a dynamic one, over all its outcomes; a longer run becomes a piece of its own."""

MAX_NAMED: Final = 16 * 1024 * 1024
"""Bytes of the largest answer to a look-up by name: a short body that repeats a long toggle must not make a huge one."""


class Snapshot:
    """One configuration, ready to answer.

    `revision` is a hex digest, equal over restarts and replicas; `names` maps each toggle to the names of its variants;
    `reads` names the context fields it looks at, None where a custom strategy does not say; `uses_time` and `uses_random` tell
    whether `Context.now` and `Context.entropy` are ever looked at.
    """

    def __init__(
        self,
        revision: str,
        toggles: dict[str, Toggle],
        memory: Memory,
        reads: Reads,
        feature_state: bool,
    ) -> None:
        self.revision = revision
        self.toggles = toggles
        self.memory = memory
        self.feature_state = feature_state
        self.reads: frozenset[str] | None = None if reads.any_field else frozenset(reads.fields)
        self.uses_time: bool = reads.time
        self.uses_random: bool = reads.random
        self.impure: bool = reads.impure
        self.names: dict[str, frozenset[str]] = {name: variant_names(toggle) for name, toggle in toggles.items()}
        self.listed: list[Toggle] = glue(toggles, False)
        self.complete: list[Toggle] = glue(toggles, True)

    def enabled(self, context: Context) -> bytes:
        """Return the JSON list of the toggles that are on for the context (specification: GET /proxy)."""
        run = Run(context, self.memory)
        parts: list[bytes] = []
        for toggle in self.listed:
            piece = toggle.listed[toggle.outcome(run)]
            if len(piece) > 0:
                parts.append(piece)
        return joined(parts)

    def all(self, context: Context) -> bytes:
        """Return the JSON list of every toggle, on or off (specification: GET /proxy/all)."""
        run = Run(context, self.memory)
        parts: list[bytes] = []
        for toggle in self.complete:
            parts.append(toggle.complete[toggle.outcome(run)])
        return joined(parts)

    def named(self, context: Context, names: list[str]) -> tuple[bytes, list[bool]]:
        """Return the JSON list of the toggles asked for, in that order, and whether each is on (specification: POST /proxy).

        A name that is not known is off; one that is asked for twice is decided once. An answer of more than MAX_NAMED bytes is
        not made: it is the empty bytes.
        """
        run = Run(context, self.memory)
        decided: dict[str, int] = {}
        parts: list[bytes] = []
        states: list[bool] = []
        for name in names:
            toggle = self.toggles.get(name)
            if toggle is None:
                parts.append(fragment(name, False, None, False, self.feature_state))
                states.append(False)
                continue
            number = decided[name] if name in decided else int(toggle.outcome(run))
            decided[name] = number
            parts.append(toggle.outcomes[number].fragment)
            states.append(number != OFF)
        if sum([len(part) for part in parts]) > MAX_NAMED:
            return b"", states
        return joined(parts), states

    def decide(self, context: Context, name: str) -> tuple[bool, str]:
        """Return whether one toggle is on, and the name of its variant (`disabled` where there is none)."""
        toggle = self.toggles.get(name)
        if toggle is None:
            return False, "disabled"
        outcome = toggle.outcomes[toggle.outcome(Run(context, self.memory))]
        return outcome.enabled, "disabled" if outcome.variant is None else outcome.variant

    def take_faults(self) -> list[tuple[str, Exception]]:
        """Return what custom strategies raised since the last call: name and exception."""
        faults = self.memory.faults
        if faults:
            self.memory.faults = []
        return faults


def variant_names(toggle: Toggle) -> frozenset[str]:
    """Return the names of a toggle's variants, `disabled` included, for that is what a client counts without one."""
    return frozenset([outcome.variant for outcome in toggle.outcomes if outcome.variant is not None] + ["disabled"])


def glue(toggles: dict[str, Toggle], everything: bool) -> list[Toggle]:
    """Glue each run of static toggles to the front of the next dynamic one; return the toggles that are left to evaluate."""
    left: list[Toggle] = []
    static: list[bytes] = []
    size = 0
    for toggle in toggles.values():
        pieces = [outcome.fragment if everything or outcome.enabled else b"" for outcome in toggle.outcomes]
        if toggle.constant >= 0:
            static.append(pieces[toggle.constant])
            size += len(pieces[toggle.constant])
            continue
        if size * len(pieces) > MAX_GLUED:
            left.append(constant(b"".join(static)))
            static = []
        front = b"".join(static)
        attach(toggle, [front + piece for piece in pieces], everything)
        left.append(toggle)
        static = []
        size = 0
    if size > 0:
        left.append(constant(b"".join(static)))
    return left


def attach(toggle: Toggle, pieces: list[bytes], everything: bool) -> None:
    """Give a toggle what a list answer appends for each of its outcomes."""
    if everything:
        toggle.complete = pieces
    else:
        toggle.listed = pieces


def constant(piece: bytes) -> Toggle:
    """Return a run of static toggles that stands for itself."""
    toggle = Toggle("", [])
    toggle.constant = 0
    toggle.listed = [piece]
    toggle.complete = [piece]
    return toggle
