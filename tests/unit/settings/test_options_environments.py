"""`ProxyOptions` with several environments in code: what it takes, what it refuses, and copies of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.environments import EXPECTED
from flagsvc.settings.option import Scope
from flagsvc.settings.options import Environment, ProxyOptions, differing, secrets_of, with_process
from flagsvc.settings.table import OPTIONS

URL = "http://127.0.0.1:4242/api"


def an_environment(name: str, **more: object) -> dict[str, object]:
    """Return what an environment needs beside the URL of the process."""
    return {"flagsvc_api_token": f"token-of-{name}", "client_keys": [f"key-of-{name}"], **more}


def make(*names: str, **more: Any) -> ProxyOptions:
    """Return options with these environments."""
    return ProxyOptions(flagsvc_url=URL, environments={name: an_environment(name) for name in names}, **more)


def problems(environments: object, **more: Any) -> tuple[str, ...]:
    """Return the problems of environments that have some."""
    with pytest.raises(ConfigurationError) as caught:
        ProxyOptions(environments=environments, **{"flagsvc_url": URL, **more})  # type: ignore[arg-type]
    return caught.value.problems


def test_environments_in_code() -> None:
    """Each has its own options; what it lacks comes from the others, and the process has no keys."""
    own = an_environment("b", refresh_interval=9000, flagsvc_url="http://other/api")
    given = {"a": an_environment("a"), "b": own}
    made = ProxyOptions(flagsvc_url=URL, refresh_interval=7000, port=1, environments=given)
    assert [each.name for each in made.environments] == ["a", "b"]
    first, second = (each.options for each in made.environments)
    assert (first.flagsvc_url, first.refresh_interval, first.client_keys) == (URL, 7000, ("key-of-a",))
    assert (second.flagsvc_url, second.refresh_interval, second.client_keys) == (
        "http://other/api",
        9000,
        ("key-of-b",),
    )
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
    assert problems(wrong)[0] == "environments: expected a mapping from names to options"


@pytest.mark.parametrize(
    ("environments", "problem"),
    [
        ({"a": 5}, "environments.a: expected a mapping from options to values"),
        ({"a": an_environment("a", port=1)}, "environments.a: `port` holds for the whole process"),
        ({"a": an_environment("a", logger=1)}, "environments.a: `logger` holds for the whole process"),
        (
            {"a": an_environment("a", client_kyes=1)},
            "environments.a: unknown option `client_kyes`; did you mean `client_keys`?",
        ),
        ({"a": dict([*an_environment("a").items(), (7, 1)])}, "environments.a: unknown option `7`"),
        ({"a": an_environment("a", environments={})}, "environments.a: an environment has no environments"),
        (
            {"a": an_environment("a", refresh_interval="s")},
            "environments.a: refresh_interval: expected an integer from 0 to 2147483647, got `s`",
        ),
        (
            {"a": an_environment("a", client_keys=())},
            'environments.a: client_keys is required, or token_validation = "upstream"',
        ),
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
    assert problem in problems(environments)
    assert "key-of" not in repr(problems(environments))


def test_a_misspelt_name_is_one_problem() -> None:
    """This holds for a name of an environment, and for one of the process. What else is missing is told."""
    wrong = {"client_kyes": ["key-of-a"], "flagsvc_api_token": "token-of-a"}
    told = "environments.a: unknown option `client_kyes`; did you mean `client_keys`?"
    assert problems({"a": wrong, "b": an_environment("b")}) == (told,)
    assert problems({"a": {"client_kyes": "k"}}) == (told, "environments.a: flagsvc_api_token is required")
    shared = problems({"a": an_environment("a")}, flagsvc_url=None, flagsvc_ulr=URL)
    assert shared == ("unknown option `flagsvc_ulr`; did you mean `flagsvc_url`?",)
    keys, missing = problems({"a": {"flagsvc_api_token": "t"}}, client_kyes="k")
    assert keys.startswith("unknown option `client_kyes`") and missing.startswith(
        "environments.a: client_keys is required"
    )


def test_keys_of_the_process_are_refused() -> None:
    """Each environment has its own."""
    given = {"a": an_environment("a")}
    assert problems(given, client_keys="k", exp_server_side_sdk_config_tokens="t") == (
        "client_keys: each environment has its own; give it as FLAGSVC_NAME_PROXY_CLIENT_KEYS, or in [environments.NAME]",
        "exp_server_side_sdk_config_tokens: each environment has its own; "
        "give it as FLAGSVC_NAME_EXP_SERVER_SIDE_SDK_CONFIG_TOKENS, or in [environments.NAME]",
    )


def test_the_bootstrap_of_an_environment() -> None:
    """expBootstrap is a URL or a mapping there, too."""
    boot = {"url": "http://c/f", "urlHeaders": {"Authorization": "B x"}}
    [(_, made)] = ProxyOptions(
        flagsvc_url=URL, environments={"a": an_environment("a", exp_bootstrap=boot)}
    ).environments
    assert (made.exp_bootstrap_url, made.exp_bootstrap_authorization) == ("http://c/f", "B x")


def test_options_as_an_environment() -> None:
    """An environment may be complete options. What holds for the process is always that of the process."""
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
    """What holds for the process is that of the other one, and everything else is kept."""
    one, other = make("a").environments[0].options, make("b", port=9, host="::1", refresh_interval=1)
    changed = {row.name for row in differing(one, with_process(one, other))}
    assert changed == {"port", "host"}
    assert all(row.scope is Scope.PROCESS for row in OPTIONS if row.name in changed)


def test_what_must_be_written_nowhere() -> None:
    """The secrets of all environments are among those of the process, and no repr shows them."""
    made = make("a", "b", upstream_headers="x-gateway: s3cret")
    assert set(secrets_of(made)) == {"token-of-a", "key-of-a", "token-of-b", "key-of-b", "s3cret"}
    assert not [secret for secret in secrets_of(made) if secret in repr(made) + repr(made.environments)]
