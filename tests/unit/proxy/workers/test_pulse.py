"""Pings and silence of one process."""

from __future__ import annotations

from flagsvc.proxy.workers.pulse import ProcessPulse


def test_it_is_asked_once_until_it_answers() -> None:
    """Time while an answer is awaited is silence; an answer ends it."""
    pulse = ProcessPulse()
    assert pulse.advance(5) and pulse.silent_s == 0
    assert not pulse.advance(1) and not pulse.advance(2) and pulse.silent_s == 3
    pulse.record_answer()
    assert (pulse.silent_s, pulse.has_answered) == (0, True)
    assert pulse.advance(5) and pulse.silent_s == 0


def test_one_that_starts_has_longer() -> None:
    """It has the start timeout until its first answer, but never less than the normal timeout."""
    pulse = ProcessPulse()
    assert not pulse.is_overdue(0, 0), "nothing is owed"
    pulse.advance(0)
    pulse.advance(2)
    assert [pulse.is_overdue(2, 30), pulse.is_overdue(2, 2), pulse.is_overdue(3, 1)] == [False, True, False]
    pulse.record_answer()
    assert not pulse.is_overdue(0, 0)
    pulse.advance(0)
    pulse.advance(1.9)
    assert not pulse.is_overdue(2, 30)
    pulse.advance(0.1)
    assert pulse.is_overdue(2, 30)
