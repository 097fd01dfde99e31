"""Configurations in a folder: a restart with the upstream down is ready at once.

A generation is written to a temporary file, synced, and renamed into place; the one before is kept. Whatever moment the machine
stops at, a reader finds the old or the new one, whole: each carries its length and digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from flagsvc.errors import StoreError

MAGIC = b"flagsvc-store 1 "
ABANDONED_S = 3600.0
"""A temporary file this old is left over from a process that was killed."""


class FileStore:
    """A storage provider over a `folder`; files are for their owner alone (0600, a folder it makes 0700)."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; it is made when something is stored."""
        self.folder = folder

    def get(self, key: str) -> bytes | None:
        """Return the newest generation that is whole, or None when nothing was stored.

        Raises StoreError when there are files but none of them can be read and is whole.
        """
        newest, previous = self._paths(key)
        there, failed = False, None
        for path in (newest, previous):
            try:
                content = read_file(path)
            except OSError as error:
                failed = failed or error
                continue
            there = there or content is not None
            data = unframe(content)
            if data is not None:
                return data
        if failed is not None:
            with named(self.folder):
                raise failed
        if there:
            raise StoreError(f"no generation of `{newest}` is whole")
        return None

    def set(self, key: str, data: bytes) -> None:
        """Store a new generation; what was the newest becomes the previous one, if it is whole. Raises StoreError."""
        with named(self.folder):
            self._set(key, data)

    def _set(self, key: str, data: bytes) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        newest, previous = self._paths(key)
        temporary = self.folder / f".{key}.{secrets.token_hex(6)}.tmp"
        try:
            write_file(temporary, frame(data))
            if is_whole(newest):
                with contextlib.suppress(FileNotFoundError):  # another process on the same folder was faster
                    newest.replace(previous)
            temporary.replace(newest)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(self.folder)
        sweep(self.folder, key)

    def _paths(self, key: str) -> tuple[Path, Path]:
        return self.folder / f"{key}.flags", self.folder / f"{key}.previous"


@contextlib.contextmanager
def named(folder: Path) -> Iterator[None]:
    """Make a StoreError that names the folder of an OSError."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"`{folder}`: {(error.strerror or str(error)).lower()}") from error


def frame(data: bytes) -> bytes:
    """Return data with a first line that tells its length and digest."""
    return MAGIC + f"{len(data)} {hashlib.sha256(data).hexdigest()}\n".encode() + data


def unframe(content: bytes | None) -> bytes | None:
    """Return the data of a file, None when it is not there or not exactly what was written."""
    data = (content or b"").partition(b"\n")[2]
    return data if content is not None and frame(data) == content else None


def read_file(path: Path) -> bytes | None:
    """Return what a file holds, None when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def is_whole(path: Path) -> bool:
    """Return whether a file can be read and is exactly what was written."""
    try:
        return unframe(read_file(path)) is not None
    except OSError:
        return False


def write_file(path: Path, content: bytes) -> None:
    """Write a new file, readable for its owner only, and have the machine put it on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Have the machine put the folder's names on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path, key: str) -> None:
    """Remove the temporary files that killed processes have left behind under a key."""
    for path in folder.glob(f".{key}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED_S:
                path.unlink()
