"""A value by OFREP follows from the answer of `/proxy/all` (dialects: OpenFeature Remote Evaluation Protocol)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from flagsvc import Context
from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.proxy.api.ofrep import BulkShape, FlagShape
from support.tagged import custom, documents

NOTHING: dict[str, Any] = {}
DRAWING = {"reads", "wild"}
"""Custom strategies that answer the same context differently."""
REASONS = {"STATIC", "TARGETING_MATCH", "SPLIT", "DISABLED"}
payloads = st.one_of(
    st.none(),
    st.builds(
        lambda kind, value: {"type": kind, "value": value},
        st.sampled_from(["string", "csv", "number", "json"]),
        st.text(max_size=4),
    ),
    st.floats().map(lambda number: {"type": "number", "value": json.dumps(number)}),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists, max_leaves=4).map(
        lambda value: {"type": "json", "value": json.dumps(value)}
    ),
)
contexts = st.builds(Context, user_id=st.sampled_from([None, "1", "2"]), entropy=st.integers(0, 1 << 61))


def value_of(payload: dict[str, str]) -> dict[str, Any]:
    """Return the members of a flag with a payload: its value, none for null, or the failure."""
    kind, text = payload["type"], payload["value"]
    if kind not in ("number", "json"):
        return {"value": text}
    try:
        value = json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return {"errorCode": "PARSE_ERROR"}
    if kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return {"errorCode": "PARSE_ERROR"}
    return NOTHING if value is None else {"value": value}


def expected(toggle: dict[str, Any], has_payloads: bool) -> dict[str, Any]:
    """Return the value and the variant of a toggle of `/proxy/all`, or its failure."""
    variant = toggle["variant"]
    payload = variant.get("payload")
    said = {"value": toggle["enabled"]} if not has_payloads else NOTHING if payload is None else value_of(payload)
    chosen = variant["name"] if variant["enabled"] or not toggle["enabled"] else "enabled"
    return said if "errorCode" in said else {**said, "variant": chosen}


@given(st.data(), documents(), contexts, st.integers(0, 9))
def test_values_follow_from_the_list(data: st.DataObject, document: dict[str, Any], context: Context, seed: int) -> None:
    """For any flags, payloads and context, among all flags and alone."""
    for feature in document["features"]:
        assume(not DRAWING & {each["name"] for each in feature["strategies"]})
        for variant in feature.get("variants") or []:
            if (payload := data.draw(payloads)) is not None:
                variant["payload"] = payload
    snapshot = compile_document(document, CompileOptions(custom_strategies=custom(seed), hostname="here")).snapshot
    plain = json.loads(snapshot.all(context))["toggles"]
    told = {each["key"]: each for each in json.loads(snapshot.all(context, BulkShape()))["flags"]}
    with_payloads = {
        feature["name"] for feature in document["features"] if any("payload" in each for each in feature.get("variants") or [])
    }
    assert set(told) == {each["name"] for each in plain} | {f"{name}:enabled" for name in with_payloads}
    for toggle in plain:
        name = toggle["name"]
        check(told[name], toggle, name in with_payloads)
        if name in with_payloads:
            assert told[f"{name}:enabled"]["value"] is toggle["enabled"]
        [one] = json.loads(snapshot.named(context, [name])[0])["toggles"]
        alone, states = snapshot.named(context, [name], FlagShape())
        check(json.loads(alone), one, name in with_payloads)
        assert states == [one["enabled"]]


def check(told: dict[str, Any], toggle: dict[str, Any], has_payloads: bool) -> None:
    """Compare a flag of the protocol with a toggle of `/proxy`. True is not 1 here."""
    wanted = expected(toggle, has_payloads)
    said = {part: told[part] for part in ("value", "variant", "errorCode") if part in told}
    assert (json.dumps(said), told["key"]) == (json.dumps(wanted), toggle["name"])
    assert "errorCode" in said or told["reason"] in REASONS
