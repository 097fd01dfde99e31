"""Loads certificates, keys and authorities from PEM files into TLS contexts, and detects changes of the files.

An error message names the option, the path and the reason. It never quotes the content of a file.
"""

from __future__ import annotations

import os
import ssl
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from flagsvc.core import files
from flagsvc.core.errors import ConfigurationError

MAX_BYTES = 4 * 1024 * 1024
"""The most bytes that are read of a file. The authorities of a whole system need a twentieth of it."""
END = "-----END CERTIFICATE-----"
"""The end of a certificate in PEM. The first certificate of a file belongs to the server."""
VERSION_TAG, SHORT_TIME_TAG, LONG_FORM = 0xA0, 0x17, 0x80
"""Of DER: the tag of a version, the tag of a time with two digits of the year, and the bit of a length in several bytes."""
CERTIFICATE, KEY, ENCRYPTED = b"-----BEGIN CERTIFICATE", b"PRIVATE KEY-----", b"ENCRYPTED"

FilesStamp: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""Modification time, size, inode and device of each file; it differs when a file has changed."""


class CertificateOptionNames(NamedTuple):
    """The names of the options that give certificate, key and password, for messages."""

    cert: str
    key: str
    password: str


@dataclass(frozen=True)
class CertificateFiles:
    """A certificate with its chain, and its key. If `key` is None, one file has both. `password` decrypts an encrypted key."""

    names: CertificateOptionNames
    cert: str
    key: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.cert,) if self.key is None else (self.cert, self.key)

    def load(self, context: ssl.SSLContext) -> None:
        """Load certificate and key into a TLS context. Raises ConfigurationError; the context must not be used then."""
        try:
            self._load(context)
        except ConfigurationError as error:
            traceback.clear_frames(error.__traceback__)  # the frames hold the key
            raise

    def find_expiry(self) -> float | None:
        """Return when the certificate ends, in seconds since the epoch; None if the file cannot be read now."""
        try:
            text = read_file(self.names.cert, self.cert).decode("latin-1")
            first = text[text.index(CERTIFICATE.decode()) : text.index(END)] + END
            return read_expiry(ssl.PEM_cert_to_DER_cert(first))
        except (ConfigurationError, ValueError, IndexError):
            return None

    def _load(self, context: ssl.SSLContext) -> None:
        certificate = read_file(self.names.cert, self.cert)
        key = certificate if self.key is None else read_file(self.names.key, self.key)
        problem = self._find_problem(certificate, key)
        if not problem:
            try:
                context.load_cert_chain(self.cert, self.key, lambda: self.password or "")
            except (ssl.SSLError, OSError, ValueError) as error:
                problem = self._explain(error, ENCRYPTED in key)
        if problem:
            raise ConfigurationError([problem])

    def _find_problem(self, certificate: bytes, key: bytes) -> str:
        """Return what is wrong with the content of the files, or an empty text.

        An encrypted key without a password must be caught here: OpenSSL would ask a terminal for the password.
        """
        path, name = self._key_source
        if CERTIFICATE not in certificate:
            return f"{self.names.cert}: `{self.cert}` holds no certificate in PEM form"
        if KEY not in key:
            hint = f"; give {self.names.key} if the key is in a file of its own" if self.key is None else ""
            return f"{name}: `{path}` holds no key in PEM form{hint}"
        if ENCRYPTED in key and not self.password:
            return f"{name}: the key in `{path}` is encrypted; give {self.names.password}"
        return ""

    def _explain(self, error: Exception, is_encrypted: bool) -> str:
        """Return why OpenSSL rejects certificate and key."""
        path, name = self._key_source
        reason = getattr(error, "reason", None) or ""
        if reason == "KEY_VALUES_MISMATCH":
            return f"{name}: the key in `{path}` is not that of the certificate in `{self.cert}`"
        if is_encrypted and not reason.startswith("EE_"):
            return f"{self.names.password}: does not decrypt the key in `{path}`"
        return f"{self.names.cert}: `{self.cert}` cannot be used: {format_reason(reason) or type(error).__name__}"

    @property
    def _key_source(self) -> tuple[str, str]:
        """The path of the file with the key, and the name of its option."""
        return (self.cert, self.names.cert) if self.key is None else (self.key, self.names.key)


def read_expiry(certificate: bytes) -> float:
    """Return when a certificate in DER ends, in seconds since the epoch (RFC 5280, 4.1). Raises ValueError and IndexError."""
    [(_, whole)] = read_elements(certificate)
    fields = read_elements(read_elements(whole)[0][1])
    validity = fields[4 if fields[0][0] == VERSION_TAG else 3][1]
    tag, text = read_elements(validity)[1]
    digits = text.decode("ascii")
    if tag == SHORT_TIME_TAG:
        digits = ("20" if digits < "50" else "19") + digits
    return datetime.strptime(digits, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def read_elements(data: bytes) -> list[tuple[int, bytes]]:
    """Return the elements of a sequence in DER, each with its tag and content. Raises IndexError if the data are cut off."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & LONG_FORM:
            digits = size - LONG_FORM
            size, at = int.from_bytes(data[at : at + digits]), at + digits
        found.append((tag, data[at : at + size]))
        at += size
    return found


def load_authorities(context: ssl.SSLContext, name: str, path: str) -> None:
    """Add the authorities in a file to the trusted ones. `name` is the option that gives the path. Raises ConfigurationError."""
    if CERTIFICATE not in read_file(name, path):
        raise ConfigurationError([f"{name}: `{path}` holds no certificate in PEM form"])
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        reason = format_reason(getattr(error, "reason", None) or "") or type(error).__name__
        raise ConfigurationError([f"{name}: `{path}` cannot be used: {reason}"]) from None


def read_file(name: str, path: str) -> bytes:
    """Return the content of a file; `name` is the option that gives the path.

    Raises ConfigurationError, also for a pipe: OpenSSL reads the file once more.
    """
    try:
        return files.read_file(path, MAX_BYTES, pipes=False)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is not a valid path").lower()
        raise ConfigurationError([f"{name}: cannot read `{path}`: {reason}"]) from None


def format_reason(reason: str) -> str:
    """Return a reason of OpenSSL, such as `KEY_VALUES_MISMATCH`, as words in lower case."""
    return reason.replace("_", " ").lower()


def stamp_files(paths: Sequence[str]) -> FilesStamp:
    """Return a value that differs when a file has changed. Symbolic links are followed."""
    return tuple(map(_stamp_file, paths))


def _stamp_file(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


class WatchedFiles:
    """Files that are checked for changes now and then.

    A certificate and its key are two files, written in turn. So a change counts once two checks see the same state.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(paths)
        self._accepted = self._last = stamp_files(self._paths)

    def detect_change(self) -> bool:
        """Return whether the files differ from the accepted state and are as at the last check. Accepts the new state then."""
        if not self._paths:
            return False
        now = stamp_files(self._paths)
        is_settled, self._last = now == self._last, now
        if not is_settled or now == self._accepted:
            return False
        self._accepted = now
        return True

    def accept(self) -> None:
        """Accept the present state of the files."""
        self._accepted = self._last = stamp_files(self._paths)
