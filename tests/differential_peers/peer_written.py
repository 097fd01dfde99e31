"""The configuration of a peer as people write it down, and ours as `flagsvc migrate` prints it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from peer_scenes import COMMAND, COMPOSE, EDGE, ENV_FILE, ENVIRONMENT, TOML, VARIABLES, Scene

from support import processes

IMAGES = {EDGE: "unleashorg/unleash-edge:v20.4.1", "@unleash/proxy": "unleashorg/unleash-proxy:v1.4.19"}
SECRET = ("TOKEN", "SECRET", "KEYS")
SWITCHES = ("TRUST_PROXY", "DISABLE_ALL_ENDPOINT")
"""Flags of Edge that have no value on its command line."""


class Written(NamedTuple):
    """What `flagsvc migrate` is given: arguments, and variables of its process."""

    arguments: list[object]
    variables: Mapping[str, str]


def as_environment(scene: Scene, variables: Mapping[str, str], folder: Path) -> Written:
    """Return the variables of the process, with some of others beside them."""
    return Written([], {**variables, "EDITOR": "vi", "SHLVL": "1"})


def as_env_file(scene: Scene, variables: Mapping[str, str], folder: Path) -> Written:
    """Write an env file by hand: comments, blank lines, quotes, `export`."""
    forms = ("{name}={value}", '{name}="{value}"', "export {name}={value}", "{name}='{value}'")
    lines = ["# How the flags get to the shop", ""]
    for number, (name, value) in enumerate(variables.items()):
        lines += [forms[number % len(forms)].format(name=name, value=value), *([""] if number % 5 == 4 else [])]
    (folder / "peer.env").write_text("\n".join(lines))
    return Written(["--env-file", "peer.env"], {})


def as_compose_file(scene: Scene, variables: Mapping[str, str], folder: Path) -> Written:
    """Write a compose file with two services. Secrets are in the file `.env` beside it."""
    secrets = {name: value for name, value in variables.items() if any(part in name for part in SECRET)}
    (folder / ".env").write_text("".join(f"SHOP_{name}='{value}'\n" for name, value in secrets.items()))
    told = {name: f"${{SHOP_{name}}}" if name in secrets else value for name, value in variables.items()}
    service = {
        "image": IMAGES[scene.peer],
        **({"command": [scene.subcommand]} if scene.subcommand else {}),
        "environment": [f"{name}={value}" for name, value in told.items()],
        "healthcheck": {"test": ["CMD", "true"], "interval": "5s"},
        "depends_on": ["cache"],
    }
    # every JSON document is YAML, too
    content = {"services": {"flags": service, "cache": {"image": "valkey/valkey:8"}}}
    (folder / "compose.yaml").write_text(json.dumps(content, indent=2))
    return Written(["--compose", "compose.yaml"], {})


def as_command_line(scene: Scene, variables: Mapping[str, str], folder: Path) -> Written:
    """Return the command line of Edge: flags with their values behind them or after `=`."""
    words: list[object] = ["unleash-edge", scene.subcommand]
    for number, (name, value) in enumerate(variables.items()):
        flag = f"--{name.lower().replace('_', '-')}"
        words += [flag] if name in SWITCHES else [f"{flag}={value}"] if number % 2 else [flag, value]
    return Written(["--", *words], {})


FORMS: Mapping[str, Callable[[Scene, Mapping[str, str], Path], Written]] = {
    ENVIRONMENT: as_environment,
    ENV_FILE: as_env_file,
    COMPOSE: as_compose_file,
    COMMAND: as_command_line,
}


def migrate(written: Written, form: str, folder: Path) -> str:
    """Return what `flagsvc migrate` prints. Nothing may be left to do."""
    options = ["--format", form] if form != TOML else []
    command = [*map(str, processes.flagsvc()), "migrate", *options, *map(str, written.arguments)]
    env = {**processes.clean_environment(folder), **written.variables}
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ours(printed: str, form: str, folder: Path) -> AbstractContextManager[processes.Program]:
    """Run ours from what was printed, until the block ends. Variables are read as `docker run --env-file` does."""
    (folder / "flagsvc.toml").write_text(printed)
    lines = [line.partition("=") for line in printed.splitlines() if line and not line.startswith("#")]
    env = {name: value for name, _, value in lines} if form == VARIABLES else {}
    options = ["--config", folder / "flagsvc.toml"] if form == TOML else []
    return processes.running("ours", [*processes.flagsvc(), "proxy", *options], env=env, folder=folder)
