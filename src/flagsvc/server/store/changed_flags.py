"""Which flags the last commits of this server have changed, so that the next read of the documents reads these alone.

A commit of another server, a commit that may have changed more than the flags that its events name, and a commit of many flags are
unknown. Then everything is read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

MAX_COMMITS: Final = 256
"""The last commits that are remembered."""
MAX_FLAGS: Final = 50
"""A commit of more flags than these is unknown: to read everything is as fast."""
OF_ONE_FLAG: Final = frozenset(
    {
        "feature-metadata-updated",
        "feature-stale-on",
        "feature-stale-off",
        "feature-environment-enabled",
        "feature-environment-disabled",
        "feature-environment-variants-updated",
        "feature-strategy-add",
        "feature-strategy-update",
        "feature-strategy-remove",
        "strategy-order-changed",
        "feature-dependency-added",
        "feature-dependency-removed",
        "feature-dependencies-removed",
        "feature-tagged",
        "feature-untagged",
    }
)
"""Types of events. Such a change changes only the flag that its event names, and the flag was there before."""


class ChangedFlags:
    """The names of the flags that each commit has changed, by its revision. Safe to use from any thread.

    Revisions that were noted and come again may belong to a database that was restored. Then all is forgotten.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commits: OrderedDict[int, frozenset[str]] = OrderedDict()
        self._last = 0

    def note(self, revision: int, events: Iterable[Mapping[str, Any]]) -> None:
        """Note the events of a commit, unless it is to be unknown."""
        found = list(events)
        names = frozenset(each["feature"] for each in found)
        is_known = found and len(names) <= MAX_FLAGS and all(each["type"] in OF_ONE_FLAG and each["feature"] for each in found)
        with self._lock:
            if revision <= self._last:
                self._commits.clear()
            self._last = revision
            if is_known:
                self._commits[revision] = names
            while len(self._commits) > MAX_COMMITS:
                self._commits.popitem(last=False)

    def find(self, before: int, after: int) -> frozenset[str] | None:
        """Return the names of all flags that have changed from one revision to another; None if that is not known."""
        with self._lock:
            if after < self._last:
                self._commits.clear()
            if not 0 <= after - before <= MAX_COMMITS:
                return None
            found = [self._commits.get(each) for each in range(before + 1, after + 1)]
        names: set[str] = set()
        for each in found:
            if each is None:
                return None
            names |= each
        return frozenset(names)
