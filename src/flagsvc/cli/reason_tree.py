"""Prints whole explanations as a tree: a line for each step, with its answer, its sentence and what the context gave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from flagsvc.reasons.steps import Step, WholeExplanation
from flagsvc.reasons.telling import tell
from flagsvc.reasons.words import plain

MARKS: Final = {True: "✓", False: "✗"}
PLAIN_MARKS: Final = {True: "yes", False: "no "}
"""The marks where the output's encoding does not have the others."""
NOT_REACHED: Final = " (not reached)"


def format_tree(whole: WholeExplanation, marks: dict[bool, str]) -> str:
    """Return an explanation as lines."""
    lines = [f"{plain(whole.name)}: {whole.outcome()}"]
    lines += [line for step in whole.steps for line in step_lines(step, "  ", True, marks)]
    lines += [f"  → {words}" for words in whole.turning_words()]
    inputs = [name for name, took_part in (("the time", whole.by_time), ("chance", whole.by_chance)) if took_part]
    return "\n".join([*lines, *([f"  the answer depends on {' and '.join(inputs)}"] if inputs else [])])


def step_lines(step: Step, indent: str, reached: bool, marks: dict[bool, str]) -> Iterator[str]:
    """Give the lines of a step and of those inside. A step that is not reached says so, if the one around it is."""
    yield f"{indent}{marks[step.answer]} {tell(step)}{NOT_REACHED if reached and not step.reached else ''}"
    for inner in step.inner():
        yield from step_lines(inner, indent + "    ", step.reached, marks)
