"""The port of the HTTP service for the configuration that it serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.configuration import ConfigurationDocument


class ConfigurationHolder(Protocol):
    """The cell that holds the configuration (`flagsvc.proxy.configuration.Holder`)."""

    @property
    def current(self) -> Snapshot | None:
        """The snapshot to answer from; None until there is a configuration."""

    @property
    def document(self) -> ConfigurationDocument | None:
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
