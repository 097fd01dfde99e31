"""Texts of data sets and seed files are kept as written; a value that cannot be kept is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flagsvc.cli.batch.files import read_flags
from flagsvc.core.errors import ConfigurationError, SeedError
from flagsvc.server.store.seed.file import read_seed

WORDS = [
    "1.10", "01067", "1067", "0x1F", "0o17", "1e3", "1E+3", "yes", "No", "on", "true", "True", "FALSE", ".5", "1.", "+1", "-0",
    "1_000", "12:30:00", "190:20:30", "2024-01-01", "2024-01-01T00:00:00Z", "12345678901234567890", "9" * 5000, ".inf", "=",
]  # fmt: skip
"""Plain scalars of YAML 1.1 or 1.2 that mean something else than the text."""
LISTED = f"[{', '.join(WORDS)}]"

DATA_SET = f"""\
features: [{{name: 1.10, description: 2024-01-01, stale: true}}]
featureStrategies:
- name: flexibleRollout
  featureName: 1.10
  sortOrder: 2
  disabled: ~
  segments: [1]
  parameters: {{rollout: 50, 1.10: yes, 010: on, true: 1e3}}
  constraints: [{{contextName: v, operator: IN, values: {LISTED}, inverted: True}}]
  variants: [{{name: 010, weight: 500, payload: {{type: number, value: 1.50}}}}]
contextFields: [{{name: 1.0, legalValues: [{{value: 1.0}}]}}]
tagTypes: []
"""
SEED = f"""\
features: [{{name: 1.10, description: 2024-01-01, stale: yes, enabled: [development]}}]
strategies:
- name: flexibleRollout
  feature: 1.10
  environment: development
  sortOrder: 2
  segments: [1.0]
  parameters: {{rollout: 50, 1.10: yes, 010: on, true: 1e3}}
  constraints: [{{contextName: v, operator: IN, values: {LISTED}, inverted: True}}]
  variants:
  - {{name: 010, weight: 1_000, payload: {{type: number, value: 1.50}}, overrides: [{{contextName: 1, values: {LISTED}}}]}}
segments: [{{name: 1.0}}]
strategyTypes: [{{name: t, parameters: [{{name: 1.10, type: on, required: yes, default: 1.5, more: true, none: ~}}]}}]
"""
PARAMETERS = {"rollout": "50", "1.10": "yes", "010": "on", "true": "1e3"}


def data_set(folder: Path, text: str, name: str = "flags.yaml") -> Any:
    (folder / name).write_text(text)
    return read_flags(str(folder / name)).value


def seed(folder: Path, text: str) -> Any:
    """Return the sections of the seed in a text."""
    (folder / "seed.yaml").write_text(text)
    return read_seed(folder / "seed.yaml").sections


def test_data_sets(tmp_path: Path) -> None:
    """Names, values of constraints, parameters with their names, payloads and legal values are what the file says."""
    found = data_set(tmp_path, DATA_SET)
    [strategy] = found["featureStrategies"]
    assert found["features"] == [{"name": "1.10", "description": "2024-01-01", "stale": True}]
    assert strategy["constraints"] == [{"contextName": "v", "operator": "IN", "values": WORDS, "inverted": True}]
    assert strategy["parameters"] == PARAMETERS and strategy["featureName"] == "1.10"
    assert strategy["variants"] == [{"name": "010", "weight": 500, "payload": {"type": "number", "value": "1.50"}}]
    assert (strategy["sortOrder"], strategy["disabled"], strategy["segments"]) == (2, None, [1])
    assert found["contextFields"] == [{"name": "1.0", "legalValues": [{"value": "1.0"}]}]


def test_whole_requests(tmp_path: Path) -> None:
    """A request with a data set in it keeps its texts as well."""
    lines = "".join(f"  {line}\n" for line in DATA_SET.splitlines())
    found = data_set(tmp_path, f"project: 1.10\nenvironment: 2024-01-01\ndata:\n{lines}")
    assert (found["project"], found["environment"]) == ("1.10", "2024-01-01")
    assert found["data"]["featureStrategies"][0]["constraints"][0]["values"] == WORDS


def test_seeds(tmp_path: Path) -> None:
    """A seed has the same rule. At other places YAML 1.1 decides: `yes` is true, `1_000` a number."""
    found = seed(tmp_path, SEED)
    [strategy], [variant] = found["strategies"], found["strategies"][0]["variants"]
    feature = {"name": "1.10", "description": "2024-01-01", "stale": True, "enabled": ["development"]}
    assert found["features"] == [feature]
    assert strategy["constraints"] == [{"contextName": "v", "operator": "IN", "values": WORDS, "inverted": True}]
    assert strategy["parameters"] == PARAMETERS and strategy["segments"] == ["1.0"] and strategy["sortOrder"] == 2
    assert variant == {
        "name": "010", "weight": 1000, "payload": {"type": "number", "value": "1.50"},
        "overrides": [{"contextName": "1", "values": WORDS}],
    }  # fmt: skip
    parameter = {"name": "1.10", "type": "on", "required": True, "default": 1.5, "more": True, "none": None}
    assert found["strategyTypes"] == [{"name": "t", "parameters": [parameter]}]


def test_what_aliases_and_merges_share(tmp_path: Path) -> None:
    """An anchored value is a number where a number belongs, and a text where a text belongs."""
    text = """\
features: [{name: a}]
featureStrategies:
- &first {name: &n 5, featureName: a, segments: &list [5, 7], sortOrder: *n, parameters: &p {a: 1.10}}
- {<<: *first, constraints: [{contextName: v, operator: IN, values: *list}]}
- {<<: [{title: 1.20}, *first], parameters: {<<: *p, b: 010}}
tagTypes: []
"""
    first, second, third = data_set(tmp_path, text)["featureStrategies"]
    assert first == {"name": "5", "featureName": "a", "segments": [5, 7], "sortOrder": 5, "parameters": {"a": "1.10"}}
    assert second == {**first, "constraints": [{"contextName": "v", "operator": "IN", "values": ["5", "7"]}]}
    assert third == {**first, "title": "1.20", "parameters": {"a": "1.10", "b": "010"}}


CONSTRAINT = "- {contextName: v, operator: IN, values: [a,\n  %s]}\n"
IN_DATA = f"features: []\ntagTypes: []\nfeatureStrategies:\n- name: default\n  constraints:\n  {CONSTRAINT}"
IN_SEED = f"segments:\n- name: s\n  constraints:\n  {CONSTRAINT}"
TYPE = "strategyTypes:\n- name: t\n  parameters:\n  - {name: p, default: %s}\n"
REFUSED = [
    (data_set, IN_DATA % "null", 'has `null` in a list of texts at line 7, column 3: write `"null"` for the text'),
    (data_set, IN_DATA % "~", 'has `~` in a list of texts at line 7, column 3: write `"~"` for the text'),
    (seed, IN_SEED % "Null", 'has `Null` in a list of texts at line 5, column 3: write `"Null"` for the text'),
    *(
        (seed, TYPE % word, f"has `{word}`, which readers take differently at line 4, column 24: write `\"{word}\"` for")
        for word in ("1.10", "010", "yes", "2024-01-01", "1:30", "0x1F", "1_000", "True")
    ),
    (seed, "projects:\n- {id: p, featureLimit: 010}\n", "has the number `010` at line 2, column 25: write a decimal"),
    (seed, "projects:\n- {id: p, featureLimit: 1:30}\n", "has the number `1:30` at line 2, column 25: write a decimal"),
    (seed, "features:\n- {name: a, 1.10: b, '1.10': c}\n", "has the key `1.10` twice: line 2, column 22"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "text", "expected"), REFUSED)
def test_what_cannot_be_kept(read: Any, text: str, expected: str, tmp_path: Path) -> None:
    """The error has the value, its line, and how to write it."""
    with pytest.raises((ConfigurationError, SeedError)) as raised:
        read(tmp_path, text)
    assert expected in str(raised.value)


def test_texts_in_quotation_marks(tmp_path: Path) -> None:
    """What an error tells to write is read as that text."""
    assert data_set(tmp_path, IN_DATA % '"null"')["featureStrategies"][0]["constraints"][0]["values"] == ["a", "null"]
    assert seed(tmp_path, IN_SEED % "'~'")["segments"][0]["constraints"][0]["values"] == ["a", "~"]
    assert seed(tmp_path, TYPE % '"1.10"')["strategyTypes"][0]["parameters"] == [{"name": "p", "default": "1.10"}]


@pytest.mark.parametrize("word", ["1.10", "1.0", "1e3", "12345678901234567890", "-0"])
def test_numbers_of_json_that_would_be_other_texts(word: str, tmp_path: Path) -> None:
    """A server takes the number 1.10 for the text `1.1`, so JSON with such a number for a text is refused, too."""
    text = f'{{"features": [{{"name": "12 \\" 3", "description":\n{word}}}], "featureStrategies": [], "tagTypes": []}}'
    with pytest.raises(ConfigurationError) as raised:
        data_set(tmp_path, text, "flags.json")
    expected = f'has the number `{word}` where a text belongs, at line 2: write `"{word}"`'
    assert expected in str(raised.value)


def test_numbers_of_json_that_are_the_same_texts(tmp_path: Path) -> None:
    """Other numbers stay: servers take them for the same texts, and where a number belongs, for the same number."""
    value = {
        "features": [{"name": 5, "description": 1.5}],
        "featureStrategies": [{"name": "default", "sortOrder": 1.0, "segments": [1e3]}],
        "featureEnvironments": [{"name": "a", "enabled": True, "releasePlans": [1.0]}],
        "tagTypes": [],
    }
    assert data_set(tmp_path, json.dumps(value), "flags.json") == value
