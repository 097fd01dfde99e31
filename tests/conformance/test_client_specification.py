"""All suites of the npm package `@unleash/client-specification`, one case for each of its tests, on our engine.

Each case is what the data asks: a document, a context, the name of a toggle, and what must come of it (behaviour: Evaluation).
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.document import DocumentBuilder
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.delta import Changes, digest_content, make_id, split_content
from support import class_ways, needs, peers
from support.deltas import Twin

PACKAGE = "@unleash/client-specification"
SUITES = 22
STANDARD = {
    "appName": "app_name",
    "environment": "environment",
    "userId": "user_id",
    "sessionId": "session_id",
    "remoteAddress": "remote_address",
}


@dataclass(frozen=True)
class Case:
    """One test of one suite. `kind` is `tests` (enabled or not) or `variantTests`."""

    suite: str
    kind: str
    number: int
    content: dict[str, Any]


@functools.cache
def suites() -> dict[str, dict[str, Any]] | str:
    """Return the suites by file name, or the reason why they cannot be had."""
    folder = peers.find(PACKAGE)
    if isinstance(folder, str):
        return folder
    names = json.loads((folder / "specifications" / "index.json").read_text())
    return {name.removesuffix(".json"): json.loads((folder / "specifications" / name).read_text()) for name in names}


def present() -> dict[str, dict[str, Any]]:
    """Return the suites by file name; skip the test if they cannot be had."""
    loaded = suites()
    return needs.missing(loaded) if isinstance(loaded, str) else loaded


def cases() -> list[Any]:
    """Return every case, or a case without content where the package is missing."""
    loaded = suites()
    if isinstance(loaded, str):
        return [pytest.param(None, id="absent")]
    return [
        pytest.param(Case(name, kind, number, content), id=f"{name}-{kind}-{number}")
        for name, suite in loaded.items()
        for kind in ("tests", "variantTests")
        for number, content in enumerate(suite.get(kind, ()))
    ]


@functools.cache
def snapshot(suite: str, way: str = "as it comes") -> Snapshot:
    """Return the compiled configuration of a suite: a document, or the events that make one."""
    return compile_state(documents(suite)[-1], way)


def compile_state(state: dict[str, Any], way: str = "as it comes") -> Snapshot:
    compiled = compile_document(state, options(way))
    assert compiled.problems == []
    return compiled.snapshot


def documents(suite: str) -> list[dict[str, Any]]:
    """Return the documents of a suite: an empty document and its own, or what its events make, one after the other."""
    state = present()[suite]["state"]
    events = state.get("events")
    return [from_events([]), state] if events is None else [from_events(events[:count]) for count in range(len(events) + 1)]


def options(way: str = "as it comes") -> CompileOptions:
    """Return options under which a variant says the state of its feature, as the suites expect it."""
    return CompileOptions(hostname="some-host", variant_feature_state=True, **class_ways.OPTIONS[way])


def from_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the document that a sequence of delta events makes."""
    builder = DocumentBuilder()
    for event in events:
        builder.apply(event)
    return builder.document()


def context_of(content: dict[str, Any]) -> Context:
    """Return the engine's context for one in the data; a property that is null is absent."""
    time = content.get("currentTime")
    properties = {name: value for name, value in content.get("properties", {}).items() if value is not None}
    standard: dict[str, Any] = {attribute: content.get(name) or None for name, attribute in STANDARD.items()}
    stamp = datetime.fromisoformat(time).timestamp() * 1000 if time else None
    return Context(current_time=stamp, properties=properties, **standard)


def evaluate(suite: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return the toggle that a case asks for, as a caller of the proxy would see it."""
    body, enabled = snapshot(suite).named(context_of(content["context"]), [content["toggleName"]])
    (toggle,) = json.loads(body)["toggles"]
    assert enabled == [toggle["enabled"]]
    for way in class_ways.OPTIONS:
        listed = json.loads(snapshot(suite, way).all(context_of(content["context"])))["toggles"]
        known = [toggle] if toggle["name"] in snapshot(suite).toggles else []
        assert [each for each in listed if each["name"] == toggle["name"]] == known, way
    return dict(toggle)


def shape(variant: dict[str, Any]) -> dict[str, Any]:
    """Return a variant with the older of the two names of its feature's state only."""
    return {name: value for name, value in variant.items() if name != "featureEnabled"}


@pytest.mark.parametrize("case", cases())
def test_case(case: Case | None) -> None:
    """The toggle is on or off, or has the variant, that the specification's data expects."""
    present()
    assert case is not None
    toggle = evaluate(case.suite, case.content)
    expected = case.content["expectedResult"]
    told = (case.content["description"], case.content["context"], toggle)
    if case.kind == "tests":
        assert toggle["enabled"] is expected, told
    else:
        assert shape(toggle["variant"]) == shape(expected), told


def names() -> list[str]:
    loaded = suites()
    return ["absent"] if isinstance(loaded, str) else list(loaded)


@pytest.mark.parametrize("suite", names())
def test_our_delta(suite: str) -> None:
    """Whichever of the documents an SDK has, the events of our delta lead it to what the specification expects."""
    loaded = present()
    changes, sdks = Changes(), {"": Twin()}
    for document in documents(suite):
        body = split_content(json.dumps(document).encode())
        changes.take(make_id(digest_content(*body)), *body)
        sdks[changes.identity] = Twin(document["features"], document.get("segments", ()))
    for known, sdk in sdks.items():
        told = changes.tell(known)
        assert (told is None) == (known == changes.identity)
        if told is not None:
            sdk.apply(told.body)
        reached = compile_state({"version": 2, "features": [*sdk.features.values()], "segments": [*sdk.segments.values()]})
        for case in loaded[suite].get("tests", ()):
            _, enabled = reached.named(context_of(case["context"]), [case["toggleName"]])
            assert enabled == [case["expectedResult"]], case["description"]


def test_every_suite_is_there() -> None:
    """The package has the suites it is known to have, so that none is left out without notice."""
    loaded = present()
    folder = Path(str(peers.find(PACKAGE))) / "specifications"
    assert len(loaded) == SUITES == len([path for path in folder.iterdir() if path.name != "index.json"])
