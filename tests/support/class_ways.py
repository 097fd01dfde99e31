"""The ways in which classes of contexts are forced in tests: on from the first request, off, and with little memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

SMALLEST: Final = 3000
"""Bytes that hold a program or two of a short list, which drive each other out."""
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "as it comes": {},
    "from the first request": {"class_sightings": 1},
    "off": {"class_bytes": 0},
    "with little memory": {"class_sightings": 1, "class_bytes": SMALLEST},
}
"""Way → options of the compiler."""

FIRST_SIGHT: Final = str(Path(__file__).with_name("first_sight"))
"""A folder that makes a program give each class its program at the first sighting, when PYTHONPATH holds it."""


def variables(way: str) -> dict[str, str]:
    """Return the variables that force a way in a running proxy."""
    options = OPTIONS[way]
    found = {}
    if "class_bytes" in options:
        found["FLAGSVC_CLASS_CACHE_BYTES"] = str(options["class_bytes"])
    if "class_sightings" in options:
        sources = Path(__file__).resolve().parents[2] / "src"
        found["PYTHONPATH"] = f"{FIRST_SIGHT}:{sources}"
    return found
