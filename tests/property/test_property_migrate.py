"""`flagsvc migrate` for any text: nothing raises but an error for the user, no secret is told, and what is written can be read."""

from __future__ import annotations

import contextlib
import re
import tomllib
from argparse import Namespace

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.cli.migrate import readable, translate_reference
from flagsvc.cli.migrating.compose_files import read_services
from flagsvc.cli.migrating.edge import translate_edge
from flagsvc.cli.migrating.env_files import fill, parse_env
from flagsvc.cli.migrating.migration import Migration, as_tree, check, write_json, write_toml, write_variables
from flagsvc.cli.migrating.sources import read_edge_command, read_source
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.edge import BY_VARIABLE
from flagsvc.settings.environments import TABLE, read_tables
from flagsvc.settings.names import SETTABLE, flatten

SECRET = "s3cret-marker"
SECRETS = ("TOKENS", "PRETRUSTED_TOKENS", "REDIS_PASSWORD", "CLIENT_TOKENS", "FRONTEND_TOKENS", "CUSTOM_CLIENT_HEADERS")
"""Variables of Edge whose values are secrets as a whole."""
NAMES = sorted(BY_VARIABLE)
pieces = st.sampled_from(
    (
        "$",
        "${",
        "}",
        ":-",
        "A",
        "=",
        "'",
        '"',
        "\\",
        "#",
        " ",
        "\n",
        "export ",
        "\r",
        "\ufeff",
        "*:",
        "@",
        ".",
        "://",
        "[",
        "]",
        ",",
    )
)
texts = st.lists(pieces | st.text(max_size=4), max_size=12).map("".join)
values = texts | st.sampled_from(
    ("true", "false", "5", "0", "-1", "99999999999999999999", "*:dev.x", "a:dev.x,b:dev.y,*:prod.z", "redis://u:p@h:1/2",
     "https://h", "http://[", "x@dev,y@dev", "json", "::", "10.0.0.0/8", "/a/b", "a/b", "X-A: 1,X-A: 2", "info,x=debug", "\udcff")
)  # fmt: skip
of_edge = st.dictionaries(st.sampled_from(NAMES), values, max_size=8)
of_reference = st.dictionaries(st.sampled_from(sorted(readable())), values, max_size=8)


def check_result(migration: Migration) -> None:
    """The three forms of a result hold the same, every key is an option, and every value is one that the option takes."""
    check(migration)
    tree = tomllib.loads(write_toml(migration))
    assert tree == as_tree(migration)
    assert write_json(migration)
    lines = [line for line in write_variables(migration).split("\n") if line and not line.startswith("#")]
    assert all("=" in line for line in lines)
    tables = tree.pop(TABLE, {})
    assert flatten(tree, "file", SETTABLE)[1] == []
    problems = read_tables(tables, "file")[1] if tables else []
    assert not problems or any(note.name == TABLE for note in migration.notes)


@given(of_edge, st.sampled_from(("", "edge", "offline")))
def test_any_values_of_edge(variables: dict[str, str], subcommand: str) -> None:
    """Any values of Edge's variables give a result that can be read."""
    check_result(translate_edge(variables, subcommand))


@given(of_reference)
def test_any_values_of_the_reference(variables: dict[str, str]) -> None:
    """Any values of the reference's variables give a result that can be read."""
    check_result(translate_reference(variables))


@given(of_edge, st.dictionaries(st.sampled_from(SECRETS), texts.map(lambda text: f"{text}{SECRET}{text}"), min_size=1))
def test_secrets_are_not_told(variables: dict[str, str], secrets: dict[str, str]) -> None:
    """No note repeats a secret, also with other text around it, but for the environment that a token names."""
    migration = translate_edge(variables | secrets, "")
    check(migration)
    told = "\n".join(map(str, migration.notes))
    for name in sorted(migration.environments, key=len, reverse=True):  # a name may begin with another one
        told = told.replace(name, "")
    assert SECRET not in re.sub(r"environment `[^`]*", "", told), "the name of an environment in a token is no secret"


@given(texts, st.booleans(), st.booleans())
def test_any_env_file(text: str, braces_only: bool, raw: bool) -> None:
    """Every text is read. Names are names, and a line that is none is a line of the text."""
    found = parse_env(text, {"A": "1"}.get, braces_only=braces_only, raw=raw)
    assert all(name and "=" not in name and "\n" not in name for name in found.values)
    assert all(1 <= number <= text.count("\n") + text.count("\r") + 1 for number in found.odd_lines)


@given(texts, st.booleans())
def test_any_interpolation(text: str, braces_only: bool) -> None:
    """Every text is filled, and one without a dollar sign does not change."""
    filled = fill(text, {"A": "1"}.get, braces_only=braces_only)
    assert "$" in text or filled == (text, ())


@given(st.lists(texts | st.sampled_from([f"--{name.lower().replace('_', '-')}" for name in NAMES]), max_size=8))
def test_any_command_line(words: list[str]) -> None:
    """Every list of words is read, and gives variables of Edge."""
    assert set(read_edge_command(words).variables) <= set(BY_VARIABLE)


bodies = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("path", "target", "test", "A")), inner, max_size=3)
    ),
    max_leaves=6,
)
parts = st.sampled_from(("image", "environment", "command", "entrypoint", "ports", "healthcheck", "extends"))


@given(st.dictionaries(texts, st.dictionaries(parts, bodies, max_size=4) | bodies, max_size=3))
def test_any_services(services: dict[str, object]) -> None:
    """Services of any shape are read, or refused for the user."""
    import json

    with contextlib.suppress(ConfigurationError):
        for service in read_services(json.dumps({"services": services}), "compose.yaml", {"A": "1"}.get):
            assert all(isinstance(value, str) for value in service.variables.values())


@given(texts)
def test_any_compose_file(text: str) -> None:
    """Every text is a compose file, or refused for the user."""
    with contextlib.suppress(ConfigurationError):
        read_services(text, "compose.yaml", {"A": "1"}.get)


@given(st.dictionaries(st.sampled_from(NAMES), values, max_size=5), st.lists(texts, min_size=1, max_size=5))
def test_any_source(environment: dict[str, str], words: list[str]) -> None:
    """An environment and a command line together are read, or refused for the user."""
    args = Namespace(service=None, compose=None, kubernetes=None, helm=None, env_file=[], edge_command=words)
    with contextlib.suppress(ConfigurationError):
        assert read_source(args, environment).has_edge_command
