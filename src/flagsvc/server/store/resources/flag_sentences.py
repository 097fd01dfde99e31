"""What the flags do, as sentences: the words of the strategies in each environment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from flagsvc.core.errors import DocumentError
from flagsvc.engine.model import SegmentSpec
from flagsvc.engine.parse import parse_segment
from flagsvc.reasons.words import summary
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources.strategies import ORDER, segments_of, to_json
from flagsvc.server.store.schema import segments, strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks


def sentences_of(tx: Tx, names: Sequence[str]) -> dict[tuple[str, str], list[Json]]:
    """Return the strategies of features, each with its `words`, in order, by feature and environment."""
    found: dict[tuple[str, str], list[Json]] = defaultdict(list)
    known = read_segment_specs(tx)
    for chunk in chunks(names):
        rows = tx.db.execute(select(strategies).where(strategies.c.feature.in_(chunk)).order_by(*ORDER)).all()
        used = segments_of(tx, (row.id for row in rows))
        for row in rows:
            strategy = to_json(row, used.get(row.id, ()))
            found[row.feature, row.environment].append(strategy | {"words": words_of(strategy, known)})
    return found


def read_segment_specs(tx: Tx) -> dict[str, SegmentSpec]:
    """Return the segments by identity. One that the engine cannot read is left out, as it is in what clients get."""
    found: dict[str, SegmentSpec] = {}
    for row in tx.db.execute(select(*segments.c[("id", "name", "constraints")])):
        try:
            spec = parse_segment(dict(row._mapping), "segment")
        except DocumentError:
            continue
        found[spec.identity] = spec
    return found


def words_of(strategy: Mapping[str, Any], known: Mapping[str, SegmentSpec]) -> str:
    """Return a strategy in words. One that the engine cannot read is on for no user."""
    try:
        return summary(dict(strategy), known)
    except DocumentError as error:
        return f"for no user: {error}"
