"""YAML whose aliases and merges multiply is refused before its values are made; what people write with anchors is read."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.cli.batch.yaml_files import YamlReader
from flagsvc.core.yaml_text import LONGEST_NUMBER, MAX_DEPTH, MOST_MERGES, MOST_REPEATED, TEXT, BoundedReader, YamlError, load_yaml
from flagsvc.server.store.seed.file import SeedYamlReader

READERS = pytest.mark.parametrize("reader", [SeedYamlReader, YamlReader])


def multiplied(first: str, form: str, levels: int = 9) -> str:
    """Return a mapping whose every key repeats the one before it ten times."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {form % ', '.join([f'*a{n - 1}'] * 10)}" for n in range(1, levels)]
    return "\n".join(lines)


def refusal(text: str, reader: type[BoundedReader]) -> str:
    """Return why a text is refused."""
    with pytest.raises(YamlError) as raised:
        load_yaml(text, reader)
    return raised.value.reason


TOO_MANY = f"its aliases repeat more than {MOST_REPEATED} values"


@READERS
@pytest.mark.parametrize(
    "text",
    [
        multiplied("[x]", "[%s]"),
        multiplied("{k: 1}", "{<<: [%s]}"),
        multiplied("{k: 1}", "{b: {<<: [%s]}}"),
        multiplied("x" * TEXT * 1000, "[%s]", 5),
        f"a: &a [{'x, ' * 10_000}]\nb: [{'*a, ' * 1000}]",
    ],
    ids=["lists", "merges", "merges below", "a long text", "one long list"],
)
def test_what_multiplies(text: str, reader: type[BoundedReader]) -> None:
    """Lists, merges and long texts that a short file repeats without end are refused, while the nodes are counted."""
    assert refusal(text, reader) == TOO_MANY


COMPOSE = """
x-common: &common
  environment: &variables {A: a, B: b}
  image: &image proxy
services:
  one: {<<: *common, ports: ["1"]}
  two:
    <<: [*common, {image: other}]
    environment: {<<: *variables, B: c}
    labels: [*image, *image]
"""


@READERS
def test_honest_anchors(reader: type[BoundedReader]) -> None:
    """The idioms of compose files mean what they mean to compose."""
    services = load_yaml(COMPOSE, reader)["services"]
    assert services["one"] == {"environment": {"A": "a", "B": "b"}, "image": "proxy", "ports": ["1"]}
    assert services["two"] == {"environment": {"A": "a", "B": "c"}, "image": "proxy", "labels": ["proxy", "proxy"]}
    many = "a: &a {x: 1, y: [1, 2]}\n" + "\n".join(f"b{n}: {{<<: *a, z: *a}}" for n in range(1000))
    assert len(load_yaml(many, reader)) == 1001


@READERS
def test_depth(reader: type[BoundedReader]) -> None:
    """A value at the last level is read; deeper ones are refused, also if aliases make the depth."""
    assert load_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, reader)
    half = "[" * (MAX_DEPTH // 2) + "1" + "]" * (MAX_DEPTH // 2)
    assert load_yaml(f"a: &a {half}\nb: [*a]", reader)
    assert refusal(f"a: &a {half}\nb: {half.replace('1', '*a')}", reader) == "nested too deeply"
    for text in ("[" * (MAX_DEPTH + 2), "[" * 100_000, "- " * 20_000 + "a", "{a: " * 20_000, "? " * 20_000):
        assert refusal(text, reader) == "nested too deeply"


@READERS
def test_an_alias_in_its_own_anchor(reader: type[BoundedReader]) -> None:
    """A value that would contain itself is refused, and a mapping with too many merge keys, which would take a long time."""
    for text in ("&a [*a]", "&a {b: [*a]}", "a: &a {<<: *a}"):
        assert refusal(text, reader) == "an alias is inside of what it stands for"
    text = "a: &a {}\nb:\n" + "  <<: *a\n" * (MOST_MERGES + 1)
    assert refusal(text, reader) == f"a mapping has more than {MOST_MERGES} merge keys"


@READERS
@pytest.mark.parametrize(
    "value",
    [
        *("!!bool x", "!!int ''", "!!timestamp x", "!!timestamp {=: 1}", "!!float x"),
        *("1:" * 300 + "1.5", "1" * 5000, "!!int [1]", "!x y"),
    ],
)
def test_values_of_another_type(value: str, reader: type[BoundedReader]) -> None:
    """A value that its tag or its form does not fit raises YamlError; no other error comes out, and one may be a text."""
    try:
        read: Any = load_yaml(f"a: {value}", reader)
    except YamlError:
        return
    assert read == {"a": value}


def test_long_numbers() -> None:
    """An integer of YAML 1.1 is bounded: `1:1:1…` needs a time that grows with its square."""
    assert load_yaml("[190:20:30, 0x1F, 1_000]", SeedYamlReader) == [685230, 31, 1000]
    for text in ("1" + ":1" * LONGEST_NUMBER, "0x" + "f" * LONGEST_NUMBER):
        assert "too many digits" in refusal(text, SeedYamlReader)
