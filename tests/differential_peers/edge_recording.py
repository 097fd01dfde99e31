"""Records what Unleash Edge answers to all rows: `EDGE=/path/to/unleash-edge python tests/differential_peers/edge_recording.py`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent), str(FOLDER.parents[1] / "src")]

from peer_meaning import Record  # noqa: E402 - the path is set above
from peer_runs import ask_peer, edge_program  # noqa: E402 - the path is set above
from peer_scenes import EDGE, SCENES  # noqa: E402 - the path is set above

FILE = FOLDER / "edge_answers.json"


def record() -> dict[str, dict[str, Record]]:
    """Run Edge in each of its scenes, and return the records by scene."""
    return {scene.name: ask_peer(scene) for scene in SCENES if scene.peer == EDGE}


def read() -> dict[str, dict[str, Record]]:
    """Return the recorded answers by scene."""
    found: dict[str, dict[str, Record]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def as_text(found: Mapping[str, Mapping[str, Record]]) -> str:
    """Return records as JSON with a line for each row."""
    scenes = []
    for scene, records in found.items():
        lines = [f"    {quoted(title)}: {quoted(each)}" for title, each in records.items()]
        scenes.append(f"  {quoted(scene)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(scenes) + "\n}\n"


def quoted(value: object) -> str:
    """Return a value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False)


def main() -> int:
    """Write the file. Returns 2 if there is no program."""
    if not edge_program():
        print("the variable EDGE names no program", file=sys.stderr)
        return 2
    FILE.write_text(as_text(record()), encoding="utf-8")
    print(f"written to {FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
