"""Variables with one of our prefixes that no option reads: the mistakes among them, and the variables that were probably meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flagsvc.cli.batch.target import FROM, ONE, TO
from flagsvc.settings.environments import VARIABLES
from flagsvc.settings.kinds import MOST_HINTS
from flagsvc.settings.load import resolve
from flagsvc.settings.server import resolve_server
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS
from flagsvc.settings.unread import FOREIGN, foreign, unread
from support.environment_samples import by_variables, required, write_toml
from support.settings_samples import BASE

TOKENS = [f"{side.variable}{end}" for side in (ONE, FROM, TO) for end in ("", "_FILE")]
NAMED = {"FLAGSVC_ENVIRONMENTS": "production,prod-eu"}
ENVIRONMENTS = NAMED | by_variables("production", required("production")) | by_variables("prod-eu", required("prod-eu"))
"""Variables of two environments that are enough for a start."""


@pytest.mark.parametrize("name", [*TOKENS, "FLAGSVC_SEED", "FLAGSVC_URL", "UNLEASH_URL"])
def test_what_another_command_reads_is_no_mistake(name: str) -> None:
    """Variables that other commands read give no warning."""
    assert list(unread({name: "x"})) == []


@pytest.mark.parametrize(
    ("name", "proxy", "server"),
    [
        ("FLAGSVC_APY_TOKEN", "FLAGSVC_API_TOKEN", ""),
        ("FLAGSVC_ULR", "FLAGSVC_URL", ""),
        ("FLAGSVC_LOG_LEVEL", "LOG_LEVEL", "LOG_LEVEL"),
        ("UNLEASH_PORT", "PORT", "PORT"),
        ("FLAGSVC_ZZZZZZ", "", ""),
        ("UNLEASH_API_TOKN_FILE", "UNLEASH_API_TOKEN_FILE", ""),
        ("UNLEASH_API_URL", "UNLEASH_URL", ""),
        ("UNLEASH_CLIENT_KEYS", "UNLEASH_PROXY_CLIENT_KEYS", ""),
        ("FLAGSVC_CONFIG_FILE", "FLAGSVC_CONFIG", "FLAGSVC_CONFIG"),
        ("FLAGSVC_LEVEL", "LOG_LEVEL", "LOG_LEVEL"),
        # of the other program
        ("FLAGSVC_SEDE", "", "FLAGSVC_SEED"),
        ("FLAGSVC_DATABASE", "", "FLAGSVC_DATABASE_URL"),
        ("FLAGSVC_CLIENT_SECRET", "", "FLAGSVC_OIDC_CLIENT_SECRET"),
        ("FLAGSVC_WORKER", "FLAGSVC_WORKERS", ""),
        ("UNLEASH_PROXY_POTR", "PROXY_PORT", ""),
        # of commands
        ("FLAGSVC_ADMIN_TOKN", "", ""),
        # of another kind: a port is no token, a secret no seed, a key no number of workers
        ("FLAGSVC_METRICS_PORT", "", "PORT"),
        *((f"FLAGSVC_{name}", "", "") for name in ("TLS_PORT", "SECRET", "KEYS", "STORAGE_URL", "ADMIN_PASSWORD")),
        # alike only in the prefix
        *((f"FLAGSVC_{name}", "", "") for name in ("DEBUG", "FEATURES", "LOG")),
    ],
)  # fmt: skip
def test_a_hint_names_what_the_program_reads(name: str, proxy: str, server: str) -> None:
    """A hint names a variable of the same program, whose value is of the same kind; else there is none."""
    asked = [
        [text.partition("did you mean ")[2] for text in found.warnings if name in text]
        for found in (resolve(BASE | {name: "x"}, None, {}), resolve_server({"HOME": "/h", name: "x"}, None, {}))
    ]
    assert asked[0] == [f"`{proxy}`?" if proxy else ""]
    assert asked[1] in ([f"`{server}`?" if server else ""], [])


# ---- beside several environments


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("FLAGSVC_STAGING_API_TOKEN", "FLAGSVC_ENVIRONMENTS names no `staging`"),
        ("UNLEASH_STAGING_API_TOKEN_FILE", "FLAGSVC_ENVIRONMENTS names no `staging`"),
        ("FLAGSVC_US_WEST_PROXY_CLIENT_KEYS", "FLAGSVC_ENVIRONMENTS names no `us_west`"),
        ("FLAGSVC_STAGING_CORS_ORIGIN", "FLAGSVC_ENVIRONMENTS names no `staging`"),
        ("FLAGSVC_STAGING_EXP_BOOTSTRAP_URL", "FLAGSVC_ENVIRONMENTS names no `staging`"),
        ("FLAGSVC_PRODUCTON_URL", "FLAGSVC_ENVIRONMENTS names no `producton`; did you mean `production`?"),
        ("FLAGSVC_PRODUCTION_PORT", "it holds for the whole process, as `PORT`"),
        ("UNLEASH_PROD_EU_LOG_LEVEL", "it holds for the whole process, as `LOG_LEVEL`"),
        ("FLAGSVC_PRODUCTION_TLS_CERT", "it holds for the whole process, as `FLAGSVC_TLS_CERT`"),
        ("FLAGSVC_PRODUCTION_STORAGE_PASSWORD_FILE", "it holds for the whole process, as `FLAGSVC_STORAGE_PASSWORD_FILE`"),
        ("FLAGSVC_PRODUCTION_MAIN_URL", "did you mean `FLAGSVC_PRODUCTION_URL`?"),
        ("FLAGSVC_PROD_EU_API_TOKN", "did you mean `FLAGSVC_PROD_EU_API_TOKEN`?"),
        ("FLAGSVC_EXP_BOOTSTRAP_URL", "did you mean `EXP_BOOTSTRAP_URL`?"),
        ("FLAGSVC_CORS_ORIGIN", "did you mean `CORS_ORIGIN`?"),
    ],
)  # fmt: skip
def test_a_hint_does_not_lead_astray(name: str, hint: str) -> None:
    """What looks like a variable of an environment is never taken for one of the process, which would be refused."""
    assert resolve(ENVIRONMENTS | {name: "s3cret"}, None, {}).warnings == [
        f"environment {name}: no option reads this variable; {hint}"
    ]


def test_environments_of_the_file(tmp_path: Path) -> None:
    """If the file says which environments there are, the hint names it. If a variable does, it is that one."""
    path = write_toml(tmp_path / "flagsvc.toml", {"production": required("production")})
    [warning] = resolve({"HOME": "/h", "FLAGSVC_STAGING_URL": "x"}, path, {}).warnings
    assert warning.endswith(f"variable; file {path} has no table [environments.staging]")
    (tmp_path / "names").write_text("production")
    named = {"UNLEASH_ENVIRONMENTS_FILE": str(tmp_path / "names"), "FLAGSVC_STAGING_URL": "x"}
    assert resolve({"HOME": "/h"} | named, path, {}).warnings == [
        "environment FLAGSVC_STAGING_URL: no option reads this variable; UNLEASH_ENVIRONMENTS_FILE names no `staging`"
    ]


def test_without_environments() -> None:
    """Where no environment is named, it may be a wrong name of a variable of the process. The flag server knows no environments."""
    assert resolve(BASE | {"FLAGSVC_STAGING_API_TOKEN": "x", "FLAGSVC_STAGING_PORT": "x"}, None, {}).warnings == [
        "environment FLAGSVC_STAGING_API_TOKEN: no option reads this variable; FLAGSVC_ENVIRONMENTS names no `staging`; did you"
        " mean `FLAGSVC_API_TOKEN`?",
        "environment FLAGSVC_STAGING_PORT: no option reads this variable; did you mean `PORT`?",
    ]
    assert resolve_server(ENVIRONMENTS, None, {}).warnings == []


@pytest.mark.parametrize("names", ['{"production": ', "production, not a name", "{}"])
def test_environments_that_could_not_be_read(names: str, tmp_path: Path) -> None:
    """A variable gives no warning if its environment may be in a place that could not be read."""
    given = {"HOME": "/h", "FLAGSVC_ENVIRONMENTS": names, "FLAGSVC_STAGING_URL": "x", "FLAGSVC_ZZZZZZ": "x"}
    assert resolve(given, None, {}).warnings == ["environment FLAGSVC_ZZZZZZ: no option reads this variable"]
    file = {"HOME": "/h", "FLAGSVC_ENVIRONMENTS_FILE": str(tmp_path / "none"), "FLAGSVC_STAGING_URL": "x"}
    assert resolve(file, None, {}).warnings == []
    assert resolve({"HOME": "/h", "FLAGSVC_STAGING_URL": "x"}, tmp_path / "none.toml", {}).warnings == []
    (tmp_path / "number.toml").write_text("environments = 5")
    assert resolve({"HOME": "/h", "FLAGSVC_STAGING_URL": "x"}, tmp_path / "number.toml", {}).warnings == []


def test_a_list_of_unknown_names() -> None:
    """Every unknown variable gives a warning, and the first ones a hint. The time for a long name grows with its length."""
    warnings = list(unread({f"UNLEASH_API_TOKEN{number}": "x" for number in range(20_000)}))
    assert len(warnings) == 20_000
    assert sum("did you mean" in each for each in warnings) == MOST_HINTS
    (warning,) = unread({"UNLEASH_" + "A_" * 300_000: "x"})
    assert warning.endswith("no option reads this variable")


REPLACED = {
    "UPSTREAM_URL": "FLAGSVC_URL",
    "TOKENS": "FLAGSVC_API_TOKEN",
    "BASE_PATH": "PROXY_BASE_PATH",
    "REDIS_URL": "FLAGSVC_STORAGE",
    "BACKUP_FOLDER": "FLAGSVC_STORAGE",
    "FEATURES_REFRESH_INTERVAL_SECONDS": "FLAGSVC_FETCH_INTERVAL",
    "NODE_EXTRA_CA_CERTS": "FLAGSVC_UPSTREAM_CA",
}
OURS = {variable.name for option in (*OPTIONS, *SERVER_OPTIONS) for variable in option.variables}


def test_a_line_says_what_it_is_called_here() -> None:
    """Each foreign variable has its own line with our variable, but without the value, also if the options of flagsvc are set."""
    *told, last = resolve(dict.fromkeys(REPLACED, "s3cret") | BASE, None, {}).warnings
    assert [text.split(":")[0] for text in told] == [f"environment {name}" for name in sorted(REPLACED)]
    assert [name for name, line in zip(sorted(REPLACED), told, strict=True) if REPLACED[name] not in line] == []
    assert "s3cret" not in str(told) and "\n" not in "".join(told)
    assert last == "environment: `flagsvc migrate` translates the variables of Unleash Edge, all at once"


def test_what_counts_as_a_variable_of_edge() -> None:
    """A name that many programs use counts beside one of Edge. What is blank, or set by Kubernetes for a service, does not."""
    assert list(foreign({"WORKERS": "4", "APP_NAME": "x", "REDIS_HOST": "r"})) == []
    assert [text.split(":")[0] for text in foreign({"WORKERS": "4", "UPSTREAM_URL": "x"})] == [
        "environment UPSTREAM_URL",
        "environment WORKERS",
        "environment",
    ]
    assert list(foreign({"TOKENS": " "})) == []
    assert len(list(foreign({"UPSTREAM_URL": "x", "REDIS_PORT": "tcp://10.0.0.1:6379"}))) == 2


def test_authorities_that_are_given_our_way_too() -> None:
    """NODE_EXTRA_CA_CERTS gives no warning if a variable that we read names the same file."""
    for way in ("FLAGSVC_UPSTREAM_CA", "UNLEASH_UPSTREAM_CA", "SSL_CERT_FILE"):
        assert list(foreign({"NODE_EXTRA_CA_CERTS": "/ca.pem", way: "/ca.pem"})) == []
        assert len(list(foreign({"NODE_EXTRA_CA_CERTS": "/other.pem", way: "/ca.pem"}))) == 1


def test_no_row_is_a_variable_that_we_read() -> None:
    """No variable of flagsvc is foreign, and rows refer only to variables of flagsvc or OpenSSL."""
    assert not OURS & set(FOREIGN)
    words = {word for row in FOREIGN.values() for word in re.findall(r"\b[A-Z]+_[A-Z_]+\b", row.hint)}
    assert words <= OURS | {*VARIABLES} | {"SSL_CERT_FILE"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        *((name, "") for name in ("STRICT", "DELTA", "OTEL_EXPORTER_OTLP_ENDPOINT", "SENTRY_DSN", "RUST_LOG", "EDGE_URL")),
        ("BASE_PATH", "use PROXY_BASE_PATH"),
        ("ALLOW_LIST", "flagsvc has no equivalent: allow and deny addresses"),
        ("CLIENT_KEEPALIVE_TIMEOUT", "nothing to set: connections"),
    ],
)
def test_every_variable_of_edge_has_a_hint(name: str, hint: str) -> None:
    """Beside a variable that only Edge uses: a name to use, that there is no equivalent, or that nothing is to be set."""
    lines = list(foreign({name: "s3cret", "UPSTREAM_URL": "x"}))
    assert [line for line in lines if line.startswith(f"environment {name}: flagsvc does not read it; {hint}")]
