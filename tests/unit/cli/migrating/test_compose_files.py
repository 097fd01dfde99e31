"""The services of compose files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flagsvc.cli.migrating.compose_files import Service, read_services
from flagsvc.core.errors import ConfigurationError

VALUES = {"TAG": "v20", "TOKEN": "t0ken", "FROM_SHELL": "yes"}


def only(text: str, where: str = "compose.yaml") -> Service:
    """Return the only service of a file. Raises ConfigurationError if one of its files cannot be read."""
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    (service,) = read_services(f"services:\n  edge:\n{indented}\n", where, VALUES.get)
    if service.error:
        raise service.error
    return service


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("environment: {A: 1, B: true, C: 1.5, D: x, E: '', FROM_SHELL: , NONE: }", "A=1 B=true C=1.5 D=x E= FROM_SHELL=yes"),
        ("environment: ['A=1', 'B=a=b', 'C=', 'FROM_SHELL', 'NONE', 7]", "A=1 B=a=b C= FROM_SHELL=yes"),
        ("environment: {A: $TOKEN, B: '${NONE:-b}', C: $$TOKEN}", "A=t0ken B=b C=$TOKEN"),
        ("environment: {A: on, B: 0x10, C: [1]}", "A=on B=0x10 C="),
        ("environment:", ""),
        ("{}", ""),
    ],
)
def test_environment(text: str, variables: str) -> None:
    """A mapping and a list mean the same. A name without a value has that of the caller."""
    assert [f"{name}={value}" for name, value in only(text).variables.items()] == variables.split()


def test_env_files(tmp_path: Path) -> None:
    """Later files win over earlier ones, and `environment` wins over files. A file that is not required may be missing."""
    (tmp_path / "a.env").write_text("A=1\nB=1\nC=1\nnonsense here\n")
    (tmp_path / "b.env").write_text("B=2\nC='$TOKEN'\n")
    files = "env_file: [a.env, {path: b.env, format: raw}, {path: missing.env, required: false}]"
    found = only(f"{files}\nenvironment: {{A: 3}}", str(tmp_path / "compose.yaml"))
    assert found.variables == {"A": "3", "B": "2", "C": "'$TOKEN'"}
    assert found.odd == [f"line 4 of `{tmp_path / 'a.env'}` is no `NAME=value`"]
    assert only("env_file: ./a.env", str(tmp_path / "compose.yaml")).variables == {"A": "1", "B": "1", "C": "1"}
    with pytest.raises(ConfigurationError, match=r"missing.env`: no such file"):
        only("env_file: missing.env", str(tmp_path / "compose.yaml"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("command: edge --tokens '*:a.b'", ["edge", "--tokens", "*:a.b"]),
        ("entrypoint: [/unleash-edge]\ncommand: [edge, --port, 1]", ["/unleash-edge", "edge", "--port", "1"]),
        ("command: ['sh', '-c', 'edge $$A']\nenvironment: {A: '-s'}", ["edge", "-s"]),
        ("command: /bin/sh -c 'edge -s'", ["edge", "-s"]),
        ("command: [edge, $TOKEN]", ["edge", "t0ken"]),
        ("command: 'edge \"open'", []),
        ("command:", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    """A text is split as a shell does, a list is taken as it is, and the entrypoint stands in front."""
    assert only(text).words == words


def test_parts_that_are_odd() -> None:
    """What is not followed, or not understood, is said in words without its content. A text that is longer than a command can be is
    not split, which takes a time that grows with its square."""
    assert only("extends: base").odd[0].startswith("`extends` is not followed")
    assert only("environment: s3cret").odd == ["`environment` is neither a mapping nor a list"]
    assert only('command: "\'s3cret"').odd == ["`command` has a quotation mark without its other half"]
    assert only("image: 'edge:${NIX}'").missing == ["NIX"]
    assert only(f"command: {'x' * 2_000_000}").odd == ["`command` has more than 131072 characters"]


def test_image_ports_and_health_check() -> None:
    """The image has its variables replaced. Ports are the container's, in each form."""
    ports = "ports: ['80:3063', '127.0.0.1:81:3043/tcp', 9000, {target: 9001, published: 1}, '[::1]:82:9002', '9003-9005', x]"
    found = only(f"image: edge:$TAG\n{ports}\nhealthcheck: {{test: [CMD, /unleash-edge, health]}}")
    assert (found.image, found.health) == ("edge:v20", "CMD /unleash-edge health")
    assert found.ports == [3063, 3043, 9000, 9001, 9002]


def test_merged_services() -> None:
    """Anchors and merge keys are those of YAML."""
    text = "x-base: &base\n  image: a\nservices:\n  one: {<<: *base, command: edge}\n  two: null\n"
    (service,) = read_services(text, "compose.yaml", VALUES.get)
    assert (service.name, service.image, service.words) == ("one", "a", ["edge"])


@pytest.mark.parametrize("text", ["", "[]", "services:", "services: []", "version: '3'", "services: {}"])
def test_no_compose_file(text: str) -> None:
    """A file without services is refused by name."""
    with pytest.raises(ConfigurationError, match=r"`compose.yaml` is no compose file: it has no `services`"):
        read_services(text, "compose.yaml", VALUES.get)


def test_what_an_env_file_may_be(tmp_path: Path) -> None:
    """A pipe would wait for a writer, so it is refused; a device that is empty is an empty file."""
    assert only("env_file: /dev/null").variables == {}
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ConfigurationError, match="fifo`: it is a pipe"):
        only("env_file: fifo", str(tmp_path / "compose.yaml"))


@pytest.mark.parametrize(
    "text", [f"env_file: [{'e, ' * 5000}]", f"environment: {{A: {'x' * 5000}}}\ncommand: [sh, -c, '{'$$A' * 5000}']"]
)
def test_what_grows(text: str, tmp_path: Path) -> None:
    """Env files that are named again and again, and variables of a command for the shell, are refused when they are too much."""
    (tmp_path / "e").write_text("A=" + "x" * 5000)
    with pytest.raises(ConfigurationError, match=r"compose.yaml`: with `.*` it gets more than 4194304 characters"):
        only(text, str(tmp_path / "compose.yaml"))
