"""Configurations of other proxies as people write them, with what `flagsvc migrate` prints for them.

`RECORD=1` writes what is printed now into the cases: read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flagsvc.cli.migrate import GIVEN, IN_CLUSTER, how_to_go_on, readable
from flagsvc.settings.edge import BY_VARIABLE
from flagsvc.settings.load import resolve
from support.cli_helpers import Called, Flagsvc

CASES = Path(__file__).parent / "cases"
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


RUNS = [read_case(path) for path in sorted(CASES.glob("*.txt"))]
KEPT = re.compile(r"different: (\w+): leave it in the container")
"""A variable that goes on to come from a Secret."""


@pytest.fixture(params=RUNS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Give each case, in a folder with its files and without other variables of the proxies."""
    found: Case = request.param
    found.write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in {*BY_VARIABLE, *readable(), "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED"}:
        monkeypatch.delenv(name, raising=False)
    return found


def run(flagsvc: Flagsvc, case: Case, *more: str) -> Called:
    """Run the command of a case, with more arguments in front of its own."""
    command, *arguments = case.arguments
    return flagsvc(command, *more, *arguments, env=case.environment)


def test_what_is_printed(case: Case, flagsvc: Flagsvc) -> None:
    """Output, notes and exit code are as recorded."""
    called = run(flagsvc, case)
    if os.environ.get("RECORD"):
        (CASES / f"{case.name}.txt").write_text(case.with_result(called))
    assert called == case.expected


def test_no_secret_is_in_a_message(case: Case, flagsvc: Flagsvc) -> None:
    """Standard error holds no secret, also with `--output` and for what is refused."""
    assert SECRET not in run(flagsvc, case).err
    assert SECRET not in run(flagsvc, case, "--output", "written").err


def test_the_result_is_a_configuration(case: Case, flagsvc: Flagsvc) -> None:
    """Every key of the TOML is an option that a file may hold, and the loader takes every value. Else the exit code is 1.

    The variables give the same options as the file.
    """
    if "--json" in case.arguments:
        return
    command, *rest = [word for word in case.arguments if word not in ("--format", "variables")]
    called = flagsvc(command, *rest, env=case.environment)
    as_variables = flagsvc(command, "--format", "variables", *rest, env=case.environment)
    assert (called.code, without_form(called.err)) == (as_variables.code, without_form(as_variables.err))
    if called.code == 2:
        assert called.out == ""
        return
    Path("flagsvc.toml").write_text(called.out)
    kept = dict.fromkeys(KEPT.findall(called.err), "default:production.kept")
    resolved = resolve(kept, "flagsvc.toml", {})
    assert called.code == 1 or not resolved.problems
    assert not any(name.startswith("<key") for name in resolved.problems)
    pairs = [line.partition("=") for line in as_variables.out.splitlines() if not line.startswith("#") and line]
    from_variables, from_file = resolve({name: value for name, _, value in pairs}, None, {}), resolve({}, "flagsvc.toml", {})
    assert from_variables.values == from_file.values
    assert from_variables.problems.keys() == from_file.problems.keys()


def without_form(told: str) -> str:
    """Return notes without what depends on the form of the result: how a service gets it, and how to go on."""
    for text in (*GIVEN.values(), *IN_CLUSTER.values(), how_to_go_on("toml", None), how_to_go_on("variables", None)):
        told = told.replace(text, "")
    return told
