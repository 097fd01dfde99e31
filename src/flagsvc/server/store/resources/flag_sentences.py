"""What the flags do, as sentences: the words of the strategies in each environment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import select

from flagsvc.engine.model import SegmentSpec
from flagsvc.reasons.words import read_segments, words_of
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
    """Return the segments by identity, without those that the engine cannot read."""
    rows = tx.db.execute(select(*segments.c[("id", "name", "constraints")]))
    return read_segments(dict(row._mapping) for row in rows)
