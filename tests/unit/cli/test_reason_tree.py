"""`flagsvc evaluate --explain --whole`: every line of the tree, and the structure as JSON."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from flagsvc.cli import main
from flagsvc.cli.evaluate import MARKS, format_tree
from flagsvc.engine.context import Context
from flagsvc.reasons.whole import explain_whole
from support.evaluating import constraint, feature, region, rollout, strategy
from support.whole import unfolded

VARIANTS = [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]


class Faulty:
    """A custom strategy that raises."""

    name = "faulty"

    def is_enabled(self, parameters: object, context: Context) -> bool:
        """Raise."""
        raise ValueError("no such shop")


def lines(flag: dict[str, Any], context: Context, **options: Any) -> list[str]:
    """Return the lines of the last of some toggles, without the indentation."""
    made = unfolded(flag, feature("p"), **options)
    [found] = explain_whole(made, context, [flag["name"]])
    return [line.strip() for line in format_tree(found, MARKS).splitlines()]


@pytest.mark.parametrize(
    ("flag", "context", "line"),
    [
        (feature("f"), Context(), "f: on, variant disabled — it has no strategy, so it is on for everyone"),
        (feature("f", dependencies=[{"feature": "p"}]), Context(),
         "✓ toggle p is on: it is on, variant disabled — it has no strategy, so it is on for everyone"),
        (feature("f", dependencies=[{"feature": "x"}]), Context(), "✗ toggle x is on: toggle x is missing"),
        (feature("f", strategy(title="all", disabled=True)), Context(), '✓ strategy 1 "all", default (disabled)'),
        (feature("f", strategy("")), Context(), "✗ strategy 1, without a name"),
        (feature("f", strategy("default", constraint("IN", values=["eu"]))), region("us"), "✗ region is eu: it is us"),
        (feature("f", strategy("default", constraint("IN", values=["eu"]))), region(None), "✗ region is eu: it is absent"),
        (feature("f", strategy("default", constraint("IN", values=["eu"]))), region(None), "✓ everyone (not reached)"),
        (feature("f", strategy("default", None)), Context(), "✗ never: a constraint that is no object"),
        (feature("f", strategy(segments=[1])), Context(), "✓ in segment beta"),
        (feature("f", strategy(segments=[2])), Context(), "✗ in segment 2, which is missing"),
        (feature("f", rollout("10", groupId="g", stickiness="userId")), Context(user_id="7"),
         "✗ 10 % by userId, group g: bucket 81 of 100 by userId, on from 81 %"),
        (feature("f", rollout("10", groupId="g", stickiness="userId")), Context(user_id="7"),
         "→ with a rollout of at least 81 % in strategy 1 it would be on"),
        (feature("f", rollout("10", stickiness="userId")), Context(), "✗ 10 % by userId: userId is absent"),
        (feature("f", rollout("0", stickiness="random")), Context(), "✗ nobody (0 %)"),
        (feature("f", rollout("100")), Context(), "✓ everyone"),
        (feature("f", strategy("faulty")), Context(), "✗ custom strategy faulty: it raised ValueError: no such shop"),
        (feature("f", strategy(), variants=[VARIANTS[0]]), Context(user_id="7"),
         "✓ variant a of the feature: bucket 1 of 1 by userId; a 1–1"),
        (feature("f", variants=[VARIANTS[0] | {"overrides": [{"contextName": "userId", "values": ["7"]}]}]),
         Context(user_id="7"), "✓ variant a of the feature: by an override for userId"),
        (feature("f", strategy("default", constraint("DATE_AFTER", value="2026-01-01"))), Context(),
         "the answer depends on the time"),
    ],
)  # fmt: skip
def test_the_line_of_a_step(flag: dict[str, Any], context: Context, line: str) -> None:
    """Each kind of step has its words and what the context gave."""
    segments = [{"id": 1, "name": "beta", "constraints": []}]
    assert line in lines(flag, context, segments=segments, custom_strategies={"faulty": Faulty()})


@pytest.mark.parametrize("seed", range(6))
def test_the_lines_of_draws(seed: int) -> None:
    """A draw says so, and that the answer depends on chance."""
    told = "\n".join(lines(feature("f", rollout("50"), variants=VARIANTS), Context(entropy=seed)))
    assert " of 100 was drawn" in told and " of 2 was drawn; a 1–1, b 2–2" in told
    assert told.endswith("the answer depends on chance")


def test_steps_inside_are_indented() -> None:
    """The tree shows which step is part of which."""
    made = unfolded(feature("f", strategy("default", constraint("IN", values=["eu"]))))
    assert format_tree(explain_whole(made, region("us"))[0], MARKS) == (
        "f: off, variant disabled — no strategy is on\n"
        "  ✓ the feature is enabled\n"
        "  ✗ strategy 1, default\n"
        "      ✗ region is eu: it is us\n"
        "      ✓ everyone (not reached)\n"
        "  → with region eu it would be on"
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file with a document."""
    file = tmp_path / "document.json"
    file.write_text(
        json.dumps({"features": [feature("f", strategy("default", constraint("IN", values=["eu"]))), feature("g")]})
    )
    return str(file)


@pytest.mark.parametrize("flags", [["--explain", "--whole"], ["--whole"]])
def test_the_command_prints_the_tree(path: str, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each toggle has its tree; --toggle chooses."""
    assert main(["evaluate", path, *flags, "--context", "region=us"]) == 0
    printed = capsys.readouterr().out
    assert "✗ region is eu: it is us" in printed and "\n\ng: on" in printed
    assert main(["evaluate", path, *flags, "--toggle", "g"]) == 0
    assert "region" not in capsys.readouterr().out


def test_the_command_prints_json(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives the structure of every step."""
    assert main(["evaluate", path, "--explain", "--whole", "--json", "--context", "region=us", "--toggle", "f"]) == 0
    [told] = json.loads(capsys.readouterr().out)["toggles"]
    assert told["steps"][1]["steps"][0]["found"] == "us"
    assert told["changes"][0]["value"] == "eu"


def test_an_encoding_without_the_marks(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the output is not UTF-8, the marks are words."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["evaluate", path, "--whole", "--toggle", "g"]) == 0
    assert isinstance(output.buffer, io.BytesIO)
    assert b"  yes the feature is enabled" in output.buffer.getvalue()
