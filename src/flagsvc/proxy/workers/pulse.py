"""Whether a worker's process answers pings, and for how long it has been silent. Pure: elapsed seconds are passed in."""

from __future__ import annotations


class ProcessPulse:
    """The ping state of one process.

    `has_answered` is False while the process starts, until its first answer. `is_awaiting_answer` tells that it was pinged and has
    not answered, `silent_s` for how many seconds. `is_given_up` tells that it was killed for being silent.
    """

    def __init__(self) -> None:
        self.has_answered = False
        self.is_awaiting_answer = False
        self.is_given_up = False
        self.silent_s = 0.0

    def record_answer(self) -> None:
        self.has_answered, self.is_awaiting_answer, self.silent_s = True, False, 0.0

    def advance(self, seconds: float) -> bool:
        """Add time to the silence if a ping is unanswered, and return False. Otherwise return True: the caller sends a ping."""
        if self.is_awaiting_answer:
            self.silent_s += seconds
            return False
        self.is_awaiting_answer = True
        return True

    def is_overdue(self, timeout_s: float, start_s: float) -> bool:
        """Return whether the process has been silent for too long. Before its first answer it has at least `start_s` seconds."""
        return self.is_awaiting_answer and self.silent_s >= (
            timeout_s if self.has_answered else max(timeout_s, start_s)
        )
