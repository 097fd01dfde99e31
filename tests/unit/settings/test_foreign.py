"""Variables of Unleash Edge and Node.js, which flagsvc does not read: a warning for each has our name for it."""

from __future__ import annotations

import re

import pytest

from flagsvc.settings.environments import VARIABLES
from flagsvc.settings.foreign import FOREIGN, foreign
from flagsvc.settings.load import resolve
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

NAMED = {
    "UPSTREAM_URL": "FLAGSVC_URL",
    "TOKENS": "FLAGSVC_API_TOKEN",
    "BASE_PATH": "PROXY_BASE_PATH",
    "REDIS_URL": "FLAGSVC_STORAGE",
    "BACKUP_FOLDER": "FLAGSVC_STORAGE",
    "FEATURES_REFRESH_INTERVAL_SECONDS": "FLAGSVC_FETCH_INTERVAL",
    "NODE_EXTRA_CA_CERTS": "FLAGSVC_UPSTREAM_CA",
}
OURS = {variable.name for option in (*OPTIONS, *SERVER_OPTIONS) for variable in option.variables}


@pytest.mark.parametrize(("name", "ours"), NAMED.items())
def test_a_line_says_what_it_is_called_here(name: str, ours: str) -> None:
    """The warning has the foreign variable and our variable, but never the value."""
    (line,) = [text for text in resolve({name: "s3cret"}, None, {}).warnings if name in text]
    assert line.startswith(f"environment {name}: ") and ours in line
    assert "s3cret" not in line and "\n" not in line


def test_all_at_once_are_a_line_each() -> None:
    """Each foreign variable has its own warning, also if the options of flagsvc are set."""
    both = dict.fromkeys(NAMED, "x") | {"FLAGSVC_URL": "http://h/api", "FLAGSVC_API_TOKEN": "t"}
    *told, last = resolve(both, None, {}).warnings
    assert [text.split(":")[0] for text in told] == [f"environment {name}" for name in sorted(NAMED)]
    assert last == "environment: `flagsvc migrate` translates the variables of Unleash Edge, all at once"


def test_a_name_that_many_programs_use_counts_beside_one_of_edge() -> None:
    """WORKERS alone gives no warning, because many programs use the name. With UPSTREAM_URL it does."""
    assert list(foreign({"WORKERS": "4", "APP_NAME": "x", "REDIS_HOST": "r"})) == []
    assert [text.split(":")[0] for text in foreign({"WORKERS": "4", "UPSTREAM_URL": "x"})] == [
        "environment UPSTREAM_URL",
        "environment WORKERS",
        "environment",
    ]


def test_what_is_blank_or_set_by_kubernetes_is_not_there() -> None:
    """A blank variable, and a variable that Kubernetes sets for a service named `redis`, give no warning."""
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
    "name", ["STRICT", "DELTA", "OTEL_EXPORTER_OTLP_ENDPOINT", "SENTRY_DSN", "RUST_LOG", "EDGE_URL"]
)
def test_every_variable_of_edge_has_a_hint(name: str) -> None:
    """What has no equivalent, and what needs nothing, is named too, beside a variable that only Edge uses."""
    assert list(foreign({name: "s3cret"})) == []
    lines = list(foreign({name: "s3cret", "UPSTREAM_URL": "x"}))
    assert [line for line in lines if line.startswith(f"environment {name}: flagsvc does not read it; ")]


def test_a_hint_says_what_to_do() -> None:
    """There are three kinds of hints: a name to use, no equivalent, nothing to set."""
    told = "\n".join(foreign({"TOKENS": "x", "ALLOW_LIST": "x", "CLIENT_KEEPALIVE_TIMEOUT": "x"}))
    assert "TOKENS: flagsvc does not read it; use FLAGSVC_API_TOKEN" in told
    assert "ALLOW_LIST: flagsvc does not read it; flagsvc has no equivalent: allow and deny addresses" in told
    assert "CLIENT_KEEPALIVE_TIMEOUT: flagsvc does not read it; nothing to set: connections" in told
