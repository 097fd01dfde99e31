"""`flagsvc` itself: commands, messages for bad usage, exit codes, and a start with few imports.

A command whose extra is not installed prints one sentence with the pip command. The exit code is 2.
A failed start reports its reason as text, or as JSON if the program logs JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from flagsvc.cli import programs
from flagsvc.cli.commands import COMMANDS, words_after
from flagsvc.core.errors import ConfigurationError, DatabaseError, ExtensionError, ListenError, SeedError
from flagsvc.core.extras import EXTRAS, PACKAGE, WHERE
from flagsvc.core.version import VERSION
from flagsvc.settings.load import resolve
from support import forms, needs
from support.cli_helpers import ENOUGH, Flagsvc
from support.fake_upstream import fake_upstream

HEAVY = {"asyncio", "httpx", "msgspec", "uvicorn", "json", "http.client", "logging", "ssl", "tomllib", "difflib"}
"""Modules that no help, version or usage message needs."""


FORMS = {
    "interpreted": "import sys, forms; sys.meta_path.insert(0, forms.InterpretedOnly('flagsvc', forms.SOURCES))",
    "compiled": "",
}


# A test run on the Python sources has no compiled modules, so only a run on compiled modules tests that case.
@pytest.mark.parametrize("expected", [form for form in FORMS if form == "interpreted" or not forms.interpreted()])
def test_the_form_is_that_of_the_modules_that_are_imported(expected: str) -> None:
    """--version names the form of the modules that Python really imports."""
    if expected == "compiled" and not forms.form().startswith("compiled"):
        needs.missing(f"this run is {forms.form()}")
    script = f"{FORMS[expected]}\nfrom flagsvc.cli import main; main(['--version'])"
    paths = os.pathsep.join([str(forms.SOURCES), str(Path(forms.__file__).parent)])
    ran = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": paths}, capture_output=True, text=True, timeout=30)
    assert (ran.stdout, ran.stderr) == (f"flagsvc {VERSION} ({expected})\n", "")


@pytest.mark.parametrize(("runs", "said"), [("compiled", ""), ("interpreted", "about ten times slower")])
def test_a_start_that_is_interpreted_warns(runs: str, said: str, monkeypatch: Any, capsys: Any) -> None:
    """An interpreted engine gives one warning with a hint. A compiled engine gives none."""
    monkeypatch.setattr(programs, "engine_form", lambda: runs)
    programs.log_warnings(resolve({}, None, {"flagsvcUrl": "file:///x", "clientKeys": "k"}))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == bool(said) and all(said in line and "C compiler" in line for line in lines)


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ()])
def test_overview(arguments: tuple[str, ...], flagsvc: Flagsvc) -> None:
    """Help names every command; without a command the same text is a usage error."""
    called = flagsvc(*arguments)
    text = called.out if arguments else called.err
    assert called.code == (0 if arguments else 2)
    for command in COMMANDS:
        assert f"  {command.name}" in text and command.summary in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("prxy",), "flagsvc: unknown command `prxy`; did you mean `proxy`?"),
        (("zzz",), f"flagsvc: unknown command `zzz`; the commands are {', '.join(words_after(''))}"),
        (("proxy", "--prot", "1"), "flagsvc proxy: unknown option `--prot`; did you mean `--port`?"),
        (("proxy", "--prot=1"), "flagsvc proxy: unknown option `--prot`; did you mean `--port`?"),
        (("proxy", "--admin-port", "1"), "flagsvc proxy: unknown option `--admin-port`"),
        (("proxy", "--metrics-port", "1"), "flagsvc proxy: unknown option `--metrics-port`"),
        (("proxy", "--flagsvc-url", "x"), "flagsvc proxy: unknown option `--flagsvc-url`"),
        (("proxy", "--zzz"), "flagsvc proxy: unknown option `--zzz`"),
        (("server", "--environments", "a"), "flagsvc server: unknown option `--environments`\n"),
        (("proxy", "--port"), "flagsvc proxy: `--port` needs a value"),
        (("proxy", "--po", "1"), "flagsvc proxy: unknown option `--po`"),
        (("config", "extra"), "flagsvc config: unexpected argument: every option starts with --"),
        (("health", "--wait", "soon"), "flagsvc health: `--wait`: expected a number of seconds from 0 to 86400"),
        (("health", "--wait", "-1"), "flagsvc health: `--wait`: expected a number of seconds from 0 to 86400"),
        (("health", "--wait", "nan"), "flagsvc health: `--wait`: expected a number of seconds from 0 to 86400"),
        (("evaluate",), "flagsvc evaluate: missing: DOCUMENT"),
        (("imprt",), "flagsvc: unknown command `imprt`; did you mean `import`?"),
        (("validate",), "flagsvc validate: missing: FILE"),
        (("import", "x", "--environmnet", "y"), "flagsvc import: unknown option `--environmnet`; did you mean `--environment`?"),
        (("export", "--project", "x"), "flagsvc export: missing: --environment"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...], message: str, flagsvc: Flagsvc) -> None:
    """Bad usage is exit code 2 and one line that names the nearest known name; nothing on standard output."""
    called = flagsvc(*arguments)
    assert (called.code, called.out) == (2, "")
    assert called.err.startswith(message) and called.err.count("\n") == 1


def test_bad_usage_repeats_no_value(flagsvc: Flagsvc) -> None:
    """Messages about bad usage do not repeat values, because a value may be a secret."""
    for arguments in (("--api-tokn", "s3cret"), ("--api-tokn=s3cret",), ("--api-token", "t", "s3cret")):
        called = flagsvc("proxy", *arguments)
        assert called.code == 2 and "s3cret" not in called.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ConfigurationError(["one"]), 2, "flagsvc health: one\n"),
        (ConfigurationError(["one", "two"]), 2, "flagsvc health: 2 problems\n  - one\n  - two\n"),
        (ExtensionError("one\ntwo"), 2, "flagsvc health: 2 problems\n  - one\n  - two\n"),
        (SeedError(["one", "two"]), 2, "flagsvc health: 2 problems\n  - one\n  - two\n"),
        (ListenError("cannot listen"), 1, "flagsvc health: cannot listen\n"),
        (DatabaseError("the database failed"), 1, "flagsvc health: the database failed\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_exit_codes(error: BaseException, code: int, message: str, flagsvc: Flagsvc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of the environment is exit code 1, an input error 2. Each problem has its own line. No traceback is printed."""
    monkeypatch.setattr("flagsvc.cli.health.run", Mock(side_effect=error))
    assert flagsvc("health") == (code, "", message)


def run_python(*arguments: str, **given: Any) -> subprocess.CompletedProcess[str]:
    """Run Python as a process that finds this package."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, text=True, stderr=subprocess.PIPE, timeout=30, check=False, **given
    )


@pytest.mark.parametrize("argument", ["--version", "--help", "config"])
def test_output_that_nobody_takes(argument: str) -> None:
    """Exit code 1, without a word for a closed pipe, as with `flagsvc config | head -1`, and with a sentence for a full disk."""
    read, write = os.pipe()
    os.close(read)
    program = "flagsvc" if argument.startswith("-") else f"flagsvc {argument}"
    told = f"{program}: cannot write standard output: no space left on device\n"
    with open(write, "wb", buffering=0) as pipe, open("/dev/full", "wb") as full:
        for output, error in ((pipe, ""), (full, told)):
            script = "import sys; from flagsvc.cli import main; sys.exit(main())"
            done = run_python("-c", script, argument, stdout=output)
            assert (done.returncode, done.stderr) == (1, error)


@pytest.mark.parametrize("arguments", ["['--version']", "['proxy', '--help']", "['config', '--port=1', '--nonsense']"])
def test_a_light_start(arguments: str) -> None:
    """Help and usage errors import no slow module."""
    program = f"import sys; from flagsvc.cli import main; main({arguments}); print('\\n', *sys.modules)"
    done = run_python("-c", program, stdout=subprocess.PIPE)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "flagsvc.cli" in loaded
    assert HEAVY & loaded - ({"difflib"} if "nonsense" in arguments else set()) == set()


SERVER = "redis://storage:6379/0"
SENTENCE = f"the extra `{{0}}` is not installed; type{WHERE}: pip install '{PACKAGE}[{{0}}]'"
URL = "http://127.0.0.1:9"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that hides the modules of an extra, so that their import fails."""

    def remove(extra: str) -> None:
        for module in EXTRAS[extra]:
            monkeypatch.setitem(sys.modules, module, None)

    return remove


NEEDS = [
    (("server",), "server"),
    (("config", "--server"), "server"),
    (("validate", "flags.json", "--url", URL), "cli"),
    (("import", "flags.json", "--url", URL, "--dry-run"), "cli"),
    (("export", "--url", URL, "--project", "default", "--environment", "development"), "cli"),
    (("move", URL, "http://127.0.0.1:8", "--dry-run"), "cli"),
]


@pytest.mark.parametrize(("arguments", "extra"), NEEDS, ids=lambda value: value if isinstance(value, str) else value[0])
def test_a_missing_extra_is_one_sentence(
    flagsvc: Flagsvc, without: Callable[[str], None], arguments: tuple[str, ...], extra: str
) -> None:
    """The sentence is on standard error and has the pip command. The exit code is 2."""
    without(extra)
    assert flagsvc(*arguments) == (2, "", f"flagsvc {arguments[0]}: {SENTENCE.format(extra)}\n")


@pytest.mark.parametrize("command", ["server", "config", "validate", "import", "export", "move"])
def test_help_needs_no_extra(flagsvc: Flagsvc, without: Callable[[str], None], command: str) -> None:
    """Both forms of the help work without any extra."""
    for extra in EXTRAS:
        without(extra)
    assert flagsvc(command, "-h").code == 0
    assert flagsvc("help", command).code == 0


def test_a_document_is_evaluated_without_an_extra(flagsvc: Flagsvc, without: Callable[[str], None], tmp_path: Path) -> None:
    """`flagsvc evaluate` needs no extra, neither for a file nor for a URL."""
    for extra in EXTRAS:
        without(extra)
    document = {"version": 2, "features": [{"name": "first", "enabled": True, "strategies": []}]}
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    with fake_upstream(document) as upstream:
        for where in (str(path), f"{upstream.url}/client/features"):
            assert flagsvc("evaluate", where, "--context", "userId=7").code == 0


def test_validate_tells_it_as_json_where_that_is_wanted(flagsvc: Flagsvc, without: Callable[[str], None]) -> None:
    """With --json the missing extra is reported as JSON, like every other error."""
    without("cli")
    called = flagsvc("validate", "flags.json", "--url", URL, "--json")
    assert (called.code, called.err) == (2, "")
    assert json.loads(called.out) == {"error": {"kind": "usage", "message": SENTENCE.format("cli")}}


def test_a_server_that_logs_json_tells_it_as_json(flagsvc: Flagsvc, without: Callable[[str], None]) -> None:
    """With JSON logging the missing extra is reported as JSON."""
    without("server")
    called = flagsvc("server", "--use-json-logger", "true")
    assert called.code == 2
    assert json.loads(called.err)["message"] == f"flagsvc server: {SENTENCE.format('server')}"


def test_a_storage_server_is_a_wrong_option_without_its_extra(flagsvc: Flagsvc, without: Callable[[str], None]) -> None:
    """`flagsvc config` and `flagsvc proxy` report the missing extra with the other problems. Alone it stops the start, too."""
    without("redis")
    problem = f"storage (environment FLAGSVC_STORAGE): {SENTENCE.format('redis')}"
    env = ENOUGH | {"FLAGSVC_STORAGE": SERVER}
    assert flagsvc("config", env=env)[::2] == (2, f"flagsvc config: {problem}\n")
    started = flagsvc("proxy", env=env | {"PORT": "x"})
    assert started.code == 2
    assert started.err.startswith("flagsvc proxy: 2 problems\n") and f"  - {problem}\n" in started.err
    called = flagsvc("proxy", "--storage", SERVER, env=ENOUGH)
    assert called == (2, "", f"flagsvc proxy: storage: {SENTENCE.format('redis')}\n")


@pytest.mark.parametrize(
    ("command", "value", "as_json"),
    [("proxy", "true", True), ("server", " On ", True), ("proxy", "perhaps", False), ("config", "true", False)],
)
def test_a_wrong_command_line(command: str, value: str, as_json: bool, flagsvc: Flagsvc) -> None:
    """A program that logs JSON by its variable reports a wrong flag as JSON, too."""
    called = flagsvc(command, "--nix", env={"JSON_LOGGER": value})
    assert called.code == 2 and "unknown option `--nix`" in called.err
    assert called.err.startswith("{") is as_json
