"""Whether a worker answers, and for how long it has not."""

from __future__ import annotations

from flagsvc.proxy.workers.pulse import ProcessPulse


def test_it_is_asked_once_until_it_answers() -> None:
    """Time that passes with an answer owed is silence; an answer ends it."""
    pulse = ProcessPulse()
    assert pulse.passed(5) and pulse.silent_s == 0
    assert not pulse.passed(1) and not pulse.passed(2) and pulse.silent_s == 3
    pulse.answered()
    assert (pulse.silent_s, pulse.known) == (0, True)
    assert pulse.passed(5) and pulse.silent_s == 0


def test_one_that_starts_has_longer() -> None:
    """Until its first answer; but never less than it has afterwards."""
    pulse = ProcessPulse()
    assert not pulse.overdue(0, 0), "nothing is owed"
    pulse.passed(0)
    pulse.passed(2)
    assert [pulse.overdue(2, 30), pulse.overdue(2, 2), pulse.overdue(3, 1)] == [False, True, False]
    pulse.answered()
    assert not pulse.overdue(0, 0)
    pulse.passed(0)
    pulse.passed(1.9)
    assert not pulse.overdue(2, 30)
    pulse.passed(0.1)
    assert pulse.overdue(2, 30)
