"""The configuration of a peer as people write it down, and ours as `flagsvc migrate` prints it.

The flags that callers of the peers are asked about: 26 of every kind, in two projects and two environments.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

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


@contextmanager
def ours(printed: str, form: str, folder: Path) -> Iterator[processes.Program]:
    """Run ours from what was printed, until the block ends. Variables are read as `docker run --env-file` does."""
    (folder / "flagsvc.toml").write_text(printed)
    lines = [line.partition("=") for line in printed.splitlines() if line and not line.startswith("#")]
    env = {name: value for name, _, value in lines} if form == VARIABLES else {}
    options = ["--config", folder / "flagsvc.toml"] if form == TOML else []
    with processes.running("ours", [*processes.flagsvc(), "proxy", *options], env=env, folder=folder) as program:
        yield program


Json: TypeAlias = dict[str, Any]

DEVELOPMENT, PRODUCTION = "development", "production"
OWN_NAME = "shop-proxy"
"""The name of the peer, and of ours in its place."""
EVERYONE: Json = {"name": "default", "parameters": {}}
EUROPE = {"contextName": "region", "operator": "IN", "values": ["eu", "ch"]}
SEGMENTS = [{"id": 1, "name": "europe", "constraints": [EUROPE]}]


def strategy(*constraints: Json, name: str = "default", **parameters: str) -> Json:
    """Return a strategy."""
    return {"name": name, "parameters": parameters, "constraints": list(constraints)}


def constraint(field: str, operator: str, *values: str, **more: Any) -> Json:
    """Return a constraint; several values are a list."""
    return {"contextName": field, "operator": operator, "values": list(values), **more}


def single(field: str, operator: str, value: str) -> Json:
    """Return a constraint with a single value."""
    return {"contextName": field, "operator": operator, "value": value, "values": []}


def rollout(share: int, group: str, **more: Any) -> Json:
    """Return a rollout by user. It is off without a user id."""
    return strategy(name="flexibleRollout", rollout=str(share), stickiness="userId", groupId=group) | more


def asking(what: str) -> Json:
    """Return a constraint that only some requests meet, so that what they ask about is not in all other answers."""
    return constraint("asking", "IN", what)


def variants(*payloads: tuple[str, str] | None, stickiness: str = "userId") -> list[Json]:
    """Return a variant for each payload, of type and value: `a`, `b` and so on."""
    made: list[Json] = []
    for name, payload in zip("abcdef", payloads, strict=False):
        kept = {"payload": {"type": payload[0], "value": payload[1]}} if payload else {}
        made.append({"name": name, "weight": 1000 // len(payloads), "stickiness": stickiness, **kept})
    return made


TEXTS = variants(("string", "some text"), ("string", "größer"))
DATA = variants(("json", '{"colour": "grün", "size": 2}'), ("json", "[1, 2]"))
RULES: dict[str, Json] = {
    "always": {"impressionData": True},
    "off": {"enabled": False},
    "by-user": {"strategies": [strategy(name="userWithId", userIds="7, 8")]},
    "for-user": {"strategies": [strategy(constraint("userId", "IN", "7"))]},
    "by-region": {"strategies": [strategy(EUROPE)]},
    "not-region": {"strategies": [strategy(constraint("region", "NOT_IN", "us"))]},
    "by-plan": {"strategies": [strategy(constraint("plan", "STR_STARTS_WITH", "PRO", caseInsensitive=True))]},
    "by-size": {"strategies": [strategy(single("size", "NUM_GTE", "5"))]},
    "by-version": {"strategies": [strategy(single("version", "SEMVER_GT", "2.0.0"))]},
    "after-2030": {"strategies": [strategy(single("currentTime", "DATE_AFTER", "2030-06-01T00:00:00.000Z"))]},
    "by-address": {"strategies": [strategy(name="remoteAddress", IPs="10.0.0.0/8, 192.0.2.1")]},
    "by-application": {"strategies": [strategy(constraint("appName", "IN", "shop-web"))]},
    "no-application": {"strategies": [strategy(constraint("appName", "IN", OWN_NAME), asking("application"))]},
    "by-environment": {"strategies": [strategy(constraint("environment", "IN", "default"), asking("environment"))]},
    "by-field": {"strategies": [strategy(constraint("toggles", "IN", "always"))]},
    "in-segment": {"strategies": [strategy() | {"segments": [1]}]},
    "half": {"strategies": [rollout(50, "half")]},
    "several": {"strategies": [strategy(constraint("plan", "IN", "gold")), strategy(constraint("region", "IN", "us"))]},
    "child": {"dependencies": [{"feature": "by-region"}]},
    "text": {"strategies": [rollout(100, "text")], "variants": TEXTS},
    "data": {"strategies": [rollout(100, "data")], "variants": DATA, "impressionData": True},
    "table": {"variants": variants(("csv", "a,b"))},
    "number": {"variants": variants(("number", "42"))},
    "bare": {"variants": variants(None)},
    "shop-banner": {"project": "shop", "strategies": [rollout(100, "shop", variants=TEXTS)]},
    "shop-search": {"project": "shop"},
}
"""Name → what is special about the flag. All others are on for everyone, and of project `default`."""
IN_PRODUCTION: dict[str, Json] = {
    "off": {},
    "always": {"enabled": False},
    "half": {"strategies": [rollout(10, "half")]},
    "number": {"variants": variants(("number", "43"))},
}
"""Name → what is special about the flag in production, where that is something else."""


def document(environment: str) -> Json:
    """Return the configuration of an environment, as the real server gives it."""
    rules = RULES | (IN_PRODUCTION if environment == PRODUCTION else {})
    return {"version": 2, "features": [feature(name, rule) for name, rule in rules.items()], "segments": SEGMENTS}


def feature(name: str, rule: Json) -> Json:
    """Return a flag."""
    plain = {"type": "release", "enabled": True, "project": "default", "stale": False, "description": f"About {name}."}
    return {"name": name, **plain, "impressionData": False, "strategies": [EVERYONE], "variants": [], **rule}
