"""The options in code: same rows, all problems together, masked secrets, and changed copies."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.options import ProxyOptions, advice, differing, secrets_of
from flagsvc.settings.table import BY_NAME, OPTIONS
from support.option_samples import SAMPLES
from support.settings_samples import kept_as, needed

ENOUGH: dict[str, Any] = {"flagsvc_url": "http://127.0.0.1/api", "flagsvc_api_token": "t0ken", "client_keys": ["k3y"]}


def options(**given: Any) -> ProxyOptions:
    """Return options with all required values."""
    return ProxyOptions(**(ENOUGH | given))


def problems(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the problems of options with exactly these values."""
    with pytest.raises(ConfigurationError) as error:
        ProxyOptions(**given)
    return error.value.problems


def test_defaults() -> None:
    """An option that is not set has the table's default."""
    made = options()
    for option in OPTIONS:
        if option.field not in ENOUGH:
            assert getattr(made, option.field) == option.default_for(os.environ)


@pytest.mark.filterwarnings("ignore:proxy_secrets:DeprecationWarning")
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("native", [False, True])
def test_every_option_in_code(name: str, native: bool) -> None:
    """Every option accepts text and a native value with the same meaning."""
    text, value = SAMPLES[name]
    given = ENOUGH | {BY_NAME[name].field: value if native else text}
    given |= {BY_NAME[other].field: SAMPLES[other][0] for other in needed(name)}
    if name == "proxySecrets":
        del given["client_keys"]
    assert getattr(ProxyOptions(**given), BY_NAME[kept_as(name)].field) == value


def silent(self: object, text: str) -> None:
    """Act as a method of a logger."""


Log = type("Log", (), dict.fromkeys(("debug", "info", "warning", "error"), silent))


def test_options_for_code_only() -> None:
    """A logger, a provider, strategies and enrichers are given as objects."""
    log, provider, strategy = Log(), object(), object()
    made = options(logger=log, storage_provider=provider, custom_strategies=[strategy, Path("a.py")])
    assert (made.logger, made.storage_provider, made.custom_strategies) == (log, provider, (strategy, "a.py"))
    assert "Log object" not in repr(made) and "(Log)" in repr(made)


def test_every_problem_at_once() -> None:
    """One error has all problems: wrong values, wrong names and missing options. It shows no secret."""
    found = problems(
        {"port": 70000, "logger": "stdout", "prot": 1, "client_keys": [5], "flagsvc_api_token": "s3cret\n\x00"}
    )
    assert found == (
        "unknown option `prot`; did you mean `port`?",
        "flagsvc_api_token: expected printable ASCII text; it contains a control character",
        "client_keys: expected a list of texts, with commas between, got a list; every item must be a text",
        "port: expected a port number from 0 to 65535, got `70000`",
        "logger: expected a logger of the standard library's or structlog's shape, got `stdout`; it has no method `debug`",
        "flagsvc_url is required",
    )


@pytest.mark.parametrize("name", ["flagsvc_url", "flagsvc_api_token", "client_keys"])
def test_a_misspelt_name_is_one_problem(name: str) -> None:
    """Its option is not called required as well. Another missing option is."""
    given = {(f"{field}l" if field == name else field): value for field, value in ENOUGH.items()}
    told = f"unknown option `{name}l`; did you mean `{name}`?"
    assert problems(given) == (told,)
    for other in ENOUGH.keys() - {name}:
        one, missing = problems({field: value for field, value in given.items() if field != other})
        assert one == told and missing.startswith(f"{other} is required")


@pytest.mark.parametrize("empty", [None, "", " "])
def test_nothing_is_not_given(empty: str | None) -> None:
    """None and blank values count as not set."""
    assert options(environment=empty, port=empty).port == 3000
    assert problems(ENOUGH | {"flagsvc_url": empty}) == ("flagsvc_url is required",)


def test_an_empty_list_is_given() -> None:
    """An empty list of exposed headers exposes none; an empty list of keys is no key."""
    assert options(cors_exposed_headers=[]).cors_exposed_headers == ()
    assert problems(ENOUGH | {"client_keys": []}) == ('client_keys is required, or token_validation = "upstream"',)


def test_a_document_in_a_file_needs_no_token() -> None:
    """A document in a file is read without a token."""
    made = ProxyOptions(flagsvc_url="file:///etc/flags.json", client_keys="k")
    assert made.flagsvc_api_token == ""


def test_bootstrap_in_one() -> None:
    """expBootstrap is a URL or a mapping and sets both parts. A separate option for a part wins."""
    assert options(exp_bootstrap="http://c/f").exp_bootstrap_url == "http://c/f"
    both = options(exp_bootstrap={"url": "http://c/f", "urlHeaders": {"Authorization": "B x"}})
    assert (both.exp_bootstrap_url, both.exp_bootstrap_authorization, both.exp_bootstrap) == ("http://c/f", "B x", None)
    for order in (("exp_bootstrap", "exp_bootstrap_url"), ("exp_bootstrap_url", "exp_bootstrap")):
        values = {"exp_bootstrap": "http://whole", "exp_bootstrap_url": "http://part"}
        assert options(**{name: values[name] for name in order}).exp_bootstrap_url == "http://part"


def test_blanks_stand_for_nothing() -> None:
    """A text of blanks, as `os.environ.get(name, "")` gives it, does not override another option with the same meaning."""
    for order in (("exp_bootstrap", "exp_bootstrap_url"), ("exp_bootstrap_url", "exp_bootstrap")):
        values = {"exp_bootstrap": {"url": "http://c/f"}, "exp_bootstrap_url": " "}
        assert options(**{name: values[name] for name in order}).exp_bootstrap_url == "http://c/f"
    with pytest.warns(DeprecationWarning, match="proxy_secrets"):
        assert options(client_keys="", proxy_secrets="old").client_keys == ("old",)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (5, "expBootstrap (in code): expected a table with url, urlHeaders.Authorization"),
        ({"ulr": "x"}, "unknown option `expBootstrap.ulr` (in code); did you mean `expBootstrap.url`?"),
        ({"urlHeaders": "x"}, "expBootstrap.urlHeaders (in code): expected a table with Authorization"),
        (
            {"urlHeaders": {"AuthorizationFile": "x"}},
            "unknown option `expBootstrap.urlHeaders.AuthorizationFile` (in code); "
            "did you mean `expBootstrap.urlHeaders.Authorization`?",
        ),
    ],
)
def test_bootstrap_of_another_shape(value: object, problem: str) -> None:
    """The problem of a wrong expBootstrap names the expected or nearest keys."""
    assert problems(ENOUGH | {"exp_bootstrap": value}) == (problem,)


def test_the_deprecated_name_warns() -> None:
    """proxySecrets works and warns; clientKeys beat it (behaviour: Names of variables)."""
    given = {name: value for name, value in ENOUGH.items() if name != "client_keys"}
    with pytest.warns(
        DeprecationWarning, match="proxy_secrets is deprecated: give the same keys as clientKeys"
    ) as caught:
        made = ProxyOptions(**given, proxy_secrets="old")
    assert (made.client_keys, made.proxy_secrets) == (("old",), ())
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="deprecated and ignored"):
        assert options(proxy_secrets="old").client_keys == ("k3y",)


def test_options_are_frozen_and_equal_by_value() -> None:
    """Options cannot be changed; two with the same values are equal and have the same hash."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        options().port = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        del options().port
    assert options(port=1) == options(port="1") != options()
    assert hash(options(port=1)) == hash(options(port=1))


def test_a_changed_copy() -> None:
    """`dataclasses.replace` returns a changed copy and checks its values."""
    made = options(cors_origin=("https://a",), storage="none", host=None, tags="a:b", trust_proxy="loopback")
    assert dataclasses.replace(made) == made
    assert dataclasses.replace(made, port=4).port == 4
    with pytest.raises(ConfigurationError):
        dataclasses.replace(made, port=-4)


def test_repr_masks() -> None:
    """The repr shows options that differ from their defaults, but no secret, password or signature."""
    made = options(port=4, http_proxy="http://u:s3cret@p:1", exp_bootstrap_url="http://c/f?sig=s3cret")
    assert repr(made) == (
        "ProxyOptions(flagsvc_url='http://127.0.0.1/api', flagsvc_api_token='***', "
        "http_proxy='http://***@p:1', client_keys=('***',), port=4, exp_bootstrap_url='http://c/f?***')"
    )


def test_advice() -> None:
    """Valid combinations that are probably a mistake give a warning (behaviour: CORS)."""
    assert advice(options()) == []
    assert [text.split(":")[0] for text in advice(options(cors_credentials=True))] == [
        "cors.credentials with cors.origin `*`"
    ]
    assert advice(options(cors_credentials=True, cors_origin="https://a")) == []
    assert "metricsJitter" in advice(options(metrics_interval=5, metrics_jitter=6))[0]
    assert advice(options(metrics_interval=0, metrics_jitter=6)) == []
    (hasty,) = advice(options(refresh_interval=5000, max_staleness=9))
    assert "shorter than two refreshIntervals" in hasty
    (never,) = advice(options(refresh_interval=0, max_staleness=60))
    assert "asked once only" in never
    assert advice(options(refresh_interval=5000, max_staleness=10)) == advice(options(refresh_interval=0)) == []


@pytest.mark.parametrize("url", ["https://someone:hidden@h/api", "https://someone@h/api"])
def test_advice_on_a_user_that_is_not_sent(url: str) -> None:
    """A user and a password in the URL give a warning that does not repeat them."""
    (text,) = advice(options(flagsvc_url=url))
    assert text.startswith("flagsvcUrl ") and "hidden" not in text and "someone" not in text


@pytest.mark.parametrize("url", ["https://h/a@2/api", "file:///a@b/document.json"])
def test_no_advice_on_an_at_sign_in_a_path(url: str) -> None:
    """An at sign in the path of a URL gives no warning."""
    assert advice(options(flagsvc_url=url)) == []


def test_options_that_differ() -> None:
    """`differing` returns exactly the rows whose values differ."""
    one = options()
    assert differing(one, options()) == []
    other = dataclasses.replace(one, port=7, client_keys=("other",))
    assert [row.name for row in differing(one, other)] == ["clientKeys", "port"]


def test_what_must_be_written_nowhere() -> None:
    """`secrets_of` returns exactly the values of all secrets."""
    values: dict[str, Any] = {
        row.field: ("some-secret", "more") if row.default == () else f"secret of {row.name}"
        for row in OPTIONS
        if row.secret and not row.deprecated
    }
    made = options()
    for field, value in values.items():  # set directly, because some secrets need other options, which are no secrets
        object.__setattr__(made, field, value)
    given = [each for value in values.values() for each in ((value,) if isinstance(value, str) else value)]
    assert sorted(secrets_of(made)) == sorted(given)
    assert secrets_of(options()) == [options().flagsvc_api_token, *options().client_keys]
