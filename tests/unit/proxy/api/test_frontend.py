"""The shape of toggles in the frontend API.

How requests of the frontend API are read, piece by piece; `tests/wire/test_wire_frontend.py` has every row.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, Compiler, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.dialects import DIALECTS
from flagsvc.proxy.api.query import ContextLimits
from flagsvc.proxy.api.wire_format import FrontendFormat, FrontendShape
from flagsvc.settings.rows.callers import DIALECTS as NAMES
from support.serving import attempt

SHAPE = FrontendShape()
AWKWARD = '"},"impressionData":true},{"name":"x"'
DOCUMENT: dict[str, Any] = {
    "features": [
        {"name": AWKWARD, "enabled": True, "strategies": [{"name": "default"}], "impressionData": True},
        {
            "name": "b",
            "enabled": True,
            "strategies": [{"name": "userWithId", "parameters": {"userIds": "7"}}],
            "variants": [{"name": AWKWARD, "weight": 1000, "payload": {"type": "json", "value": AWKWARD}}],
        },
        {"name": "off", "enabled": False, "strategies": []},
    ]
}


def compiled(previous: Snapshot | None = None, *, feature_state: bool = False, users: str = "7") -> Snapshot:
    """Return a snapshot of the document, in which some users get `b`."""
    document = json.loads(json.dumps(DOCUMENT))
    document["features"][1]["strategies"][0]["parameters"]["userIds"] = users
    return compile_document(document, CompileOptions(variant_feature_state=feature_state), previous).snapshot


def test_the_option_has_the_names_of_all_dialects() -> None:
    """The option `dialects` takes each of them, in their order. OFREP has an option of its own."""
    assert tuple(dialect.name for dialect in DIALECTS) == (*NAMES, "ofrep")


@pytest.mark.parametrize("feature_state", [False, True])
@pytest.mark.parametrize("user", ["7", "8"])
def test_a_toggle_has_more_fields_and_nothing_else_changes(feature_state: bool, user: str) -> None:
    """With the added fields removed, it is the toggle of /proxy; the added fields repeat the state and the flag."""
    made, context = compiled(feature_state=feature_state), Context(user_id=user)
    pairs = [
        (made.all(context), made.all(context, SHAPE)),
        (made.enabled(context), made.enabled(context, SHAPE)),
        (made.named(context, ["b", "no", AWKWARD])[0], made.named(context, ["b", "no", AWKWARD], SHAPE)[0]),
    ]
    for plain, shaped in pairs:
        known = json.loads(plain)["toggles"]
        for old, toggle in zip(known, json.loads(shaped)["toggles"], strict=True):
            assert toggle.pop("impression_data") == toggle["impressionData"]
            states = [toggle["variant"][name] for name in ("feature_enabled", "featureEnabled")]
            assert states == [toggle["enabled"]] * 2
            if not feature_state:
                del toggle["variant"]["feature_enabled"], toggle["variant"]["featureEnabled"]
            assert toggle == old


def test_a_shape_that_nobody_asks_for_costs_nothing() -> None:
    """Its bytes are made at the first request. A snapshot after that has them from the start, and reuses what did not change."""
    first = compiled()
    assert list(first.views) == [b""]
    assert list(compiled(first, users="8").views) == [b""]
    first.enabled(Context(), SHAPE)
    second = Compiler(CompileOptions()).begin(DOCUMENT, first)
    second.advance(1 << 60)
    assert second.compiled().snapshot is first, "the revision is the same"
    third = compiled(first, users="8")
    assert list(third.views) == [b"", SHAPE.name]
    assert third.enabled(Context(user_id="8"), SHAPE) == compiled(users="8").enabled(Context(user_id="8"), SHAPE)
    assert third.view(PLAIN).listed.entries and len(third.containers()) == 2 + 2 * 2 + 3 + len(third.lists.containers())


LIMITS = ContextLimits(2, 10, 2)
FORMAT = FrontendFormat()


def test_the_limits_of_a_context_hold() -> None:
    """Too many properties and long values are a 400 in a query and in a body."""
    assert FORMAT.read_query(b"a=1&b=2", LIMITS).properties == {"a": "1", "b": "2"}
    for refused in (
        attempt(FORMAT.read_query, b"a=1&b=2&c=3", LIMITS),
        attempt(FORMAT.read_query, b"a=12345678901", LIMITS),
        attempt(FORMAT.read_body, {"userId": "12345678901"}, LIMITS),
    ):
        assert isinstance(refused, HttpError) and refused.status == 400
    assert FORMAT.read_body({"userId": "1"}, LIMITS).context.user_id == "1"
