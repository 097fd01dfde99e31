"""Limits the work of the naming patterns of one request. It counts steps, not time, so every machine gives the same answer."""

from __future__ import annotations

from typing import Final

NAME_STEPS: Final = 100_000
"""Steps for one name: 20 to 40 ms of a core. A usual pattern takes fewer than 10 per character."""
STEPS_PER_CHARACTER: Final = 20
"""Steps per character for long names, where this is more than `NAME_STEPS`: a usual pattern reads a name once or twice."""
REQUEST_STEPS: Final = 2_000_000
"""Steps for all the names of a request: less than a second."""


class UncheckedNameError(Exception):
    """A name cannot be checked. `reason` says why ("it …", the pattern), `remedy` says what helps; both are parts of a sentence."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)


class StepBudget:
    """The remaining steps of a request."""

    def __init__(self, steps: int = REQUEST_STEPS) -> None:
        self.left = steps

    def allowance(self, characters: int) -> int:
        """Return the steps that the next name, of this many characters, may take."""
        return min(max(NAME_STEPS, STEPS_PER_CHARACTER * characters), self.left)

    def take(self, steps: int) -> None:
        """Subtract used steps."""
        self.left -= steps


def too_many_steps() -> UncheckedNameError:
    """Return the exception for a name that takes too many steps."""
    return UncheckedNameError(
        "it takes too many steps",
        "use shorter names or fewer features at once, or have the pattern made simpler: it has repetition within repetition, "
        "look-ahead, look-behind, references to groups or large counts",
    )
