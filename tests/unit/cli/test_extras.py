"""A command whose extra is not installed prints one sentence with the pip command. The exit code is 2."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.core.extras import EXTRAS
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.settings.options import ProxyOptions
from support.cli_helpers import ENOUGH, Flagsvc
from support.fake_upstream import fake_upstream

SERVER = "redis://storage:6379/0"
SENTENCE = "the extra `{0}` is not installed; type in the folder of the source: pip install '.[{0}]'"
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


def test_a_document_is_evaluated_without_an_extra(
    flagsvc: Flagsvc, without: Callable[[str], None], tmp_path: Path
) -> None:
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


def test_a_storage_server_is_a_wrong_option_without_its_extra(
    flagsvc: Flagsvc, without: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`flagsvc config` and `flagsvc proxy` report the missing extra with the other problems of the configuration."""
    without("redis")
    problem = f"storage (environment FLAGSVC_STORAGE): {SENTENCE.format('redis')}"
    env = ENOUGH | {"FLAGSVC_STORAGE": SERVER}
    assert flagsvc("config", env=env)[::2] == (2, f"flagsvc config: {problem}\n")
    started = flagsvc("proxy", env=env | {"PORT": "x"})
    assert started.code == 2
    assert started.err.startswith("flagsvc proxy: 2 problems\n") and f"  - {problem}\n" in started.err


def test_a_start_alone_tells_it(flagsvc: Flagsvc, without: Callable[[str], None]) -> None:
    """The missing extra alone stops the start before there is a listener."""
    without("redis")
    called = flagsvc("proxy", "--storage", SERVER, env=ENOUGH)
    assert called == (2, "", f"flagsvc proxy: storage: {SENTENCE.format('redis')}\n")


@pytest.mark.parametrize("storage", ["none", "file:///var/lib/flagsvc"])
def test_another_storage_needs_no_extra(flagsvc: Flagsvc, without: Callable[[str], None], storage: str) -> None:
    """Storage in a folder, or no storage, needs no extra."""
    without("redis")
    assert flagsvc("config", env=ENOUGH | {"FLAGSVC_STORAGE": storage})[::2] == (0, "")


def test_a_mounted_proxy_refuses_such_a_storage(without: Callable[[str], None]) -> None:
    """In code a missing extra raises ConfigurationError when the setup is made."""
    given = ProxyOptions(flagsvc_url=f"{URL}/api", flagsvc_api_token="t", client_keys=["k"], storage=SERVER)
    make_setup(given)
    without("redis")
    with pytest.raises(ConfigurationError, match="pip install '\\.\\[redis\\]'"):
        make_setup(given)
