"""Whether a worker answers when it is asked, and for how long it has not. Pure: time comes in as seconds that passed."""

from __future__ import annotations


class ProcessPulse:
    """The life of one process.

    `known` tells that it has answered once: before that it is starting. `owing` tells that it was asked and has not answered yet,
    `silent_s` for how many seconds; `ended` that it was given up for that.
    """

    def __init__(self) -> None:
        self.known = False
        self.owing = False
        self.ended = False
        self.silent_s = 0.0

    def answered(self) -> None:
        """Take an answer."""
        self.known, self.owing, self.silent_s = True, False, 0.0

    def passed(self, seconds: float) -> bool:
        """Let time pass; return whether it is to be asked now, which counts as done."""
        if self.owing:
            self.silent_s += seconds
            return False
        self.owing = True
        return True

    def overdue(self, timeout_s: float, start_s: float) -> bool:
        """Return whether it is silent for too long: `start_s` seconds for one that has yet to answer for the first time."""
        return self.owing and self.silent_s >= (timeout_s if self.known else max(timeout_s, start_s))
