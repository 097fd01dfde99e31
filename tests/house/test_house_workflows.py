"""The workflows in .github/workflows: what they run is pinned, each job has few rights and an end, and no secret is stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
USES = re.compile(r"uses: (\S+)(.*)")
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
RELEASED = re.compile(r" # v\d+\.\d+\.\d+")
PUBLISHERS = {("docs", "publish"), ("image", "publish"), ("release", "packages"), ("release", "finish")}
"""Jobs (workflow, job) that may write somewhere. A job that calls a workflow hands its rights down."""


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in FILES:
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            yield path.stem, name, job


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_used_is_pinned(path: Path) -> None:
    """An action is named by the digest of a commit, with its release beside it; a container by that of the Dockerfile."""
    text = path.read_text()
    for name, comment in USES.findall(text):
        if name.startswith("./"):
            assert (ROOT / name).is_file(), name
        else:
            assert PINNED.fullmatch(name) and RELEASED.fullmatch(comment), name + comment
    containers = re.findall(r"container: (.*)", text)
    assert all(f"FROM {name} AS build" in (ROOT / "Dockerfile").read_text() for name in containers)


def test_an_action_has_one_version() -> None:
    """The same action is the same commit in all workflows."""
    found = {name for path in FILES for name, _ in USES.findall(path.read_text()) if "@" in name}
    assert len(found) == len({name.partition("@")[0] for name in found}) > 3


def test_each_job_has_few_rights_and_an_end() -> None:
    """A workflow gives no right by itself. Each job names its own, and after how long it is ended. Only publishers write."""
    assert all(yaml.safe_load(path.read_text())["permissions"] == {} for path in FILES)
    for workflow, name, job in jobs():
        assert "permissions" in job, (workflow, name)
        assert "uses" in job or 0 < job["timeout-minutes"] <= 90, (workflow, name)
        writes = "write" in job["permissions"].values()
        assert writes <= ("uses" in job or (workflow, name) in PUBLISHERS), (workflow, name)


def test_nothing_is_published_but_by_a_tag_or_the_weekly_build() -> None:
    """A publisher needs what only a pushed tag gives, or a caller: a pull request and a start by hand have neither."""
    for workflow, name, job in jobs():
        if (workflow, name) in PUBLISHERS:
            steps = [
                step for step in job["steps"] if "attest" in step.get("uses", "") or "uv publish --trusted" in step.get("run", "")
            ]
            assert "if" in job or all(step["if"] == "needs.check.outputs.publish == 'true'" for step in steps), (workflow, name)
    called = yaml.safe_load((ROOT / ".github/workflows/image.yml").read_text())[True]["workflow_call"]["inputs"]
    assert called["tags"]["default"] == ""


def test_no_secret_is_stored_and_no_input_is_run() -> None:
    """The token of a run is enough. A value of the event reaches a shell only by a variable, never as a part of the script."""
    for path in FILES:
        assert "secrets" not in path.read_text(), path.name
    for workflow, name, job in jobs():
        assert not [step for step in job.get("steps", ()) if "${{" in step.get("run", "")], (workflow, name)


def test_the_chart_that_is_published_has_dashboards_and_alerts() -> None:
    """The workflow packs what `make chart` makes. Of the folder alone, the chart refuses to render its alerts."""
    text = (ROOT / ".github/workflows/chart.yml").read_text()
    assert "make chart" in text and "deploy/helm/flagsvc" not in text.partition("jobs:")[2]
