"""The sources of the proxy's metrics: where `samples` reads its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from flagsvc.core.clock import Clock
from flagsvc.http.call import StatusCounts
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.ports import ConfigurationHolder
from flagsvc.proxy.usage import UsageCounters

Loops: TypeAlias = Callable[[], Mapping[str, int]]
"""Returns how often each background loop was restarted after a failure, by its name."""


class WorkerProcesses(Protocol):
    """The processes that answer requests."""

    @property
    def workers(self) -> int:
        """The number of processes."""

    @property
    def restarts(self) -> int:
        """How often a process was replaced."""

    @property
    def hangs(self) -> int:
        """How many replaced processes did not answer."""


class SingleProcess(NamedTuple):
    """The only process."""

    workers: int = 1
    restarts: int = 0
    hangs: int = 0


class TokenStatus(Protocol):
    """The tokens that were looked up upstream."""

    @property
    def known(self) -> int:
        """How many tokens the upstream knows."""

    @property
    def waiting(self) -> int:
        """How many tokens wait for an answer."""

    @property
    def asked(self) -> int:
        """How many requests were sent about tokens."""


FormerCounts: TypeAlias = Mapping[str, Mapping[tuple[str, ...], float]]
"""Counts of environments that were replaced: by row, then by labels."""


StorageErrors: TypeAlias = Callable[[], int | None]
"""Returns how often a request to the storage server failed; None without such a server."""


def no_storage_errors() -> None:
    """Return None."""
    return


def no_loops() -> dict[str, int]:
    return {}


class Sources(NamedTuple):
    """The sources of the samples. `private` tells that callers cannot read the metrics.

    `environments` returns the sources of each environment by its name; then the others are those of the process. The only
    environment has an empty name. `former` are the counts of those that had their names before. `is_pending` tells
    whether an environment is being replaced.
    """

    holder: ConfigurationHolder
    usage: UsageCounters
    status_counts: Sequence[StatusCounts]
    clock: Clock
    cache: AnswerCache
    worker_pool: WorkerProcesses = SingleProcess()
    loops: Loops = no_loops
    reached: Mapping[str, int] = MappingProxyType({})
    private: bool = False
    storage_errors: StorageErrors = no_storage_errors
    environments: Callable[[], Mapping[str, Sources]] | None = None
    tokens: TokenStatus | None = None
    former: Mapping[str, FormerCounts] = MappingProxyType({})
    is_pending: Callable[[], bool] = bool
