"""The bounds of the connections of one process, from the options and from what the system allows (decision 0032)."""

from __future__ import annotations

import resource

from flagsvc.core.log import Logger
from flagsvc.http.server import ConnectionLimits
from flagsvc.process.memory import request_memory
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.server import ServerOptions

RESERVE = 128
"""File descriptors for all else: listening, upstream, storage, and connections that are told that there is no room."""
LEAST = 16
"""Connections that are taken however few file descriptors there are."""


def connection_limits(options: ProxyOptions | ServerOptions, log: Logger) -> ConnectionLimits:
    """Return the bounds of connections; says in the log where the system allows fewer of them than the options."""
    most = room(options.max_connections)
    if most < options.max_connections:
        log.warn(
            "the system allows fewer connections than maxConnections",
            connections=most,
            wanted=options.max_connections,
            remedy=f"allow the process {options.max_connections + RESERVE} open files",
        )
    largest = options.header_limit + options.body_limit
    processes = 1
    if isinstance(options, ProxyOptions):
        largest = max(largest, options.header_limit + options.metrics_body_limit)
        processes = options.workers
    memory = options.request_memory or request_memory(largest, processes)
    if memory < 2 * largest:
        log.warn(
            "requestMemory is less than two of the largest requests: one network may hold half of it",
            bytes=memory,
            largest=largest,
        )
    return ConnectionLimits(
        keep_alive_s=options.keep_alive_timeout,
        head_s=options.header_timeout,
        body_s=options.body_timeout,
        write_s=options.write_timeout,
        connections=most,
        memory=memory,
    )


def room(wanted: int) -> int:
    """Return how many connections the process can hold, of those that are wanted; asks the system for more open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    top = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))
    except (OSError, ValueError):
        top = soft
    return max(LEAST, top - RESERVE)
