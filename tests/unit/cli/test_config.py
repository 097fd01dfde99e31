"""`flagsvc config`: effective values, all problems, and the reference page.

`flagsvc config` and `flagsvc proxy` with several environments: what is shown, checked and refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flagsvc.settings.normalise import QUOTES
from flagsvc.settings.render import reference
from flagsvc.settings.server import server_reference
from support.cli_helpers import ENOUGH, Flagsvc
from support.pki import Authority, written


def test_what_is_in_effect(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """A good configuration is a table with values and sources, secrets masked, and exit code 0."""
    file = tmp_path / "flagsvc.toml"
    file.write_text("[cors]\nmaxAge = 5\n")
    called = flagsvc("config", "--config", str(file), "--port", "8080", env=ENOUGH)
    assert (called.code, called.err) == (0, "")
    for words in (
        ["port", "8080", "flag", "--port"],
        ["cors.maxAge", "5", "s", "file", str(file)],
        ["flagsvcUrl", "http://127.0.0.1:9/api", "environment", "FLAGSVC_URL"],
        ["flagsvcApiToken", "***", "environment", "FLAGSVC_API_TOKEN"],
    ):
        assert words in [line.split() for line in called.out.splitlines()]
    assert "t0ken" not in called.out and "k3y" not in called.out


def test_only_what_is_set_unless_all_is_asked_for(flagsvc: Flagsvc) -> None:
    """The table has only the options that are set, with units. --all shows all options."""
    env = ENOUGH | {"FLAGSVC_FETCH_INTERVAL": "7000", "FLAGSVC_BODY_LIMIT": "4194304"}
    few, every = flagsvc("config", env=env), flagsvc("config", "--all", env=env)
    assert (few.code, few.err, every.code) == (0, "", 0)
    shown = [line.split() for line in few.out.splitlines() if line.startswith("  ")]
    assert [words[0] for words in shown] == ["flagsvcUrl", "flagsvcApiToken", "refreshInterval", "clientKeys", "bodyLimit"]
    assert shown[2][1:] == ["7000", "ms", "environment", "FLAGSVC_FETCH_INTERVAL"] and shown[4][1:3] == ["4", "MB"]
    assert few.out.splitlines()[-1].endswith("other options have their defaults: --all shows them")
    assert ["keepAliveTimeout", "75", "s", "default"] in [line.split() for line in every.out.splitlines()]


def test_the_flag_servers(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """With --server the command shows the options of the flag server, including the table [server] of the file."""
    file = tmp_path / "flagsvc.toml"
    file.write_text("port = 1\n[server]\nport = 4343\n")
    env = {"FLAGSVC_CONFIG": str(file), "FLAGSVC_DATABASE_URL": "postgresql://me:hunter2@db/flags"}
    called = flagsvc("config", "--server", "--seed", "s.yaml", env=env)
    assert (called.code, called.err) == (0, "") and "hunter2" not in called.out
    shown = [line.split() for line in called.out.splitlines() if line.startswith("  ")]
    assert shown == [
        ["port", "4343", "file", str(file), "[server]"],
        ["database", "postgresql://***@db/flags", "environment", "FLAGSVC_DATABASE_URL"],
        ["seed", "s.yaml", "flag", "--seed"],
    ]
    every = flagsvc("config", "--server", "--all", env=env).out
    assert ["headerTimeout", "20", "s", "default"] in [line.split() for line in every.splitlines()]
    assert "flagsvcUrl" not in every
    found = json.loads(flagsvc("config", "--server", "--json", env=env).out)["options"]
    assert found["port"] == {"value": 4343, "source": f"file {file} [server]"}
    assert flagsvc("config", "--server", "--docs") == (0, server_reference(), "")


def test_every_problem_of_the_flag_server_at_once(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """An invalid database URL and a missing certificate are reported with the other problems. There is a hint about quotes."""
    called = flagsvc("config", "--server", "--database", '"postgresql://db/flags"', env={"HOME": "/h"})
    assert called.code == 2 and QUOTES in called.err
    gone = str(tmp_path / "gone")
    called = flagsvc("config", "--server", "--port", "x", "--tls-cert", gone, "--database", "mysql://me:hunter2@h/x")
    assert called.code == 2 and called.err.splitlines()[0] == "flagsvc config: 3 problems"
    for text in ("port (flag --port)", "database: ", f"tlsCert: cannot read `{gone}`"):
        assert text in called.err
    assert "hunter2" not in called.out + called.err


def test_flags_of_the_other_program(flagsvc: Flagsvc) -> None:
    """A flag that the chosen program does not have is an error that says what to do."""
    assert flagsvc("config", "--database", "x").err == (
        "flagsvc config: `--database` is an option of the flag server: add `--server`\n"
    )
    called = flagsvc("config", "--server", "--client-keys-file", "x")
    assert called == (2, "", "flagsvc config: `--client-keys` is an option of the proxy: leave out `--server`\n")


def test_a_narrow_terminal(flagsvc: Flagsvc, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider than the terminal. A source that does not fit is on the next line."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((60, 20)))
    out = flagsvc("config", env=ENOUGH | {"FLAGSVC_FETCH_INTERVAL": "15", "FLAGSVC_URL": "http://127.0.0.1:9/x"}).out
    assert max(map(len, out.splitlines())) <= 60
    assert "  clientKeys       ***\n                   environment FLAGSVC_PROXY_CLIENT_KEYS\n" in out


def test_every_problem_at_once(flagsvc: Flagsvc) -> None:
    """All problems are listed, and the exit code is 2. A missing or rejected value has its line; warnings follow below."""
    env = {"FLAGSVC_URL": "http://h", "FLAGSVC_ULR": "y", "TOKENS": "s3cret"}
    called = flagsvc("config", "--port", "x", env=env)
    assert called.code == 2
    assert called.err.splitlines()[0] == "flagsvc config: 3 problems"
    assert [line.split()[1] for line in called.err.splitlines()[1:]] == ["port", "flagsvcApiToken", "clientKeys"]
    for text in ("warning: environment FLAGSVC_ULR", "warning: environment TOKENS: ", "write `http://h/api`"):
        assert text in called.out
    shown = [line.split() for line in called.out.splitlines()]
    assert ["clientKeys", "(missing)"] in shown and ["port", "(refused)", "flag", "--port"] in shown
    assert "s3cret" not in called.out + called.err


def test_json_and_docs(flagsvc: Flagsvc) -> None:
    """--json prints JSON on standard output, with or without problems. The reference page needs no configuration."""
    good = flagsvc("config", "--json", env=ENOUGH)
    assert good.code == 0 and json.loads(good.out)["problems"] == []
    bad = flagsvc("config", "--json", env={"FLAGSVC_URL": "http://h/api", "FLAGSVC_ULR": "y"})
    assert bad.code == 2
    assert len(json.loads(bad.out)["problems"]) == 2 and len(json.loads(bad.out)["warnings"]) == 1
    assert flagsvc("config", "--docs") == (0, reference(), "")


@pytest.mark.parametrize("command", ["config", "proxy"])
@pytest.mark.parametrize("variable", ["FLAGSVC_CUSTOM_STRATEGIES_FILE", "EXP_CUSTOM_ENRICHERS_FILE"])
def test_files_of_code_are_tried(command: str, variable: str, flagsvc: Flagsvc, tmp_path: Path) -> None:
    """A file of strategies or enrichers that does not load is a problem like any other."""
    called = flagsvc(command, env=ENOUGH | {variable: str(tmp_path / "no.py"), "PORT": "x"})
    assert called.code == 2 and called.err.splitlines()[0] == f"flagsvc {command}: 2 problems"
    assert f"(environment {variable})" in called.err and "does not exist" in called.err


@pytest.mark.parametrize("command", ["config", "proxy"])
def test_files_of_certificates_are_tried(command: str, flagsvc: Flagsvc, tmp_path: Path) -> None:
    """Each unusable certificate file is reported beside all problems."""
    (tmp_path / "empty").touch()
    empty, gone = str(tmp_path / "empty"), str(tmp_path / "gone")
    given = ["--tls-cert", empty, "--tls-client-ca", gone, "--upstream-ca", gone, "--upstream-cert", gone]
    given += ["--storage", "rediss://localhost", "--storage-ca", empty, "--storage-cert", gone]
    called = flagsvc(command, *given, "--port", "x", env=ENOUGH)
    assert called.code == 2
    for text in (
        f"tlsCert: `{empty}` holds no certificate in PEM form",
        f"tlsClientCa: cannot read `{gone}`: no such file or directory",
        f"upstreamCa: cannot read `{gone}`: no such file or directory",
        f"upstreamCert: cannot read `{gone}`: no such file or directory",
        f"storageCa: `{empty}` holds no certificate in PEM form",
        f"storageCert: cannot read `{gone}`: no such file or directory",
        "port ",
    ):
        assert text in called.err


@pytest.mark.parametrize("storage", ["redis://localhost", "none", "file:///var/lib/flagsvc"])
def test_unused_certificate_files_are_not_checked(storage: str, flagsvc: Flagsvc, tmp_path: Path) -> None:
    """Certificate files for a storage server are not checked if the storage does not use TLS."""
    gone = str(tmp_path / "gone")
    called = flagsvc("config", "--storage", storage, "--storage-ca", gone, "--storage-cert", gone, env=ENOUGH)
    assert (called.code, called.err) == (0, "")


def test_files_that_can_be_used(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """Valid code and certificates are no problem. A pair is not reported again if one half is already rejected."""
    ours, code = Authority(), written(tmp_path, "code.py", "strategies = []\n")
    both, authority = written(tmp_path, "both.pem", ours.issue().both), written(tmp_path, "ca.pem", ours.pem)
    good = flagsvc("config", "--tls-cert", both, "--upstream-ca", authority, "--custom-strategies", code, env=ENOUGH)
    assert (good.code, good.err) == (0, "")
    env = ENOUGH | {"FLAGSVC_TLS_KEY_PASSWORD_FILE": str(tmp_path / "gone")}
    called = flagsvc("config", "--tls-cert", authority, env=env)
    assert called.code == 2 and called.err.count("tls") == 1


TABLES = """
port = 8080
{0}
[environments.a]
flagsvcUrl = "file:flags.json"
clientKeys = ["s3cret-a"]
[environments.b]
flagsvcUrl = "https://flags.example.com/api"
flagsvcApiToken = "s3cret-token"
clientKeys = ["s3cret-b"]
{1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a future configuration file."""
    return tmp_path / "flagsvc.toml"


def test_files_of_environments_are_checked(flagsvc: Flagsvc, file: Path, tmp_path: Path) -> None:
    """A file of code or a certificate of one environment is loaded; its problem names the environment and the option."""
    certificate = written(tmp_path, "own.pem", Authority().issue().both)
    wrong = ("customStrategies = 'none.py'", "upstreamKey = 'none.pem'", "upstreamCa = 'none.pem'")
    file.write_text(TABLES.format(f"upstreamCert = '{certificate}'", "\n".join(wrong)))
    called = flagsvc("config", "--config", str(file))
    assert called.code == 2
    assert [line.removeprefix("  - ") for line in called.err.splitlines() if line.startswith("  - ")] == [
        f"environments.b: customStrategies (file {file} [environments.b]): custom strategies file `{tmp_path}/none.py`"
        " does not exist",
        f"environments.b: upstreamKey: cannot read `{tmp_path}/none.pem`: no such file or directory",
        f"environments.b: upstreamCa: cannot read `{tmp_path}/none.pem`: no such file or directory",
    ]


def test_a_start_that_is_refused(flagsvc: Flagsvc, file: Path) -> None:
    """`flagsvc proxy` ends with exit code 2 and every problem, those of files included, and shows no secret."""
    file.write_text(TABLES.format("[environments.c]\nclientKeys = ['s3cret-b']", "customStrategies = 'none.py'\nprot = 1"))
    called = flagsvc("proxy", "--config", str(file))
    assert called.code == 2 and "s3cret" not in called.out + called.err
    assert [line.strip().split(" ")[1:3] for line in called.err.splitlines() if line.startswith("  - ")] == [
        ["unknown", "option"],
        ["environments.c:", "flagsvcUrl"],
        ["environments.c:", "flagsvcApiToken"],
        ["environments:", "a"],
        ["environments.b:", "customStrategies"],
    ]


@pytest.mark.parametrize("command", ["proxy", "config"])
@pytest.mark.parametrize(
    "arguments", [("--environments", "s3cret"), ("--environments=s3cret",), ("--environments-file", "s3cret"), ("--environments",)]
)
def test_no_flag_sets_environments(command: str, arguments: tuple[str, ...], flagsvc: Flagsvc) -> None:
    """Somebody who tries is told where environments are set, and the value is not shown."""
    flag = arguments[0].partition("=")[0]
    assert flagsvc(command, *arguments) == (
        2,
        "",
        f"flagsvc {command}: unknown option `{flag}`; several environments are tables [environments.NAME] in the file of "
        "--config, or FLAGSVC_ENVIRONMENTS names them: see `flagsvc help proxy`\n",
    )


def test_the_help_says_where_environments_are_set(flagsvc: Flagsvc) -> None:
    """The head of the long help names both ways, and says that there is no flag. The short help is short."""
    head = " ".join(flagsvc("proxy", "--help").out.partition("\noptions:")[0].split())
    for name in ("[environments.NAME]", "FLAGSVC_ENVIRONMENTS", "FLAGSVC_PRODUCTION_API_TOKEN", "no --environments"):
        assert name in head
    assert "FLAGSVC_ENVIRONMENTS" not in flagsvc("proxy", "-h").out
