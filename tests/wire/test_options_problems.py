"""A configuration in which everything is wrong: every problem is told at once, with option and source, and no secret."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from flagsvc import ConfigurationError, ProxyOptions
from flagsvc.settings.options import OPTIONS
from flagsvc.settings.table import BY_NAME
from support.processes import flagsvc, running

BAD = "not \x01 text"
SECRET = "very-secret\x01"
WRONG = {
    "flagsvcUrl": "flags.example/api",
    "flagsvcApiToken": SECRET,
    "clientKeys": f"one,{SECRET}",
    "proxySecrets": SECRET,
    "port": "70000",
    "proxyBasePath": "base path",
    "flagsvcAppName": BAD,
    "flagsvcInstanceId": BAD,
    "refreshInterval": "5s",
    "metricsInterval": "-1",
    "metricsJitter": "1.5",
    "environment": BAD,
    "projectName": BAD,
    "useJsonLogger": "maybe",
    "logLevel": "wrn",
    "customStrategies": "strategies.js",
    "trustProxy": "2",
    "namePrefix": BAD,
    "tags": "team",
    "clientKeysHeaderName": "Content-Length",
    "enableOAS": "2",
    "enableAllEndpoint": "enabled",
    "cors.allowedHeaders": "X One",
    "cors.credentials": "include",
    "cors.exposedHeaders": "E:Tag",
    "cors.maxAge": "-2",
    "cors.methods": "GET;POST",
    "cors.optionsSuccessStatus": "404",
    "cors.origin": "www.example.com",
    "cors.preflightContinue": "-",
    "httpOptions.rejectUnauthorized": "never",
    "httpProxy": "socks5://127.0.0.1",
    "httpsProxy": "https://",
    "expBootstrap.url": "flags.json",
    "expBootstrap.urlHeaders.Authorization": SECRET,
    "expServerSideSdkConfig.tokens": SECRET,
    "expCustomEnrichers": "a.py,enrichers.ts",
    "host": "300.1.1.1",
    "keepAliveTimeout": "0",
    "bodyLimit": "1 GB",
    "metricsBodyLimit": "0",
    "headerLimit": "x",
    "queryLimit": "-1",
    "answerCacheBytes": "-1",
    "workers": "0",
    "workerTimeout": "499",
    "noProxy": BAD,
    "upstreamTimeout": "0",
    "metricsBuffer": "0",
    "metricsBufferBytes": "0",
    "metricsBatch": "0",
    "variantFeatureState": "2",
    "hashEncoding": "utf16",
    "storage": "some/folder",
    "storagePassword": SECRET,
    "storageCa": BAD,
    "storageCert": BAD,
    "storageKey": BAD,
    "storageKeyPassword": SECRET,
    "storageTimeout": "0",
    "storagePrefix": "two words",
    "leaseTime": "20",
    "accessLog": "stdout",
    "shutdownGrace": "5s",
    "watchInterval": "-1",
    "keyOverlap": "forever",
    "tlsCert": BAD,
    "tlsKey": BAD,
    "tlsKeyPassword": SECRET,
    "tlsMinVersion": "1.1",
    "tlsClientCa": BAD,
    "tlsHandshakeTimeout": "0",
    "socketMode": "0888",
    "adminAddress": "127.0.0.1",
    "upstreamCa": BAD,
    "upstreamCert": BAD,
    "upstreamKey": BAD,
    "upstreamKeyPassword": SECRET,
    "maxStaleness": "-1",
    "retryAfterLimit": "3600001",
    "ageHeader": "ETag",
    "maxConnections": "0",
    "requestMemory": "0",
    "headerTimeout": "0",
    "bodyTimeout": "1m",
    "writeTimeout": "never",
    "jsonDepthLimit": "7",
    "contextPropertiesLimit": "0",
    "contextValueLimit": "4 kB",
    "toggleLimit": "none",
    "rateLimitKey": "-1",
    "rateLimitAddress": "10/s",
    "rateLimitBurst": "0.5",
    "enricherTimeout": "0",
    "enricherFailure": "ignore",
}
WAYS = ("variable", "alias", "file", "flag")
WRONG_OBJECTS: dict[str, Any] = {"logger": print, "storage_provider": "a folder", "exp_bootstrap": 7}


def test_every_option_can_be_wrong() -> None:
    """The table has a wrong value for each option that is not for code only."""
    assert set(WRONG) == {option.name for option in OPTIONS if not option.in_code_only}


def spread(shift: int, folder: Path) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Return an environment, arguments and the source of each wrong value, when they are spread over all ways to give them."""
    environment: dict[str, str] = {"UNLEASH_SHUTDOWN_GRACE": ""}  # what programs of tests are given otherwise
    arguments, sources, lines = list[str](), dict[str, str](), list[str]()
    path = folder / "wrong.toml"
    for number, (name, text) in enumerate(WRONG.items()):
        option, way = BY_NAME[name], WAYS[(number + shift) % len(WAYS)]
        plain = [variable.name for variable in option.variables if not variable.holds_path]
        if way == "file":
            lines.append(f"{name} = {json.dumps(text)}")
            sources[name] = f"file {path}"
        elif way == "flag":
            arguments.append(f"{option.flag}={text}")
            sources[name] = f"flag {option.flag}"
        else:
            variable = plain[0 if way == "variable" else -1]
            environment[variable] = text
            sources[name] = f"environment {variable}"
    path.write_text("\n".join(lines))
    return environment, ["--config", str(path), *arguments], sources


@pytest.mark.parametrize("command", ["config", "proxy"])
@pytest.mark.parametrize("shift", range(len(WAYS)))
def test_all_problems_come_at_once(shift: int, command: str, tmp_path: Path) -> None:
    """Exit code 2, one message with a line for each option and its source, no trace, nothing of a secret."""
    environment, arguments, sources = spread(shift, tmp_path)
    with running("flagsvc", [*flagsvc(), command, *arguments], env=environment, folder=tmp_path) as program:
        assert program.process.wait(20) == 2
    output = program.output()
    problems = dict(re.findall(r"^  - (\S+) \(([^)]*)\): expected ", output, re.MULTILINE))
    assert problems == sources
    assert f"flagsvc {command}: {len(WRONG)} problems\n" in output
    assert "very-secret" not in output and "Traceback" not in output


def test_all_problems_come_at_once_in_code() -> None:
    """The error names every option by its name in code, those for code only included."""
    given: dict[str, Any] = {BY_NAME[name].field: text for name, text in WRONG.items()} | WRONG_OBJECTS
    with pytest.raises(ConfigurationError) as caught:
        ProxyOptions(**given)
    about = {re.split("[: ]", problem)[0] for problem in caught.value.problems}
    assert about == {*given, "expBootstrap"} - {"exp_bootstrap"}
    assert len(caught.value.problems) == len(given) and "very-secret" not in str(caught.value)
