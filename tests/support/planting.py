"""Writes a seed as what was always there: without events, which tests compare."""

from __future__ import annotations

from typing import Any

from flagsvc.server.store.seed.apply import apply_seed
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.store import Tx


def plant(tx: Tx, given: Any) -> None:
    """Write a seed, given as the value of its file, and record nothing."""
    apply_seed(tx, parse_seed(given))
    tx.pending_events.clear()
