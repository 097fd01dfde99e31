"""`flagsvc completion`: the shells accept the scripts, which offer commands, options, values and files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from flagsvc.cli.commands import COMMANDS, Command
from flagsvc.cli.completion import WRITERS
from flagsvc.cli.parser import open_command
from flagsvc.settings.option import FILE_NAME
from flagsvc.settings.render import ROW
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS
from support import needs
from support.cli_helpers import Flagsvc

LEVELS = ["debug", "info", "warn", "error", "fatal"]
CASES: list[tuple[str, list[str]]] = [
    ("flagsvc pro", ["proxy"]),
    ("flagsvc help heal", ["health"]),
    ("flagsvc completion z", ["zsh"]),
    ("flagsvc proxy --cors-orig", ["--cors-origin"]),
    ("flagsvc server --database-l", ["--database-listen-url", "--database-listen-url-file"]),
    ("flagsvc config --server --database-l", ["--database-listen-url", "--database-listen-url-file"]),
    ("flagsvc health --server --base", ["--base-path"]),
    ("flagsvc proxy --log-level ", LEVELS),
    ("flagsvc server --log-level d", ["debug"]),
    ("flagsvc proxy --enable-oas t", ["true"]),
    ("flagsvc proxy --workers a", ["auto"]),
    ("flagsvc export --format y", ["yaml"]),
    ("flagsvc proxy --config fl", ["flagsvc.toml"]),
    ("flagsvc validate fl", ["flagsvc.toml"]),
    ("flagsvc proxy --port ", []),
    ("flagsvc server tok", ["token"]),
    ("flagsvc server token ", ["create", "list", "revoke"]),
    ("flagsvc server token create --typ", ["--type"]),
    ("flagsvc server token create --type f", ["frontend"]),
    ("flagsvc flags ", ["list", "show", "on", "off"]),
    ("flagsvc flags list --state s", ["stale"]),
]
"""Typed text, with the cursor at its end → offered words, in any order."""
BEHIND_AN_EQUALS_SIGN = [("flagsvc proxy --log-level = w", ["warn"]), ("flagsvc proxy --log-level =", LEVELS)]
"""What Bash makes of `--log-level=w`: three words."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file to complete, and no other."""
    (tmp_path / "flagsvc.toml").touch()
    return tmp_path


def script_of(shell: str, flagsvc: Flagsvc) -> str:
    """Return the script that the command prints."""
    called = flagsvc("completion", shell)
    assert (called.code, called.err) == (0, "")
    return called.out


def run(shell: str, *arguments: str, folder: Path, given: str = "") -> str:
    """Run a shell without user settings and return its output. Fail if it fails or prints an error."""
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    done = subprocess.run(
        [needs.program(shell), *arguments], cwd=folder, env=env, input=given, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.programs
@pytest.mark.parametrize("shell", WRITERS)
def test_every_shell_reads_its_script(shell: str, flagsvc: Flagsvc, folder: Path) -> None:
    """The shell finds no syntax error in the script."""
    run(shell, "-n", "/dev/stdin", folder=folder, given=script_of(shell, flagsvc))


ROWS = {"proxy": OPTIONS, "server": SERVER_OPTIONS, "config": (*OPTIONS, *SERVER_OPTIONS)}
"""Command → the options whose flags it takes."""
PARTS = {
    "bash": r"^    'NAME'\) words=\".*$",
    "zsh": r"^    'NAME'\) _arguments (?:.*\n)*?.* ;;$",
    "fish": r"^complete .*__flagsvc_command\) = \"NAME\"'.*$",
}
"""Shell → the pattern of the lines of a command in its script."""


def part_of(script: str, command: str, shell: str) -> str:
    """Return the lines of a script that belong to a command."""
    return "\n".join(re.findall(PARTS[shell].replace("NAME", command), script, re.MULTILINE))


@pytest.mark.parametrize("shell", WRITERS)
def test_every_command_and_option_is_there(shell: str, flagsvc: Flagsvc) -> None:
    """The scripts contain every command and every flag."""
    script = script_of(shell, flagsvc)
    dashes = "-l " if shell == "fish" else "--"
    for command, options in ROWS.items():
        part = part_of(script, command, shell)
        for option in options:
            assert option.in_code_only or re.search(rf"{dashes}{option.flag[2:]}(?![\w-])", part), (command, option.flag)
    for known in COMMANDS:
        assert part_of(script, known.name, shell)


@pytest.mark.programs
@pytest.mark.parametrize(("line", "offered"), [*CASES, *BEHIND_AN_EQUALS_SIGN])
def test_bash(line: str, offered: list[str], flagsvc: Flagsvc, folder: Path) -> None:
    """Bash offers exactly the matching words."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    call = f'\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _flagsvc; printf "%s\\n" "${{COMPREPLY[@]}}"\n'
    given = script_of("bash", flagsvc) + call
    assert sorted(run("bash", "--norc", "/dev/stdin", folder=folder, given=given).split()) == sorted(offered)


FISH = [case if "--enable-oas" not in case[0] else ("flagsvc proxy --enable-oas=t", ["--enable-oas=true"]) for case in CASES]
"""Fish completes an optional value only after an equals sign."""


@pytest.mark.programs
@pytest.mark.parametrize(("line", "offered"), FISH)
def test_fish(line: str, offered: list[str], flagsvc: Flagsvc, folder: Path) -> None:
    """Fish offers the same words."""
    given = script_of("fish", flagsvc) + f"\ncomplete -C '{line}'\n"
    printed = run("fish", "--no-config", "/dev/stdin", folder=folder, given=given)
    assert sorted(each.split("\t")[0] for each in printed.splitlines()) == sorted(offered)


ASKING = """
zmodload zsh/zpty
ask() {
  zpty -b shell zsh -f -i
  zpty -w shell "PS1=; unsetopt zle_bracketed_paste 2> /dev/null; autoload -Uz compinit; compinit -u -D; source script.zsh"
  zpty -w shell "zstyle ':completion:*' list-separator '#'; bindkey '^I' complete-word; print -r -- rea''dy"
  zpty -r shell answer '*ready*' || exit 1
  zpty -w -n shell "$1"$'\\t'
  zpty -r -m shell answer "$2" || exit 1
  zpty -d shell
}
"""


@pytest.mark.programs
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("flagsvc pro", "flagsvc proxy "),
        ("flagsvc proxy --cors-orig", "--cors-origin"),
        ("flagsvc server --log-level d", "debug "),
        ("flagsvc proxy --config fl", "flagsvc.toml "),
        ("flagsvc validate fl", "flagsvc.toml "),
        ("flagsvc help heal", "health "),
        ("flagsvc server token cr", "create "),
        ("flagsvc server token create --type f", "frontend "),
    ],
)
def test_zsh(line: str, completed: str, flagsvc: Flagsvc, folder: Path) -> None:
    """In an interactive zsh, the tab key completes the input."""
    (folder / "script.zsh").write_text(script_of("zsh", flagsvc))
    (folder / "ask.zsh").write_text(f"{ASKING}\nask '{line}' '*{completed}*'\n")
    run("zsh", "-f", "ask.zsh", folder=folder)


def test_an_unknown_shell(flagsvc: Flagsvc) -> None:
    """An unknown shell is bad usage. The message names the known shells."""
    called = flagsvc("completion", "tcsh")
    assert called == (2, "", "flagsvc completion: unknown shell `tcsh`; expected one of bash, zsh, fish\n")
    assert flagsvc("completion").err == "flagsvc completion: missing: SHELL\n"


def test_help_of_a_command(flagsvc: Flagsvc) -> None:
    """`flagsvc help COMMAND` prints the command's --help, and `flagsvc help` the overview. An unknown command is bad usage."""
    for command in COMMANDS:
        words = command.name.split()
        assert flagsvc("help", *words) == flagsvc(*words, "--help")
    assert flagsvc("help") == flagsvc("--help")
    called = flagsvc("help", "confg")
    assert called == (2, "", "flagsvc help: unknown command `confg`; did you mean `config`?\n")


OF_PROGRAMS = ("proxy", "server", "config", "health")
"""The commands with flags from the option tables. All others have only their own flags."""


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.name not in OF_PROGRAMS], ids=lambda each: each.name)
def test_short_help_has_every_argument_of_the_command_itself(command: Command, flagsvc: Flagsvc) -> None:
    """An argument stays even if an option of the proxy has its name, such as `--environment`."""
    _, parser = open_command(command)
    lines = flagsvc(*command.name.split(), "-h").out.splitlines()
    for action in parser._actions:
        if getattr(action, ROW, "").endswith(FILE_NAME):  # the file of a secret option of the flag server
            continue
        word = action.option_strings[-1] if action.option_strings else str(action.metavar)
        assert any(line.strip().startswith(word) for line in lines[1:]), word


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_short_help(command: Command, flagsvc: Flagsvc) -> None:
    """Both forms are printed, and -h is no longer. For commands with many options it has the common ones, in less than 50 lines."""
    name = command.name
    called = flagsvc(*name.split(), "-h")
    assert (called.code, called.err) == (0, "") and called.out.startswith(f"usage: flagsvc {name}")
    long = flagsvc(*name.split(), "--help")
    assert (long.code, long.err) == (0, "") and long.out.startswith(f"usage: flagsvc {name}")
    assert len(called.out) <= len(long.out)
    if name in OF_PROGRAMS:
        lines = called.out.splitlines()
        assert len(lines) < 50 and lines[-1] == f"flagsvc {name} --help shows all options."
        assert "--config FILE" in called.out and "--port" in called.out and "--cors-max-age" not in called.out


def test_flags_of_the_flag_server(flagsvc: Flagsvc) -> None:
    """`config` and `health` show the flags for --server in a separate group. `health` has only those of the address."""
    for name, flags in (("config", ("--database URL", "--seed-mode", "--base-path")), ("health", ("--base-path",))):
        group = flagsvc("help", name).out.partition("with --server:\n")[2]
        assert all(f"\n  {flag}" in f"\n{group}" for flag in flags), name
    assert "--database" not in flagsvc("help", "health").out
    assert "that say where it listens" in " ".join(flagsvc("health", "-h").out.split())
