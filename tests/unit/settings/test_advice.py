"""Values that are valid but probably a mistake: seconds as milliseconds, values in quotes, an address that is not the API's."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc.settings.load import resolve
from flagsvc.settings.server import load_server
from support.environment_samples import required, write_toml

GOOD = {"FLAGSVC_URL": "http://h/api", "FLAGSVC_API_TOKEN": "t0ken-t0ken", "FLAGSVC_PROXY_CLIENT_KEYS": "k3y"}


def warnings(**given: str) -> list[str]:
    """Return the warnings of a good configuration with these variables."""
    resolved = resolve(GOOD | given, None, {})
    assert not resolved.problems
    return resolved.warnings


@pytest.mark.parametrize(
    ("variable", "number", "words"),
    [
        ("FLAGSVC_FETCH_INTERVAL", "15", "refreshInterval: 15 is milliseconds; write 15000 for 15 s"),
        ("FLAGSVC_FETCH_INTERVAL", "999", "refreshInterval: 999 is milliseconds"),
        ("FLAGSVC_FETCH_INTERVAL", "1000", ""),
        ("FLAGSVC_FETCH_INTERVAL", "0", ""),
        ("FLAGSVC_METRICS_INTERVAL", "999", "metricsInterval: 999 is milliseconds"),
        ("FLAGSVC_METRICS_INTERVAL", "1000", ""),
        ("FLAGSVC_UPSTREAM_TIMEOUT", "5", "upstreamTimeout: 5 is milliseconds; write 5000 for 5 s"),
        ("FLAGSVC_UPSTREAM_TIMEOUT", "100", ""),
    ],
)
def test_a_time_that_is_probably_in_seconds(variable: str, number: str, words: str) -> None:
    """A short time is accepted with a warning, which shows the value for as many seconds if that is likely."""
    assert warnings(**{variable: number}) == ([words] if words else [])


def test_several_names_in_environment(tmp_path: Path) -> None:
    """A comma there separates no names: the warning tells each way to serve several environments."""
    (line,) = warnings(FLAGSVC_ENVIRONMENT="dev,prod")
    assert line.startswith("environment with a comma is the name of one environment")
    for way in ("FLAGSVC_ENVIRONMENTS=a,b", "[environments.NAME]", "docs/how-to/serve-several-environments.md"):
        assert way in line
    file = write_toml(tmp_path / "flagsvc.toml", {"a": required("a") | {"environment": "dev,prod"}, "b": required("b")})
    assert resolve({"HOME": "/h"}, file, {}).warnings == [f"environments.a: {line}"]


@pytest.mark.parametrize("value", ['"production"', "'production'", ' "production" '])
def test_a_value_in_quotes_is_named(value: str) -> None:
    """Docker's env files keep quotes, so a value in quotes gives a warning. It shows the value unless it is a secret."""
    (line,) = warnings(FLAGSVC_ENVIRONMENT=value)
    assert line.startswith("environment (environment FLAGSVC_ENVIRONMENT): ")
    assert f"`{value.strip()}`" in line and "quotes" in line


def test_a_secret_in_quotes_is_named_without_its_value(tmp_path: Path) -> None:
    """The warning about a secret names only the option and the source, also if the secret is in a file."""
    (line,) = warnings(FLAGSVC_PROXY_CLIENT_KEYS='"s3cret, s3cret2"')
    assert line.startswith("clientKeys (environment FLAGSVC_PROXY_CLIENT_KEYS): ") and "quotes" in line
    assert "s3cret" not in line
    (tmp_path / "token").write_text('"s3cret"\n')
    (line,) = warnings(FLAGSVC_API_TOKEN="", FLAGSVC_API_TOKEN_FILE=str(tmp_path / "token"))
    assert line.startswith("flagsvcApiToken (environment FLAGSVC_API_TOKEN_FILE): ") and "s3cret" not in line


def test_a_refused_value_in_quotes_says_so() -> None:
    """The problem of a refused value mentions the quotes. The flag server warns of quotes, too."""
    problem = resolve(GOOD | {"PORT": '"3000"'}, None, {}).problems["port"]
    assert 'got `"3000"`' in problem and "quotes" in problem
    problem = resolve(GOOD | {"FLAGSVC_URL": '"http://me:s3cret@h/api"'}, None, {}).problems["flagsvcUrl"]
    assert "quotes" in problem and "s3cret" not in problem
    (line,) = load_server({"FLAGSVC_SEED": '"seed.yaml"', "HOME": "/"}, {}).warnings
    assert line.startswith("seed (environment FLAGSVC_SEED): ") and '`"seed.yaml"`' in line


@pytest.mark.parametrize("value", ["it's", '"', '"a', 'a"', '"a" or "b', "\"a'"])
def test_what_is_not_in_quotes(value: str) -> None:
    """A quotation mark inside a value, or at only one end, gives no warning."""
    assert warnings(FLAGSVC_ENVIRONMENT=value) == []


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("https://flags.example.com", "https://flags.example.com/api"),
        ("https://flags.example.com/", "https://flags.example.com/api"),
        ("https://h/demo", "https://h/demo/api"),
        ("https://h/api/flags", "https://h/api/flags/api"),
        ("https://h:4242/api/client", "https://h:4242/api"),
        ("https://h/demo/api/client/features", "https://h/demo/api"),
        ("https://h/proxy/client/features", "https://h/proxy"),
        ("https://me:word@h", "https://***@h/api"),
        *((right, "") for right in ("https://h/api", "https://h/demo/api/", "http://h/proxy", "file:///flags.json")),
    ],
)
def test_an_address_that_is_not_the_apis_is_named_with_the_right_one(given: str, right: str) -> None:
    """The warning shows the URL to write, without credentials. The API of a flag server, a proxy, and a document give none."""
    lines = warnings(FLAGSVC_URL=given)[-1:]
    assert [line.startswith("flagsvcUrl ") and f"write `{right}`" in line for line in lines] == [True] * bool(right)
    assert "word" not in str(lines)
