"""Stored data, delta events and messages of other processes are used completely or ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc.core.errors import StoreError
from flagsvc.proxy.usage.unsent import unpack
from fuzzing.others import ROWS
from fuzzing.rows import Row, run
from fuzzing.stored import DELTAS, FILES


@pytest.mark.parametrize("row", FILES, ids=str)
def test_any_files_are_survived(row: Row[Path], tmp_path: Path) -> None:
    """Cut, foreign and damaged files are never served, and never prevent the next generation."""
    run(row, tmp_path)


@pytest.mark.parametrize("row", DELTAS, ids=str)
def test_any_events_are_survived(row: Row[object]) -> None:
    """A malformed event changes nothing, and the document that the other events make can be evaluated."""
    run(row, None)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_any_word_of_another_process_is_survived(row: Row[object]) -> None:
    """Usage that was left behind, and what a leader says, are refused, or do no harm."""
    run(row, None)


KEPT = (
    b'{"left":false,"beat":0,"every":-1,"usages":[]}',
    b'{"left":true,"beat":0,"every":30,"usages":[[0,1e308,{"on":[1,0,{}]}]]}',
    b'{"left":true,"beat":0,"every":30,"usages":[[-1e12,1,{"on":[1,0,{}]}]]}',
)
"""Records of usage that could never be sent, and once would have been tried for ever; or whose owner was gone at once."""


@pytest.mark.parametrize("data", KEPT)
def test_what_was_found_once(data: bytes) -> None:
    """An error that a fuzz test found does not come back."""
    with pytest.raises(StoreError):
        unpack(data)
