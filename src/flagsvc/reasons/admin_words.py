"""Sentences of strategies, segments and variants as the admin API and the flag server's store have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flagsvc.core.errors import DocumentError
from flagsvc.engine.model import SegmentSpec
from flagsvc.engine.parse import parse_segment, parse_variants
from flagsvc.reasons.words import plain, summary, variants_words


def read_segments(rows: Iterable[Mapping[str, Any]]) -> dict[str, SegmentSpec]:
    """Return segments by identity. One without an id is left out, as it is in what clients get."""
    found: dict[str, SegmentSpec] = {}
    for row in rows:
        try:
            spec = parse_segment(dict(row), "segment")
        except DocumentError:
            continue
        found[spec.identity] = spec
    return found


def words_of(strategy: Mapping[str, Any], known: Mapping[str, SegmentSpec]) -> str:
    """Return a strategy in words."""
    return summary(dict(strategy), known)


def words_of_variants(variants: Sequence[Mapping[str, Any]]) -> str:
    """Return the variants of a flag or a strategy in words; empty without any."""
    if not variants:
        return ""
    specs = parse_variants({"variants": list(variants)}, "variants")
    return variants_words(specs, variants[0].get("stickiness") or "default")


def whole_words(strategy: Mapping[str, Any], known: Mapping[str, SegmentSpec]) -> str:
    """Return a strategy with its title and its variants in words."""
    title = f"{plain(strategy['title'])}: " if strategy.get("title") else ""
    variants = words_of_variants(strategy.get("variants") or ())
    return f"{title}{words_of(strategy, known)}" + (f"; variants: {variants}" if variants else "")
