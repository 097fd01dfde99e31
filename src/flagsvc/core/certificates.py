"""Certificates, keys and authorities in PEM files: taken into TLS settings, and watched for changes.

What is wrong with a file is told with the option that names it. A message has paths and reasons, never what a file holds.
"""

from __future__ import annotations

import os
import ssl
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from flagsvc.core.errors import ConfigurationError

LARGEST = 4 * 1024 * 1024
"""The most bytes that are looked at of a file; all authorities of a system are a twentieth of it."""
CERTIFICATE, KEY, ENCRYPTED = b"-----BEGIN CERTIFICATE", b"PRIVATE KEY-----", b"ENCRYPTED"

Stamp: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""What tells one state of some files from another."""


class CertificateOptionNames(NamedTuple):
    """The options that a pair comes from, as messages name them."""

    cert: str
    key: str
    password: str


@dataclass(frozen=True)
class CertificateFiles:
    """A certificate with its chain, and its key: in one file where `key` is None. `password` opens a key that is encrypted."""

    names: CertificateOptionNames
    cert: str
    key: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return (self.cert,) if self.key is None else (self.cert, self.key)

    def load(self, context: ssl.SSLContext) -> None:
        """Have a side of TLS show the certificate. Raises ConfigurationError, and leaves the settings as nothing to use then."""
        try:
            self._load(context)
        except ConfigurationError as error:
            traceback.clear_frames(error.__traceback__)  # they hold the key
            raise

    def _load(self, context: ssl.SSLContext) -> None:
        certificate = content(self.names.cert, self.cert)
        key = certificate if self.key is None else content(self.names.key, self.key)
        problem = self._problem(certificate, key)
        if not problem:
            try:
                context.load_cert_chain(self.cert, self.key, lambda: self.password or "")
            except (ssl.SSLError, OSError, ValueError) as error:
                problem = self._reason(error, ENCRYPTED in key)
        if problem:
            raise ConfigurationError([problem])

    def _problem(self, certificate: bytes, key: bytes) -> str:
        """Return what can be seen to be wrong, nothing where that is nothing. Without its password OpenSSL would ask for one."""
        where, name = self._key
        if CERTIFICATE not in certificate:
            return f"{self.names.cert}: `{self.cert}` holds no certificate in PEM form"
        if KEY not in key:
            hint = f"; give {self.names.key} where it is in a file of its own" if self.key is None else ""
            return f"{name}: `{where}` holds no key in PEM form{hint}"
        if ENCRYPTED in key and not self.password:
            return f"{name}: the key in `{where}` is encrypted; give {self.names.password}"
        return ""

    def _reason(self, error: Exception, encrypted: bool) -> str:
        """Return why OpenSSL takes the two not."""
        where, name = self._key
        reason = getattr(error, "reason", None) or ""
        if reason == "KEY_VALUES_MISMATCH":
            return f"{name}: the key in `{where}` is not that of the certificate in `{self.cert}`"
        if encrypted and not reason.startswith("EE_"):
            return f"{self.names.password}: does not open the key in `{where}`"
        return f"{self.names.cert}: `{self.cert}` cannot be used: {spelled(reason) or type(error).__name__}"

    @property
    def _key(self) -> tuple[str, str]:
        """Where the key is, and the option that says so."""
        return (self.cert, self.names.cert) if self.key is None else (self.key, self.names.key)


def load_authorities(context: ssl.SSLContext, name: str, path: str) -> None:
    """Trust the authorities in a file as well; `name` is the option that names it. Raises ConfigurationError."""
    if CERTIFICATE not in content(name, path):
        raise ConfigurationError([f"{name}: `{path}` holds no certificate in PEM form"])
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        reason = spelled(getattr(error, "reason", None) or "") or type(error).__name__
        raise ConfigurationError([f"{name}: `{path}` cannot be used: {reason}"]) from None


def content(name: str, path: str) -> bytes:
    """Return what is in a file, which the option `name` names. Raises ConfigurationError."""
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is no path").lower()
        raise ConfigurationError([f"{name}: cannot read `{path}`: {reason}"]) from None


def spelled(reason: str) -> str:
    """Return one of OpenSSL's reasons in words."""
    return reason.replace("_", " ").lower()


def stamp(paths: Sequence[str]) -> Stamp:
    """Return what tells the present state of files from an earlier one; a link counts as what it leads to."""
    return tuple(map(_stamp, paths))


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


class WatchedFiles:
    """Files that are looked at now and then. A certificate and its key are two: a change counts when it is over."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(paths)
        self._taken = self._last = stamp(self._paths)

    def changed(self) -> bool:
        """Return whether they are others than those that were taken, and the same as at the last look; they are taken then."""
        if not self._paths:
            return False
        now = stamp(self._paths)
        settled, self._last = now == self._last, now
        if not settled or now == self._taken:
            return False
        self._taken = now
        return True

    def take(self) -> None:
        """Take them as they are now."""
        self._taken = self._last = stamp(self._paths)
