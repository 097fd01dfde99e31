"""How much work the naming patterns of one request may be: counted, not timed, so that a name gets the same answer anywhere."""

from __future__ import annotations

from typing import Final

NAME_STEPS: Final = 100_000
"""Steps for one name: 20 to 40 ms of a core. A usual pattern takes fewer than 10 for a character."""
LETTER_STEPS: Final = 20
"""Steps for each character of a name that is so long that it gets more by these: a usual pattern goes over it once or twice."""
REQUEST_STEPS: Final = 2_000_000
"""Steps for all the names of a request: less than a second."""


class Unchecked(Exception):  # noqa: N818  (a verdict on the pattern)
    """A name cannot be checked. `reason` says why, of the pattern ("it …"), `remedy` what helps; both are parts of a sentence."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)


class StepBudget:
    """The steps that are left to a request."""

    def __init__(self, steps: int = REQUEST_STEPS) -> None:
        self.left = steps

    def allowance(self, letters: int) -> int:
        """Return the steps that the next name, of so many characters, may take."""
        return min(max(NAME_STEPS, LETTER_STEPS * letters), self.left)

    def take(self, steps: int) -> None:
        """Count steps."""
        self.left -= steps


def too_many_steps() -> Unchecked:
    """Return the verdict where the steps did not suffice."""
    return Unchecked(
        "it takes too many steps",
        "use shorter names or fewer features at once, or have the pattern made simpler: it has repetition within repetition, "
        "look-ahead, look-behind, references to groups or large counts",
    )
