"""Reads files that have a bound: a file without an end, such as `/dev/zero`, ends in an error before the memory is full."""

from __future__ import annotations

import os
from errno import EFBIG, ESPIPE
from pathlib import Path
from stat import S_ISFIFO
from typing import BinaryIO, Final

MIB: Final = 1024 * 1024
LARGEST_DOCUMENT: Final = 256 * MIB
"""The most bytes of a document or of a data set."""
LARGEST_CODE: Final = 16 * MIB
"""The most bytes of a file with Python code."""


def read_file(path: str | Path, most: int, *, pipes: bool = True) -> bytes:
    """Return the content of a file. Raises OSError, also for more than `most` bytes, and ValueError if `path` is no path.

    Without `pipes` a pipe is refused, so that the call never waits for a writer.
    """
    with open(path, "rb", opener=None if pipes else _open_at_once) as file:
        if not pipes and S_ISFIFO(os.fstat(file.fileno()).st_mode):
            raise OSError(ESPIPE, "it is a pipe")
        return read_bounded(file, most)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def read_bounded(file: BinaryIO, most: int) -> bytes:
    """Return the rest of an open file. Raises OSError if that is more than `most` bytes."""
    data = bytearray()
    while len(data) <= most and (piece := file.read(min(MIB, most + 1 - len(data)))):
        data += piece
    if len(data) > most:
        raise OSError(EFBIG, f"it has more than {most} bytes")
    return bytes(data)
