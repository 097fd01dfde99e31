"""`flagsvc server`: it reads options from flags and variables, logs warnings, and serves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from flagsvc.core.notices import Notice
from flagsvc.settings.server import ServerOptions
from support.cli_helpers import Flagsvc


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServerOptions]:
    """Return the list of options that would have been served; serving ends immediately with exit code 7."""
    seen: list[ServerOptions] = []

    def serve(options: ServerOptions, notices: Sequence[Notice]) -> int:
        seen.append(options)
        return 7

    monkeypatch.setattr("flagsvc.process.serve_flags.serve_flags", serve)
    return seen


def test_it_serves_what_was_given(flagsvc: Flagsvc, served: list[ServerOptions], tmp_path: Path) -> None:
    """Flags, environment and file together make the options, with warnings; the server's exit code is the command's."""
    called = flagsvc(
        "server", "--database", "some.db", "--body-limit", "2 MB", env={"FLAGSVC_SERVER_PORT": "2", "FLAGSVC_SEED": "a"}
    )
    assert called == (7, "", "")
    assert served == [ServerOptions(database="some.db", port=2, body_limit=2 * 1024 * 1024, seed="a")]
    file = tmp_path / "flagsvc.toml"
    file.write_text("port = 1\n[server]\nport = 2\ndatabase = 'some.db'\n")
    assert flagsvc("server", "--config", str(file)).code == 7
    called = flagsvc("server", env={"FLAGSVC_CONFIG": str(file), "FLAGSVC_DATABASE_ULR": "x"})
    assert called.code == 7 and "did you mean `FLAGSVC_DATABASE_URL`?" in called.err
    assert served[1:] == [ServerOptions(database=str(tmp_path / "some.db"), port=2)] * 2


def test_nothing_is_served_with_problems(flagsvc: Flagsvc, served: list[ServerOptions]) -> None:
    """A wrong value stops the start with exit code 2 and every problem."""
    called = flagsvc("server", "--log-level", "loud", env={"FLAGSVC_SERVER_PORT": "x"})
    assert called.code == 2 and served == []
    assert called.err.splitlines() == [
        "flagsvc server: 2 problems",
        "  - port (environment FLAGSVC_SERVER_PORT): expected a port number from 0 to 65535, got `x`",
        "  - logLevel (flag --log-level): expected one of debug, info, warn, error, fatal, got `loud`",
    ]


@pytest.mark.parametrize("database", ["mysql://me:hunter2@db/flags", "sqlite://", "sqlite:///flags.db?mode=ro"])
def test_what_is_no_database_is_a_wrong_value(flagsvc: Flagsvc, served: list[ServerOptions], database: str) -> None:
    """An invalid database URL stops the start with exit code 2, and the message shows no password."""
    called = flagsvc("server", "--database", database)
    assert called.code == 2 and served == []
    assert called.err.startswith("flagsvc server: database: ") and "hunter2" not in called.err
