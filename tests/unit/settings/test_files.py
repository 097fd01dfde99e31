"""The fingerprints of the files that options are read from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flagsvc.settings.places import UNREAD, Files, fingerprint, look, read_file, special


def test_what_was_read_is_what_is_there(tmp_path: Path) -> None:
    """`look` returns the recorded fingerprint for an unchanged file, and another one for changed content."""
    path, files = tmp_path / "keys", Files()
    path.write_text("one")
    assert read_file(str(path), files) == b"one"
    assert files == {str(path): look(str(path))}
    path.write_text("two")
    assert files[str(path)] != look(str(path)) == fingerprint(b"two")


def test_a_fingerprint_says_nothing() -> None:
    """A fingerprint does not contain the content of the file."""
    assert b"secret" not in fingerprint(b"secret")


@pytest.mark.parametrize("name", ["nowhere", "folder", "nul\0byte"])
def test_what_cannot_be_read(tmp_path: Path, name: str) -> None:
    """An unreadable file is recorded as `UNREAD`, and `look` returns the same."""
    (tmp_path / "folder").mkdir()
    path, files = str(tmp_path / name), Files()
    with pytest.raises((OSError, ValueError)):
        read_file(path, files)
    assert files == {path: UNREAD} == {path: look(path)}


def test_a_file_that_goes_just_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that vanishes during `look` counts as unreadable and raises no error."""
    monkeypatch.setattr(os.path, "isfile", lambda path: True)
    assert look(str(tmp_path / "gone")) == UNREAD


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """A pipe is recorded as None, because it can be read only once. `look` does not open a pipe."""
    reading, writing = os.pipe()
    os.write(writing, b"key")
    os.close(writing)
    path, files = f"/dev/fd/{reading}", Files()
    assert read_file(path, files) == b"key"
    os.close(reading)
    assert files == {path: None}
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert look(str(fifo)) == UNREAD


@pytest.mark.parametrize(("name", "is_special"), [("file", False), ("folder", False), ("gone", False), ("fifo", True)])
def test_what_must_not_be_opened(tmp_path: Path, name: str, is_special: bool) -> None:
    """Only a pipe is special, because opening one without a writer blocks. A folder or a missing file fails immediately."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    assert special(str(tmp_path / name)) == is_special


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    """A symbolic link that now has another target, as after a secret rotation in Kubernetes, has another fingerprint."""
    for name in ("first", "second"):
        (tmp_path / name).write_text(name)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "first")
    before = look(str(link))
    other = tmp_path / "other"
    other.symlink_to(tmp_path / "second")
    other.rename(link)
    assert look(str(link)) == fingerprint(b"second") != before
