"""Configurations in a folder: a restart with the upstream down is ready at once.

A generation is written to a temporary file, synced, and renamed into place; the one before is kept. Whatever moment the machine
stops at, a reader finds the old or the new one, whole: each carries its length and digest.
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

from flagsvc.core.errors import StoreError
from flagsvc.proxy.upstream import Limits

MAGIC = b"flagsvc-store 1 "
MOST_BYTES = Limits().max_bytes + 65_536
"""Bytes of a file: the largest document that the upstream may give, and what stands before it."""
EXPOSED = stat.S_IWGRP | stat.S_IWOTH | stat.S_IROTH
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
        there = False
        failed: OSError | StoreError | None = None
        for path in (newest, previous):
            try:
                content = read_file(path)
            except (OSError, StoreError) as error:
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

    def find_exposed_mode(self) -> int | None:
        """Return the mode of a folder into which somebody else may write, or in which everybody may read; None for any other."""
        try:
            mode = stat.S_IMODE(self.folder.stat().st_mode)
        except OSError:  # it is not there, or storing will say what is wrong with it
            return None
        return mode if mode & EXPOSED else None

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
    """Return what a file holds, None when there is none. Raises StoreError for what is no file, or is larger than MOST_BYTES."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would be waited for
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"`{path}` is no file")
        check_size(path, found.st_size)
        return file.read(MOST_BYTES)


def check_size(path: Path, size: int) -> None:
    """Raise StoreError for a file that is larger than anything of ours."""
    if size > MOST_BYTES:
        raise StoreError(f"`{path}` has {size} bytes, and flagsvc stores at most {MOST_BYTES}")


def is_whole(path: Path) -> bool:
    """Return whether a file can be read and is exactly what was written."""
    try:
        return unframe(read_file(path)) is not None
    except (OSError, StoreError):
        return False


def write_file(path: Path, content: bytes) -> None:
    """Write a new file, readable for its owner only, and have it put on the disk. Raises StoreError where it is too large."""
    check_size(path, len(content))
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
