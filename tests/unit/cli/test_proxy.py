"""`flagsvc proxy`: it reads options from all sources, logs warnings, and serves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flagsvc.process.reload import ConfigurationFiles
from flagsvc.settings.load import accepted
from flagsvc.settings.options import ProxyOptions
from support.cli_helpers import ENOUGH, Flagsvc


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ProxyOptions]:
    """Return the list of options that would have been served; serving ends immediately with exit code 7."""
    seen: list[ProxyOptions] = []

    def serve(options: ProxyOptions, again: ConfigurationFiles) -> int:
        seen.append(options)
        assert accepted(again.read(), ProxyOptions).options == options, "what is read again is what was read"
        return 7

    monkeypatch.setattr("flagsvc.process.serve.serve", serve)
    return seen


def test_it_serves_what_was_given(flagsvc: Flagsvc, served: list[ProxyOptions], tmp_path: Path) -> None:
    """Flags, environment and file together make the options; the server's exit code is the command's."""
    file = tmp_path / "flagsvc.toml"
    file.write_text('environment = "staging"\nport = 1\n')
    called = flagsvc("proxy", "--config", str(file), "--enable-oas", env=ENOUGH | {"PORT": "2"})
    assert called == (7, "", "")
    (options,) = served
    assert (options.environment, options.port, options.enable_oas) == ("staging", 2, True)
    assert options.flagsvc_api_token == "t0ken"


def test_nothing_is_served_with_problems(flagsvc: Flagsvc, served: list[ProxyOptions]) -> None:
    """A wrong value stops the start with exit code 2 and every problem (behaviour: Odd values)."""
    called = flagsvc("proxy", "--log-level", "loud", env=ENOUGH | {"JSON_LOGGER": "maybe"})
    assert called.code == 2 and served == []
    assert called.err.splitlines() == [
        "flagsvc proxy: 2 problems",
        "  - useJsonLogger (environment JSON_LOGGER): expected true or false, got `maybe`",
        "  - logLevel (flag --log-level): expected one of debug, info, warn, error, fatal, got `loud`",
    ]


def test_the_names_of_another_program_are_told_before_the_problems(flagsvc: Flagsvc, served: list[ProxyOptions]) -> None:
    """Warnings about variables of Unleash Edge come before the problems, with our names for them."""
    called = flagsvc("proxy", env={"UPSTREAM_URL": "http://h", "TOKENS": "s3cret"})
    assert called.code == 2 and served == [] and "s3cret" not in called.err
    first, second, third, fourth, *_ = called.err.splitlines()
    assert "environment TOKENS: flagsvc does not read it; use FLAGSVC_API_TOKEN" in first
    assert "environment UPSTREAM_URL: flagsvc does not read it; use FLAGSVC_URL, with /api behind it" in second
    assert "environment: `flagsvc migrate` translates the variables of Unleash Edge, all at once" in third
    assert fourth == "flagsvc proxy: 3 problems"


def test_files_of_code_are_not_run_only_to_be_checked(flagsvc: Flagsvc, served: list[ProxyOptions], tmp_path: Path) -> None:
    """The command does not import files of code only to check them."""
    path = tmp_path / "custom.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nstrategies = []\n")
    assert flagsvc("proxy", env=ENOUGH | {"FLAGSVC_CUSTOM_STRATEGIES_FILE": str(path)}).code == 7
    assert not (tmp_path / "ran").exists()


def test_warnings_are_logged(flagsvc: Flagsvc, served: list[ProxyOptions]) -> None:
    """Warnings are logged as text or JSON, as the options say; with --log-level=error there are none."""
    text = flagsvc("proxy", env=ENOUGH | {"FLAGSVC_ULR": "x"})
    assert text.err.count("\n") == 1 and " warn  " in text.err
    assert "configuration: environment FLAGSVC_ULR: no option reads this variable; did you mean `FLAGSVC_URL`?" in text.err
    line = json.loads(flagsvc("proxy", "--use-json-logger", env={"CORS_CREDENTIALS": "on", **ENOUGH}).err.splitlines()[0])
    assert line["level"] == "warn" and "cors.credentials" in line["message"]
    assert flagsvc("proxy", "--log-level=error", env=ENOUGH | {"FLAGSVC_ULR": "x"}).err == ""
