"""Pre-encoded JSON of one toggle in one outcome (specification: Toggle; Variant).

Every fragment begins with the comma that separates it from the one before. The answer drops the first comma. A dialect with another
shape of toggles derives its fragments from these, once for each outcome and not once for each answer.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec
from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.features import Toggle, ToggleOutcome
from flagsvc.engine.model import VariantSpec

NAMED: Final = b',{"name":'
"""The beginning of every fragment."""
OPEN: Final = b'{"toggles":['
CLOSE: Final = b"]}"


@mypyc_attr(allow_interpreted_subclasses=True)
class AnswerShape:
    """The shape of an answer. This class is the shape of `/proxy`; another shape is a subclass.

    `name` is short, and different for each shape. `opening` and `closing` surround the toggles. Cached answers and entity tags
    contain `mark`: the name, and what else decides opening and closing.
    """

    def __init__(self, name: bytes = b"", opening: bytes = OPEN, closing: bytes = CLOSE) -> None:
        self.name = name
        self.mark = name
        self.opening = opening
        self.closing = closing

    def fragment(self, outcome: ToggleOutcome, toggle: Toggle | None) -> bytes:
        """Return the fragment of one outcome of a toggle in this shape; of an unknown toggle, `toggle` is None."""
        return outcome.fragment


PLAIN: Final = AnswerShape()
"""The shape of `/proxy`."""


def encode(value: object) -> bytes:
    """Return compact JSON. A text with lone surrogates is escaped, because UTF-8 cannot encode them."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def fragment(name: str, enabled: bool, variant: VariantSpec | None, impression_data: bool, feature_state: bool) -> bytes:
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
    return b"," + encode({"name": name, "enabled": enabled, "variant": variant_fields, "impressionData": impression_data})


@mypyc_attr(acyclic=True)
class AnswerPieces:
    """An answer as the fragments of its toggles, in their order; `size` is the number of bytes.

    They are joined once, by who sends them, after the head of the answer.
    """

    def __init__(self, parts: list[bytes], size: i64) -> None:
        self.parts = parts
        self.size: i64 = size

    def surround(self, shape: AnswerShape) -> None:
        """Add what surrounds the toggles in an answer, and take away the first comma."""
        parts = self.parts
        if parts:
            parts[0] = shape.opening + parts[0][1:]
            parts.append(shape.closing)
            self.size += len(shape.opening) - 1 + len(shape.closing)
        else:
            parts.append(shape.opening + shape.closing)
            self.size += len(parts[0])

    def join(self) -> bytes:
        return b"".join(self.parts)
