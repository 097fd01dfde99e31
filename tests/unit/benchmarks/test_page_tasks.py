"""The tasks at our pages and at those of the real server, and what the note says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.page_tasks import OUR_TASKS, THEIR_TASKS, Click, Task, Write

NOTE = Path(__file__).resolve().parents[3] / "docs" / "benchmarks" / "pages.md"
ROW = re.compile(r"^\| (.+?) \| (flagsvc|unleash-server) ?[\d.]* \| (\d+) \| (\d+) \|", re.MULTILINE)
SITES = {"flagsvc": OUR_TASKS, "unleash-server": THEIR_TASKS}


@pytest.mark.parametrize("site", SITES)
def test_the_note_has_the_steps_of_today(site: str) -> None:
    """A task that takes another number of clicks or fields is measured again."""

    def steps(task: Task, kind: type) -> int:
        return sum(isinstance(each, kind) for each in task.steps)

    wanted = {task.title: (steps(task, Click), steps(task, Write)) for task in SITES[site]}
    found = {
        title: (int(clicks), int(fields))
        for title, name, clicks, fields in ROW.findall(NOTE.read_text())
        if name == site
    }
    assert found == wanted


def test_both_do_the_same() -> None:
    """The tasks stand in the same order, so that rows of the table are beside each other."""
    assert [each.title for each in OUR_TASKS] == [each.title for each in THEIR_TASKS]
