"""The options in code: same rows, all problems together, masked secrets, and changed copies.

`ProxyOptions` with several environments in code: valid values, refused values, and copies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.environments import EXPECTED
from flagsvc.settings.option import Scope
from flagsvc.settings.options import Environment, ProxyOptions, advice, differing, secrets_of, with_process
from flagsvc.settings.table import OPTIONS

ENOUGH: dict[str, Any] = {"flagsvc_url": "http://127.0.0.1/api", "flagsvc_api_token": "t0ken", "client_keys": ["k3y"]}


def options(**given: Any) -> ProxyOptions:
    """Return options with all required values."""
    return ProxyOptions(**(ENOUGH | given))


def problems(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the problems of options with exactly these values."""
    with pytest.raises(ConfigurationError) as error:
        ProxyOptions(**given)
    return error.value.problems


Log = type("Log", (), dict.fromkeys(("debug", "info", "warning", "error"), id))


def test_options_for_code_only() -> None:
    """A logger, a provider, strategies and enrichers are given as objects."""
    log, provider, strategy = Log(), object(), object()
    made = options(logger=log, storage_provider=provider, custom_strategies=[strategy, Path("a.py")])
    assert (made.logger, made.storage_provider, made.custom_strategies) == (log, provider, (strategy, "a.py"))
    assert "Log object" not in repr(made) and "(Log)" in repr(made)


def test_every_problem_at_once() -> None:
    """One error has all problems: wrong values, wrong names and missing options. It shows no secret."""
    found = problems({"port": 70000, "logger": "stdout", "prot": 1, "client_keys": [5], "flagsvc_api_token": "s3cret\n\x00"})
    assert found == (
        "unknown option `prot`; did you mean `port`?",
        "flagsvc_api_token: expected printable ASCII text; it contains a control character",
        "client_keys: expected a list of texts, with commas between, got a list; every item must be a text",
        "port: expected a port number from 0 to 65535, got `70000`",
        "logger: expected a logger of the standard library's or structlog's shape, got `stdout`; it has no method `debug`",
        "flagsvc_url is required",
    )


@pytest.mark.parametrize("empty", [None, "", " "])
def test_nothing_is_not_given(empty: str | None) -> None:
    """None and blank values count as not set."""
    assert options(environment=empty, port=empty).port == 3000
    assert problems(ENOUGH | {"flagsvc_url": empty}) == ("flagsvc_url is required",)


def test_an_empty_list_is_given() -> None:
    """An empty list of exposed headers exposes none; an empty list of keys is no key."""
    assert options(cors_exposed_headers=[]).cors_exposed_headers == ()
    assert problems(ENOUGH | {"client_keys": []}) == ('client_keys is required, or token_validation = "upstream"',)


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
    with pytest.warns(DeprecationWarning, match="proxy_secrets is deprecated: give the same keys as clientKeys") as caught:
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
    assert [text.split(":")[0] for text in advice(options(cors_credentials=True))] == ["cors.credentials with cors.origin `*`"]
    assert advice(options(cors_credentials=True, cors_origin="https://a")) == []
    assert "metricsJitter" in advice(options(metrics_interval=5, metrics_jitter=6))[0]
    assert advice(options(metrics_interval=0, metrics_jitter=6)) == []
    (hasty,) = advice(options(refresh_interval=5000, max_staleness=9))
    assert "shorter than two refreshIntervals" in hasty
    (never,) = advice(options(refresh_interval=0, max_staleness=60))
    assert "asked once only" in never
    (without,) = advice(options(refresh_interval=0, upstream_mode="streaming"))
    assert "there is no stream" in without
    assert advice(options(refresh_interval=5000, max_staleness=10)) == advice(options(refresh_interval=0)) == []


def test_advice_on_a_user_that_is_not_sent() -> None:
    """A user and a password in the URL give a warning that does not repeat them. An at sign in the path gives none."""
    for url in ("https://someone:hidden@h/api", "https://someone@h/api"):
        (text,) = advice(options(flagsvc_url=url))
        assert text.startswith("flagsvcUrl ") and "hidden" not in text and "someone" not in text
    for url in ("https://h/a@2/api", "file:///a@b/document.json"):
        assert advice(options(flagsvc_url=url)) == []


def test_what_must_be_written_nowhere() -> None:
    """`secrets_of` returns exactly the values of all secrets. The secrets of all environments are among those of the process, and
    no repr shows them."""
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
    made = make("a", "b", upstream_headers="x-gateway: s3cret")
    assert set(secrets_of(made)) == {"token-of-a", "key-of-a", "token-of-b", "key-of-b", "s3cret"}
    assert not [secret for secret in secrets_of(made) if secret in repr(made) + repr(made.environments)]


URL = "http://127.0.0.1:4242/api"


def an_environment(name: str, **more: object) -> dict[str, object]:
    """Return what an environment needs beside the URL of the process."""
    return {"flagsvc_api_token": f"token-of-{name}", "client_keys": [f"key-of-{name}"], **more}


def make(*names: str, **more: Any) -> ProxyOptions:
    """Return options with these environments."""
    return ProxyOptions(flagsvc_url=URL, environments={name: an_environment(name) for name in names}, **more)


def test_environments_in_code() -> None:
    """Each has its own options. Missing options come from the process, which has no keys."""
    own = an_environment("b", refresh_interval=9000, flagsvc_url="http://other/api")
    given = {"a": an_environment("a"), "b": own}
    made = ProxyOptions(flagsvc_url=URL, refresh_interval=7000, port=1, environments=given)
    assert [each.name for each in made.environments] == ["a", "b"]
    first, second = (each.options for each in made.environments)
    assert (first.flagsvc_url, first.refresh_interval, first.client_keys) == (URL, 7000, ("key-of-a",))
    assert (second.flagsvc_url, second.refresh_interval, second.client_keys) == ("http://other/api", 9000, ("key-of-b",))
    assert (first.port, second.port, made.client_keys, made.flagsvc_api_token) == (1, 1, (), "")
    assert first.environments == second.environments == ()


@pytest.mark.parametrize("nothing", [None, {}, ()])
def test_no_environments(nothing: Any) -> None:
    """Without any, the process is an ordinary one, with its own keys."""
    made = ProxyOptions(flagsvc_url=URL, **an_environment("a"), environments=nothing)  # type: ignore[arg-type]
    assert made.environments == () and made.client_keys == ("key-of-a",)


@pytest.mark.parametrize("wrong", [5, "a", ["a"], ("a",), (("a", {}),), ((1, 2, 3),), {"a"}])
def test_what_is_no_mapping(wrong: object) -> None:
    """The problem says what is expected."""
    assert problems({"flagsvc_url": URL, "environments": wrong})[0] == "environments: expected a mapping from names to options"


@pytest.mark.parametrize(
    ("environments", "problem"),
    [
        ({"a": 5}, "environments.a: expected a mapping from options to values"),
        ({"a": an_environment("a", port=1)}, "environments.a: `port` holds for the whole process"),
        ({"a": an_environment("a", logger=1)}, "environments.a: `logger` holds for the whole process"),
        ({"a": an_environment("a", client_kyes=1)}, "environments.a: unknown option `client_kyes`; did you mean `client_keys`?"),
        ({"a": dict([*an_environment("a").items(), (7, 1)])}, "environments.a: unknown option `7`"),
        ({"a": an_environment("a", environments={})}, "environments.a: an environment has no environments"),
        (
            {"a": an_environment("a", refresh_interval="s")},
            "environments.a: refresh_interval: expected an integer from 0 to 2147483647, got `s`",
        ),
        ({"a": an_environment("a", client_keys=())}, 'environments.a: client_keys is required, or token_validation = "upstream"'),
        ({"a b": an_environment("a")}, f"environments (in code): `a b` is no name of an environment; {EXPECTED}"),
        (
            {"a": an_environment("a"), "A": an_environment("b")},
            "environments (in code): `a` and `A` would both read FLAGSVC_A_URL; choose another name",
        ),
        (
            {"a": an_environment("a"), "b": an_environment("a")},
            "environments: a key is both in `a` and in `b`; each key opens one environment",
        ),
        (
            {"a": an_environment("a", exp_bootstrap=5)},
            "environments.a: expBootstrap (in code): expected a table with url, urlHeaders.Authorization",
        ),
    ],
)
def test_what_is_wrong(environments: object, problem: str) -> None:
    """The problem names the environment and the option, and shows no key."""
    assert problem in problems({"flagsvc_url": URL, "environments": environments})
    assert "key-of" not in repr(problems({"flagsvc_url": URL, "environments": environments}))


def test_a_misspelt_name_is_one_problem_of_environments() -> None:
    """This holds for a name of an environment, and for one of the process. What else is missing is told."""
    wrong = {"client_kyes": ["key-of-a"], "flagsvc_api_token": "token-of-a"}
    told = "environments.a: unknown option `client_kyes`; did you mean `client_keys`?"
    assert problems({"flagsvc_url": URL, "environments": {"a": wrong, "b": an_environment("b")}}) == (told,)
    assert problems({"flagsvc_url": URL, "environments": {"a": {"client_kyes": "k"}}}) == (
        told,
        "environments.a: flagsvc_api_token is required",
    )
    shared = problems({"flagsvc_ulr": URL, "environments": {"a": an_environment("a")}})
    assert shared == ("unknown option `flagsvc_ulr`; did you mean `flagsvc_url`?",)
    keys, missing = problems({"flagsvc_url": URL, "client_kyes": "k", "environments": {"a": {"flagsvc_api_token": "t"}}})
    assert keys.startswith("unknown option `client_kyes`") and missing.startswith("environments.a: client_keys is required")


def test_keys_of_the_process_are_refused() -> None:
    """Each environment has its own."""
    given = {"flagsvc_url": URL, "environments": {"a": an_environment("a")}}
    assert problems(given | {"client_keys": "k", "exp_server_side_sdk_config_tokens": "t"}) == (
        "client_keys: each environment has its own; give it as FLAGSVC_NAME_PROXY_CLIENT_KEYS, or in [environments.NAME]",
        "exp_server_side_sdk_config_tokens: each environment has its own; "
        "give it as FLAGSVC_NAME_EXP_SERVER_SIDE_SDK_CONFIG_TOKENS, or in [environments.NAME]",
    )


def test_options_as_an_environment() -> None:
    """An environment may be complete options. Options of the process always come from the process."""
    complete = ProxyOptions(flagsvc_url=URL, port=5, name_prefix="a.", **an_environment("a"))  # type: ignore[arg-type]
    made = ProxyOptions(port=7, environments={"a": complete}, flagsvc_url="http://other/api")
    [(name, options)] = made.environments
    assert (name, options.port, options.name_prefix, options.flagsvc_url) == ("a", 7, "a.", URL)


def test_copies() -> None:
    """`dataclasses.replace` keeps the environments, and checks other ones. A value of the process changes in all of them."""
    made = make("a", "b")
    assert dataclasses.replace(made) == made and hash(dataclasses.replace(made)) == hash(made)
    other = dataclasses.replace(made, port=9)
    assert [(each.name, each.options.port) for each in other.environments] == [("a", 9), ("b", 9)]
    fewer = dataclasses.replace(made, environments=made.environments[1:])
    assert [each.name for each in fewer.environments] == ["b"] and fewer != made
    twice = Environment("c", made.environments[0].options)
    with pytest.raises(ConfigurationError, match="a key is both in `a` and in `c`"):
        dataclasses.replace(made, environments=(*made.environments, twice))


def test_options_with_those_of_another_process() -> None:
    """Options of the process come from the other options, and everything else is kept."""
    one, other = make("a").environments[0].options, make("b", port=9, host="::1", refresh_interval=1)
    changed = {row.name for row in differing(one, with_process(one, other))}
    assert changed == {"port", "host"}
    assert all(row.scope is Scope.PROCESS for row in OPTIONS if row.name in changed)
