"""`flagsvc migrate`: its arguments and its output. tests/unit/cli/migrating has what it translates."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from flagsvc.core.extras import install_command
from support.cli_helpers import Flagsvc

EDGE = {"UPSTREAM_URL": "https://flags.example.com", "TOKENS": "*:development.s3cret"}
REFERENCE = {
    "UNLEASH_URL": "https://h/api",
    "UNLEASH_API_TOKEN": "s3cret",
    "UNLEASH_PROXY_CLIENT_KEYS": "s3cret",
    "UNLEASH_APP_NAME": "a",
}


def test_a_file_is_for_its_owner_only(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """The result holds secrets: the file has mode 0600, also if it replaces a file, which needs `--force`."""
    path = tmp_path / "flagsvc.toml"
    called = flagsvc("migrate", "--output", str(path), env=REFERENCE)
    *_, written, _ = called.err.splitlines()
    assert (called.code, called.out, written) == (0, "", f"flagsvc migrate: written to `{path}`")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and "s3cret" in path.read_text()
    path.write_text("mine")
    path.chmod(0o644)
    called = flagsvc("migrate", "--output", str(path), env=REFERENCE)
    assert called == (2, "", f"flagsvc migrate: `{path}` exists: --force replaces it\n") and path.read_text() == "mine"
    assert flagsvc("migrate", "--output", str(path), "--force", env=REFERENCE).code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and "s3cret" in path.read_text()


def test_standard_output(flagsvc: Flagsvc) -> None:
    """`-` is standard output, as without `--output`."""
    assert flagsvc("migrate", "--output", "-", env=REFERENCE) == flagsvc("migrate", env=REFERENCE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--service", "edge"), "`--service` chooses a service of a compose file or a container: give `--compose`"),
        (("--into", "x"), "`--into` and `--backup-tokens` say what to do with a backup: give `--backup`"),
        (("--backup-tokens",), "`--into` and `--backup-tokens` say what to do with a backup: give `--backup`"),
        (("--env-file", "none.env"), "cannot read `none.env`: no such file or directory"),
        (("--compose", "none.yaml"), "cannot read `none.yaml`: no such file or directory"),
        (("--from", "proxy"), "the environment has no variable of @unleash/proxy; looked for UNLEASH_URL, "),
        (("--from", "else"), "`--from`: invalid choice: 'else'"),
        (("--backup", "."), "`--backup` needs a folder that it can write: name it with `--into`"),
        (("edge",), "unexpected argument"),
        (("--", "ready"), "`ready` of Edge asks a running one: here it is `flagsvc health`"),
    ],
)
def test_wrong_arguments(
    arguments: tuple[str, ...], message: str, flagsvc: Flagsvc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake is one message, and the exit code is 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "unleash-backup-a.json").write_text('{"version": 2, "features": []}')
    called = flagsvc("migrate", *arguments, env=EDGE)
    assert (called.code, called.out) == (2, "") and called.err.startswith(f"flagsvc migrate: {message}")


def test_a_file_that_is_not_text(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """A file in another encoding is refused by name."""
    (tmp_path / "x.env").write_bytes(b"A=\xff")
    called = flagsvc("migrate", "--env-file", str(tmp_path / "x.env"))
    assert called == (2, "", f"flagsvc migrate: `{tmp_path / 'x.env'}` is not UTF-8\n")


def test_the_order_of_sources(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """A command line wins over files, later files win over earlier ones, and with a file the environment does not count."""
    (tmp_path / "a.env").write_text("UPSTREAM_URL=https://a\nAPP_NAME=a\nPORT=1\n")
    (tmp_path / "b.env").write_text("APP_NAME=b\nPORT=2\n")
    files = ("--env-file", str(tmp_path / "a.env"), "--env-file", str(tmp_path / "b.env"))
    called = flagsvc("migrate", *files, "--json", "--", "--port", "3", "edge", "-t", "*:a.b", env={"BASE_PATH": "/x"})
    options = json.loads(called.out)["options"]
    assert (options["flagsvcUrl"], options["flagsvcAppName"], options["port"]) == ("https://a/api", "b", 3)
    assert "proxyBasePath" not in options


def test_a_compose_file_needs_its_extra(flagsvc: Flagsvc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the YAML library a compose file is one sentence with the pip command."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.setattr("flagsvc.cli.migrating.sources.find_spec", lambda name: None)
    called = flagsvc("migrate", "--compose", str(tmp_path / "compose.yaml"))
    assert called.code == 2 and install_command("cli") in called.err


def test_a_chosen_service(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """A service that does not exist is answered with the nearest, or with all of them."""
    (tmp_path / "compose.yaml").write_text("services: {edge: {}, web: {}}")
    for name, hint in (("edgy", "did you mean `edge`?"), ("zzz", "the services are edge, web")):
        called = flagsvc("migrate", "--compose", str(tmp_path / "compose.yaml"), "--service", name)
        assert called == (2, "", f"flagsvc migrate: no service `{name}`; {hint}\n")


def test_an_env_file_of_another_service(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """A file that cannot be read matters only where its service is moved over, or where no other service can be."""
    services = {"edge": {"environment": EDGE}, "web": {"env_file": "away.env"}}
    (tmp_path / "compose.yaml").write_text(json.dumps({"services": services}))
    file = ("--compose", str(tmp_path / "compose.yaml"))
    problem = f"flagsvc migrate: service `web`: cannot read `{tmp_path / 'away.env'}`: no such file or directory\n"
    assert flagsvc("migrate", *file).code == flagsvc("migrate", *file, "--service", "edge").code == 0
    assert flagsvc("migrate", *file, "--service", "web") == (2, "", problem)
    (tmp_path / "compose.yaml").write_text(json.dumps({"services": {"web": services["web"], "other": {}}}))
    assert flagsvc("migrate", *file) == (2, "", problem)


def test_what_a_service_is_given(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """The note fits the form of the result. Former variables would win over it."""
    (tmp_path / "compose.yaml").write_text(json.dumps({"services": {"edge": {"environment": EDGE}}}))
    called = flagsvc("migrate", "--compose", str(tmp_path / "compose.yaml"), "--json")
    text = "use an image of flagsvc; remove `entrypoint`, `command` and the former variables;"
    how = "put the `variables` of the result into `environment`"
    assert f"flagsvc migrate: different: service edge: {text} {how}\n" in called.err


@pytest.mark.parametrize(
    ("arguments", "first", "argument"),
    [
        (("--output", "flagsvc.toml"), "", " --config flagsvc.toml"),
        (("--output", "my flags.toml"), "", " --config 'my flags.toml'"),
        (("--format", "variables", "--output", "x.env"), "with these variables set, ", ""),
    ],
)
def test_the_last_line_says_how_to_go_on(
    arguments: tuple[str, ...], first: str, argument: str, flagsvc: Flagsvc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the two commands as they are typed for this result."""
    monkeypatch.chdir(tmp_path)
    last = flagsvc("migrate", *arguments, env=EDGE).err.splitlines()[-1]
    assert last == (
        f"flagsvc migrate: next: {first}`flagsvc config{argument}` shows what is in effect, "
        f"and `flagsvc proxy{argument}` starts with it"
    )


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Give a backup of Edge with a flag that is malformed."""
    features = [{"name": "first", "enabled": True, "strategies": []}, {"name": None}]
    pairs = [["development", {"version": 2, "features": features}]]
    (tmp_path / "unleash_features.json").write_text(json.dumps(pairs))
    token = {"token": "*:development.s3cret-web", "type": "frontend", "environment": "development", "projects": ["*"]}
    (tmp_path / "unleash_tokens.json").write_text(json.dumps([token]))
    return tmp_path


def test_a_backup(flagsvc: Flagsvc, backup: Path) -> None:
    """A line says what was stored where. The callers of the backup are listed if the user asks for it."""
    state = backup / "state"
    first = flagsvc("migrate", "--backup", str(backup), "--into", str(state), env=EDGE)
    assert first.code == 0 and f'storage = "file://{state}"' in first.out and "clientKeys" not in first.out
    assert f"flagsvc migrate: stored in `{state}`: 2 flags, 1 of them malformed\n" in first.err
    assert "different: --backup: 1 tokens are looked up at the flag server" in first.err
    again = ("migrate", "--backup", str(backup), "--into", str(state), "--backup-tokens")
    assert flagsvc(*again, env=EDGE).code == 2
    listed = flagsvc(*again, "--force", env=EDGE)
    assert listed.code == 0 and 'clientKeys = ["*:development.s3cret-web"]' in listed.out
    assert "different: --backup-tokens: 1 keys of the backup are accepted without asking" in listed.err
    assert "s3cret" not in first.err + listed.err


def test_nothing_is_stored_if_the_file_exists(flagsvc: Flagsvc, backup: Path) -> None:
    """The output is looked at first: a run that cannot write it stores nothing."""
    (backup / "out.toml").touch()
    arguments = ("--backup", str(backup), "--into", str(backup / "state"), "--output", str(backup / "out.toml"))
    assert flagsvc("migrate", *arguments, env=EDGE).code == 2
    assert not (backup / "state").exists()


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (("edge",), "`flagsvc proxy`, and `flagsvc migrate -- edge …` translates its command line"),
        (("edge", "--upstream-url", "s3cret"), "`flagsvc migrate -- edge …`"),
        (("offline",), "`flagsvc migrate -- offline …`"),
        (("unleash-edge", "edge"), "`flagsvc migrate -- edge …`"),
        (("ready",), "here it is `flagsvc health`"),
        (("--port", "3063", "edge"), "`flagsvc migrate -- edge …`"),
        (("help", "edge"), "`flagsvc migrate -- edge …`"),
    ],
)
def test_commands_of_edge(arguments: tuple[str, ...], instead: str, flagsvc: Flagsvc) -> None:
    """A command of Edge is no typing error: one sentence says what it is here. The exit code is 2."""
    called = flagsvc(*arguments)
    assert (called.code, called.out, called.err.count("\n")) == (2, "", 1)
    assert instead in called.err and "is a command of Unleash Edge" in called.err and "s3cret" not in called.err
