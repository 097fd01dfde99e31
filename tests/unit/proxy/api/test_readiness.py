"""Whether callers should be sent here, and the header field with the age of the configuration."""

from __future__ import annotations

import pytest

from flagsvc.proxy.api.readiness import AgeField, EnvironmentsReadiness, Readiness
from flagsvc.proxy.configuration import Holder
from flagsvc.testing import FakeClock
from support.serving import FakeSnapshot, holder_of


def made(max_staleness_s: float = 0, *, warm: bool = True) -> tuple[Readiness, Holder, FakeClock]:
    holder, clock = holder_of(FakeSnapshot() if warm else None), FakeClock()
    return Readiness(holder, clock, max_staleness_s), holder, clock


async def test_before_the_first_check_staleness_counts_from_the_start() -> None:
    """After a restart during an outage, the stored configuration becomes stale as if the outage began with the restart."""
    readiness, _, clock = made(10)
    await clock.advance(10)
    assert (readiness.find_objection(), readiness.age_s) == ("", None)
    await clock.advance(1)
    assert readiness.find_objection() == "stale"


@pytest.mark.parametrize("warm", [True, False])
def test_no_worker_answers(warm: bool) -> None:
    """If other processes answer and none of them does, that is the reason, with any configuration, but not during the shutdown."""
    answered = [True]
    readiness = Readiness(holder_of(FakeSnapshot() if warm else None), FakeClock(), 0, lambda: answered[0])
    assert readiness.find_objection() == ("" if warm else "cold")
    answered[0] = False
    assert readiness.find_objection() == "no-worker"
    readiness.is_draining = True
    assert readiness.find_objection() == "draining"


def test_a_check_of_another_machine_is_not_in_the_future() -> None:
    """An age is never negative."""
    readiness, holder, _ = made(10)
    holder.checked_at = 5.0
    assert (readiness.age_s, readiness.find_objection()) == (0.0, "")


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


class Several:
    """The readiness of a process with environments, in the order in which they are added. `answers` tells of its workers."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.process = holder_of(FakeSnapshot())
        self.holders: list[Holder] = []
        self.every: list[Readiness] = []
        self.answers = True
        self.readiness = EnvironmentsReadiness(self.process, self.clock, lambda: self.every, lambda: self.answers)

    def add(self, *, warm: bool = False, failures: int = 0, max_staleness_s: float = 0) -> Holder:
        """Add an environment, and return its holder."""
        holder = holder_of(FakeSnapshot() if warm else None)
        holder.failures = failures
        self.holders.append(holder)
        self.every.append(Readiness(holder, self.clock, max_staleness_s))
        return holder


def test_all_environments_must_have_been_tried() -> None:
    """At the start the process waits for each. It does not wait for a failed environment if another environment is ready."""
    around = Several()
    first, second = around.add(), around.add()
    assert around.readiness.find_objection() == "cold"
    first.current = FakeSnapshot()
    assert around.readiness.find_objection() == "cold"
    second.failures = 1
    assert around.readiness.find_objection() == ""


def test_the_start_does_not_depend_on_probes() -> None:
    """Once each environment was tried, a later environment changes nothing, also if no probe has asked before."""
    around = Several()
    around.add(warm=True)
    second = around.add()
    assert not around.readiness.note_start() and not around.readiness.has_started
    second.failures = 1
    assert around.readiness.note_start()
    around.add()
    assert around.readiness.find_objection() == ""


async def test_one_stale_environment_is_not_the_process() -> None:
    """The process is stale when no environment is ready any more; a cold one is told before a stale one. It has no age itself."""
    around = Several()
    first, second = around.add(warm=True, max_staleness_s=10), around.add(warm=True, max_staleness_s=10)
    first.checked_at, second.checked_at = 0.0, 5.0
    await around.clock.advance(11)
    assert [each.find_objection() for each in around.every] == ["stale", ""]
    assert around.readiness.find_objection() == ""
    await around.clock.advance(5)
    assert around.readiness.find_objection() == "stale"
    around.add(failures=1)
    assert around.readiness.find_objection() == "cold"
    first.checked_at = around.clock.monotonic()
    assert around.readiness.find_objection() == "" and around.readiness.age_s is None


def test_what_is_of_the_process_comes_first() -> None:
    """Its end and its workers count before the state of any environment."""
    around = Several()
    around.add(warm=True)
    around.answers = False
    assert around.readiness.find_objection() == "no-worker"
    around.readiness.is_draining = True
    assert around.readiness.find_objection() == "draining"
