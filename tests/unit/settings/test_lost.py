"""A place that could not be read is one problem: options that may be there are not called missing.

Options that have no effect without another option.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.load import load, resolve
from flagsvc.settings.names import DIVIDED
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.render import what_is_set
from flagsvc.settings.server import resolve_server
from flagsvc.settings.table import BY_NAME, OPTIONS
from support.environment_samples import as_variable, required, write_toml
from support.settings_samples import BASE, base_without

NOWHERE = "/nowhere/s3cret"


def problems(given: dict[str, str], file: Path | None = None) -> list[str]:
    """Return the problems of variables and a file."""
    resolved = resolve({"HOME": "/h"} | given, file, {})
    for name, _ in resolved.values.get("environments", ()):
        assert f"[environments.{name}]" in what_is_set(resolved)
    return list(resolved.problems.values())


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a configuration file that is no TOML."""
    path = tmp_path / "flagsvc.toml"
    path.write_text("flagsvcUrl = \n")
    return path


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"FLAGSVC_ENVIRONMENTS": "a,b", "FLAGSVC_A_FETCH_INTERVAL": "7000"},
        {"FLAGSVC_URL": "https://gitlab.example.com/api/v4/feature_flags/unleash/1"},
        {"FLAGSVC_UPSTREAM_KEY": "/key.pem"},
    ],
)
def test_a_file_that_is_not_read(given: dict[str, str], broken: Path) -> None:
    """The file is the only problem, for the process and for each environment."""
    found = f"configuration file {broken}: not TOML: invalid value (at line 1, column 14)"
    assert problems(given, broken) == [found]
    assert list(resolve_server({}, broken, {}).problems.values()) == [found]


def test_other_problems_are_told(broken: Path) -> None:
    """A wrong value from another place is still a problem."""
    given = {"PORT": "x", "FLAGSVC_ENVIRONMENTS": "a", "FLAGSVC_A_URL": "localhost"}
    assert [text.split(" (")[0] for text in problems(given, broken)] == [
        f"configuration file {broken}: not TOML: invalid value",
        "port",
        "environments.a: flagsvcUrl",
    ]


def test_a_file_of_environments(tmp_path: Path) -> None:
    """Nothing is said to be missing: neither for the process, nor in the tables of the configuration file."""
    told = "environments (environment FLAGSVC_ENVIRONMENTS_FILE): cannot read the file it names: no such file or directory"
    variables = {"FLAGSVC_ENVIRONMENTS_FILE": NOWHERE}
    assert problems(variables) == [told]
    file = write_toml(tmp_path / "flagsvc.toml", {"a": {"projectName": "shop"}, "b": required("b")})
    assert problems(variables, file) == [told]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": {', "it begins with `{` and is not JSON: expecting property name enclosed in double quotes (at line 1, column 8)"),
        ('{"a": {"clientKeys": ["s3cret"],}}', "it begins with `{` and is not JSON: "),
        ("a, not a name", "name 2 is no name of an environment; "),
        ('{"b": {}, "b": {}}', "`b` comes twice"),
    ],
)  # fmt: skip
def test_environments_that_are_not_read(text: str, problem: str, tmp_path: Path) -> None:
    """A table of the file is not said to be ignored because of a variable that could not be read."""
    file = write_toml(tmp_path / "flagsvc.toml", {name: required(name) for name in "abc"})
    resolved = resolve({"HOME": "/h", "FLAGSVC_ENVIRONMENTS": text}, file, {})
    assert resolved.warnings == []
    [told] = resolved.problems.values()
    assert told.startswith(f"environments (environment FLAGSVC_ENVIRONMENTS): {problem}")


def test_a_table_that_no_option_is_in(tmp_path: Path) -> None:
    """Its name is the problem, with what was probably meant. Nothing is missing that may be in it."""
    file = tmp_path / "flagsvc.toml"
    file.write_text('[environment.development]\nclientKeys = ["s3cret"]\n')
    told = f"environment (file {file}): expected a text, got a table; did you mean `[environments.development]`?"
    assert problems({}, file) == [told]
    for table in ("[environment]\nclientKeys = ['s3cret']\n", '[environment."\\n"]\nclientKeys = ["s3cret"]\n'):
        file.write_text(table)
        assert problems({}, file) == [told.replace("development", "NAME")]
    for name, hint in (("enviroments", "; did you mean `environments`?"), ("zzzzzz", "")):
        file.write_text(f"[{name}.development]\nclientKeys = ['s3cret']\n")
        assert problems({}, file) == [f"unknown option `{name}` (file {file}){hint}"]
    file.write_text("environment = ['s3cret']\n")
    assert problems(BASE, file) == [f"environment (file {file}): expected a text, got a list"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"FLAGSVC_PROXY_SECRETS_FILE": NOWHERE}, "proxySecrets (environment FLAGSVC_PROXY_SECRETS_FILE): cannot read"),
        ({"FLAGSVC_PROXY_SECRETS": "\x01"}, "proxySecrets (environment FLAGSVC_PROXY_SECRETS): expected"),
        ({"FLAGSVC_TOKEN_VALIDATION": "upstrem"}, "tokenValidation (environment FLAGSVC_TOKEN_VALIDATION): expected"),
    ],
)
def test_what_stands_for_keys(given: dict[str, str], problem: str) -> None:
    """Keys are not missing if they are given under their former name, or if they may not be needed."""
    for prefix, more in (("", base_without("clientKeys")), ("environments.a: ", as_variable({"a": required("a", "clientKeys")}))):
        own = {name.replace("FLAGSVC_", "FLAGSVC_A_" if prefix else "FLAGSVC_"): text for name, text in given.items()}
        [told] = problems(more | own)
        assert told.startswith(prefix + problem.replace("FLAGSVC_", "FLAGSVC_A_" if prefix else "FLAGSVC_"))


REQUIRED = [option.name for option in DIVIDED if option.required]


def misspelt(name: str) -> dict[str, str]:
    """Return what one environment needs, with one name misspelt."""
    given = required("a")
    return {(f"{option}l" if option == name else option): text for option, text in given.items()}


def unknown(name: str, source: str) -> str:
    """Return the problem of a misspelt name."""
    return f"unknown option `{name}l` ({source}); did you mean `{name}`?"


@pytest.mark.parametrize("name", REQUIRED)
def test_a_misspelt_option_in_a_file(name: str, tmp_path: Path) -> None:
    """It is one problem, for the process and for an environment that has its value. Another missing option is told, too."""
    file = tmp_path / "flagsvc.toml"
    lines = [f"{option} = '{text}'\n" for option, text in misspelt(name).items()]
    file.write_text("".join(lines))
    assert problems({}, file) == [unknown(name, f"file {file}")]
    for other in REQUIRED:
        file.write_text("".join(line for line in lines if not line.startswith(f"{other} ")))
        _, *more = problems({}, file)
        assert [text.split(":")[0] for text in more] == [f"{other} is required"] * (other != name)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_misspelt_option_of_an_environment(name: str, tmp_path: Path) -> None:
    """It is one problem, in a table of the file and in JSON. Another missing option is told, also of another environment."""
    tables = {"a": misspelt(name), "b": required("b")}
    file = write_toml(tmp_path / "flagsvc.toml", tables)
    assert problems({}, file) == [unknown(name, f"file {file} [environments.a]")]
    source = "environment FLAGSVC_ENVIRONMENTS [environments.a]"
    assert problems(as_variable(tables))[-1] == unknown(name, source)
    for other in REQUIRED:
        file = write_toml(tmp_path / "flagsvc.toml", {"a": {key: text for key, text in tables["a"].items() if key != other}})
        _, *more = problems({}, file)
        assert [text.split(" is ")[0] for text in more] == [f"environments.a: {other}"] * (other != name)
    del tables["b"][name]
    _, told = problems({}, write_toml(tmp_path / "flagsvc.toml", tables))
    assert told.startswith(f"environments.b: {name} is required")


def test_a_misspelt_option_that_environments_share(tmp_path: Path) -> None:
    """What environments take from the process is not missing in each. Keys are: the process has none for them."""
    tables = {"a": required("a", "clientKeys")}
    del tables["a"]["flagsvcUrl"]
    file = write_toml(tmp_path / "flagsvc.toml", tables, head="flagsvcUrll = 'http://h/api'\nclientKeysl = 'k'")
    *wrong, told = problems({}, file)
    assert wrong == [unknown(name, f"file {file}") for name in ("flagsvcUrl", "clientKeys")]
    assert told.startswith("environments.a: clientKeys is required")


@pytest.mark.parametrize(
    ("url", "is_named"),
    [("http://h/api", True), ("file:///flags.json", False), ("https://gitlab.com/api/v4/feature_flags/unleash/1", False)],
)
def test_what_may_be_in_place_of_keys(url: str, is_named: bool) -> None:
    """If keys are missing, the problem names the look-up of tokens, unless this upstream has none."""
    more = {"FLAGSVC_URL": url, "FLAGSVC_API_TOKEN": "t", "FLAGSVC_INSTANCE_ID": "i"}
    [told] = problems(more)
    assert told.startswith("clientKeys is required: set FLAGSVC_PROXY_CLIENT_KEYS, --client-keys or clientKeys in ")
    assert (', or tokenValidation = "upstream"' in told) is is_named


ALONE = [option.name for option in OPTIONS if option.needs]


@pytest.mark.parametrize("name", ALONE)
def test_an_option_without_the_one_it_needs(name: str) -> None:
    """An option is refused without the option that it needs."""
    variable = BY_NAME[name].reads[0]
    with pytest.raises(ConfigurationError) as caught:
        load(BASE | {variable: "/some/file"}, None, {})
    told = f"{name} (environment {variable}): has no effect without {BY_NAME[name].needs}; give both, or neither"
    assert caught.value.problems == (told,)
    alone: dict[str, Any] = {BY_NAME[name].field: "/some/file"}
    with pytest.raises(ConfigurationError, match=f"{BY_NAME[name].field}: has no effect without "):
        ProxyOptions(flagsvc_url="http://h/api", flagsvc_api_token="t", client_keys="k", **alone)


def test_what_is_wrong_anyway_is_told_once() -> None:
    """If the needed option was given but refused, there is only one problem. A blank option needs no other."""
    wrong = BASE | {"FLAGSVC_TLS_CERT": "\x01", "FLAGSVC_TLS_KEY": "/key", "FLAGSVC_UPSTREAM_KEY": "\x01"}
    assert set(resolve(wrong, None, {}).problems) == {"tlsCert", "upstreamKey"}
    assert not resolve(BASE | {"FLAGSVC_TLS_KEY": " "}, None, {}).problems
