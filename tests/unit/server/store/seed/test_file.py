"""A seed file is read completely, and all mistakes are reported together with their places.

The text of a seed file: JSON or YAML, no key twice, not nested too deeply.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import SeedError
from flagsvc.http.shapes import Anything
from flagsvc.server.store.seed import file
from flagsvc.server.store.seed.file import parse_seed, read_seed, read_text, scope_of
from flagsvc.settings.kinds import MOST_HINTS

BACKEND = {"secret": "*:development.x", "type": "backend"}

VARIANT: dict[str, Any] = {"name": "v", "weight": 1000}
ODD_VARIANTS: list[tuple[dict[str, Any], str]] = [
    *(({"weight": weight}, "weight: expected a whole number") for weight in (1.5, float("nan"), 10**400)),
    ({"payload": {"type": "string", "value": "\0"}}, "payload.value: expected a text"),
    ({"payload": {"type": "number", "value": 5}}, "payload.value: expected a text"),
    ({"payload": {"type": "json"}}, "payload.value: is missing"),
    ({"overrides": [{"contextName": "a", "values": 5}]}, "overrides[0]: expected an object with a text"),
]
STRATEGY = {"feature": "a", "environment": "development", "name": "default"}
KNOWN: dict[str, Any] = {"features": [{"name": "a"}]}
ENTRIES: list[tuple[str, Any, str]] = [
    ("features", "a", ": expected an object"),
    ("features", {}, ".name: is missing"),
    *(("features", {"name": name}, ".name: expected a text that is not empty") for name in ("", 5)),
    *(("features", {"name": name}, ".name: expected a text") for name in ("a\0", "\ud800")),
    ("features", {"name": "a b"}, ".name: expected a text that is not empty, URL-friendly"),
    *(("features", {"name": name}, ".name: expected") for name in ("..", "a" * 101)),
    ("features", {"name": "a" * 101}, "at most 100 characters"),
    ("features", {"name": "a", "archive": True}, ".archive: is not a key"),
    ("features", {"name": "a", "archive": True}, "did you mean `archived`?"),
    ("features", {"name": "a", "archived": "yes"}, ".archived: expected true or false"),
    *(("features", {"name": "a", "project": name}, f".project: `{name}` is not in projects") for name in ("no", "*")),
    ("features", {"name": "a", "enabled": ["prodution"]}, ".enabled[0]: `prodution` is not in environments: did you mean"),
    ("projects", {"id": "p", "featureLimit": True}, ".featureLimit: expected a whole number"),
    ("projects", {"id": "p", "featureLimit": -1}, ".featureLimit: expected a whole number from 0"),
    ("projects", {"id": "p", "featureNaming": {"pattern": 1}}, ".featureNaming.pattern: expected a text"),
    ("projects", {"id": "p", "environments": ["x"]}, ".environments[0]: `x` is not in environments"),
    ("strategies", STRATEGY | {"feature": "b"}, ".feature: `b` is not in features"),
    ("strategies", STRATEGY | {"environment": "e"}, ".environment: `e`"),
    ("strategies", STRATEGY | {"name": "n"}, ".name: `n` is not in strategyTypes"),
    ("strategies", STRATEGY | {"segments": ["s"]}, ".segments[0]: `s` is not in segments"),
    ("segments", {"name": "s", "constraints": [{"contextName": "userId"}]}, ".constraints[0].operator: is missing"),
    (
        "segments",
        {"name": "s", "constraints": [{"contextName": "userId", "operator": "INN"}]},
        ".constraints[0].operator: expected one of NOT_IN, IN",
    ),
    ("segments", {"name": "a" * 256}, ".name: expected a text"),
    ("segments", {"name": "a" * 256}, "at most 255 characters"),
    ("contextFields", {"name": "c", "legalValues": ["no"]}, ".legalValues[0]: expected an object"),
    ("contextFields", {"name": "a/b"}, ".name: expected"),
    ("strategyTypes", {"name": "a/b"}, ".name: expected"),
    ("strategyTypes", {"name": "t", "parameters": [{}]}, ".parameters[0]: expected an object with a text as `name`"),
    ("users", {"name": "u", "rootRole": "owner"}, ".rootRole: expected one of admin, editor, viewer"),
    ("users", {"name": "u", "projectRoles": [{"project": "p", "role": "member"}]}, ".projectRoles[0].project: `p`"),
    ("users", {"name": "u", "projectRoles": [{"project": "default"}]}, ".projectRoles[0].role: is missing"),
    ("tokens", {"secret": "x", "type": "personal"}, ".user: a personal token needs a user"),
    ("tokens", {"secret": "user:x", "type": "personal", "user": "nobody"}, ".user: `nobody` is not in users"),
    ("tokens", BACKEND | {"secret": "*:nosuch.x"}, ".environment: expected one of development, production"),
    ("tokens", {"secret": "nosuch:development.x", "type": "frontend"}, ".projects: expected"),
    ("tokens", BACKEND | {"secret": "[]:development.x"}, ".projects: expected"),
    ("tokens", BACKEND | {"expiresAt": "soon"}, ".expiresAt: expected a date-time"),
    *(
        ("tokens", {"secret": secret, "type": "admin"}, ".secret: expected")
        for secret in ("*:*.ä-development.x", " development.x", "development.x\n", "development.\x7f", "bearer development.x")
    ),
    *(("strategies", STRATEGY | {"variants": [VARIANT | wrong]}, f".variants[0].{expected}") for wrong, expected in ODD_VARIANTS),
]
"""A section, its first entry, and a part of the expected message behind the place of the entry."""
WRONG: list[tuple[Any, list[str]]] = [
    *((KNOWN | {section: [entry]}, [f"{section}[0]{told}" if told[0] in ".:" else told]) for section, entry, told in ENTRIES),
    ([], ["expected an object with environments, projects"]),
    ({"feature": []}, ["feature: is not a key of a seed file: did you mean `features`?"]),
    ({"xyz": []}, ["xyz: is not a key of a seed file: known are environments, projects"]),
    ({"features": {}}, ["features: expected a list"]),
    ({"features": [{"name": "a"}, {"name": "a"}]}, ["features[1].name: `a` is in features[0] already"]),
    ({"tokens": [BACKEND, BACKEND]}, ["tokens[1].secret: the same secret is in tokens[0] already"]),
    ({"maintenance": "on"}, ["maintenance: expected true or false"]),
    (
        {"features": [{"name": 1}], "users": [{"x": 1}], "y": 1},
        ["features[0].name", "users[0].name: is missing", "users[0].x", "y: is not"],
    ),
]
"""The content of a seed file, and parts of the expected messages."""


@pytest.mark.parametrize(("data", "expected"), WRONG)
def test_a_mistake_is_told_with_its_place(data: Any, expected: list[str]) -> None:
    """Each message names the place and the correct value. No message contains a secret."""
    with pytest.raises(SeedError) as caught:
        parse_seed(data)
    text = "\n".join(caught.value.problems)
    assert all(part in text for part in expected), text
    assert "development.x" not in text


@pytest.mark.parametrize("content", ["", " \n", "# features:\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: str) -> None:
    """An empty file is an error. A section may be null, and an object without sections is valid."""
    (tmp_path / "seed.yaml").write_text(content)
    with pytest.raises(SeedError, match=r"the seed file `.*seed\.yaml` is empty"):
        read_seed(tmp_path / "seed.yaml")
    assert parse_seed({"features": None})["features"] == [] and not parse_seed({}).maintenance


def test_a_pattern_that_does_not_compile_is_taken(tmp_path: Path) -> None:
    """An invalid naming pattern is stored as it is: it accepts all names, as on the real server."""
    naming = {"pattern": "("}
    assert parse_seed({"projects": [{"id": "p", "featureNaming": naming}]})["projects"][0]["featureNaming"] == naming


def test_members_that_are_null_count_as_missing() -> None:
    """They are left out wherever entries nest, unless null clears the member. Objects of users, such as a payload, stay."""
    project = {"id": "p", "mode": None, "featureNaming": {"pattern": "a", "example": None}, "featureLimit": None}
    field = {"name": "c", "stickiness": None, "legalValues": [{"value": "x", "description": None}]}
    kind = {"name": "k", "parameters": [{"name": "n", "type": None}]}
    seed = parse_seed({"projects": [project], "contextFields": [field], "strategyTypes": [kind]})
    assert seed["projects"] == [{"id": "p", "featureNaming": {"pattern": "a"}, "featureLimit": None}]
    assert seed["contextFields"] == [{"name": "c", "legalValues": [{"value": "x"}]}]
    assert seed["strategyTypes"] == [kind]


DIGESTS: list[tuple[dict[str, Any], str]] = [
    ({"features": [{"name": "a", "description": None}]}, "3eab0a88fdaefc45bc8853a58fa9d2390677bc5c2485115d8a99a447364048ec"),
    ({"features": [{"name": "a"}]}, "338ef3de477135b24c6f69ec6ac352a02d0831b9131754ea5882a43419a16d3f"),
    ({"features": [{"name": "a"}], "maintenance": False}, "338ef3de477135b24c6f69ec6ac352a02d0831b9131754ea5882a43419a16d3f"),
    ({"features": [{"name": "a"}], "maintenance": True}, "6714e72824b11febec597dcc81104996ad80f82ea6b1eef3b8a763f01af527c5"),
]
"""The content of a seed file, and the digest that databases hold of it."""


@pytest.mark.parametrize(("data", "digest"), DIGESTS)
def test_known_seeds_stay_known(data: dict[str, Any], digest: str) -> None:
    """The digest of a seed never changes: with another one, a start would write it again or warn of it."""
    assert parse_seed(data).digest == digest


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_is_read(tmp_path: Path, indent: int | str | None) -> None:
    """JSON is read with any indentation."""
    content = {"features": [{"name": "a", "description": "ä"}], "maintenance": True}
    (tmp_path / "seed").write_text(json.dumps(content, indent=indent))
    seed = read_seed(tmp_path / "seed")
    assert seed["features"] == content["features"] and seed.maintenance


def test_yaml_is_read(tmp_path: Path) -> None:
    """YAML is read, and its dates become date-times."""
    text = "features:\n  - name: a\ntokens:\n  - {type: backend, secret: '*:development.x', expiresAt: 2031-01-01T00:00:00Z}\n"
    (tmp_path / "seed.yml").write_text(text)
    seed = read_seed(tmp_path / "seed.yml")
    assert seed["features"] == [{"name": "a"}] and seed["tokens"][0]["expiresAt"].year == 2031


@pytest.mark.parametrize("content", [b"{", b"a: b: c", b"\xff\xfe\xfa", b"!!python/object:os.system {}"])
def test_what_is_neither_json_nor_yaml_is_told(tmp_path: Path, content: bytes) -> None:
    """The error for a file that cannot be parsed names the file."""
    (tmp_path / "seed").write_bytes(content)
    with pytest.raises(SeedError, match="seed` is neither JSON nor YAML"):
        read_seed(tmp_path / "seed")


@pytest.mark.parametrize(
    ("token", "scope"),
    [
        ({"secret": "*:development.abc"}, ("development", ["*"])),
        ({"secret": "p:a.b.c"}, ("a.b", ["p"])),
        ({"secret": "[]:production.x", "projects": ["a", "b"]}, ("production", ["a", "b"])),
        ({"secret": "anything", "environment": "production", "projects": ["*"]}, ("production", ["*"])),
        ({"secret": "*:development.abc", "environment": "production"}, ("production", ["*"])),
    ],
)
def test_a_secret_says_what_it_opens(token: dict[str, Any], scope: tuple[str, list[str]]) -> None:
    """Environment and projects are read from a secret of the usual form, unless they are given."""
    assert scope_of(token) == scope


def test_many_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with many mistakes gives a bounded error, and the nearest name is looked for a few times."""
    asked: list[str] = []

    def ask(name: str, known: list[str]) -> str:
        asked.append(name)
        return ""

    monkeypatch.setattr(file, "nearest", ask)
    tokens = [{"secret": f"*:e{number}.x", "type": "backend"} for number in range(5000)]
    entries = [{"name": f"f{number}", "project": f"p{number}"} for number in range(5000)]
    for data in ({"features": entries}, {"tokens": tokens}, {"features": [{"name": ""}] * 5000}):
        with pytest.raises(SeedError) as raised:
            parse_seed(data)
        assert len(raised.value.problems) == file.MOST_PROBLEMS + 1
        assert "there may be more" in raised.value.problems[-1]
    assert len(asked) == MOST_HINTS


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a file without an end, and a text that is no path, are errors with the path; so is each mistake in a file."""
    with pytest.raises(SeedError, match="nosuch` cannot be read: no such file or directory"):
        read_seed("nosuch")
    with pytest.raises(SeedError, match=r"the seed file `/dev/zero` cannot be read: it has more than 67108864 bytes"):
        read_seed("/dev/zero")
    with pytest.raises(SeedError, match="cannot be read: it is not a valid path"):
        read_seed("a\0b")
    (tmp_path / "seed.json").write_text('{"x": 1}')
    with pytest.raises(SeedError, match=r"seed\.json: x: is not a key"):
        read_seed(tmp_path / "seed.json")


TWICE = {
    "features:\n  - name: a\nusers: []\nfeatures: []\n": "has the key `features` twice: line 4, column 1",
    "features:\n  - {name: a, name: b}\n": "has the key `name` twice: line 2, column 15",
    '{"features": [{"name": "a", "name": "b"}]}': "has the key `name` twice in one object",
}


@pytest.mark.parametrize("text", TWICE)
def test_a_key_that_is_there_twice(text: str) -> None:
    """A duplicate key is an error, because the first value would be lost silently. For YAML the error has the position."""
    with pytest.raises(ValueError, match=TWICE[text]):
        read_text(text.encode(), Anything())


@pytest.mark.parametrize("content", [b"[" * 100_000, b"- " * 20_000 + b"a", b'{"a":' * 100_000])
def test_deep_nesting(content: bytes) -> None:
    """Deep nesting raises ValueError that says so."""
    with pytest.raises(ValueError, match="nested too deeply"):
        read_text(content, Anything())
