"""The limits for connections of one process, from the options and the limits of the system (decision 0032)."""

from __future__ import annotations

import resource

from flagsvc.core.log import Logger
from flagsvc.http.server import ConnectionLimits
from flagsvc.process.memory import default_request_memory
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.server import ServerOptions

RESERVED_FILES = 128
"""File descriptors for other uses: listening, upstream, storage, and connections that are refused for lack of room."""
MIN_CONNECTIONS = 16
"""The least number of connections that are taken, even if there are fewer file descriptors."""


def make_connection_limits(options: ProxyOptions | ServerOptions, log: Logger) -> ConnectionLimits:
    """Return the limits for connections. Logs a warning if the system allows fewer connections than the options."""
    most = available_connections(options.max_connections)
    if most < options.max_connections:
        log.warn(
            "the system allows fewer connections than maxConnections",
            connections=most,
            wanted=options.max_connections,
            remedy=f"allow the process {options.max_connections + RESERVED_FILES} open files",
        )
    largest = options.header_limit + options.body_limit
    processes = 1
    if isinstance(options, ProxyOptions):
        largest = max(largest, options.header_limit + options.metrics_body_limit)
        processes = options.workers
    memory = options.request_memory or default_request_memory(largest, processes)
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


def available_connections(wanted: int) -> int:
    """Return how many of the wanted connections the process can hold. Raises the limit of open files if possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    top = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))
    except (OSError, ValueError):
        top = soft
    return max(MIN_CONNECTIONS, top - RESERVED_FILES)
