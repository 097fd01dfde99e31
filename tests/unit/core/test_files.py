"""Files are read up to a bound, and a pipe where it is allowed."""

from __future__ import annotations

import os
import tracemalloc
from io import BytesIO
from pathlib import Path

import pytest

from flagsvc.core.files import MIB, read_bounded, read_file


def test_the_bound(tmp_path: Path) -> None:
    """A file of exactly the bound is read, and a file of a byte more is refused with the bound."""
    path = tmp_path / "file"
    path.write_bytes(b"1234")
    assert read_file(path, 4) == read_file(str(path), 5) == b"1234"
    with pytest.raises(OSError, match="it has more than 3 bytes"):
        read_file(path, 3)
    assert read_bounded(BytesIO(b"12"), 2) == b"12"


def test_a_file_without_an_end() -> None:
    """A device that never ends is refused at the bound, and one that ends at once is an empty file."""
    with pytest.raises(OSError, match=f"it has more than {MIB} bytes"):
        read_file("/dev/zero", MIB)
    assert read_file("/dev/null", 1) == b""


def test_a_pipe(tmp_path: Path) -> None:
    """What a shell gives for `<(…)` is read. Where pipes are not allowed, a pipe that waits for a writer is refused at once."""
    ours, theirs = os.pipe()
    os.write(theirs, b"text")
    os.close(theirs)
    assert read_file(f"/dev/fd/{ours}", 10) == b"text"
    os.close(ours)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="it is a pipe"):
        read_file(tmp_path / "fifo", 10, pipes=False)


def test_a_terminal_that_has_nothing_to_read() -> None:
    """Where pipes are not allowed, the call does not wait for a person who types."""
    ours, theirs = os.openpty()
    assert read_file(os.ttyname(theirs), 10, pipes=False) == b""
    os.close(ours)
    os.close(theirs)


def test_the_bound_takes_no_memory() -> None:
    """Only what is read takes memory, not the bound."""
    tracemalloc.start()
    assert read_bounded(BytesIO(b"12"), 256 * MIB) == b"12"
    assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    tracemalloc.stop()


@pytest.mark.parametrize("pipes", [True, False])
def test_what_is_no_file(tmp_path: Path, pipes: bool) -> None:
    """A folder and a missing file raise OSError and leave nothing open, and a text that is no path raises ValueError."""
    open_before = os.listdir("/proc/self/fd")
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(OSError, match="directory"):
            read_file(path, 10, pipes=pipes)
    assert len(os.listdir("/proc/self/fd")) == len(open_before)
    with pytest.raises(ValueError, match="null"):
        read_file("a\0b", 10, pipes=pipes)
