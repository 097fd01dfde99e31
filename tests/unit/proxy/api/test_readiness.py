"""Whether callers should be sent here, and the header field with the age of the configuration."""

from __future__ import annotations

import pytest

from flagsvc.proxy.api.readiness import AgeField, Readiness
from flagsvc.testing import FakeClock
from support.aio import asynchronous
from support.serving import FakeHolder, FakeSnapshot


def made(max_staleness_s: float = 0, *, warm: bool = True) -> tuple[Readiness, FakeHolder, FakeClock]:
    """Return a readiness and its sources."""
    holder, clock = FakeHolder(FakeSnapshot() if warm else None), FakeClock()
    return Readiness(holder, clock, max_staleness_s), holder, clock


def test_with_a_configuration_all_is_well() -> None:
    """With a configuration the process is ready; without one it is not."""
    readiness, holder, _ = made()
    assert readiness.find_objection() == ""
    holder.current = None
    assert readiness.find_objection() == "cold"


@asynchronous
async def test_staleness_counts_from_the_last_check() -> None:
    """Up to the bound all is well; one check that goes well is enough to be well again."""
    readiness, holder, clock = made(10)
    holder.checked_at = clock.monotonic()
    await clock.advance(10)
    assert readiness.find_objection() == ""
    await clock.advance(0.5)
    assert (readiness.find_objection(), readiness.age_s) == ("stale", 10.5)
    holder.checked_at = clock.monotonic()
    assert (readiness.find_objection(), readiness.age_s) == ("", 0.0)


@asynchronous
async def test_before_the_first_check_staleness_counts_from_the_start() -> None:
    """After a restart during an outage, the stored configuration becomes stale as if the outage began with the restart."""
    readiness, _, clock = made(10)
    await clock.advance(10)
    assert (readiness.find_objection(), readiness.age_s) == ("", None)
    await clock.advance(1)
    assert readiness.find_objection() == "stale"


@asynchronous
async def test_without_a_bound_nothing_is_ever_stale() -> None:
    """Without a limit, a configuration is not stale even after a year."""
    readiness, holder, clock = made()
    holder.checked_at = 0.0
    await clock.advance(31_536_000)
    assert readiness.find_objection() == ""


@pytest.mark.parametrize("warm", [True, False])
def test_no_worker_answers(warm: bool) -> None:
    """If other processes answer and none of them does, that is the reason, with any configuration, but not during the shutdown."""
    answered = [True]
    readiness = Readiness(FakeHolder(FakeSnapshot() if warm else None), FakeClock(), 0, lambda: answered[0])
    assert readiness.find_objection() == ("" if warm else "cold")
    answered[0] = False
    assert readiness.find_objection() == "no-worker"
    readiness.is_draining = True
    assert readiness.find_objection() == "draining"


@pytest.mark.parametrize("warm", [True, False])
def test_draining_comes_first(warm: bool) -> None:
    """The shutdown comes before every other reason."""
    readiness, _, _ = made(warm=warm)
    readiness.is_draining = True
    assert readiness.find_objection() == "draining"


def test_a_check_of_another_machine_is_not_in_the_future() -> None:
    """An age is never negative."""
    readiness, holder, _ = made(10)
    holder.checked_at = 5.0
    assert (readiness.age_s, readiness.find_objection()) == (0.0, "")


@asynchronous
async def test_the_age_field() -> None:
    """Whole seconds, none before the first check, and the same list as long as the second is the same."""
    readiness, holder, clock = made()
    field = AgeField("x-config-age", readiness)
    assert field.fields() == []
    holder.checked_at = 0.0
    first = field.fields()
    assert first == [(b"x-config-age", b"0")]
    await clock.advance(0.9)
    assert field.fields() is first
    await clock.advance(0.2)
    assert field.fields() == [(b"x-config-age", b"1")]
    assert first == [(b"x-config-age", b"0")]
