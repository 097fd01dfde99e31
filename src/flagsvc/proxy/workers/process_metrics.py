"""Process metrics of the operating system, summed over parent and workers."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Sequence
from functools import partial

from prometheus_client import Metric, ProcessCollector

CPU = "process_cpu_seconds"
PARENT_ONLY = frozenset({"process_start_time_seconds"})
"""Metrics of the parent that are not summed: the proxy started when the parent did."""


def collect_process_metrics(workers: Sequence[int]) -> Iterable[Metric]:
    """Return the summed metrics of this process and of the workers with these ids, with the CPU time of ended workers.

    Memory that processes share is counted for each of them.
    """
    summed: dict[str, Metric] = {}
    ended = -1.0
    while ended != (now := ended_children_cpu()):  # a worker that ends meanwhile would be counted twice
        ended = now
        summed = {metric.name: metric for metric in measure_process("self")}
        for metric in (metric for worker in workers for metric in measure_process(worker)):
            if metric.name in summed and metric.name not in PARENT_ONLY:
                add_value(summed[metric.name], metric.samples[0].value)
    if CPU in summed:
        add_value(summed[CPU], ended)
    return summed.values()


def ended_children_cpu() -> float:
    """Return the CPU seconds of all child processes that have ended and were waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def measure_process(process: int | str) -> Iterable[Metric]:
    """Return the metrics of one process; none if it has ended or the system has no /proc."""
    return ProcessCollector(pid=partial(str, process), registry=None).collect()


def add_value(metric: Metric, value: float) -> None:
    metric.samples[0] = metric.samples[0]._replace(value=metric.samples[0].value + value)
