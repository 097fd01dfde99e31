"""Options of environments: their tables, names and variables, and what an environment inherits."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.settings import environments as module
from flagsvc.settings.environments import (
    EXPECTED,
    MAX_ENVIRONMENTS,
    Written,
    normalise_environment,
    read_names,
    read_tables,
    read_variable,
    shared_keys,
    upstream_of,
    upstream_of_options,
    variable_of,
)
from flagsvc.settings.normalise import Given
from flagsvc.settings.option import Scope
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.table import BY_NAME, OPTIONS

ENOUGH = {
    "flagsvcUrl": Given("http://h/api", "file f [environments.a]"),
    "flagsvcApiToken": Given("t0ken", "file f [environments.a]"),
    "clientKeys": Given("k3y", "file f [environments.a]"),
}
# ---- which options


def test_what_each_environment_has_of_its_own() -> None:
    """Keys and tokens have no value for the process. A running process takes over no other option."""
    own = {option.name for option in OPTIONS if option.scope is Scope.OWN}
    assert own == {"flagsvcApiToken", "clientKeys", "proxySecrets", "expServerSideSdkConfig.tokens"}
    assert {option.name for option in OPTIONS if option.reloads} == own - {"proxySecrets"}


# ---- variables


@pytest.mark.parametrize(
    ("variable", "of_environment"),
    [
        ("FLAGSVC_API_TOKEN", "FLAGSVC_PROD_EU_API_TOKEN"),
        ("FLAGSVC_PROXY_CLIENT_KEYS", "FLAGSVC_PROD_EU_PROXY_CLIENT_KEYS"),
        ("CORS_ORIGIN", "FLAGSVC_PROD_EU_CORS_ORIGIN"),
        ("http_proxy", "FLAGSVC_PROD_EU_http_proxy"),
    ],
)
def test_the_variable_of_an_environment(variable: str, of_environment: str) -> None:
    """The name of the environment stands behind our prefix; a variable without the prefix gets it."""
    assert variable_of("prod-eu", variable) == of_environment


# ---- names


@pytest.mark.parametrize("name", ["a", "9", "production", "prod-eu", "prod.eu_1", "A" * 64])
def test_good_names(name: str) -> None:
    """Letters, digits and three signs between, 64 characters at most."""
    assert read_names([name, name], "file f") == ([name], [])


@pytest.mark.parametrize("name", ["", " ", "-a", ".a", "a b", "a/b", "ä", "a\n", "a" * 65, "*:dev.t0ken", "\ud800"])
def test_bad_names(name: str) -> None:
    """They are left out, and named in a problem. A variable may hold a secret by mistake, so only the place is named there."""
    found, [problem] = read_names(["good", name], "file f")
    assert found == ["good"] and problem.isprintable()
    assert problem.startswith("environments (file f): `") and problem.endswith(f"` is no name of an environment; {EXPECTED}")
    assert read_names(["good", name], "environment E", shows_names=False) == (
        ["good"],
        [f"environments (environment E): name 2 is no name of an environment; {EXPECTED}"],
    )


@pytest.mark.parametrize(
    ("one", "other", "variable"),
    [
        ("prod-eu", "prod.eu", "FLAGSVC_PROD_EU_URL"),
        ("a", "A", "FLAGSVC_A_URL"),
        ("a", "a-exp-bootstrap", "FLAGSVC_A_EXP_BOOTSTRAP_URL"),
        ("a-exp-bootstrap", "a", "FLAGSVC_A_EXP_BOOTSTRAP_URL"),
    ],
)
def test_two_names_with_one_variable(one: str, other: str, variable: str) -> None:
    """No variable is read for two environments."""
    assert read_names([one, "b", other], "file f")[1] == [
        f"environments (file f): `{one}` and `{other}` would both read {variable}; choose another name"
    ]


def test_a_name_with_a_variable_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable is read for an environment and for the process."""
    row = module.row_for("", BY_NAME["port"])
    row.reads = ("FLAGSVC_BLUE_TAGS",)
    monkeypatch.setattr(module, "OPTIONS", (*OPTIONS, row))
    assert read_names(["green", "blue"], "file f")[1] == [
        "environments (file f): the process and `blue` would both read FLAGSVC_BLUE_TAGS; choose another name"
    ]


def test_how_many_there_can_be() -> None:
    """At least one, and at most a thousand."""
    names = [f"e{number}" for number in range(MAX_ENVIRONMENTS)]
    assert read_names(names, "file f") == (names, [])
    assert read_names([*names, "more"], "file f") == ([], ["environments (file f): expected at most 1000 environments"])
    assert read_names([], "file f") == ([], ["environments (file f): expected a name for each environment"])


# ---- tables


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        (5, "environments (file f): expected a table for each environment"),
        ([], "environments (file f): expected a table for each environment"),
        ({}, "environments (file f): expected a table for each environment"),
        ({"a": 5}, "environments.a (file f): expected a table of options"),
        ({"a": {"clientKyes": 1}}, "unknown option `clientKyes` (file f [environments.a]); did you mean `clientKeys`?"),
        ({"a": {"prot": 1}}, "unknown option `prot` (file f [environments.a])"),
        ({"a": {"PROXY_PORT": 1}}, "unknown option `PROXY_PORT` (file f [environments.a])"),
        (
            {"a": {"port": 1}},
            "unknown option `port` (file f [environments.a]); it holds for the whole process, and stands outside of the"
            " tables of environments",
        ),
        ({"a": {"logger": 1}}, "logger (file f [environments.a]) can be given in code only"),
        (
            {"a": {"database": "x"}},
            "unknown option `database` (file f [environments.a]); it is the flag server's, and stands in [server]",
        ),
        ({"a": {"cors": 1}}, "cors (file f [environments.a]): expected a table with origin"),
    ],
)
def test_wrong_tables(tree: object, problem: str) -> None:
    """The problem names the place, and what belongs there."""
    assert read_tables(tree, "file f")[1] == [problem]


# ---- the variable


@pytest.mark.parametrize("text", ["a,b", " a , b ,", "a\nb\n", "a,b,a"])
def test_names_in_the_variable(text: str) -> None:
    """They are cut at commas and line ends, as every list."""
    assert read_variable(text, "environment E") == (Written({"a": {}, "b": {}}, "environment E"), [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (",", "expected a name for each environment"),
        ("{}", "expected a table for each environment"),
        ('{"a": {"clientKeys": "s3cret"}', "it begins with `{` and is not JSON: expecting ',' delimiter (at line 1, column 31)"),
        ('["s3cret"]', f"name 1 is no name of an environment; {EXPECTED}"),
        ("a, *:development.s3cret", f"name 2 is no name of an environment; {EXPECTED}"),
        ('{"*:development.s3cret": {}}', f"name 1 is no name of an environment; {EXPECTED}"),
    ],
)
def test_a_wrong_variable(text: str, problem: str) -> None:
    """The problem shows nothing of the text, which may be a secret."""
    assert read_variable(text, "environment E")[1] == [f"environments (environment E): {problem}"]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ('{"a": {}, "b": {}, "a": {}}', ["environments (environment E): `a` comes twice"]),
        ('{"a": {"clientKeys": "1", "clientKeys": "2"}}', ["environments.a (environment E): `clientKeys` comes twice"]),
        ('{"a": {"cors": {"origin": "*", "origin": "*"}}}', ["environments.a.cors (environment E): `origin` comes twice"]),
        ('{"a": {"tags": {"s3cret": 1, "s3cret": 2}}}', ["environments.a.tags (environment E): a key comes twice"]),
        (
            '{"a": {"cors": {"origin": [{"s3cret": {"s3cret": 1, "s3cret": 2}}]}}}',
            ["environments.a.cors.origin (environment E): a key comes twice"],
        ),
        (
            '{"*:dev.s3cret": {}, "*:dev.s3cret": {}}',
            [f"environments (environment E): name 1 is no name of an environment; {EXPECTED}"],
        ),
        ('{"a": {"corz": {"s3cret": 1, "s3cret": 2}}}', ["unknown option `corz` (environment E [environments.a])"]),
    ],
)
def test_a_key_that_comes_twice(text: str, problems: list[str]) -> None:
    """At every level it is a problem that names the table, as in TOML. A key inside of a value may be a secret."""
    assert read_variable(text, "environment E")[1] == problems


# ---- what an environment has


def test_an_option_that_needs_another() -> None:
    """The other one may be inherited."""
    own = ENOUGH | {"upstreamKey": Given("key.pem", "file f")}
    alone = normalise_environment("a", own, {}, {}).problems
    assert alone == {
        "upstreamKey": "environments.a: upstreamKey (file f): has no effect without upstreamCert; give both, or neither"
    }
    assert normalise_environment("a", own, {"upstreamCert": Given("cert.pem", "flag --upstream-cert")}, {}).problems == {}


# ---- keys


def keys(client: str, server: str = "") -> dict[str, Any]:
    """Return values of an environment with these keys and tokens."""
    return {"clientKeys": tuple(client.split()), "expServerSideSdkConfig.tokens": tuple(server.split())}


def test_a_key_opens_one_environment() -> None:
    """A key or token of two environments is a problem, told once for each pair and without the key."""
    one, other, third = keys("one two both", "token both"), keys("token two", "one"), keys("three", "two")
    assert list(shared_keys([("a", one), ("b", other), ("c", third)])) == [
        "environments: a key is both in `a` and in `b`; each key opens one environment",
        "environments: a key is both in `a` and in `c`; each key opens one environment",
    ]
    assert list(shared_keys([("a", one), ("d", keys("three"))])) == []


# ---- which environments have the same upstream


NEEDED = {"flagsvc_url": "https://h/api", "flagsvc_api_token": "*:production.s", "client_keys": "k"}


def made(**more: Any) -> ProxyOptions:
    """Return options, with these ones."""
    return ProxyOptions(**{**NEEDED, **more})


def upstream(**more: Any) -> str:
    """Return the identity of the upstream of these options."""
    return upstream_of_options(made(**more))


SAME = [{"flagsvc_api_token": "other"}, {"flagsvc_app_name": "x"}, {"upstream_timeout": 1}]
OTHER = [
    *({"flagsvc_url": "https://other/api"}, {"upstream_headers": {"x-tenant": "a"}}, {"https_proxy": "http://outbound:3128"}),
    *({"no_proxy": "h"}, {"upstream_ca": "/ca.pem"}, {"upstream_cert": "/cert.pem"}, {"http_options_reject_unauthorized": False}),
    {"upstream_cert": "/cert.pem", "upstream_key": "/key.pem"},
]


@pytest.mark.parametrize("more", [*SAME, *OTHER], ids=str)
def test_which_upstream(more: dict[str, Any]) -> None:
    """What decides who answers, and as whose, makes another upstream. A secret of it cannot be read."""
    found = upstream(**more)
    assert (found == upstream()) is (more in SAME) and len(found) == 64 and set(found) <= set("0123456789abcdef")


def test_values_and_options_agree() -> None:
    """The warnings of the start mean the same upstreams as the look-ups do."""
    options = made(upstream_headers={"x-tenant": "a"}, no_proxy="h")
    assert upstream_of({row.name: getattr(options, row.field) for row in OPTIONS}) == upstream_of_options(options)
