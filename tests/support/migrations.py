"""Recorded runs of `flagsvc migrate`: a file has the command, the files that it reads, and what it prints.

A line `$ …` is the command. A line `=== NAME` begins a part: the variables of the process (`environment`), the two outputs
(`stdout`, `stderr`), the exit code if it is not 0 (`code`), or a file of that name.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from support.cli_helpers import Called

CASES = Path(__file__).parents[1] / "unit" / "cli" / "migrating" / "cases"
SECRET = "s3cret"
"""What every secret of a case contains, and nothing else."""
PART = re.compile(r"^=== (.+)\n", re.MULTILINE)
OUTPUTS = ("stdout", "stderr", "code")


@dataclass
class Case:
    """One recorded run."""

    name: str
    command: str
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        """The words behind `flagsvc`."""
        return shlex.split(self.command)[1:]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the process."""
        pairs = [line.partition("=") for line in self.parts.get("environment", "").splitlines()]
        return {name: value for name, _, value in pairs}

    @property
    def expected(self) -> Called:
        """What is recorded."""
        code = int(self.parts.get("code", "0"))
        return Called(code, self.parts.get("stdout", ""), self.parts.get("stderr", ""))

    def write_files(self, folder: Path) -> None:
        """Write the files that the command reads."""
        for name, text in self.parts.items():
            if name not in (*OUTPUTS, "environment"):
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def with_result(self, called: Called) -> str:
        """Return the text of the case with another result, to record it."""
        given = {name: text for name, text in self.parts.items() if name not in OUTPUTS}
        result = {"stdout": called.out, "stderr": called.err, "code": f"{called.code}\n" if called.code else ""}
        parts = given | {name: text for name, text in result.items() if text}
        return f"$ {self.command}\n" + "".join(f"=== {name}\n{text}" for name, text in parts.items())


def read_case(path: Path) -> Case:
    """Return the case of a file."""
    head, *rest = PART.split(path.read_text())
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    return Case(path.stem, head.strip().removeprefix("$ "), parts)


def read_cases() -> list[Case]:
    """Return all cases, by name."""
    return [read_case(path) for path in sorted(CASES.glob("*.txt"))]
