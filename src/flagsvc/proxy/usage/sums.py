"""How often toggles were on and off since the start of a process: counts that were taken to be sent, and those that wait.

Only a process with pages keeps them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Protocol


class YesNo(Protocol):
    """The counts of one toggle."""

    yes: int
    no: int


class UsageSums:
    """The sums of the counts that were taken, as `[yes, no]` by toggle. Those of toggles that are gone are dropped."""

    def __init__(self) -> None:
        self._taken: dict[str, list[int]] = {}

    def add(self, toggles: Mapping[str, YesNo], sign: int, known: Container[str]) -> None:
        """Add counts of `known` toggles, or with -1 take them away."""
        for name, counts in toggles.items():
            if name in known:
                kept = self._taken.setdefault(name, [0, 0])
                kept[0] += sign * counts.yes
                kept[1] += sign * counts.no

    def forget(self, names: Sequence[str]) -> None:
        """Drop the sums of toggles that the configuration no longer has."""
        for name in names:
            self._taken.pop(name, None)

    def find(self, name: str) -> tuple[int, int]:
        """Return how often a toggle was on and off."""
        yes, no = self._taken.get(name, (0, 0))
        return yes, no

    def total(self, waiting: Iterable[Mapping[str, YesNo]]) -> Iterator[dict[str, list[int]]]:
        """Yield the sums with the counts that wait: after each step what is known so far."""
        found = {name: list(pair) for name, pair in self._taken.items()}
        yield found
        for toggles in waiting:
            for name, counts in list(toggles.items()):
                pair = found.setdefault(name, [0, 0])
                pair[0] += counts.yes
                pair[1] += counts.no
                yield found
