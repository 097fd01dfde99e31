"""Opening the parts of a flag server: a failed start creates no files, and only this user can read new files."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc.core.errors import SeedError
from flagsvc.server.runtime import open_runtime, prepare_folder
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import FakeClock, RecordingLog


@pytest.mark.parametrize("content", [None, "features: x"])
def test_a_wrong_seed_leaves_no_database(tmp_path: Path, content: str | None) -> None:
    """The seed file is read before the database is created."""
    seed, folder = tmp_path / "seed.yaml", tmp_path / "data"
    if content is not None:
        seed.write_text(content)
    with pytest.raises(SeedError):
        open_runtime(ServerOptions(database=str(folder / "flags.db"), seed=str(seed)), FakeClock(), RecordingLog())
    assert not folder.exists()


def test_a_new_database_is_for_this_user_alone(tmp_path: Path) -> None:
    """Only this user can read the file of a new database; an existing file does not change."""
    new, old = tmp_path / "new.db", tmp_path / "old.db"
    old.write_bytes(b"kept")
    old.chmod(0o644)
    assert [prepare_folder(str(path)) for path in (new, old)] == [new, None]
    assert new.stat().st_mode & 0o777 == 0o600
    assert (old.stat().st_mode & 0o777, old.read_bytes()) == (0o644, b"kept")
