"""Files of flag data: JSON and YAML are read, errors have a position, and a written file reads as the same data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from flagsvc.cli.batch.files import encode_file, read_flags
from flagsvc.cli.batch.yaml_files import read_yaml
from flagsvc.core.errors import ConfigurationError

DATA = {"features": [{"name": "a"}], "featureStrategies": [], "tagTypes": []}


def file(folder: Path, content: str | bytes, name: str = "flags.json") -> str:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(DATA)),
        ("a.json", "\ufeff" + json.dumps(DATA)),
        ("a.yaml", "features: [{name: a}]\nfeatureStrategies: []\ntagTypes: []\n"),
        ("a.YML", json.dumps(DATA)),
        ("a", json.dumps(DATA)),
        ("a.txt", "features:\n- name: a\nfeatureStrategies: []\ntagTypes: []\n"),
    ],
)
def test_a_data_set(name: str, content: str, tmp_path: Path) -> None:
    """The suffix of the name decides the format. Without a known suffix, the first character decides."""
    found = read_flags(file(tmp_path, content, name))
    assert found.bare and found.value == DATA
    assert found.request("p", "e") == {"project": "p", "environment": "e", "data": DATA}


def test_a_whole_request(tmp_path: Path) -> None:
    """A whole request has its own project and environment, and arguments override them. Unknown properties are kept."""
    path = file(tmp_path, json.dumps({"data": DATA, "project": "p", "environment": "e", "more": 1}))
    found = read_flags(path)
    assert found.request(None, None) == {"project": "p", "environment": "e", "data": DATA, "more": 1}
    assert found.request("q", None)["project"] == "q" and list(found.request(None, "f")) == [
        "project", "environment", "data", "more",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.json", '{"features": [\n  {name: "a"}]}', "is not JSON: expecting property name enclosed in double quotes at line 2"),
        ("a.json", "", "is empty"),
        ("a.json", '{"features": NaN}', "is not JSON: `NaN` is no JSON number"),
        ("a.json", '{"features": 1e999}', "is not JSON: `1e999` is no JSON number"),
        ("a.json", '{"features": ' + "9" * 5000 + "}", "is not JSON: a number has too many digits"),
        ("a.json", "[" * 200_000, "is not JSON: nested too deeply"),
        ("a.json", f'{{"features": {"[" * 200}{"]" * 200}}}', "is nested too deeply: more than 100 levels"),
        ("a.json", b'{"features":\n"\xff"}', "is not UTF-8: line 2"),
        ("a.json", "[]", "holds neither a data set"),
        ("a.json", '{"version": 2, "features": []}', "is a client-features document"),
        ("a.yaml", "features: [\n  a: b: c", "is not YAML: "),
        ("a.yaml", "features: &a [*a]", "is not YAML: an alias is inside of what it stands for at line 1"),
        ("a.yaml", "features: !!set {a}", "cannot be JSON: `features` is a set"),
        ("a.yaml", "features: 1e999", "cannot be JSON: `features` is a number too large"),
        ("a.yaml", "features: !!python/name:os.system", "is not YAML: could not determine a constructor"),
        ("a.yaml", "a: 1\n---\nb: 2", "is not YAML: but found another document at line 2, column 1"),
        ("a.yaml", "features: \x00", "is not YAML: "),
        ("a.yaml", "features: " + "[" * 50_000, "is not YAML: nested too deeply"),
    ],
)
def test_what_is_wrong(name: str, content: str | bytes, text: str, tmp_path: Path) -> None:
    """Each error is one line with the file and, if known, the position."""
    path = file(tmp_path, content, name)
    with pytest.raises(ConfigurationError) as raised:
        read_flags(path)
    assert text in str(raised.value) and str(raised.value).startswith(f"`{path}` ") and "\n" not in str(raised.value)


def test_keys_that_are_no_texts() -> None:
    """A YAML file without a schema, such as a compose file, has only texts as keys."""
    with pytest.raises(ConfigurationError, match="`x` cannot be JSON: the key `1` in `services` is no text"):
        read_yaml("services:\n  1: x", "x")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(ConfigurationError, match=r"cannot read `.*none.json`: no such file or directory"):
        read_flags(str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"), ("yes", "yes"), ("NO", "NO"), ("09:00", "09:00"), ("2026-12-01", "2026-12-01"), ("0o17", "0o17"),
        ("0x1F", "0x1F"), ("1_000", "1_000"), (".inf", ".inf"), ("=", "="), ("true", True), ("False", False),
        ("null", None), ("~", None), ("", None), ("017", 17), ("-4", -4), ("1.5", 1.5), ("1e3", 1000.0), ("4.2.0", "4.2.0"),
        ('"7"', "7"), ("'true'", "true"), ("# nothing", None),
    ],
)  # fmt: skip
def test_plain_scalars(text: str, value: object) -> None:
    """A plain scalar is text unless it is a JSON value: there are no dates, no base 60 and no `on`."""
    found = read_yaml(f"features: {text}\n", "x")
    assert found == {"features": value} and type(found["features"]) is type(value)


VALUES: list[Any] = [
    "on", "yes", "09:00", "2026-12-01", "1e3", "0o17", "017", "true", "null", "", "~", " x ", "a\nb\n", "ünï", "#1", "- a",
    "12", "1.5", "<<", "=", "\x1b[2J", "\U0001f600", None, True, 7, 2.5, [], {}, "a: b", "*a", "&a", "!x", "|", "1_0",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_what_is_written_reads_back(kind: str, tmp_path: Path) -> None:
    """Every value reads back with its type, also with a YAML 1.1 parser. Half a surrogate pair is written as an escape."""
    value = {"features": VALUES, "tagTypes": VALUES}
    content = encode_file(value, kind)
    assert read_flags(file(tmp_path, content, f"a.{kind}")).value == value
    assert kind == "json" or yaml.safe_load(content) == value
    assert content.endswith(b"\n")
    half = encode_file({"a": "\ud800"}, kind)
    assert kind == "yaml" or json.loads(half) == {"a": "\ud800"}


def test_a_long_key(tmp_path: Path) -> None:
    """The paths of values are made for a message alone: with a long key, those of all values would fill the memory."""
    text = f"? {'k' * 1_000_000}\n: [{'1, ' * 20_000}.inf]\nfeatures: 1e999"
    with pytest.raises(ConfigurationError, match="`features` is a number too large"):
        read_flags(file(tmp_path, text, "a.yaml"))
