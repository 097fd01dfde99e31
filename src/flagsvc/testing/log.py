"""A logger that writes into a list."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    """One event that was logged."""

    level: str
    event: str
    fields: dict[str, object] = field(default_factory=dict)


class RecordingLog:
    """A `flagsvc.core.log.Logger` that keeps every event in `lines`."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def debug(self, event: str, **fields: object) -> None:
        """Record at level debug."""
        self.lines.append(Line("debug", event, fields))

    def info(self, event: str, **fields: object) -> None:
        """Record at level info."""
        self.lines.append(Line("info", event, fields))

    def warn(self, event: str, **fields: object) -> None:
        """Record at level warn."""
        self.lines.append(Line("warn", event, fields))

    def error(self, event: str, **fields: object) -> None:
        """Record at level error."""
        self.lines.append(Line("error", event, fields))

    def fatal(self, event: str, **fields: object) -> None:
        """Record at level fatal."""
        self.lines.append(Line("fatal", event, fields))

    def at(self, *levels: str) -> list[str]:
        """Return the events of these levels, in order."""
        return [line.event for line in self.lines if line.level in levels]
