"""Pre-encoded JSON of one toggle in one outcome (specification: Toggle; Variant).

Every fragment begins with the comma that separates it from the one before. The answer drops the first comma.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec

from flagsvc.engine.model import VariantSpec

NAMED: Final = b',{"name":'
"""The beginning of every fragment."""
OPEN: Final = b'{"toggles":['
CLOSE: Final = b"]}"
EMPTY: Final = OPEN + CLOSE


def encode(value: object) -> bytes:
    """Return compact JSON. A text with lone surrogates is escaped, because UTF-8 cannot encode them."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def fragment(
    name: str, enabled: bool, variant: VariantSpec | None, impression_data: bool, feature_state: bool
) -> bytes:
    """Return the toggle as JSON. For `variant` None it has the fallback `disabled`.

    With `feature_state` the variant repeats the feature's state, as in the reference proxy.
    """
    variant_fields: dict[str, object] = {
        "name": "disabled" if variant is None else variant.name,
        "enabled": variant is not None,
    }
    if variant is not None and variant.payload is not None:
        variant_fields["payload"] = variant.payload
    if feature_state:
        variant_fields["feature_enabled"] = enabled
        variant_fields["featureEnabled"] = enabled
    return b"," + encode(
        {"name": name, "enabled": enabled, "variant": variant_fields, "impressionData": impression_data}
    )


def joined(parts: list[bytes]) -> bytes:
    """Return the answer with these fragments."""
    if not parts:
        return EMPTY
    parts[0] = OPEN + parts[0][1:]
    parts.append(CLOSE)
    return b"".join(parts)
