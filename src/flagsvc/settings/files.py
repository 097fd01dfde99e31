"""The files that options are read from, and what was in them: a running process can tell whether they have changed since."""

from __future__ import annotations

import os
from hashlib import sha256
from stat import S_ISREG
from typing import TypeAlias

from flagsvc.core.files import MIB, read_bounded

LARGEST = 16 * MIB
"""The most bytes that are read of a file."""

Files: TypeAlias = dict[str, bytes | None]
"""Path → the fingerprint of the content. NOTHING: it could not be read. None: it can be read only once, such as a pipe."""

NOTHING = b""


def fingerprint(data: bytes) -> bytes:
    """Return a digest of the content of a file. The digest does not reveal the content."""
    return sha256(data).digest()


def read_file(path: str, files: Files) -> bytes:
    """Return the content of a file, and note its fingerprint in `files`.

    Raises OSError, also for more than LARGEST bytes, and ValueError if `path` is no path.
    """
    files[path] = NOTHING
    with open(path, "rb") as file:
        data = read_bounded(file, LARGEST)
        files[path] = fingerprint(data) if S_ISREG(os.fstat(file.fileno()).st_mode) else None
    return data


def look(path: str) -> bytes:
    """Return the fingerprint of the present content of a file. Only a regular file is opened."""
    try:
        if not os.path.isfile(path):
            return NOTHING
        with open(path, "rb") as file:
            return fingerprint(file.read(LARGEST))
    except (OSError, ValueError):
        return NOTHING


def special(path: str) -> bool:
    """Return whether the path names neither a file nor a folder but, for example, a pipe. Opening it could block for ever."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
