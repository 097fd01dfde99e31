"""A configuration in which everything is wrong: all problems are reported at once, with option and source and no secret."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from flagsvc import ConfigurationError, ProxyOptions
from flagsvc.settings.options import OPTIONS
from flagsvc.settings.table import BY_NAME
from support.option_samples import wrong
from support.processes import flagsvc, running

WRONG = {option.name: wrong(option) for option in OPTIONS if not option.in_code_only}
"""A wrong value for every option that text can give."""
WAYS = ("variable", "alias", "file", "flag")
WRONG_OBJECTS: dict[str, Any] = {"logger": print, "storage_provider": "a folder", "exp_bootstrap": 7}


def spread(shift: int, folder: Path) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Return an environment, arguments and the source of each wrong value; the values are spread over all ways to set an option."""
    environment: dict[str, str] = {"UNLEASH_SHUTDOWN_GRACE": ""}  # what the programs of tests are given otherwise
    arguments, sources, lines = list[str](), dict[str, str](), list[str]()
    path = folder / "wrong.toml"
    for number, (name, text) in enumerate(WRONG.items()):
        option, way = BY_NAME[name], WAYS[(number + shift) % len(WAYS)]
        plain = [variable.name for variable in option.variables if not variable.holds_path]
        if way == "file":
            lines.append(f"{name} = {json.dumps(text)}")
            sources[name] = f"file {path}"
        elif way == "flag":
            arguments.append(f"{option.flag}={text}")
            sources[name] = f"flag {option.flag}"
        else:
            variable = plain[0 if way == "variable" else -1]
            environment[variable] = text
            sources[name] = f"environment {variable}"
    path.write_text("\n".join(lines))
    return environment, ["--config", str(path), *arguments], sources


@pytest.mark.parametrize("command", ["config", "proxy"])
@pytest.mark.parametrize("shift", range(len(WAYS)))
def test_all_problems_come_at_once(shift: int, command: str, tmp_path: Path) -> None:
    """The exit code is 2. One message has a line for each option and its source, no traceback, and nothing of a secret."""
    environment, arguments, sources = spread(shift, tmp_path)
    with running("flagsvc", [*flagsvc(), command, *arguments], env=environment, folder=tmp_path) as program:
        assert program.process.wait(20) == 2
    output = program.output()
    problems = dict(re.findall(r"^  - (\S+) \(([^)]*)\): expected ", output, re.MULTILINE))
    assert problems == sources
    assert f"flagsvc {command}: {len(WRONG)} problems\n" in output
    assert "very-secret" not in output and "Traceback" not in output


def test_all_problems_come_at_once_in_code() -> None:
    """The error names every option by its name in code, those for code only included."""
    given: dict[str, Any] = {BY_NAME[name].field: text for name, text in WRONG.items()} | WRONG_OBJECTS
    with pytest.raises(ConfigurationError) as caught:
        ProxyOptions(**given)
    about = {re.split("[: ]", problem)[0] for problem in caught.value.problems}
    assert about == {*given, "expBootstrap"} - {"exp_bootstrap"}
    assert len(caught.value.problems) == len(given) and "very-secret" not in str(caught.value)
