"""Recorded answers of the real server's batch validation (import validation 0.2), and how answers are compared with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "import_cases"
ALWAYS = json.loads((FOLDER / "_given_always.json").read_text())
CASES = sorted(FOLDER.glob("[0-9]*.json"))
UNORDERED = (
    "You cannot import a features that already exist in other projects.",
    "The following features will not be imported as they are currently archived.",
    "The following features already exist in this project and will be overwritten:",
)
"""Beginnings of the messages whose items come in the order of the database's rows."""


def state(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a case: ALWAYS and `given`, whose entries replace entries of the same name."""
    found = dict(ALWAYS)
    for section, entries in given.items():
        names = {each.get("id", each.get("name")) for each in entries}
        found[section] = [each for each in found.get(section, []) if each.get("id", each.get("name")) not in names] + entries
    return found


def comparable(answer: Any) -> Any:
    """Return a body without its id, the items of unordered lists sorted."""
    if not isinstance(answer, dict):
        return answer
    body = {name: value for name, value in answer.items() if name != "id"}
    for item in [*body.get("errors", []), *body.get("warnings", [])]:
        if item["message"].startswith(UNORDERED):
            item["affectedItems"] = sorted(item["affectedItems"])
    return body
