"""Commands of the flag server on a database of each kind."""

from __future__ import annotations

import pytest

from support.cli_helpers import Called, Flagsvc


@pytest.fixture
def run(database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Flagsvc:
    """Give a call of `flagsvc server` on the database."""
    from flagsvc.cli import main

    monkeypatch.setenv("FLAGSVC_DATABASE_URL", database_url)
    return lambda *words: Called(main(["server", *map(str, words)]), *capsys.readouterr())
