"""What the pages show: the process and its environments, as they are when a page is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, Secrets
from flagsvc.engine.compile import CompileOptions
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.sources import WorkerProcesses
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration.change_log import ChangeLog
from flagsvc.proxy.configuration.poll_notes import PollNotes
from flagsvc.proxy.extensions import ContextEnricher
from flagsvc.proxy.pages.recorder import ReadCounts
from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage import UsageCounters
from flagsvc.settings.places import Resolved


class ShownEnvironment(NamedTuple):
    """One environment. `name` is empty if the process has a single one; `upstream` is its address without credentials."""

    name: str
    upstream: str
    holder: Holder
    notes: PollNotes
    asked: UsageCounters
    changes: ChangeLog
    settings: ServiceSettings
    compile_options: CompileOptions
    enrichers: Sequence[ContextEnricher]


class Scene(NamedTuple):
    """One process. `resolved` are its options as they were read at the start, if it read any; `started` is in epoch seconds."""

    read_identity: Callable[[], Identity]
    clock: Clock
    log: Logger
    secrets: Secrets
    readiness: Readiness
    workers: WorkerProcesses
    list_environments: Callable[[], Mapping[str, ShownEnvironment]]
    read_counts: ReadCounts
    resolved: Resolved | None
    started: float
