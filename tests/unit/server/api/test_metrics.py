"""The rows of the flag server's metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flagsvc.core.errors import DatabaseError
from flagsvc.server.api.operations import OWN, Scrape, text
from support.flagservers import app_client


def test_rows_have_names_of_their_own() -> None:
    """Names are unique, and a counter's name does not end in `_total`."""
    names = [row.name for row in OWN]
    assert len(names) == len(set(names))
    assert not [row.name for row in OWN if row.kind == "counter" and row.name.endswith("_total")]


def test_every_row_is_written(tmp_path: Path) -> None:
    """A parser of the format reads every row with its help text, and the standard process and Python metrics."""
    with app_client(str(tmp_path / "flags.db")) as client:
        found = {each.name: each for each in text_string_to_metric_families(text(client.server).decode())}
    assert {row.name: row.help for row in OWN} == {row.name: found[row.name].documentation for row in OWN}
    assert {"process_cpu_seconds", "python_gc_collections"} <= set(found)


def test_the_database_is_asked_once_a_scrape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape reads the database once, even if that fails. The rows that need the database are then left out."""
    with app_client(str(tmp_path / "flags.db")) as client:
        asked: list[int] = []

        def gone() -> None:
            asked.append(1)
            raise DatabaseError("the database failed: OperationalError")

        monkeypatch.setattr(client.server.store, "reading", gone)
        scrape = Scrape(client.server)
        assert [row.name for row in OWN if row.read(scrape) is None] == ["flagsvc_revision", "flagsvc_features"]
        assert len(asked) == 1
