"""What the HTTP contract asks of the rooms below it, each as small as it uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from flagsvc.engine.canonical import CacheKeys
from flagsvc.engine.context import Context
from flagsvc.engine.run import Memory


class EvaluatedSnapshot(Protocol):
    """A compiled configuration (`flagsvc.engine.snapshot.Snapshot`)."""

    @property
    def cache_keys(self) -> CacheKeys:
        """What tells equal answers without evaluating."""

    @property
    def memory(self) -> Memory:
        """What the evaluations share; its `faults` are looked at for each request, and taken when there are any."""

    def enabled(self, context: Context) -> bytes:
        """Return the JSON list of the toggles that are on."""

    def all(self, context: Context) -> bytes:
        """Return the JSON list of every toggle."""

    def named(self, context: Context, names: list[str]) -> tuple[bytes, list[bool]]:
        """Return the JSON list of the toggles asked for, and whether each is on."""

    def take_faults(self) -> list[tuple[str, Exception]]:
        """Return what was raised since the last call: the name of the custom strategy, or else of the toggle, and the exception."""


class ServedDocument(Protocol):
    """The configuration document that is served to server-side SDKs."""

    @property
    def body(self) -> bytes:
        """The JSON."""

    @property
    def etag(self) -> str:
        """Its entity tag, quotes included."""


class ConfigurationHolder(Protocol):
    """The cell that holds the configuration (`flagsvc.proxy.configuration.Holder`)."""

    @property
    def current(self) -> EvaluatedSnapshot | None:
        """The snapshot to answer from; None until the first configuration is there."""

    @property
    def document(self) -> ServedDocument | None:
        """The document it was made of."""

    @property
    def last_fetch_ms(self) -> float:
        """Epoch milliseconds of the last check for updates, 0.0 when never."""

    @property
    def last_update_ms(self) -> float:
        """Epoch milliseconds of the last update received, 0.0 when never."""

    @property
    def state(self) -> str:
        """Where the configuration came from: cold, restored, bootstrapped, fresh, stale or rejected."""

    @property
    def problems(self) -> int:
        """The number of malformed features that were left out."""

    @property
    def checked_at(self) -> float | None:
        """The moment of the last check of the upstream that went well, in the seconds of `Clock.monotonic`; None when never."""

    @property
    def failures(self) -> int:
        """The number of checks since then, all of which failed."""

    @property
    def event_counts(self) -> Mapping[str, int]:
        """How often a check brought what, by the name of `lifecycle.Event`."""


class UsageCounting(Protocol):
    """The counters of usage metrics (`flagsvc.proxy.usage.UsageCounters`)."""

    @property
    def entries(self) -> int:
        """How many toggles and variants were counted and not sent yet."""

    @property
    def unknown(self) -> int:
        """How many counts were left out so far that the configuration does not know."""

    @property
    def full(self) -> int:
        """How many were left out because there were too many."""

    @property
    def refused(self) -> int:
        """How many the upstream will never take."""

    def count_all(self, names: list[str], states: list[bool]) -> None:
        """Count a look-up: whether each of these toggles was on, as far as the configuration knows them."""

    def add(self, name: str, yes: int, no: int, variants: dict[str, int]) -> None:
        """Count what an SDK reports of a toggle, as far as the configuration knows its name and variants."""

    def finish_report(self) -> None:
        """Take that all of an SDK's report was added."""
