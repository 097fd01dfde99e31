"""Configurations in a folder, so that a restart while the upstream is down is ready immediately.

A generation is written to a temporary file, synced, and renamed into place; the previous one is kept. If the machine stops at any
moment, a reader finds the old or the new generation complete: each contains its length and digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from flagsvc.core.errors import DamagedRecordError, StoreError
from flagsvc.proxy.upstream import Limits

MAGIC = b"flagsvc-store 1 "
MAX_BYTES = Limits().max_bytes + 65_536
"""The most bytes of a file: the largest document of an upstream, and the lines before it."""
EXPOSED = stat.S_IWGRP | stat.S_IWOTH | stat.S_IROTH
ABANDONED_S = 3600.0
"""Seconds after which a temporary file counts as left over from a process that was killed."""


class FileStore:
    """A storage provider over a `folder`. Only the owner can access its files (0600; a folder it creates has 0700)."""

    def __init__(self, folder: Path) -> None:
        """Take the folder, which is created when something is stored."""
        self.folder = folder

    def get(self, key: str) -> bytes | None:
        """Return the newest complete generation, or None if nothing was stored.

        Raises StoreError if there are files but none of them is readable and complete.
        """
        newest, previous = self._paths(key)
        is_found = False
        failed: OSError | StoreError | None = None
        for path in (newest, previous):
            try:
                content = read_file(path)
            except (OSError, StoreError) as error:
                failed = failed or error
                continue
            is_found = is_found or content is not None
            data = unframe(content)
            if data is not None:
                return data
        if failed is not None:
            with name_folder_in_errors(self.folder):
                raise failed
        if is_found:
            raise DamagedRecordError(f"no generation of `{newest}` is whole")
        return None

    def set(self, key: str, data: bytes) -> None:
        """Store a new generation. The newest one becomes the previous one, if it is complete. Raises StoreError."""
        with name_folder_in_errors(self.folder):
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
        remove_abandoned(self.folder, key)

    def find_exposed_mode(self) -> int | None:
        """Return the folder's mode if other users can write to it or all users can read it, else None."""
        try:
            mode = stat.S_IMODE(self.folder.stat().st_mode)
        except OSError:  # it does not exist yet, or storing will report the problem
            return None
        return mode if mode & EXPOSED else None

    def _paths(self, key: str) -> tuple[Path, Path]:
        return self.folder / f"{key}.flags", self.folder / f"{key}.previous"


@contextlib.contextmanager
def name_folder_in_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError in the block into a StoreError that names the folder."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"`{folder}`: {(error.strerror or str(error)).lower()}") from error


def frame(data: bytes) -> bytes:
    """Return data after a first line with its length and digest."""
    return MAGIC + f"{len(data)} {hashlib.sha256(data).hexdigest()}\n".encode() + data


def unframe(content: bytes | None) -> bytes | None:
    """Return the data of a file's content; None if there is no file, or if it is not exactly what was written."""
    data = (content or b"").partition(b"\n")[2]
    return data if content is not None and frame(data) == content else None


def read_file(path: Path) -> bytes | None:
    """Return the content of a file; None if there is none. Raises StoreError if it is no regular file or larger than MAX_BYTES."""
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )  # without O_NONBLOCK, opening a pipe would block
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"`{path}` is no file")
        check_size(path, found.st_size)
        return file.read(MAX_BYTES)


def check_size(path: Path, size: int) -> None:
    """Raise StoreError for a file that is larger than MAX_BYTES."""
    if size > MAX_BYTES:
        raise StoreError(f"`{path}` has {size} bytes, and flagsvc stores at most {MAX_BYTES}")


def is_whole(path: Path) -> bool:
    """Return whether a file is readable and exactly what was written."""
    try:
        return unframe(read_file(path)) is not None
    except (OSError, StoreError):
        return False


def write_file(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read, and sync it to disk. Raises StoreError if it is too large."""
    check_size(path, len(content))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_abandoned(folder: Path, key: str) -> None:
    """Remove the temporary files of a key that killed processes have left."""
    for path in folder.glob(f".{key}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED_S:
                path.unlink()
