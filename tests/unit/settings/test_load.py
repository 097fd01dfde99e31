"""Flags, environment, file, default: precedence, sources of values, and all problems together.

tests/wire/test_options_effect.py gives every option in every way.

An option of the process needs another option that environments have (behaviour: Several environments).
A deployment of the reference gets the reference's shape of a variant, others the contract's (decision 0003).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.core.files import MIB
from flagsvc.settings.load import UNREADABLE, load, resolve
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.places import LARGEST_SECRET, reason
from flagsvc.settings.table import BY_NAME, OPTIONS
from support.settings_samples import BASE, base_without, problems, toml

"""The options whose sample is a relative path."""


def test_defaults() -> None:
    """An option that is not set has its default, and the source `default`."""
    loaded = load(BASE, None, {})
    given = {"flagsvcUrl", "flagsvcApiToken", "clientKeys"}
    for option in OPTIONS:
        if option.name not in given:
            assert getattr(loaded.options, option.field) == option.default_for(BASE)
            assert option.in_code_only or loaded.sources[option.name] == "default"
    assert loaded.options.storage == "file:///home/somebody/.local/state/flagsvc"
    assert loaded.warnings == []


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("FLAGSVC_ENVIRONMENT", "UNLEASH_ENVIRONMENT", "environment"),
        ("PORT", "PROXY_PORT", "port"),
        ("HTTP_PROXY", "http_proxy", "httpProxy"),
    ],
)
def test_precedence_of_variables(first: str, second: str, name: str) -> None:
    """FLAGSVC_ beats UNLEASH_, PORT beats PROXY_PORT (behaviour: Names of variables)."""
    loaded = load(BASE | {second: "7", first: "8"}, None, {})
    assert loaded.sources[name] == f"environment {first}"
    assert "8" in str(getattr(loaded.options, BY_NAME[name].field))


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_blank_is_not_given(blank: str, file: Path) -> None:
    """A blank value, such as `FLAGSVC_URL=` in a compose file, counts as not set."""
    file.write_text(toml("logLevel", blank))
    environment = BASE | {"FLAGSVC_URL": blank, "UNLEASH_URL": "http://other", "PORT": blank}
    loaded = load(environment, file, {"environment": blank})
    assert (loaded.options.flagsvc_url, loaded.options.port) == ("http://other", 3000)
    assert (loaded.options.environment, loaded.options.log_level) == (None, "warn")


def test_client_keys_beat_proxy_secrets(file: Path) -> None:
    """clientKeys win from any source. proxySecrets alone work. In both cases a warning says `deprecated`."""
    environment = base_without("clientKeys") | {"UNLEASH_PROXY_SECRETS": "old"}
    loaded = load(environment, None, {})
    assert loaded.options.client_keys == ("old",) and loaded.options.proxy_secrets == ()
    assert loaded.sources["clientKeys"] == "environment UNLEASH_PROXY_SECRETS"
    assert loaded.warnings == [
        "proxySecrets (environment UNLEASH_PROXY_SECRETS) is deprecated: "
        "give the same keys as clientKeys (FLAGSVC_PROXY_CLIENT_KEYS)"
    ]
    file.write_text('clientKeys = ["new"]\n')
    loaded = load(environment, file, {})
    assert loaded.options.client_keys == ("new",)
    assert loaded.warnings == ["proxySecrets (environment UNLEASH_PROXY_SECRETS) is deprecated and ignored: clientKeys is given"]


def test_every_problem_at_once(file: Path) -> None:
    """One list has all problems in table order, each with the option, the source, the expected value and the nearest name."""
    file.write_text('flagscvUrl = "x"\ncors.maxAge = "long"\nlogger = "x"\nrefreshInterval = true\n')
    environment = {"UNLEASH_URL": "localhost:4242/api", "LOG_LEVEL": "wran", "CORS_ORIGIN": "example.com"}
    assert problems(environment, file, {"port": "70000", "nonsense": "1"}) == [
        "unknown option `nonsense` (flag)",
        f"unknown option `flagscvUrl` (file {file}); did you mean `flagsvcUrl`?",
        f"logger (file {file}) can be given in code only",
        "flagsvcUrl (environment UNLEASH_URL): expected an http://, https:// or file: URL",
        f"refreshInterval (file {file}): expected an integer from 0 to 2147483647, got `true`",
        "port (flag --port): expected a port number from 0 to 65535, got `70000`",
        "logLevel (environment LOG_LEVEL): expected one of debug, info, warn, error, fatal, got `wran`; did you mean `warn`?",
        f"cors.maxAge (file {file}): expected an integer from -1 to 2147483647, got `long`",
        "cors.origin (environment CORS_ORIGIN): expected `*`, or origins such as https://example.com or "
        "https://*.example.com, got `example.com`; an origin is a scheme, a host and, if it is not the usual one, a port",
        "flagsvcApiToken is required: set FLAGSVC_API_TOKEN, --api-token or flagsvcApiToken in a --config file",
        "clientKeys is required: set FLAGSVC_PROXY_CLIENT_KEYS, --client-keys or clientKeys in a --config file"
        ', or tokenValidation = "upstream"',
    ]


def test_numbers_given_as_secrets_are_not_shown(file: Path) -> None:
    """A token without quotes in TOML is a number. The problem shows its type, not its value. A path has to be a text, too."""
    file.write_text("flagsvcApiToken = 4711\n")
    (problem,) = problems(base_without("flagsvcApiToken"), file)
    assert problem == f"flagsvcApiToken (file {file}): expected printable ASCII text, got a number"
    file.write_text("flagsvcApiTokenFile = 5\n")
    (problem,) = problems(base_without("flagsvcApiToken"), file)
    assert problem.endswith("expected the path of a file that holds the value")


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("[1]", "a list"),
        ("{a = 1}", "a table"),
        ("1.5", "`1.5`"),
        ("1979-05-27", "a value of type date"),
        ("0x" + "f" * 5000, "a number"),
        ("nan", "`nan`"),
    ],
)
def test_values_of_another_type(value: str, got: str, file: Path) -> None:
    """The problem shows the type of a wrong value, or the value itself if it is short."""
    file.write_text(f"port = {value}\n")
    assert problems(BASE, file) == [f"port (file {file}): expected a port number from 0 to 65535, got {got}"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"port = ", "not TOML: invalid value (at end of document)"),
        (b"port == 3", "not TOML: invalid value (at line 1, column 7)"),
        (b"[" * 100_000, "not TOML: "),
        (b"a = " + b"[" * 100_000, "not TOML: nested too deeply"),
        (b"port = \xff", "cannot read it: it is not UTF-8"),
        (b"port = " + b"9" * 5000, "not TOML: a number is too long"),
        (b"a." * 50_000 + b"a = 1", "not TOML for options: a key has more than 100 parts"),
        (b"x = { " + b"a . " * 50_000 + b"a = 1 }", "not TOML for options: a key has more than 100 parts"),
        (b'["\\"".' + b"'a'." * 50_000 + b"a]", "not TOML for options: a key has more than 100 parts"),
        (b"#" * (16 * MIB + 1), f"cannot read it: it has more than {16 * MIB} bytes"),
    ],
)
def test_a_file_that_is_not_toml(content: bytes, reason: str, file: Path) -> None:
    """A broken file gives one problem with the reason, and no traceback."""
    file.write_bytes(content)
    (problem,) = problems(BASE, file)
    assert problem.startswith(f"configuration file {file}: {reason}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A missing file, a folder and an invalid path are problems. The options are still checked."""
    assert problems(BASE, tmp_path / "no.toml") == [
        f"configuration file {tmp_path}/no.toml: cannot read it: no such file or directory"
    ]
    assert "is a directory" in problems(BASE, tmp_path)[0]
    assert "it is not a valid path" in problems(BASE | {"FLAGSVC_CONFIG": "a\x00b"})[0]
    assert len(problems(BASE | {"PORT": "x"}, tmp_path / "no.toml")) == 2


def test_why_a_file_cannot_be_read() -> None:
    """The reason of an error without a number is its kind, in lower case and without the content of the file."""
    assert reason(OSError("s3cret")) == "oserror"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot read `{path}`: no such file or directory"),
        (b" \n", "`{path}` is empty"),
        (b"\xff", "cannot read `{path}`: it is not UTF-8"),
        (b"x" * (LARGEST_SECRET + 1), f"`{{path}}` is longer than {LARGEST_SECRET} characters"),
    ],
)
def test_a_file_of_a_secret_that_cannot_be_used(content: bytes | None, reason: str, tmp_path: Path) -> None:
    """The problem has the path of the file and the reason."""
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    assert problems(base_without("flagsvcApiToken") | {"FLAGSVC_API_TOKEN_FILE": str(path)}) == [
        f"flagsvcApiToken (environment FLAGSVC_API_TOKEN_FILE): {reason.format(path=path)}"
    ]


def test_a_secret_in_place_of_a_path() -> None:
    """A token that is put into *_FILE by mistake is not shown."""
    for secret in ("*:development.s3cret", "s3cret\x00", "/s3cret", "/./s3cret", "/b4se64/s3cret=", "/\x00/s3cret"):
        (problem,) = problems(base_without("flagsvcApiToken") | {"UNLEASH_API_TOKEN_FILE": secret})
        assert problem.startswith("flagsvcApiToken (environment UNLEASH_API_TOKEN_FILE): cannot read the file it names: ")
        assert "s3cret" not in problem


def test_a_secret_wins_over_its_file(tmp_path: Path) -> None:
    """If one source has a value and its file, the value wins, with a warning. A flag with a file wins over a variable."""
    loaded = load(BASE | {"FLAGSVC_API_TOKEN_FILE": "/nowhere"}, None, {})
    assert loaded.options.flagsvc_api_token == "base-token"
    assert loaded.warnings == [
        "flagsvcApiToken (environment FLAGSVC_API_TOKEN_FILE) is ignored: environment FLAGSVC_API_TOKEN is given"
    ]
    (tmp_path / "token").write_text("from-file")
    loaded = load(BASE, None, {"flagsvcApiTokenFile": str(tmp_path / "token")})
    assert (loaded.options.flagsvc_api_token, loaded.warnings) == ("from-file", [])
    assert loaded.sources["flagsvcApiToken"] == "flag --api-token-file"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("UNLEASH_SERVICE_HOST", "10.0.0.1"),
        ("UNLEASH_SERVICE_PORT", "4242"),
        ("UNLEASH_SERVICE_PORT_HTTP", "4242"),
        ("UNLEASH_PORT", "tcp://10.0.0.1:4242"),
        ("UNLEASH_PORT_4242_TCP", "tcp://10.0.0.1:4242"),
        ("UNLEASH_PORT_4242_TCP_ADDR", "10.0.0.1"),
        ("FLAGSVC_PROXY_PORT_3000_TCP_PROTO", "tcp"),
        ("PROXY_PORT", "tcp://10.0.0.1:80"),
        ("OTHER_URL", "x"),
    ],
)
def test_variables_that_were_not_set_for_us(variable: str, value: str) -> None:
    """Variables that Kubernetes sets for a service, and variables with other prefixes, give no warning."""
    loaded = load(BASE | {variable: value}, None, {})
    assert loaded.warnings == [] and loaded.options.port == 3000


def test_resolving_never_raises(tmp_path: Path) -> None:
    """`resolve` returns valid values and problems together. An option with a problem has its default."""
    resolved = resolve({"PORT": "x", "LOG_LEVEL": "info"}, tmp_path / "no.toml", {})
    assert (resolved.values["port"], resolved.values["logLevel"]) == (3000, "info")
    assert list(resolved.problems) == [UNREADABLE, "port"]
    assert list(resolve({"PORT": "x"}, None, {}).problems) == ["port", "flagsvcUrl", "flagsvcApiToken", "clientKeys"]


def test_loading_reads_no_environment_but_the_one_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """`resolve` reads only the given environment, not the one of the process."""
    monkeypatch.setenv("PORT", "9")
    values: dict[str, Any] = resolve(BASE, None, {}).values
    assert values["port"] == 3000


CERT, KEY = "cert.pem", "key.pem"


def some_with(*certificates: str) -> dict[str, str]:
    """Return variables of two environments, and the key of the process. Some of the two have a certificate."""
    names = [f"{name}_{variable}" for name in "AB" for variable in ("API_TOKEN", "PROXY_CLIENT_KEYS")]
    both = {f"FLAGSVC_{name}": name for name in names}
    own = {f"FLAGSVC_{name}_UPSTREAM_CERT": CERT for name in certificates}
    return {"FLAGSVC_ENVIRONMENTS": "a,b", "FLAGSVC_URL": "http://h/api", "FLAGSVC_UPSTREAM_KEY": KEY, **both, **own}


@pytest.mark.parametrize("certificates", [("A",), ("A", "B")])
def test_the_key_of_certificates_that_environments_have(certificates: tuple[str, ...]) -> None:
    """The process has the key for all; one environment with a certificate is enough."""
    loaded = load(some_with(*certificates), None, {})
    found = {each.name: (each.options.upstream_cert, each.options.upstream_key) for each in loaded.options.environments}
    assert found == {name: (CERT if name.upper() in certificates else None, KEY) for name in "ab"}
    tables: dict[str, dict[str, object]] = {
        name: {"flagsvc_api_token": name, "client_keys": name, "upstream_cert": CERT} for name in "ab"
    }
    made = ProxyOptions(flagsvc_url="http://h/api", upstream_key=KEY, environments=tables)
    assert [each.options.upstream_key for each in made.environments] == [KEY, KEY]


def test_a_key_that_no_environment_can_use() -> None:
    """It is a problem of the process, told once; also in code."""
    with pytest.raises(ConfigurationError) as error:
        load(some_with(), None, {})
    assert list(error.value.problems) == [
        "upstreamKey (environment FLAGSVC_UPSTREAM_KEY): has no effect without upstreamCert; give both, or neither"
    ]
    tables: dict[str, dict[str, object]] = {name: {"flagsvc_api_token": name, "client_keys": name} for name in "ab"}
    with pytest.raises(ConfigurationError, match="upstream_key: has no effect without upstream_cert; give both"):
        ProxyOptions(flagsvc_url="http://h/api", upstream_key=KEY, environments=tables)


# ---- variants


STATE = "variantFeatureState"
UPSTREAM = "http://flags.example/api"
TOKENS = {"UNLEASH_API_TOKEN": "t", "UNLEASH_PROXY_CLIENT_KEYS": "k"}
REFERENCE = TOKENS | {"UNLEASH_URL": UPSTREAM}
OURS = {"FLAGSVC_API_TOKEN": "t", "FLAGSVC_PROXY_CLIENT_KEYS": "k", "FLAGSVC_URL": UPSTREAM}
FOLLOWS = "environment UNLEASH_URL, as the reference answers"


@pytest.mark.parametrize(
    ("env", "value", "source"),
    [
        (REFERENCE, True, FOLLOWS),
        (OURS, False, "default"),
        (OURS | {"UNLEASH_URL": UPSTREAM}, False, "default"),
        (REFERENCE | {"FLAGSVC_URL": " "}, True, FOLLOWS),
        (TOKENS | {"FLAGSVC_URL": UPSTREAM}, False, "default"),
        (REFERENCE | {"FLAGSVC_VARIANT_FEATURE_STATE": "false"}, False, "environment FLAGSVC_VARIANT_FEATURE_STATE"),
        (OURS | {"UNLEASH_VARIANT_FEATURE_STATE": "true"}, True, "environment UNLEASH_VARIANT_FEATURE_STATE"),
    ],
)
def test_the_default_follows_the_name_of_the_upstream(env: dict[str, str], value: bool, source: str) -> None:
    """UNLEASH_URL makes it true, FLAGSVC_URL false, and a value of its own wins. The source says why."""
    loaded = load(env, None, {})
    assert (loaded.options.variant_feature_state, loaded.sources[STATE]) == (value, source)


def test_places_that_the_reference_does_not_have(tmp_path: Path) -> None:
    """A flag, a file and code give the contract's shape. An option in a file wins over UNLEASH_URL."""
    file = tmp_path / "flagsvc.toml"
    file.write_text(f'flagsvcUrl = "{UPSTREAM}"\n')
    assert not load(TOKENS, file, {}).options.variant_feature_state
    assert not load(REFERENCE, None, {"flagsvcUrl": UPSTREAM}).options.variant_feature_state
    assert not ProxyOptions(flagsvc_url=UPSTREAM, flagsvc_api_token="t", client_keys="k").variant_feature_state
    file.write_text(f"{STATE} = false\n")
    assert not load(REFERENCE, file, {}).options.variant_feature_state


def test_each_environment_follows_its_own_upstream() -> None:
    """An environment without an upstream of its own follows that of the process."""
    env = {"FLAGSVC_ENVIRONMENTS": "a,b,c,d", "UNLEASH_URL": UPSTREAM}
    env |= {f"FLAGSVC_{name}_API_TOKEN": name for name in "ABCD"}
    env |= {f"FLAGSVC_{name}_PROXY_CLIENT_KEYS": f"{name}-key" for name in "ABCD"}
    env |= {"FLAGSVC_B_URL": UPSTREAM, "UNLEASH_C_URL": UPSTREAM, "FLAGSVC_D_VARIANT_FEATURE_STATE": "no"}
    resolved = resolve(env, None, {})
    assert not resolved.problems
    states = {name: values[STATE] for name, values in resolved.values["environments"]}
    assert states == {"a": True, "b": False, "c": True, "d": False}
    assert resolved.sources[f"environments.c.{STATE}"] == "environment UNLEASH_C_URL, as the reference answers"
    env["FLAGSVC_VARIANT_FEATURE_STATE"] = "false"
    assert not any(values[STATE] for _, values in resolve(env, None, {}).values["environments"])
