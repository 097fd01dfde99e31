"""Ask node: one process maps a JavaScript function over many values, so that our reading of them can be held against it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any

from support import peers

PROGRAM = "const f = %s; const all = JSON.parse(require('fs').readFileSync(0, 'utf8')); console.log(JSON.stringify(all.map(f)))"


def apply(function: str, values: Sequence[object], *, package: str | None = None, zone: str = "UTC") -> list[Any]:
    """Return the results of a JavaScript `function` for the values, as JSON. Skips the test without node.

    With `package`, `require` finds that npm package and its dependencies. `zone` is the time zone of the process.
    """
    environment = os.environ | {"TZ": zone, "LC_ALL": "C"}
    if package is not None:
        environment["NODE_PATH"] = str(peers.package(package).parent)
    done = subprocess.run(
        [peers.node(), "-e", PROGRAM % function],
        input=json.dumps(values), env=environment, capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return list(json.loads(done.stdout))
