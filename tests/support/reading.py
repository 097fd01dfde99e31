"""What a screen reader reads of a part of a page: a line for each element that has a role and a name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from support.browser import Browser

SILENT = frozenset(
    {"StaticText", "InlineTextBox", "generic", "none", "paragraph", "LineBreak", "ListMarker", "LabelText", "LayoutTable"}
)
"""Roles without a line: their texts are in the names of others, or are read as they stand."""
STATES = ("checked", "pressed", "expanded", "invalid", "focused", "disabled", "required")
"""The states that a line has, if they are there and not false; a switch that is off says so, too."""


def read_aloud(page: Browser, selector: str) -> list[str]:
    """Return the lines for an element and what is in it: role, name, states, and what describes it."""
    for domain in ("DOM", "Accessibility"):
        page.call(f"{domain}.enable")
    found = page.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")["result"]["objectId"]
    wanted = page.call("DOM.describeNode", objectId=found)["node"]["backendNodeId"]
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    by_id = {each["nodeId"]: each for each in nodes}
    root = next(each for each in nodes if each.get("backendDOMNodeId") == wanted)
    return [line for each in walk(root, by_id) if (line := line_of(each))]


def walk(node: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a node and all nodes below it that are not ignored."""
    if not node["ignored"]:
        yield node
    for each in node.get("childIds", ()):
        if each in by_id:
            yield from walk(by_id[each], by_id)


def line_of(node: dict[str, Any]) -> str:
    """Return the line of a node; empty for one that is silent or has no name."""
    role, name = node["role"]["value"], node.get("name", {}).get("value", "").strip()
    if role in SILENT or not name:
        return ""
    given = {each["name"]: str(each["value"].get("value", "")).lower() for each in node.get("properties", ())}
    states = [
        f"{each} {given[each]}"
        for each in STATES
        if given.get(each, "") not in ("", "false") or (each, role) == ("checked", "switch")
    ]
    description = node.get("description", {}).get("value", "")
    return " | ".join([f"{role}: {name}", *states, *([description] if description else [])])
