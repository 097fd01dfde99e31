"""What the operating system says of parent and workers, summed to one set of process metrics."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Sequence
from functools import partial

from prometheus_client import Metric, ProcessCollector

CPU = "process_cpu_seconds"
FIRST = frozenset({"process_start_time_seconds"})
"""What is the parent's alone: the whole began when it did."""


def processes(workers: Sequence[int]) -> Iterable[Metric]:
    """Return the metrics of this process and of the workers with these ids; CPU time of those that have ended stays in it.

    Memory that processes share is counted for each of them.
    """
    summed: dict[str, Metric] = {}
    ended = -1.0
    while ended != (now := cpu_of_the_ended()):  # one that is waited for meanwhile would be counted twice
        ended = now
        summed = {metric.name: metric for metric in measured("self")}
        for metric in (metric for worker in workers for metric in measured(worker)):
            if metric.name in summed and metric.name not in FIRST:
                add(summed[metric.name], metric.samples[0].value)
    if CPU in summed:
        add(summed[CPU], ended)
    return summed.values()


def cpu_of_the_ended() -> float:
    """Return the seconds of CPU time of all children that have ended and were waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def measured(process: int | str) -> Iterable[Metric]:
    """Return the metrics of one process; none where it is gone, or the system has no /proc."""
    return ProcessCollector(pid=partial(str, process), registry=None).collect()


def add(metric: Metric, value: float) -> None:
    """Add to a metric that has one sample."""
    metric.samples[0] = metric.samples[0]._replace(value=metric.samples[0].value + value)
