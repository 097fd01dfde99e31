"""Workers that are stopped, killed, hang or crash: seconds until all callers are answered again, and the probe's answers.

`make test-long ARGS="-s tests/long/test_long_workers.py"` prints the table of the measurements (decision 0018).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from support.fake_upstream import FakeUpstream, fake_upstream
from support.outages import Outage, outage, trapped
from support.waiting import wait_until

pytestmark = pytest.mark.long

NUMBER = 3
ENOUGH_S = 5.0
LOOP_S = 20.0
"""Workers crash repeatedly for so long that the pauses between two starts grow."""

Strike = Callable[[Outage, Sequence[int]], float]
"""Does something to workers, and returns from when on they could answer again."""


def stop(around: Outage, pids: Sequence[int]) -> float:
    return signalled(pids, signal.SIGSTOP)


def kill(around: Outage, pids: Sequence[int]) -> float:
    return signalled(pids, signal.SIGKILL)


def hang(around: Outage, pids: Sequence[int]) -> float:
    """Have custom code run without end where a request comes next."""
    around.touch(*(f"hang-{pid}" for pid in pids))
    return time.monotonic()


def crash_at_the_start(around: Outage, pids: Sequence[int]) -> float:
    """Kill processes, and have all that follow them end before they answer, for a while."""
    around.touch("broken")
    signalled(pids, signal.SIGKILL)
    return while_it_lasts(around, "broken")


def crash_at_requests(around: Outage, pids: Sequence[int]) -> float:
    """Have each request end the process that it comes to, for a while."""
    around.touch("crash")
    return while_it_lasts(around, "crash")


def each_another_way(around: Outage, pids: Sequence[int]) -> float:
    """Stop one, kill one, have one hang."""
    stopped, killed, hanging = pids
    moment = hang(around, [hanging])
    stop(around, [stopped])
    kill(around, [killed])
    return moment


def signalled(pids: Sequence[int], number: int) -> float:
    moment = time.monotonic()
    for pid in pids:
        os.kill(pid, number)
    return moment


def while_it_lasts(around: Outage, name: str) -> float:
    """Wait until it has lasted long enough, and end it."""
    end = time.monotonic() + LOOP_S
    wait_until(lambda: time.monotonic() > end)
    moment = time.monotonic()
    around.unlink(name)
    return moment


ROWS: dict[str, tuple[Strike, bool, bool | None]] = {
    "stopped, one by one": (stop, False, False),
    "stopped, all at once": (stop, True, True),
    "killed, one by one": (kill, False, False),
    "killed, all at once": (kill, True, True),
    "hanging in custom code, one by one": (hang, False, False),
    "hanging in custom code, all at once": (hang, True, True),
    "crashing at the start, one by one": (crash_at_the_start, False, False),
    "crashing at the start, all at once": (crash_at_the_start, True, True),
    "crashing at requests, all at once": (crash_at_requests, True, True),
    "one stopped, one killed, one hanging": (each_another_way, True, None),
}
"""What is done, whether to all at once, and whether nobody is left by it: None where the first successor may be there before."""


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with fake_upstream(trapped("first")) as server:
        yield server


@pytest.mark.parametrize("row", ROWS)
def test_everybody_is_answered_again(upstream: FakeUpstream, tmp_path: Path, row: str) -> None:
    """Every request is answered within five seconds; readiness fails exactly while no worker is left."""
    strike, together, none_left = ROWS[row]
    worst, told = 0.0, list[str]()
    with outage(upstream, tmp_path, NUMBER) as around:
        for number in range(1 if together else NUMBER):
            pids = around.workers()
            began = time.monotonic()
            moment = strike(around, pids if together else pids[number : number + 1])
            worst = max(worst, around.seconds(moment))
            told += [word for word in around.told(began) if told[-1:] != [word]]
            around.restored(NUMBER)
        scraped = around.scraped()
        assert around.proxy.program.stop() == 0
    replaced, hung = scraped["flagsvc_worker_restarts_total"], scraped.get("flagsvc_worker_hangs_total", 0)
    print(f"| {row} | {worst:.1f} | {', '.join(told)} | {replaced:.0f} | {hung:.0f} |")
    assert worst <= ENOUGH_S
    assert none_left is None or ("no-worker" in told) is none_left
    assert told[-1] == "ready"
    assert set(told) <= {"ready", "no-worker"}
