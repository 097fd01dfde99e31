"""Several environments from variables, JSON and the file: every option by every way, precedence, and all problems together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flagsvc.settings.environments import variable_of
from flagsvc.settings.load import Loaded, load, resolve
from flagsvc.settings.load_environments import check_everywhere, shared_scopes
from flagsvc.settings.names import DIVIDED
from flagsvc.settings.option import Scope
from flagsvc.settings.options import ProxyOptions, advice
from flagsvc.settings.places import Resolved
from flagsvc.settings.table import BY_NAME, OPTIONS
from support.environment_samples import FIRST, HOME, SECOND, as_variable, required, two, write_toml
from support.option_samples import SAMPLES
from support.settings_samples import kept_as, needed, problems, toml

VARIABLES = [
    (option.name, variable_of(FIRST, name), variable)
    for option in DIVIDED
    for name in option.reads
    for variable in (variable_of(FIRST, name), variable_of(FIRST, name).replace("FLAGSVC_", "UNLEASH_"))
]
SECRETS = [option.name for option in DIVIDED if option.secret]
OF_FILES = ("customStrategies", "expCustomEnrichers")
"""The options whose sample is a relative path."""

every_divided = pytest.mark.parametrize("name", [option.name for option in DIVIDED])
every_inherited = pytest.mark.parametrize("name", [each.name for each in DIVIDED if each.scope is Scope.INHERITED])
every_own = pytest.mark.parametrize("name", [option.name for option in DIVIDED if option.scope is Scope.OWN])
native_or_text = pytest.mark.parametrize("native", [False, True], ids=["text", "native"])


def options_of(loaded: Loaded[ProxyOptions], name: str = FIRST) -> ProxyOptions:
    """Return the options of one environment."""
    return dict(loaded.options.environments)[name]


def value_of(loaded: Loaded[ProxyOptions], option: str, name: str = FIRST) -> object:
    """Return the value of an option in one environment."""
    return getattr(options_of(loaded, name), BY_NAME[option].field)


def check(loaded: Loaded[ProxyOptions], option: str, source: str, expected: object = None) -> None:
    """Assert that the first environment has the sample value, from `source`, and that the second one and the process have not."""
    kept = kept_as(option)
    assert value_of(loaded, kept) == (SAMPLES[option][1] if expected is None else expected)
    assert loaded.sources[f"environments.{FIRST}.{kept}"] == source
    assert f"environments.{SECOND}.{kept}" not in loaded.sources or kept in required(SECOND)
    assert value_of(loaded, kept, SECOND) != value_of(loaded, kept)
    assert getattr(loaded.options, BY_NAME[kept].field) == BY_NAME[kept].default_for(HOME)
    assert loaded.sources[kept] == "default"
    odd = {f"environments.{FIRST}: {text}" for text in advice(options_of(loaded))}
    assert [text for text in loaded.warnings if "deprecated" not in text and text not in odd] == []


def tables(option: str, **given: object) -> dict[str, dict[str, object]]:
    """Return the tables of both environments, the first one with something in the place of an option."""
    more = {name: SAMPLES[name][0] for name in (needed(option) if option else ())}
    return {FIRST: {**required(FIRST, option), **more, **given}, SECOND: {**required(SECOND)}}


# ---- every option by every way


@pytest.mark.parametrize(("name", "first", "variable"), VARIABLES)
def test_every_option_by_every_variable(name: str, first: str, variable: str) -> None:
    """The name of the environment stands in the variable, behind our prefix or its alias; our prefix wins."""
    text = SAMPLES[name][0]
    check(load(two(name) | {variable: text}, None, {}), name, f"environment {variable}")
    alias = first.replace("FLAGSVC_", "UNLEASH_")
    check(load(two(name) | {first: text, alias: "other"}, None, {}), name, f"environment {first}")


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("prefix", ["FLAGSVC_", "UNLEASH_"])
def test_every_secret_by_a_file_that_a_variable_names(name: str, prefix: str, tmp_path: Path) -> None:
    """The variable with `_FILE` names a file, which is watched."""
    path = tmp_path / "secret"
    path.write_text(f"{SAMPLES[name][0]}\n")
    variable = f"{variable_of(FIRST, BY_NAME[name].reads[0])}_FILE".replace("FLAGSVC_", prefix)
    loaded = load(two(name) | {variable: str(path)}, None, {})
    check(loaded, name, f"environment {variable}")
    assert list(loaded.files) == [str(path)]


@every_divided
@native_or_text
def test_every_option_by_the_file(name: str, native: bool, file: Path) -> None:
    """A table of the file has the option under its name, as text or as a native value. Paths go by the folder of the file."""
    write_toml(file, tables(name, **{name: SAMPLES[name][native]}))
    paths: Any = SAMPLES[name][1]
    expected = tuple(str(file.parent / path) for path in paths) if name in OF_FILES else None
    check(load(HOME, file, {}), name, f"file {file} [environments.{FIRST}]", expected)


@pytest.mark.parametrize("name", SECRETS)
def test_every_secret_by_a_file_that_a_table_names(name: str, tmp_path: Path, file: Path) -> None:
    """The path goes by the folder of the configuration file; in JSON by the working directory."""
    path = tmp_path / "secret"
    path.write_text(SAMPLES[name][0])
    write_toml(file, tables(name, **{f"{name}File": "secret"}))
    source = f"file {file} [environments.{FIRST}], {name}File"
    check(load(HOME, file, {}), name, source)
    given = as_variable(tables(name, **{f"{name}File": str(path)}))
    check(load(given, None, {}), name, f"environment FLAGSVC_ENVIRONMENTS [environments.{FIRST}], {name}File")


def test_the_variable_from_a_file(tmp_path: Path) -> None:
    """The variable may hold keys, so a file can hold it. The file is watched."""
    path = tmp_path / "environments.json"
    path.write_text(json.dumps({"a": required("a")}))
    loaded = load(HOME | {"UNLEASH_ENVIRONMENTS_FILE": str(path)}, None, {})
    assert [each.name for each in loaded.options.environments] == ["a"] and list(loaded.files) == [str(path)]
    assert loaded.sources["environments.a.clientKeys"] == "environment UNLEASH_ENVIRONMENTS_FILE [environments.a]"
    missing = problems(HOME | {"FLAGSVC_ENVIRONMENTS_FILE": str(tmp_path / "none")})
    assert (
        f"environments (environment FLAGSVC_ENVIRONMENTS_FILE): cannot read `{tmp_path}/none`: no such file or directory" in missing
    )


# ---- precedence


def test_precedence(file: Path) -> None:
    """A variable of the environment wins over JSON, that over its table in the file, and that over every value of the process."""
    write_toml(file, tables("", refreshInterval=3), head="refreshInterval = 5")
    process = HOME | {"FLAGSVC_FETCH_INTERVAL": "4"}
    as_json = as_variable({FIRST: {"refreshInterval": 2}, SECOND: {}})
    variable = {"FLAGSVC_PROD_EU_FETCH_INTERVAL": "1"}
    name = f"environments.{FIRST}.refreshInterval"
    for environment, expected, source in (
        (process | as_json | variable, 1, "environment FLAGSVC_PROD_EU_FETCH_INTERVAL"),
        (process | as_json, 2, f"environment FLAGSVC_ENVIRONMENTS [environments.{FIRST}]"),
        (process, 3, f"file {file} [environments.{FIRST}]"),
    ):
        loaded = load(environment, file, {"refreshInterval": "6"})
        assert (value_of(loaded, "refreshInterval"), loaded.sources[name]) == (expected, source)
        assert value_of(loaded, "refreshInterval", SECOND) == 6 == loaded.options.refresh_interval
        assert f"environments.{SECOND}.refreshInterval" not in loaded.sources
    write_toml(file, tables(""), head="refreshInterval = 5")
    for environment, flags, expected in ((process, {"refreshInterval": "6"}, 6), (process, {}, 4), (HOME, {}, 5)):
        assert value_of(load(environment, file, flags), "refreshInterval") == expected
    write_toml(file, tables(""))
    assert value_of(load(HOME, file, {}), "refreshInterval") == 5000


@every_inherited
def test_every_value_of_the_process_is_inherited(name: str) -> None:
    """An environment without a value has that of the process; an own value wins, and the process keeps its own."""
    text, value = SAMPLES[name]
    process = {each: SAMPLES[each][0] for each in needed(name)} | {name: text}
    environment = two()
    if name == "flagsvcUrl":
        environment = {variable: given for variable, given in environment.items() if not variable.endswith("_URL")}
    loaded = load(environment, None, process)
    assert value_of(loaded, name) == value_of(loaded, name, SECOND) == value
    assert getattr(loaded.options, BY_NAME[name].field) == value


@every_own
def test_what_each_environment_has_of_its_own_is_not_given_for_the_process(name: str, file: Path) -> None:
    """From every place it is refused, with the ways to give it."""
    option, text = BY_NAME[name], SAMPLES[name][0]
    kept = BY_NAME[kept_as(name)]
    where = f"FLAGSVC_NAME_{kept.reads[0].removeprefix('FLAGSVC_')}, or in [environments.NAME]"
    ending = f"): each environment has its own; give it as {where}"
    file.write_text(toml(name, text))
    for environment, path, flags, source in (
        (two() | {option.reads[0]: text}, None, {}, f"environment {option.reads[0]}"),
        (two(), file, {}, f"file {file}"),
        (two(), None, {name: text}, f"flag {option.flag}"),
    ):
        assert problems(environment, path, flags) == [f"{kept.name} ({source}{ending}"]


def test_the_variable_decides_which_there_are(file: Path) -> None:
    """A table of the file that the variable does not name is ignored with a warning. A variable of blanks is not given."""
    write_toml(file, {"a": required("a"), "b": required("b"), "c": {}})
    own = {"FLAGSVC_D_URL": "file:///flags.json", "FLAGSVC_D_PROXY_CLIENT_KEYS": "k"}
    given = HOME | {"FLAGSVC_ENVIRONMENTS": "d,a"} | own
    loaded = load(given, file, {})
    assert [each.name for each in loaded.options.environments] == ["d", "a"]
    assert loaded.warnings == [
        f"environments.{name} (file {file}) is ignored: environment FLAGSVC_ENVIRONMENTS does not name it" for name in "bc"
    ]
    write_toml(file, {"a": required("a")})
    assert [each.name for each in load(HOME | {"FLAGSVC_ENVIRONMENTS": " "}, file, {}).options.environments] == ["a"]


# ---- what an environment is


def test_options_of_the_process_are_in_every_environment(file: Path) -> None:
    """Each environment has complete options: those of the process are among them."""
    write_toml(file, tables(""), head='port = 4000\nlogLevel = "info"')
    loaded = load(HOME, file, {})
    assert loaded.options.port == 4000 and loaded.options.client_keys == ()
    for option in OPTIONS:
        if option.scope is Scope.PROCESS:
            found = {getattr(part.options, option.field) for part in loaded.options.environments}
            assert found == {getattr(loaded.options, option.field)}
    assert [part.options.environments for part in loaded.options.environments] == [(), ()]


def test_a_document_in_a_file_goes_by_the_folder(file: Path) -> None:
    """A relative `file:` URL in a table goes by the folder of the configuration file; such an upstream needs no token."""
    write_toml(file, {"a": {"flagsvcUrl": "file:flags.json", "clientKeys": ["k"], "upstreamCa": "ca.pem"}})
    made = options_of(load(HOME, file, {}), "a")
    assert (made.flagsvc_url, made.upstream_ca) == (f"file://{file.parent}/flags.json", f"{file.parent}/ca.pem")
    given = {"a": {"flagsvcUrl": "file:///flags.json", "clientKeys": ["k"], "upstreamCa": "ca.pem"}}
    assert options_of(load(as_variable(given), None, {}), "a").upstream_ca == "ca.pem"


def test_gitlab_needs_an_instance_in_its_environment() -> None:
    """The rule looks at the URL of the environment, not of another environment."""
    given = tables("") | {"g": {"flagsvcUrl": "https://gitlab.example.com/api/v4/feature_flags/unleash/1", "clientKeys": "k"}}
    [problem] = problems(as_variable(given))
    assert problem.startswith("environments.g: flagsvcInstanceId is required for GitLab")


def test_keys_of_the_deprecated_name() -> None:
    """Their source is the deprecated variable."""
    loaded = load(two("proxySecrets") | {"FLAGSVC_PROD_EU_PROXY_SECRETS": "old"}, None, {})
    assert value_of(loaded, "clientKeys") == ("old",)
    assert loaded.sources[f"environments.{FIRST}.clientKeys"] == "environment FLAGSVC_PROD_EU_PROXY_SECRETS"
    assert loaded.warnings == [
        f"environments.{FIRST}: proxySecrets (environment FLAGSVC_PROD_EU_PROXY_SECRETS) is deprecated: "
        "give the same keys as clientKeys (FLAGSVC_PROD_EU_PROXY_CLIENT_KEYS)"
    ]


# ---- problems and warnings


def test_every_problem_at_once(file: Path) -> None:
    """One list has the problems of the process and of all environments, each with the environment and the source."""
    write_toml(file, {"a": {"flagsvcUrl": "localhost", "tags": "x"}, "b": required("b")}, head="prot = 1")
    environment = HOME | {"FLAGSVC_A_API_TOKEN_FILE": "/nowhere/token", "PORT": "x", "FLAGSVC_B_PROXY_CLIENT_KEYS": "k"}
    assert problems(environment, file) == [
        f"unknown option `prot` (file {file}); did you mean `port`?",
        "port (environment PORT): expected a port number from 0 to 65535, got `x`",
        "environments.a: flagsvcApiToken (environment FLAGSVC_A_API_TOKEN_FILE): cannot read the file it names:"
        " no such file or directory",
        f"environments.a: flagsvcUrl (file {file} [environments.a]): expected an http://, https:// or file: URL",
        f"environments.a: tags (file {file} [environments.a]): expected tag filters such as team:web,area:cart, got `x`;"
        " a tag has a name and a value, with a colon between them",
        "environments.a: clientKeys is required: set FLAGSVC_A_PROXY_CLIENT_KEYS, or clientKeys in [environments.a]"
        ', or tokenValidation = "upstream"',
    ]


def test_warnings_of_an_environment() -> None:
    """Advice, quotes and ignored files are told with the name of the environment; what is said of the process only once. A warning
    that holds for no environment is not told: with credentials any origin is a mistake, but no environment has what the process
    would give it."""
    given = two() | {
        "FLAGSVC_PROD_EU_METRICS_INTERVAL": "2000",
        "FLAGSVC_METRICS_JITTER": "40000",
        "FLAGSVC_PROD_EU_API_TOKEN": '"quoted"',
        "FLAGSVC_PROD_EU_API_TOKEN_FILE": "/nowhere",
    }
    advised, *warnings = load(given, None, {}).warnings
    assert advised.startswith("metricsJitter is longer than metricsInterval")
    assert [text.split(" (")[0] for text in warnings] == [f"environments.{FIRST}: flagsvcApiToken"] * 2
    alone = two() | {"FLAGSVC_TEST_METRICS_INTERVAL": "2000", "FLAGSVC_TEST_METRICS_JITTER": "3000"}
    [warning] = load(alone, None, {}).warnings
    assert warning.startswith(f"environments.{SECOND}: metricsJitter is longer than metricsInterval")
    credentials = two() | {"CORS_CREDENTIALS": "true", "FLAGSVC_TEST_CORS_ORIGIN": "https://a.example"}
    told = ["cors.credentials with cors.origin `*`: browsers refuse that, name the origins"]
    assert load(credentials, None, {}).warnings == told, "one environment has any origin"
    assert load(credentials | {"FLAGSVC_PROD_EU_CORS_ORIGIN": "https://b.example"}, None, {}).warnings == []


# ---- checks of files


def test_checks_everywhere() -> None:
    """What an environment inherits is checked once, for the process. An earlier problem is not replaced."""
    given = two() | {"FLAGSVC_CUSTOM_STRATEGIES_FILE": "all.py", "FLAGSVC_TEST_CUSTOM_STRATEGIES_FILE": "own.py"}
    resolved = resolve(given | {"FLAGSVC_TEST_FETCH_INTERVAL": "x"}, None, {})
    checked: list[object] = []

    def refuse(part: Resolved) -> None:
        checked.append(part.values["customStrategies"])
        part.problems["customStrategies"] = f"customStrategies ({part.sources['customStrategies']}): wrong"

    before = dict(resolved.problems)
    check_everywhere(resolved, refuse)
    assert checked == [("all.py",), ("all.py",), ("own.py",)]
    assert {name: text for name, text in resolved.problems.items() if name not in before} == {
        "customStrategies": "customStrategies (environment FLAGSVC_CUSTOM_STRATEGIES_FILE): wrong",
        f"environments.{SECOND}.customStrategies": f"environments.{SECOND}: "
        "customStrategies (environment FLAGSVC_TEST_CUSTOM_STRATEGIES_FILE): wrong",
    }
    assert list(before) == [f"environments.{SECOND}.refreshInterval"]


URL, UP, OTHER = "https://h/api", "*:production.s3cret-1", "*:production.s3cret-2"
SAME_FLAGS = "have the same upstream token and project: they have the same flags"
SAME_SCOPE = "have the same environment and projects upstream"
ASKED = "have several upstreams for environments of one name: each of these upstreams may be asked about a token that none of them"


def warnings(looking: bool, *given: dict[str, Any]) -> list[str]:
    """Return the warnings about environments `a`, `b` and so on, each with values that differ from the first ones."""
    base = {"flagsvcUrl": URL, "flagsvcApiToken": UP, "tokenValidation": "upstream" if looking else "static"}
    return list(shared_scopes(("abc"[at], base | each) for at, each in enumerate(given)))


@pytest.mark.parametrize(
    ("given", "listed", "looking"),
    [
        ([{}, {}], SAME_FLAGS, f"{SAME_FLAGS}, and tokens that are looked up open `a` alone"),
        ([{"projectName": "p"}, {"projectName": "p"}], SAME_FLAGS, f"{SAME_FLAGS}, and "),
        ([{}, {"namePrefix": "x"}], "", f"{SAME_SCOPE}: tokens that are looked up open `a` alone"),
        ([{}, {"tags": (("team", "x"),)}], "", SAME_SCOPE),
        ([{}, {"flagsvcApiToken": OTHER}], "", SAME_SCOPE),
        ([{"projectName": "p"}, {"flagsvcApiToken": "p:production.s3cret"}], "", SAME_SCOPE),
        ([{"flagsvcApiToken": "[]:production.s3cret"}] * 2, SAME_FLAGS, f"{SAME_FLAGS}, and "),
        ([{"flagsvcApiToken": "s3cret"}, {"flagsvcApiToken": "s3cret", "namePrefix": "x"}], "", SAME_SCOPE),
        ([{"flagsvcApiToken": "[]:production.s3cret-1"}, {"flagsvcApiToken": "[]:production.s3cret-2"}], "", ""),
        ([{}, {"projectName": "p"}], "", ""),
        ([{}, {"flagsvcUrl": "https://other/api"}], "", ASKED),
        ([{}, {"upstreamHeaders": (("x-tenant", "a"),)}], "", ASKED),
        ([{}, {"flagsvcUrl": "https://other/api", "flagsvcApiToken": "s3cret"}], "", ASKED),
        ([{"flagsvcApiToken": "s3cret"}, {"flagsvcUrl": "https://other/api", "flagsvcApiToken": "s3cret"}], "", ASKED),
        ([{}, {"flagsvcUrl": "https://other/api", "flagsvcApiToken": "*:development.s3cret"}], "", ""),
        ([{}, {"flagsvcUrl": "https://other/api", "flagsvcApiToken": None}], "", ""),
        ([{}, {"flagsvcApiToken": "*:development.s3cret"}], "", ""),
        ([{"flagsvcApiToken": None}] * 2, "", ""),
        ([{"flagsvcApiToken": "p:production.1", "projectName": "q"}, {"flagsvcApiToken": "q:production.2"}], "", ""),
    ],
)
def test_two_environments(given: list[dict[str, Any]], listed: str, looking: str) -> None:
    """Environments with the same flags give a warning. So do environments that the same looked-up tokens would open.

    So do environments whose upstreams may both be asked about a token.
    """
    for is_looking, expected in ((False, listed), (True, looking)):
        found = warnings(is_looking, *given)
        assert [text.startswith(f"environments: `a` and `b` {expected}") for text in found] == [True] * bool(expected)
        assert "s3cret" not in str(found)


def test_three_environments() -> None:
    """One line has all of them, and tokens open the first one by name. Tokens do not open an environment without look-ups."""
    [line] = shared_scopes((name, {"flagsvcUrl": URL, "flagsvcApiToken": UP, "tokenValidation": "upstream"}) for name in "bca")
    assert line.startswith("environments: `b`, `c` and `a` have the same upstream token") and "open `a` alone" in line
    assert warnings(False, {"tokenValidation": "upstream"}, {"flagsvcApiToken": OTHER}) == []


def test_where_the_warning_is_shown() -> None:
    """It is one of the warnings that `flagsvc config` shows and that the start logs. The token is not shown."""
    tables = {name: {"flagsvcApiToken": UP, "clientKeys": name} for name in ("production", "development")}
    given = {"FLAGSVC_URL": URL, "FLAGSVC_ENVIRONMENTS": json.dumps(tables)}
    assert load(given, None, {}).warnings == [f"environments: `production` and `development` {SAME_FLAGS}"]
    tables["development"]["flagsvcApiToken"] = "*:development.s3cret"
    assert load(given | {"FLAGSVC_ENVIRONMENTS": json.dumps(tables)}, None, {}).warnings == []
