"""Mends variants that an earlier version took from a seed or a PATCH, so that every backup of one's own server restores (0059).

A mended variant is what the engine has read so far, so clients get the same. Only weights whose total has a fraction are rounded.
`values.py` checks the variant afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from flagsvc.engine.model import VariantSpec
from flagsvc.engine.parse import parse_variants
from flagsvc.http.shapes.exact import problems
from flagsvc.server.store.backup.lines import Row
from flagsvc.server.store.seed import keys
from flagsvc.settings.kinds import printable

COLUMNS: Final = (("feature_environments", "variants"), ("strategies", "variants"))
"""Tables with variants, and their columns."""


def mend(row: Row) -> Iterator[str]:
    """Mend the variants of a row that do not fit the shape, and yield a sentence for each row that is changed."""
    for table, column in COLUMNS:
        given = row.values.get(column)
        if row.table != table or not isinstance(given, list) or not all(map(_is_weighted, given)):
            continue
        if next(problems(keys.VARIANTS, given), None) is None:
            continue
        specs = parse_variants({"variants": given}, column)
        mended = [_mended(each, spec) for each, spec in zip(given, specs, strict=True)]
        if mended != given:
            row.values[column] = mended
            names = ", ".join(printable(each.name, 50) for each in specs[:5])
            yield f"line {row.line} of the backup: odd values of the variants {names} are mended"


def _is_weighted(variant: object) -> bool:
    """Return whether a value is a variant with a number as its weight, which every version has asked for."""
    weight = variant.get("weight") if isinstance(variant, dict) else None
    return isinstance(weight, int | float) and not isinstance(weight, bool)


def _mended(variant: dict[str, Any], spec: VariantSpec) -> dict[str, Any]:
    """Return a variant with the whole weight, the payload of texts and the overrides of texts that the engine reads."""
    mended = variant | {"weight": spec.weight}
    if "payload" in variant:
        mended["payload"] = {"type": "string", "value": ""} | (spec.payload or {})
    if spec.payload is None:
        mended.pop("payload", None)
    if "overrides" in variant:
        mended["overrides"] = [{"contextName": each.field, "values": list(each.values)} for each in spec.overrides]
    return mended
