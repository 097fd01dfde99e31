"""Reads a seed file, JSON or YAML (import validation 0.3).

All problems of the file are reported together: first those of its shape, then references to unknown entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from heapq import nsmallest
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import yaml

from flagsvc.core.errors import SeedError
from flagsvc.core.files import read_file
from flagsvc.core.state_export import about_state_export
from flagsvc.core.yaml_text import LARGEST, MERGE, BoundedReader, YamlError, load_yaml
from flagsvc.core.yaml_text import place_of as yaml_place_of
from flagsvc.http.shapes import Shape
from flagsvc.http.shapes.exact import Entry, List, below, place_of, problems, without_nulls
from flagsvc.http.yaml_texts import keep_texts
from flagsvc.server.store.seed.keys import BUILT_IN, CLEARED_BY_NULL, FLAG, IDENTITY, SECTIONS, NameOf
from flagsvc.settings.kinds import MOST_HINTS, nearest, printable

MAINTENANCE = "maintenance"
MOST_PROBLEMS = 1000
"""The most problems that an error names."""
ALL = "*"
"""What a token names for all projects or environments."""
SCOPES = ("projects", "environments")
WHOLE_FILE = Entry({MAINTENANCE: FLAG, **{name: List(shape) for name, shape in SECTIONS.items()}})
"""The shape of a seed file."""


@dataclass(frozen=True)
class Seed:
    """A valid seed file: the entries of each section. Members are null only where that clears a value (CLEARED_BY_NULL).

    `maintenance` is None if the file does not say whether maintenance mode is on. `joins` are pairs of project and environment:
    environments to add to projects that the database already has. `digest` identifies the file.
    """

    sections: Mapping[str, list[dict[str, Any]]]
    maintenance: bool | None = None
    joins: Sequence[tuple[str, str]] = ()
    digest: str = ""

    def __getitem__(self, section: str) -> list[dict[str, Any]]:
        return self.sections.get(section, [])


def read_seed(path: str | Path) -> Seed:
    """Read a seed file. Raises SeedError with all its problems."""
    try:
        content = read_file(path, LARGEST)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is not a valid path").lower()
        raise SeedError([f"the seed file `{path}` cannot be read: {reason}"]) from None
    try:
        data = read_text(content, WHOLE_FILE)
    except ValueError as error:
        raise SeedError([f"the seed file `{path}` {error}"]) from None
    try:
        return parse_seed(data)
    except SeedError as error:
        raise SeedError([f"{path}: {problem}" for problem in error.problems]) from None


def parse_seed(data: object) -> Seed:
    """Return the seed from the value of a file. Raises SeedError with all its problems."""
    if not isinstance(data, dict):
        raise SeedError([f"expected an object with {', '.join(SECTIONS)} and {MAINTENANCE}"])
    if about := about_state_export(data):
        raise SeedError([f"it {about}"])
    problems = list(islice(_problems(data), MOST_PROBLEMS))
    if not problems:
        problems = list(islice(chain(_repeated(data), _reference_problems(data), _tokens(data)), MOST_PROBLEMS))
    if problems:
        more = [f"these are {MOST_PROBLEMS} problems, and there may be more"] if len(problems) == MOST_PROBLEMS else []
        raise SeedError([*problems, *more])
    sections = {name: [_entry(name, each) for each in data.get(name) or []] for name in SECTIONS}
    return Seed(sections, data.get(MAINTENANCE), digest=_digest_of(data))


def _entry(section: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry without null in members that null does not clear."""
    cleared = {key: None for key in CLEARED_BY_NULL.get(section, ()) if entry.get(key, key) is None}
    return cast("dict[str, Any]", without_nulls(SECTIONS[section], entry)) | cleared


def _digest_of(data: Mapping[str, Any]) -> str:
    """Return the digest that identifies a seed. Databases hold the digest, so null stays part of it."""
    sections = {name: data.get(name) or [] for name in SECTIONS}
    text = json.dumps({MAINTENANCE: bool(data.get(MAINTENANCE)), **sections}, sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()


def _problems(data: Mapping[str, Any]) -> Iterator[str]:
    for name, value in data.items():
        if name == MAINTENANCE:
            yield from _shape_problems(name, FLAG, value)
        elif name not in SECTIONS:
            yield _unknown_key(str(name), [*SECTIONS, MAINTENANCE], "")
        elif value is not None:
            yield from _shape_problems(name, List(SECTIONS[name]), value)


def _shape_problems(name: str, shape: Shape, value: object) -> Iterator[str]:
    for fault in below(name, problems(shape, value)):
        place = place_of(fault)
        if fault.kind == "missing":
            yield f"{place}.{fault.text}: is missing"
        elif fault.kind == "extra":
            yield _unknown_key(fault.text, list(fault.allowed), f"{place}.")
        else:
            yield f"{place}: {fault.text}"


def _unknown_key(name: str, known: list[str], place: str) -> str:
    hint = nearest(name, known) or f"known are {', '.join(known)}"
    return f"{place}{name}: is not a key of a seed file: {hint}"


def _repeated(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield repeated entries of a section, without the secrets of tokens."""
    for section, key in IDENTITY.items():
        first: dict[str, int] = {}
        for index, entry in enumerate(data.get(section) or [] if key else []):
            earlier = first.setdefault(entry[key], index)
            if earlier != index:
                what = "the same secret" if section == "tokens" else f"`{entry[key]}`"
                yield f"{section}[{index}].{key}: {what} is in {section}[{earlier}] already"


def _reference_problems(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield references to entries that are neither in the file nor in every database."""
    known = {
        name: {entry[key] for entry in data.get(name) or []} | set(BUILT_IN.get(name, ())) for name, key in IDENTITY.items() if key
    }
    unknown = (
        each
        for section, shape in SECTIONS.items()
        for index, entry in enumerate(data.get(section) or [])
        for each in _unknown_in(entry, shape, known, f"{section}[{index}]")
        if section != "tokens" or each[1] != ALL or each[2] not in SCOPES
    )
    for number, (place, name, section) in enumerate(unknown):
        hint = nearest(name, sorted(known[section])) if number < MOST_HINTS else ""
        yield f"{place}: `{name}` is not in {section}{f': {hint}' if hint else ''}"


def _unknown_in(
    entry: Mapping[str, Any], shape: Entry, known: Mapping[str, set[str]], place: str
) -> Iterator[tuple[str, str, str]]:
    """Yield the unknown references of an entry: place, name and section. `place` is its position."""
    for name, each in shape.properties.items():
        value = entry.get(name)
        items = each.items if isinstance(each, List) else each
        if value is None:
            continue
        if isinstance(items, NameOf):
            yield from _unknown_names(value, items.section, known[items.section], f"{place}.{name}")
        elif isinstance(items, Entry) and isinstance(value, list):
            for index, item in enumerate(value):
                yield from _unknown_in(item, items, known, f"{place}.{name}[{index}]")


def _unknown_names(value: str | list[str], section: str, known: set[str], path: str) -> Iterator[tuple[str, str, str]]:
    single = isinstance(value, str)
    for index, name in enumerate([value] if isinstance(value, str) else value):
        if name not in known:
            yield f"{path}{'' if single else f'[{index}]'}", name, section


def _tokens(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of tokens: their users, and the scopes of their secrets."""
    environments = {entry["name"] for entry in data.get("environments") or []} | set(BUILT_IN["environments"])
    projects = {entry["id"] for entry in data.get("projects") or []} | set(BUILT_IN["projects"])
    for index, token in enumerate(data.get("tokens") or []):
        path = f"tokens[{index}]"
        if (token["type"] == "personal") != (token.get("user") is not None):
            yield f"{path}.user: a personal token needs a user, and no other token has one"
        elif token["type"] in ("backend", "frontend"):
            yield from _scope(token, environments, projects, path)


def _scope(token: Mapping[str, Any], environments: set[str], projects: set[str], path: str) -> Iterator[str]:
    environment, named = scope_of(token)
    if environment not in environments:
        shown = ", ".join(nsmallest(MOST_HINTS, environments))
        yield f"{path}.environment: expected one of {shown}, here or in the secret"
    if not named or any(name not in projects and name != ALL for name in named):
        yield f"{path}.projects: expected `*` or projects of the file, here or in the secret"


def scope_of(token: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return a token's environment and projects: the given ones, else those in its secret `project:environment.random`."""
    project, _, rest = str(token["secret"]).partition(":")
    environment = token.get("environment") or rest.rpartition(".")[0]
    return environment, token.get("projects") or ([] if project == "[]" else [project])


TOO_DEEP = "is nested too deeply"


class RepeatedKeyError(Exception):
    """A key is repeated in one object. `str` names the key and its position."""


class SeedYamlReader(BoundedReader):
    """The safe loader, which refuses repeated keys."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the node of an object.

        Raises RepeatedKeyError. Keys of a merge may be repeated, because they are not added yet.
        """
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
                continue
            if key.value in seen:
                raise RepeatedKeyError(f"has the key `{printable(key.value)}` twice: {yaml_place_of(key.start_mark)}")
            seen.add(key.value)
        return node


def read_text(content: bytes, shape: Shape) -> object:
    """Return the value of a text; texts of YAML are kept where the shape has texts.

    Raises ValueError with a message that continues `the seed file …`.
    JSON is tried first, because its indentation may be invalid in YAML.
    """
    try:
        value = _read(content, shape)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except RepeatedKeyError as error:
        raise ValueError(str(error)) from None
    if value is None:
        raise ValueError("is empty")
    return value


def _read(content: bytes, shape: Shape) -> Any:
    with suppress(ValueError):
        return json.loads(content, object_pairs_hook=_record)
    try:
        return load_yaml(content, SeedYamlReader, keep_texts(shape))
    except YamlError as error:
        raise ValueError(error.told("is neither JSON nor YAML")) from None


def _record(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises RepeatedKeyError."""
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise RepeatedKeyError(f"has the key `{printable(key)}` twice in one object")
        record[key] = value
    return record
