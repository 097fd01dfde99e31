"""Variables of Unleash Edge and Node.js, which flagsvc does not read: a warning for each has our name for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flagsvc.settings.foreign import FOREIGN, foreign
from flagsvc.settings.load import resolve
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "move-over-from-edge.md"
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
    told = resolve(both, None, {}).warnings
    assert [text.split(":")[0] for text in told] == [f"environment {name}" for name in sorted(NAMED)]


def test_a_name_that_many_programs_use_counts_beside_one_of_edge() -> None:
    """WORKERS alone gives no warning, because many programs use the name. With UPSTREAM_URL it does."""
    assert list(foreign({"WORKERS": "4", "APP_NAME": "x", "REDIS_HOST": "r"})) == []
    assert len(list(foreign({"WORKERS": "4", "UPSTREAM_URL": "x"}))) == 2


def test_what_is_blank_or_set_by_kubernetes_is_not_there() -> None:
    """A blank variable, and a variable that Kubernetes sets for a service named `redis`, give no warning."""
    assert list(foreign({"TOKENS": " "})) == []
    assert len(list(foreign({"UPSTREAM_URL": "x", "REDIS_PORT": "tcp://10.0.0.1:6379"}))) == 1


def test_authorities_that_are_given_our_way_too() -> None:
    """NODE_EXTRA_CA_CERTS gives no warning if a variable that we read names the same file."""
    for way in ("FLAGSVC_UPSTREAM_CA", "UNLEASH_UPSTREAM_CA", "SSL_CERT_FILE"):
        assert list(foreign({"NODE_EXTRA_CA_CERTS": "/ca.pem", way: "/ca.pem"})) == []
        assert len(list(foreign({"NODE_EXTRA_CA_CERTS": "/other.pem", way: "/ca.pem"}))) == 1


def test_no_row_is_a_variable_that_we_read() -> None:
    """No variable of flagsvc is foreign, and rows refer only to variables of flagsvc or OpenSSL."""
    assert not OURS & set(FOREIGN)
    words = {word for row in FOREIGN.values() for word in re.findall(r"\b[A-Z]+_[A-Z_]+\b", row.here)}
    assert words <= OURS | {"SSL_CERT_FILE"}


def test_every_option_of_edge_in_the_guide_has_a_row() -> None:
    """Every option in the table of docs/how-to/move-over-from-edge.md has a row, or is a variable of flagsvc."""
    table = GUIDE.read_text().split("## Options")[1]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    flags = {flag for cell in cells for flag in re.findall(r"--([a-z0-9-]+)", cell)}
    names = {flag.upper().replace("-", "_") for flag in flags}
    assert len(names) > 30 and names <= OURS | set(FOREIGN)
