"""The ports of the HTTP service: the parts of other packages that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from flagsvc.engine.canonical import CacheKeys
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import AnswerPieces, AnswerShape
from flagsvc.engine.lists import Lists
from flagsvc.engine.run import Fault, Memory
from flagsvc.proxy.usage import ImpactSample, UsageSource


class EvaluatedSnapshot(Protocol):
    """A compiled configuration (`flagsvc.engine.snapshot.Snapshot`)."""

    @property
    def cache_keys(self) -> CacheKeys:
        """The keys that identify equal answers without evaluation."""

    @property
    def lists(self) -> Lists:
        """What answers lists; a `ClassStore` has metrics."""

    @property
    def memory(self) -> Memory:
        """The state that evaluations share. Each request checks its `faults`, and takes them if there are any."""

    @property
    def names(self) -> Mapping[str, frozenset[str]]:
        """The names of the variants of each toggle."""

    def listing(self, context: Context, everything: bool, shape: AnswerShape) -> AnswerPieces:
        """Return the JSON list of the toggles that are on, or of every toggle, in pieces."""

    def named(self, context: Context, names: list[str], shape: AnswerShape) -> tuple[bytes, list[bool]]:
        """Return the JSON list of the named toggles, and whether each is on."""

    def take_faults(self) -> list[Fault]:
        """Return the exceptions since the last call: those of custom strategies and those of toggles, each with its name."""


class ServedDocument(Protocol):
    """The configuration document that is served to server-side SDKs."""

    @property
    def body(self) -> bytes:
        """The JSON."""

    @property
    def etag(self) -> str:
        """The entity tag, with its quotes."""


class ConfigurationHolder(Protocol):
    """The cell that holds the configuration (`flagsvc.proxy.configuration.Holder`)."""

    @property
    def current(self) -> EvaluatedSnapshot | None:
        """The snapshot to answer from; None until there is a configuration."""

    @property
    def document(self) -> ServedDocument | None:
        """The document of that snapshot."""

    @property
    def last_fetch_ms(self) -> float:
        """Epoch milliseconds of the last check for updates; 0.0 if there was none."""

    @property
    def last_update_ms(self) -> float:
        """Epoch milliseconds of the last update received; 0.0 if there was none."""

    @property
    def state(self) -> str:
        """Where the configuration came from: cold, restored, bootstrapped, fresh, stale or refused."""

    @property
    def problems(self) -> int:
        """The number of malformed features and segments that were left out."""

    @property
    def odd(self) -> int:
        """The number of features and segments that are served with an odd value."""

    @property
    def checked_at(self) -> float | None:
        """The moment of the last successful check of the upstream, in seconds of `Clock.monotonic`; None before the first."""

    @property
    def failures(self) -> int:
        """The number of failed checks since then."""

    @property
    def event_counts(self) -> Mapping[str, int]:
        """How often each event was the result of a check, by the name of `lifecycle.Event`."""


class UsageCounting(Protocol):
    """The counters of usage metrics (`flagsvc.proxy.usage.UsageCounters`)."""

    @property
    def entries(self) -> int:
        """The number of toggles, variants and samples of impact metrics that are not sent yet."""

    @property
    def unknown(self) -> int:
        """The number of counts that were left out because the configuration does not know their name."""

    @property
    def full(self) -> int:
        """The number of counts that were left out because there were too many."""

    @property
    def malformed(self) -> int:
        """The number of entries of reports that were left out because they are malformed."""

    @property
    def refused(self) -> int:
        """The number of counts that the upstream will never accept."""

    def count_all(self, names: list[str], states: list[bool]) -> None:
        """Count a look-up: whether each of these toggles was on, for names that the configuration knows."""

    def add(self, name: str, yes: int, no: int, variants: dict[str, int], source: UsageSource | None = None) -> None:
        """Add the counts of an SDK for a toggle, for names and variants that the configuration knows.

        `source` is the application of a server-side SDK.
        """

    def add_impact(self, sample: ImpactSample, source: UsageSource | None = None) -> None:
        """Add a sample of an impact metric, of a server-side application or the proxy's own."""

    def leave_out_unknown(self) -> None:
        """Note that counts are left out that are not for this configuration."""

    def leave_out(self, number: int) -> None:
        """Note that so many entries of reports are left out because they are malformed."""

    def register(self, source: UsageSource, registration: dict[str, Any]) -> None:
        """Note the registration of a server-side application, to be sent upstream."""

    def finish_report(self) -> None:
        """Note that an SDK's report is completely added."""
