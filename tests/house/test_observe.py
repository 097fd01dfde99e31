"""Dashboards and alerts name only metrics that exist, and each alert fires for its fault alone. test_house_pages.py: the files."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import observe
from flagsvc.http.metrics import HISTOGRAM, MetricRow
from flagsvc.proxy.api.metrics import KEPT, SERVED, SPECIFIED
from flagsvc.server.api.operations import OWN
from support import needs

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "observe"
OF_PROCESSES = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
"""The metrics of Prometheus's client libraries that dashboards use."""
ROWS: dict[str, tuple[MetricRow[Any], ...]] = {observe.PROXY: (*SPECIFIED, *KEPT, *SERVED), observe.SERVER: OWN}
PROGRAMS = pytest.mark.parametrize("program", observe.PROGRAMS)
EVERY_MINUTE = 25
"""The minute at which a test looks."""


def sample_names(rows: Iterable[MetricRow[Any]]) -> set[str]:
    """Return the names of the samples of rows."""
    suffixes = {HISTOGRAM: ("_bucket", "_sum", "_count"), "counter": ("_total",), "gauge": ("",)}
    return {row.name + suffix for row in rows for suffix in suffixes[row.kind]}


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\b(?:flagsvc|process)_[a-z_]+", text))


@PROGRAMS
def test_a_dashboard(program: str) -> None:
    """Each panel has title, unit and description, a place of its own, and queries of metrics of its program."""
    found = json.loads(observe.dashboard(program))
    panels = found["panels"]
    places = {(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels}
    assert len({each["id"] for each in panels}) == len({each["title"] for each in panels}) == len(places) == len(panels)
    for each in panels:
        assert each["title"] and each["description"].endswith(".") and each["fieldConfig"]["defaults"]["unit"], each
        for target in each["targets"]:
            assert names_in(target["expr"]), each
            assert names_in(target["expr"]) <= sample_names(ROWS[program]) | OF_PROCESSES, each
            assert target["expr"].count("$job") == len(re.findall(r"\b(?:flagsvc|process)_[a-z_]+", target["expr"]))
    queries = [each["query"] for each in found["templating"]["list"]]
    assert names_in(" ".join(queries)) <= sample_names(ROWS[program])


@pytest.mark.parametrize("alert", observe.ALERTS, ids=lambda alert: alert.name)
def test_an_alert(alert: observe.Alert) -> None:
    """It reads metrics of its program, and says in a sentence what is wrong. Its paragraph has three parts."""
    assert names_in(alert.expr) and names_in(alert.expr) <= sample_names(ROWS[alert.program])
    assert alert.severity in (observe.CRITICAL, observe.WARNING) and alert.summary.endswith(".") and alert.description.endswith(".")
    text = (ROOT / "docs" / "how-to" / "runbook.md").read_text()
    [paragraph] = re.findall(rf"^### {alert.name}\n\n(.*?)(?=\n#|\Z)", text, re.DOTALL | re.MULTILINE)
    assert re.findall(r"\*\*(\w+)\*\*", paragraph) == ["Means", "Look", "Do"]


def test_every_paragraph_is_of_an_alert() -> None:
    """No alert has the name of another one."""
    found = re.findall(r"^### (\w+)$", (ROOT / "docs" / "how-to" / "runbook.md").read_text(), re.MULTILINE)
    assert sorted(found) == sorted(each.name for each in observe.ALERTS)


def series(program: str, fault: dict[str, str]) -> list[dict[str, str]]:
    """Return the series of an instance, which is healthy but for a fault."""
    found = {}
    for key, values in (observe.HEALTHY[program] | fault).items():
        name, _, labels = key.partition("{")
        inner = "".join(f",{each}" for each in [labels.removesuffix("}").removesuffix(",")] if each)
        found[f'{name}{{job="{program}",instance="one"{inner}}}'] = values
    return [{"series": key, "values": values} for key, values in found.items()]


def expected(alert: observe.Alert) -> list[dict[str, Any]]:
    """Return what fires for an alert's fault. Without the job among its labels, the alert is of an instance."""
    own = dict(alert.labels)
    place = {} if "job" in own else {"job": alert.program, "instance": "one"}
    return [{"exp_labels": {**place, **own, "severity": alert.severity}, "exp_annotations": observe.notes(alert)}]


@pytest.mark.programs
@PROGRAMS
def test_each_alert_fires_for_its_fault_alone(program: str, tmp_path: Path) -> None:
    """promtool runs the rules: with a healthy instance nothing fires, with each fault its alert and no other one."""
    alerts = [each for each in observe.ALERTS if each.program == program]
    tests = [
        {
            "interval": "1m",
            "input_series": series(program, {} if fault is None else fault.fault),
            "alert_rule_test": [
                {"eval_time": f"{EVERY_MINUTE}m", "alertname": each.name, "exp_alerts": expected(each) if each is fault else []}
                for each in alerts
            ],
        }
        for fault in (None, *alerts)
    ]
    file = tmp_path / "tests.yaml"
    file.write_text(
        json.dumps({"rule_files": [str(FOLDER / "alerts" / f"{program}.yaml")], "evaluation_interval": "1m", "tests": tests})
    )
    promtool = needs.program("promtool")
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
