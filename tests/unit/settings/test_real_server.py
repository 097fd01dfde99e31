"""The variables of a real Unleash server in front of the flag server: what is taken, what is named, and where values come from."""

from __future__ import annotations

import json
import re

import pytest

from flagsvc.settings.edge import Fate
from flagsvc.settings.load import resolve
from flagsvc.settings.places import Resolved
from flagsvc.settings.real_server import ROWS, RealVariable, adopted_text
from flagsvc.settings.render import as_json, in_effect
from flagsvc.settings.server import resolve_server
from flagsvc.settings.table import SERVER_OPTIONS

OPTIONS = {option.name: option for option in SERVER_OPTIONS}
OURS = {variable.name for option in SERVER_OPTIONS for variable in option.variables}
DATABASE = {"DATABASE_HOST": "db", "DATABASE_NAME": "flags", "DATABASE_USERNAME": "me", "DATABASE_PASSWORD": "hunter2"}
URL = "postgresql://me:hunter2@db:5432/flags"


def read(**environment: str) -> Resolved:
    """Return what the flag server finds in an environment."""
    return resolve_server(environment, None, {})


def problem(**environment: str) -> str:
    """Return the only problem of an environment."""
    (text,) = read(**environment).problems.values()
    return text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_whole(row: RealVariable) -> None:
    """A row has a text. A row that means the same gives its value to an option, or is a variable of ours."""
    assert row.here and row.here[-1] != "."
    assert row.option in ("", *OPTIONS)
    if row.fate is Fate.SAME:
        assert bool(row.option) != (row.name in OURS)
        named = re.findall(r"FLAGSVC_[A-Z_]+", row.here)
        assert all(name in OURS for name in named)
        assert named or row.here == row.name
    else:
        assert not row.option and row.name not in OURS


def test_the_environment_of_a_real_server_is_taken() -> None:
    """Address, database and tokens are taken, and each has its source. The log and the dump show no secret."""
    resolved = read(
        **DATABASE,
        DATABASE_SSL="false",
        HTTP_PORT="4300",
        HTTP_HOST="127.0.0.1",
        BASE_URI_PATH="/flags",
        SERVER_KEEPALIVE_TIMEOUT="20",
        LOG_LEVEL="info",
        INIT_ADMIN_API_TOKENS="*:*.hunter2",
        INIT_CLIENT_API_TOKENS="default:development.hunter2, *:production.hunter2",
        INIT_FRONTEND_API_TOKENS="*:development.hunter2",
        UNLEASH_FRONTEND_API_ORIGINS="https://shop.example",
    )
    assert not resolved.problems and not resolved.warnings
    assert resolved.values["database"] == f"{URL}?sslmode=disable"
    found = {name: source for name, source in resolved.sources.items() if source != "default"}
    assert found == {
        "port": "environment HTTP_PORT",
        "host": "environment HTTP_HOST",
        "basePath": "environment BASE_URI_PATH",
        "keepAliveTimeout": "environment SERVER_KEEPALIVE_TIMEOUT",
        "logLevel": "environment LOG_LEVEL",
        "frontendApiOrigins": "environment UNLEASH_FRONTEND_API_ORIGINS",
        "database": "environment DATABASE_HOST, DATABASE_NAME, DATABASE_USERNAME, DATABASE_PASSWORD, DATABASE_SSL",
        "initAdminTokens": "environment INIT_ADMIN_API_TOKENS",
        "initBackendTokens": "environment INIT_CLIENT_API_TOKENS",
        "initFrontendTokens": "environment INIT_FRONTEND_API_TOKENS",
    }
    assert resolved.values["initBackendTokens"] == ("default:development.hunter2", "*:production.hunter2")
    assert "hunter2" not in in_effect(resolved, SERVER_OPTIONS) + as_json(resolved, SERVER_OPTIONS)
    assert adopted_text(resolved.sources) == (
        "port from HTTP_PORT, host from HTTP_HOST, keepAliveTimeout from SERVER_KEEPALIVE_TIMEOUT, database from "
        "DATABASE_HOST + DATABASE_NAME + DATABASE_USERNAME + DATABASE_PASSWORD + DATABASE_SSL"
    )
    assert adopted_text(read(DATABASE_URL="x", PORT="1").sources) == ""


def test_ours_wins() -> None:
    """A flag, a variable of ours and the file win over a variable of a real server, without a word."""
    others = {**DATABASE, "HTTP_PORT": "1", "HTTP_HOST": "h"}
    ours = {"FLAGSVC_DATABASE_URL": "flags.db", "UNLEASH_SERVER_PORT": "2"}
    resolved = resolve_server(others | ours, None, {"host": "::1"})
    assert [resolved.values[name] for name in ("database", "port", "host")] == ["flags.db", 2, "::1"]
    assert not resolved.problems and not resolved.warnings


@pytest.mark.parametrize(
    ("environment", "warning"),
    [
        ({"HTTP_PORT": "1", "PORT": "2"}, "environment HTTP_PORT: not used, PORT is given"),
        (
            {"DATABASE_URL": "flags.db", "DATABASE_HOST": "db", "DATABASE_NAME": "x"},
            "environment DATABASE_HOST, DATABASE_NAME: not used, DATABASE_URL is given",
        ),
        (
            {"DATABASE_NAME": "x", "DATABASE_PASSWORD": "hunter2"},
            "environment DATABASE_NAME, DATABASE_PASSWORD: no effect without DATABASE_HOST",
        ),
    ],
)
def test_what_has_no_effect_is_named(environment: dict[str, str], warning: str) -> None:
    """A line names each variable that another variable replaces, or that needs another variable."""
    resolved = read(**environment)
    assert resolved.warnings == [warning] and not resolved.problems
    assert read(HTTP_PORT="2", PORT="2").warnings == []


def test_a_variable_without_an_equivalent_is_a_line() -> None:
    """Each other variable of a real server is named once, with what to do, and without its value. A switch that is as flagsvc is,
    is not named; nor is what may be another program's or of Kubernetes, unless beside others."""
    named = ("UNLEASH_DEFAULT_ADMIN_PASSWORD", "AUTH_TYPE", "IMPORT_FILE", "EMAIL_HOST", "UNLEASH_URL")
    warnings = read(**dict.fromkeys(named, "hunter2")).warnings
    assert sorted(text.split(":")[0] for text in warnings) == sorted(f"environment {name}" for name in named)
    assert "hunter2" not in "".join(warnings)
    (line,) = [text for text in warnings if "ADMIN_PASSWORD" in text]
    assert line.startswith("environment UNLEASH_DEFAULT_ADMIN_PASSWORD: not taken: there are no passwords: ")
    agreeing = {"AUTH_TYPE": "open-source", "CHECK_VERSION": "false", "SEND_TELEMETRY": "False", "ENABLE_OAS": "true"}
    assert read(INIT_ADMIN_API_TOKENS="*:*.x", AUTH_ENABLE_API_TOKEN="true", **agreeing).warnings == []
    assert len(read(AUTH_ENABLE_API_TOKEN="false", **agreeing).warnings) == 1
    common = {"EMAIL_HOST": "mail", "SECURE_HEADERS": "true", "UNLEASH_URL": "http://h/api", "PORT": "1"}
    assert read(**common, DATABASE_PORT="tcp://10.0.0.1:5432", HTTP_PORT="tcp://10.0.0.1:80").warnings == []
    assert len(read(**common, IMPORT_FILE="flags.json").warnings) == 4


def test_the_proxy_takes_none_of_them() -> None:
    """The proxy neither takes the variables of a real server nor guesses at them, since both programs may share an environment."""
    base = {"FLAGSVC_URL": "http://h/api", "FLAGSVC_API_TOKEN": "t", "FLAGSVC_PROXY_CLIENT_KEYS": "k"}
    others = {**DATABASE, "HTTP_PORT": "1", "UNLEASH_DEFAULT_ADMIN_PASSWORD": "x", "INIT_ADMIN_API_TOKENS": "*:*.x"}
    resolved = resolve(base | others, None, {})
    assert resolved.values["port"] == 3000 and not resolved.warnings and not resolved.problems


VERIFIED = "sslmode=verify-full&sslrootcert=system"
FILES = {"DATABASE_SSL_CA_FILE": "/ca.pem", "DATABASE_SSL_CERT_FILE": "/c.pem", "DATABASE_SSL_KEY_FILE": "/k.pem"}


@pytest.mark.parametrize(
    ("more", "query"),
    [
        ({}, "sslmode=require"),
        ({"DATABASE_SSL": "false"}, "sslmode=disable"),
        ({"DATABASE_SSL": "null"}, "sslmode=disable"),
        ({"DATABASE_SSL": "true"}, VERIFIED),
        ({"DATABASE_SSL": "{}"}, VERIFIED),
        ({"DATABASE_SSL": '{"rejectUnauthorized": false}'}, "sslmode=require"),
        ({"DATABASE_SSL": '{"rejectUnauthorized": true}'}, VERIFIED),
        ({"DATABASE_SSL": "false", **FILES}, "sslmode=disable"),
        ({"DATABASE_SSL_REJECT_UNAUTHORIZED": "false"}, "sslmode=require"),
        ({"DATABASE_SSL_REJECT_UNAUTHORIZED": "true"}, VERIFIED),
        (FILES, "sslmode=verify-full&sslrootcert=%2Fca.pem&sslcert=%2Fc.pem&sslkey=%2Fk.pem"),
        ({"DATABASE_SCHEMA": "flags", "DATABASE_APPLICATION_NAME": "a b"}, "sslmode=require&schema=flags&application_name=a%20b"),
        ({"DATABASE_SCHEMA": "public"}, "sslmode=require"),
    ],
)
def test_how_the_database_is_verified(more: dict[str, str], query: str) -> None:
    """The variables about TLS become the parameters of the URL that mean the same, and never a weaker check."""
    assert read(**DATABASE, **more).values["database"] == f"{URL}?{query}"


@pytest.mark.parametrize(
    ("url", "more", "expected"),
    [
        ("postgres://db/flags", {"DATABASE_SSL": "false"}, "postgres://db/flags?sslmode=disable"),
        ("postgres://db/flags", {}, "postgres://db/flags"),
        ("postgres://db/flags?sslmode=allow", {"DATABASE_SSL": "true"}, "postgres://db/flags?sslmode=allow"),
        ("postgres://db/f?a=b", {"DATABASE_SCHEMA": "x"}, "postgres://db/f?a=b&schema=x"),
        ("flags.db", {"DATABASE_SSL": "true"}, "flags.db"),
        ("postgres://[::1/db", {"DATABASE_SSL": "true"}, "postgres://[::1/db"),
    ],
)
def test_a_whole_url_gets_what_it_lacks(url: str, more: dict[str, str], expected: str) -> None:
    """Beside DATABASE_URL the parameters count that the URL itself does not have."""
    resolved = read(DATABASE_URL=url, **more)
    assert resolved.values["database"] == expected and not resolved.warnings


def test_every_part_of_the_url_is_quoted() -> None:
    """Names and passwords with characters of a URL arrive as they are. An address of IPv6 and a socket are taken, too."""
    odd = {"DATABASE_USERNAME": "a@b:c", "DATABASE_PASSWORD": "p/?#%@ x", "DATABASE_NAME": "f?s", "DATABASE_SSL": "false"}
    resolved = read(**odd, DATABASE_HOST="::1", DATABASE_PORT="1")
    assert resolved.values["database"] == "postgresql://a%40b%3Ac:p%2F%3F%23%25%40%20x@[::1]:1/f%3Fs?sslmode=disable"
    socket = read(DATABASE_HOST="/run/postgresql", DATABASE_SSL="false")
    assert socket.values["database"] == "postgresql:///unleash?host=%2Frun%2Fpostgresql&port=5432&sslmode=disable"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("DATABASE_PORT", "http", "expected a port number from 0 to 65535, got `http`"),
        ("DATABASE_HOST", "postgres://me:hunter2@db", "expected the name or the address of a host"),
        ("DATABASE_HOST", "db:5432", "expected the name or the address of a host"),
        ("DATABASE_SSL", "require", "expected true, false, or a JSON object with rejectUnauthorized"),
        ("DATABASE_SSL", "[1]", "expected true, false, or a JSON object with rejectUnauthorized"),
        ("DATABASE_SSL", "[" * 100_000, "expected true, false, or a JSON object with rejectUnauthorized"),
        ("DATABASE_SSL_REJECT_UNAUTHORIZED", "maybe", "expected true or false"),
        ("DATABASE_SCHEMA", "a -c x=y", "expected the name of a schema"),
    ],
)
def test_a_wrong_part_is_refused(name: str, value: str, expected: str) -> None:
    """A part that cannot be right stops the start. The problem names the variable, what was expected, and no secret."""
    text = problem(**{**DATABASE, name: value})
    assert text.startswith(f"database (environment {name}): {expected}") and "hunter2" not in text
    resolved = read(**{**DATABASE, name: value})
    assert re.search(r"database +\(refused\) +environment DATABASE_HOST", in_effect(resolved, SERVER_OPTIONS))


def test_what_has_no_place_in_a_url_is_named() -> None:
    """Certificates within DATABASE_SSL are not read, and the line says where to put them. The connection is verified anyway."""
    resolved = read(**DATABASE, DATABASE_SSL=json.dumps({"ca": "-----BEGIN hunter2", "servername": "x"}))
    assert resolved.values["database"].endswith(VERIFIED)
    assert resolved.warnings == [
        "environment DATABASE_SSL: its `ca` is not read; write it into a file and name that in DATABASE_SSL_CA_FILE",
        "environment DATABASE_SSL: its `servername` is not read; flagsvc has no equivalent",
    ]


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("INIT_ADMIN_API_TOKENS", "default:*.hunter2", "an admin token is for all projects and environments"),
        ("INIT_ADMIN_API_TOKENS", "*:development.hunter2", "an admin token is for all projects and environments"),
        ("INIT_CLIENT_API_TOKENS", "*:*.hunter2", "a token for SDKs and proxies is for one environment"),
        ("INIT_FRONTEND_API_TOKENS", "hunter2", "a token has the form project:environment.secret"),
        ("INIT_FRONTEND_API_TOKENS", "[]:development.hunter2", "a token for several projects cannot say which"),
    ],
)
def test_a_wrong_token_is_refused(name: str, value: str, hint: str) -> None:
    """A token of another form stops the start, as on a real server. The problem does not show it."""
    text = problem(**{name: value})
    assert hint in text and "hunter2" not in text and f"(environment {name})" in text
