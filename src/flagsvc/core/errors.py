"""The errors of flagsvc, one class per cause.

FlagsvcError
├── ConfigurationError   the options are wrong; carries every problem at once (exit code 2)
├── MissingExtraError    a package is not installed that a command needs; names the command that installs it (exit code 2)
├── ExtensionError       a file of custom strategies or enrichers cannot be used
├── DocumentError        a configuration document as a whole is not of the right shape
├── UpstreamError        the upstream server did not give a usable answer
├── StoreError           a stored configuration cannot be read or written
│   └── DamagedRecordError   what is stored is not whole, so nothing is lost if it is replaced
├── DatabaseError        the flag server's database cannot be used
│   └── UnwritableError      the database can be read, and takes no changes
├── BackupError          a backup cannot be read, or the database does not take it (exit code 2)
├── SeedError            a seed file is wrong; carries every problem at once
└── ListenError          the process cannot listen on the address (exit code 1)
"""

from __future__ import annotations

from collections.abc import Sequence


class FlagsvcError(Exception):
    """The base class of every error that this package raises on purpose."""


class ConfigurationError(FlagsvcError):
    """The options do not make a configuration. `problems` holds one line for each (specification: Configuration)."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class MissingExtraError(FlagsvcError):
    """A command needs packages of an extra that is not installed. The message names the command that installs it."""


class ExtensionError(FlagsvcError):
    """A file of custom strategies or enrichers is missing, cannot be imported, or exports the wrong objects."""


class DocumentError(FlagsvcError):
    """A configuration document is not of the right shape. `path` names the spot, for example `features[3].name`."""

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        self.message = message
        super().__init__(f"{path}: {message}" if path else message)


class UpstreamError(FlagsvcError):
    """The upstream server did not give a usable answer.

    `kind` is one of `network`, `silent`, `forbidden`, `unauthorized`, `not-found`, `throttled`, `server`, `document`, `unexpected`.
    `status` is the HTTP status, if there was an answer. `retry_after` is the seconds that the server asked to wait, if it did.
    """

    def __init__(self, kind: str, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        super().__init__(message)


class UnreachableError(UpstreamError):
    """No connection to the upstream server could be opened, so nothing was sent. Its kind is `network`, or `forbidden`."""


class StoreError(FlagsvcError):
    """A stored configuration cannot be read or written."""


class DamagedRecordError(StoreError):
    """What is stored is not whole, or was not written by flagsvc. Nothing is lost if it is replaced."""


class DatabaseError(FlagsvcError):
    """The flag server's database cannot be opened, read or written. The message contains no secret."""


class UnwritableError(DatabaseError):
    """The flag server's database can be read, and takes no changes. `why` completes the sentence."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"the database cannot be written: {why}")


class BackupError(FlagsvcError):
    """A backup of the flag server is damaged or not understood, or the database holds what it would replace."""


class SeedError(FlagsvcError):
    """A seed file cannot be read. `problems` holds one line for each, with its path (import validation 0.3)."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class ListenError(FlagsvcError):
    """The process cannot listen on the address, for example because another program listens there."""
