"""The limits for connections of one process, from the options and the limits of the system (decision 0020)."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from flagsvc.core.control_groups import GROUPS, OWN, memory_limits
from flagsvc.core.log import Logger
from flagsvc.http.server import ConnectionLimits
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.server import ServerOptions

RESERVED_FILES = 128
"""File descriptors for other uses: listening, upstream, storage, and connections that are refused for lack of room."""
MIN_CONNECTIONS = 16
"""The least number of connections that are taken, even if there are fewer file descriptors."""
MEMORY_SHARE = 8
"""Open requests may use 1/8 of the available memory. As objects they need more memory than their bytes."""
MIN_BYTES, MAX_BYTES = 8 * 1024 * 1024, 512 * 1024 * 1024
"""The bounds, in bytes, of the memory for open requests."""


def make_connection_limits(options: ProxyOptions | ServerOptions, log: Logger) -> ConnectionLimits:
    """Return the limits for connections. Logs a warning if the system allows fewer connections than the options."""
    wanted = options.max_connections + options.max_streams
    files = available_connections(wanted)
    most = min(options.max_connections, files)
    if most < options.max_connections:
        log.warn(
            "the system allows fewer connections than maxConnections",
            connections=most,
            wanted=options.max_connections,
            remedy=f"allow the process {wanted + RESERVED_FILES} open files",
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
        streams=files - most,
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


def default_request_memory(largest: int, processes: int) -> int:
    """Return how many bytes of open requests each of `processes` may hold, if the largest request has `largest` bytes.

    One network may use half of it. At least four of the largest requests fit in any case.
    """
    return max(MIN_BYTES, 4 * largest, min(MAX_BYTES, available_memory() // MEMORY_SHARE // processes))


def available_memory(groups: Path = GROUPS, own: Path = OWN) -> int:
    """Return how many bytes this process may use, as far as the system reports it."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *memory_limits(groups, own)]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return min(found if soft == resource.RLIM_INFINITY else [*found, soft])
