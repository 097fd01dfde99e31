"""The messages of a flag server when it is ready: the number of flags and the location, never a password, and a first token
only once.

Opening the parts of a flag server: a failed start creates no files, and only this user can read new files.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flagsvc.core.errors import SeedError
from flagsvc.core.notices import Notice
from flagsvc.server.application import open_runtime, prepare_folder
from flagsvc.server.start import describe_location, format_counts, initialize, new_database_notices
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.store import open_store
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import FakeClock, RecordingLog

PLACES = {
    "flags.db": "flags.db",
    "sqlite:////var/flags.db": "/var/flags.db",
    "postgresql://me:hunter2@db:5433/flags?password=hunter2": "PostgreSQL, database `flags` on db",
    "postgres:///flags": "PostgreSQL, database `flags` on this machine",
}


@pytest.mark.parametrize("database", PLACES)
def test_where_the_flags_are(database: str) -> None:
    """A file is shown by its path, a server's database by its name and host."""
    assert describe_location(database) == PLACES[database]


def test_a_first_start_and_the_next(tmp_path: Path) -> None:
    """The first start shows a terminal secrets and others commands. The next start only says that the server is ready."""
    options = ServerOptions(database=str(tmp_path / "flags.db"))
    with closing(open_store(options.database, FakeClock(), RecordingLog())) as store:
        first = initialize(store, options, "http://flags.test", None, RecordingLog())
        shown, in_log = first[1].on_terminal, first[1].text
        assert "export FLAGSVC_ADMIN_TOKEN=user:" in shown and "http://flags.test/ui/sign-in#" in shown
        assert "user:" not in f"{in_log}{first[1].fields}" and "#" not in f"{in_log}{first[1].fields}"
        assert "flagsvc server sign-in-link admin --url http://flags.test\n" in in_log
        for text in (shown, in_log):
            assert "curl http://flags.test/api/admin/" in text and "http://flags.test/ui/tokens" in text
        again = initialize(store, options, "http://flags.test", None, RecordingLog())
        assert again == [Notice(f"flagsvc ready: 0 feature flags in {tmp_path}/flags.db")]


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv"])
def test_a_new_database_in_a_container_says_where_it_is(mark: str, tmp_path: Path) -> None:
    """In a container the notice of a new file says that it goes with the container, and what to do; on a mount only where it is.
    Elsewhere, and if the file was there before, there is no notice.

    Docker and Podman leave a file in a container, Kubernetes sets a variable.
    """
    kubernetes, file = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path / "flags.db"
    assert new_database_notices(file, {}, tmp_path) == []
    assert new_database_notices(None, kubernetes, tmp_path) == []
    (notice,) = new_database_notices(file, kubernetes, tmp_path)
    assert notice.fields == {"database": str(file)}
    assert notice.event.startswith(
        f"flagsvc made a new database: {file}; it goes with this container. Mount a volume at {tmp_path}, "
    )
    (tmp_path / mark).parent.mkdir(exist_ok=True)
    (tmp_path / mark).touch()
    assert new_database_notices(file, {}, tmp_path) == [notice]
    (mounted,) = new_database_notices(Path("/proc/flags.db"), kubernetes, tmp_path)
    assert mounted.event == "flagsvc made a new database: /proc/flags.db, on a volume or another mount"


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"features": 2, "tokens": 1}, "2 features, 1 token"),
        ({"contextFields": 1, "strategies": 1, "tagTypes": 2}, "1 context field, 1 strategy, 2 tag types"),
    ],
)
def test_counts_in_words(counts: dict[str, int], text: str) -> None:
    """Counts use plain words, and the singular for one entry."""
    assert format_counts(counts) == text


def test_what_is_told_of_a_seed(tmp_path: Path) -> None:
    """The seed takes effect immediately. A changed seed is skipped with a warning that names the option, or is added."""
    options = ServerOptions(database=str(tmp_path / "flags.db"), seed="seed.yaml")
    one, two = ({"features": [{"name": name} for name in names]} for names in ("a", "ab"))
    log = RecordingLog()
    with closing(open_store(options.database, FakeClock(), RecordingLog())) as store:
        first = initialize(store, options, "", parse_seed(one), log)
        assert first[0].event.startswith("flagsvc ready: 1 feature flag in")
        assert first[1] == Notice("flagsvc seed: added 1 feature", {"features": 1})
        assert [notice.event for notice in initialize(store, options, "", parse_seed(one), log)[1:]] == []
        assert not log.lines
        assert len(initialize(store, options, "", parse_seed(two), log)) == 1
        [line] = log.lines
        assert line.level == "warn" and "--seed-mode add" in line.event
        assert line.fields == {"seed": "seed.yaml", "database": "1 feature, 1 user, 1 token"}
        adding = replace(options, seed_mode="add")
        assert initialize(store, adding, "", parse_seed(two), log)[1].event == "flagsvc seed: added 1 feature"
        again = initialize(store, adding, "", parse_seed({"features": [{"name": "b"}]}), log)
        assert again[1].event == "flagsvc seed: nothing to add"


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
