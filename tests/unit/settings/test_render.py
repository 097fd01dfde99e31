"""Option rows as text: the dump, JSON, flags with their help, and the reference page."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from flagsvc.settings.load import load, resolve
from flagsvc.settings.names import DIVIDED
from flagsvc.settings.option import Option, Scope, Section
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import add_options, as_json, given_flags, in_effect, reference, what_is_set
from flagsvc.settings.server import resolve_server, server_reference
from flagsvc.settings.table import BY_NAME, MOST_USED, OPTIONS, SERVER_OPTIONS
from support.option_samples import SAMPLES
from support.settings_samples import BASE

SECTIONS = [section for section in Section if section not in (Section.SIGN_IN, Section.WEBHOOKS)]
"""The sections of the proxy. It has nothing to do with signing in."""

SETTABLE = [option for option in OPTIONS if not option.in_code_only]


def lines(text: str) -> dict[str, str]:
    """Return the lines of a dump by option."""
    return {line.split()[0]: line for line in text.splitlines() if line.startswith("  ")}


def test_the_dump_names_every_option() -> None:
    """Every option except those for code only has a line in its section, with value and source."""
    dump = in_effect(resolve(BASE, None, {"port": "8080"}))
    shown = lines(dump)
    assert set(shown) == {option.name for option in SETTABLE} - {"proxySecrets"}
    assert shown["port"].split() == ["port", "8080", "flag", "--port"]
    assert shown["cors.maxAge"].split() == ["cors.maxAge", "172800", "s", "default"]
    assert shown["host"].split("  ")[-1] == "default" and "(all addresses, IPv4 and IPv6)" in shown["host"]
    assert [line for line in dump.splitlines() if line and line[0] != " "] == [section.value for section in SECTIONS]


def test_the_dump_is_aligned() -> None:
    """Values and sources are in columns. A long value moves only its own source."""
    shown = lines(in_effect(resolve(BASE | {"FLAGSVC_APP_NAME": "x" * 200}, None, {})))
    assert len({line.index(line.split()[1]) for line in shown.values()}) == 1
    assert len({line.rindex("  default") for line in shown.values() if line.endswith("  default")}) == 1
    assert shown["flagsvcAppName"].endswith(f"{'x' * 200}  environment FLAGSVC_APP_NAME")


def test_what_is_set_leaves_out_the_defaults() -> None:
    """The short dump has only set or wrong options, and the number of the others."""
    shown = what_is_set(resolve(BASE | {"PORT": "x"}, None, {"logLevel": "info"}))
    assert set(lines(shown)) >= {"flagsvcUrl", "clientKeys", "port", "logLevel"} and "host" not in lines(shown)
    assert re.search(r"^\d+ other options have their defaults: --all shows them$", shown, re.MULTILINE)
    flag_server = what_is_set(resolve_server({}, None, {}), SERVER_OPTIONS)
    assert re.fullmatch(r"\d+ options have their defaults: --all shows them", flag_server)


def test_json() -> None:
    """The JSON has native values, sources, warnings and problems."""
    found = json.loads(as_json(resolve(BASE | {"PORT": "x", "CORS_METHODS": "GET", "FLAGSVC_ULR": "y"}, None, {})))
    assert found["options"]["cors.methods"] == {"value": ["GET"], "source": "environment CORS_METHODS"}
    assert found["options"]["cors.maxAge"] == {"value": 172800, "source": "default"}
    assert found["options"]["port"] == {"value": None, "source": "environment PORT"}
    assert found["options"]["clientKeys"]["value"] == ["***"]
    assert len(found["warnings"]) == len(found["problems"]) == 1


@pytest.mark.parametrize("rows", [OPTIONS, SERVER_OPTIONS], ids=["proxy", "flag server"])
def test_advanced_options_are_behind_the_others(rows: tuple[Option, ...]) -> None:
    """Help and reference page have every option once, those that hardly anyone sets under `Advanced`, in the same sections."""
    made = ArgumentParser()
    add_options(made, rows=rows)
    groups = [str(group.title) for group in made._action_groups]
    advanced = [title.startswith("advanced: ") for title in groups]
    assert advanced == sorted(advanced) and True in advanced
    page = reference() if rows is OPTIONS else server_reference()
    common, rest = page.split("\n## Advanced\n")
    for text, wanted in ((common, False), (rest, True)):
        names = re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE)
        assert sorted(names) == sorted(option.name for option in rows if option.advanced is wanted)
    titles = [section.value for section in Section]
    for text, mark in ((common, "##"), (rest, "###")):
        found = re.findall(f"^{mark} (.+)$", text, re.MULTILINE)
        assert found == [title for title in titles if title in found]


def test_what_most_deployments_set_is_not_advanced() -> None:
    """Required and most used options are in front. An option in front needs no advanced one, and there are fewer of them."""
    for rows in (OPTIONS, SERVER_OPTIONS):
        by_name = {option.name: option for option in rows}
        front = [option for option in rows if not option.advanced]
        assert not [option.name for option in front if option.needs and by_name[option.needs].advanced]
        assert {option.name for option in rows if option.required} <= {option.name for option in front}
    assert not [name for name in MOST_USED if BY_NAME[name].advanced]
    assert sum(option.advanced for option in OPTIONS) > len(OPTIONS) / 2


@cache
def parser(*names: str) -> ArgumentParser:
    """Return a parser with the flags of some options, or of all."""
    made = ArgumentParser(prog="flagsvc proxy")
    add_options(made, names or None)
    return made


@pytest.mark.parametrize("option", SETTABLE, ids=lambda option: option.name)
def test_every_option_has_its_flag(option: Option) -> None:
    """A flag sets the option, with a space or an equals sign before the value."""
    text = SAMPLES[option.name][0]
    for arguments in ([option.flag, text], [f"{option.flag}={text}"]):
        assert given_flags(vars(parser().parse_args(arguments))) == {option.name: text}


def test_flags_of_files_and_booleans() -> None:
    """A secret has a second flag for its file; a boolean's flag alone means true."""
    parsed = parser().parse_args(["--api-token-file", "/run/token", "--enable-oas", "--access-log=off"])
    assert given_flags(vars(parsed)) == {"flagsvcApiTokenFile": "/run/token", "enableOAS": "true", "accessLog": "off"}
    loaded = load(BASE, None, {"enableOAS": "true", "accessLog": "off"})
    assert (loaded.options.enable_oas, loaded.options.access_log) == (True, False)


def test_help() -> None:
    """The help is grouped by section and has every option's flag and first variable. A command may have only some options."""
    text = " ".join(parser().format_help().split())
    for option in SETTABLE:
        assert option.flag in text and option.reads[0] in text
        assert option.secret == (f"{option.flag}-file" in text)
    for section in SECTIONS:
        assert f"{section.value.lower()}:" in text
    assert "[PORT, PROXY_PORT; default: 3000]" in text
    assert "[FLAGSVC_URL; required]" in text
    assert "[FLAGSVC_ENVIRONMENT]" in text
    text = parser("port", "host").format_help()
    assert "--port" in text and "--cors-origin" not in text and "cors:" not in text


def test_the_reference_has_a_row_for_every_option() -> None:
    """Every option has one row of seven cells, special characters are escaped, and the page is what `make docs` writes."""
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == [row.name for row in sorted(OPTIONS, key=lambda option: option.advanced)]
    assert {row.replace("\\|", "").count("|") for row in rows} == {8}
    assert "https://\\*.example.com" in reference() and "`*`" in reference()


def test_the_reference_tells_which_options_may_differ() -> None:
    """The last cell of a row says what the table of an environment may hold. The flag server has no environments of this kind."""
    last = {row.split("`")[1]: row.split(" | ")[-1] for row in reference().splitlines() if row.startswith("| `")}
    divided = {name for name, cell in last.items() if cell != "– |"}
    assert divided == {option.name for option in DIVIDED}
    own = {name for name, cell in last.items() if cell == "its own |"}
    assert own == {option.name for option in OPTIONS if option.scope is Scope.OWN} and "clientKeys" in own
    assert "Per environment" in reference() and "Per environment" not in server_reference()


def test_the_example_of_the_reference_is_true(tmp_path: Path) -> None:
    """The TOML example on the page is a valid configuration."""
    example = reference().split("```toml\n")[1].split("```")[0]
    path = tmp_path / "flagsvc.toml"
    path.write_text(example.replace("/run/secrets/flagsvc-api-token", str(tmp_path / "token")))
    (tmp_path / "token").write_text("t")
    loaded = load({"HOME": "/home/somebody"}, path, {})
    assert loaded.options.client_keys == ("web-app", "ios-app") and loaded.warnings == []


ENVIRONMENTS = {
    "FLAGSVC_ENVIRONMENTS": "prod-eu,test",
    "FLAGSVC_PROD_EU_URL": "http://127.0.0.1:4242/api",
    "FLAGSVC_PROD_EU_API_TOKEN": "s3cret-token",
    "FLAGSVC_PROD_EU_PROXY_CLIENT_KEYS": "s3cret-key",
    "FLAGSVC_TEST_PROXY_SECRETS": "s3cret-old",
    "FLAGSVC_TEST_FETCH_INTERVAL": "x",
    "FLAGSVC_METRICS_INTERVAL": "7000",
}


@pytest.mark.parametrize("dump", [in_effect, what_is_set])
def test_environments_in_the_dump(dump: Callable[[Resolved], str]) -> None:
    """Behind the options of the process, each environment has a block with what it has of its own, or lacks. Secrets are masked."""
    text = dump(resolve({"HOME": "/h", **ENVIRONMENTS}, None, {}))
    assert ["metricsInterval", "7000", "ms", "environment", "FLAGSVC_METRICS_INTERVAL"] in map(str.split, text.splitlines())
    assert "s3cret" not in text
    blocks = text[text.index("[environments.prod-eu]") :].split("\n\n")
    assert blocks[:2] == [
        "[environments.prod-eu]\n"
        "  flagsvcUrl       http://127.0.0.1:4242/api  environment FLAGSVC_PROD_EU_URL\n"
        "  flagsvcApiToken  ***                        environment FLAGSVC_PROD_EU_API_TOKEN\n"
        "  clientKeys       ***                        environment FLAGSVC_PROD_EU_PROXY_CLIENT_KEYS",
        "[environments.test]\n"
        "  flagsvcUrl       (missing)\n"
        "  flagsvcApiToken  (missing)\n"
        "  refreshInterval  (refused)  environment FLAGSVC_TEST_FETCH_INTERVAL\n"
        "  clientKeys       ***        environment FLAGSVC_TEST_PROXY_SECRETS\n"
        "  proxySecrets     -          environment FLAGSVC_TEST_PROXY_SECRETS",
    ]


def test_environments_as_json() -> None:
    """Each environment has all options that may differ; one that it inherits has the source `default`. Secrets are masked."""
    text = as_json(resolve({"HOME": "/h", **ENVIRONMENTS}, None, {}))
    found = json.loads(text)
    assert "s3cret" not in text and list(found) == ["options", "environments", "warnings", "problems"]
    assert list(found["environments"]) == ["prod-eu", "test"]
    for part in found["environments"].values():
        assert part.keys() - {"proxySecrets"} == {option.name for option in DIVIDED if not option.deprecated}
        assert part["metricsInterval"] == {"value": 7000, "source": "default"}
    first, second = found["environments"].values()
    assert first["clientKeys"] == {"value": ["***"], "source": "environment FLAGSVC_PROD_EU_PROXY_CLIENT_KEYS"}
    assert second["clientKeys"] == {"value": ["***"], "source": "environment FLAGSVC_TEST_PROXY_SECRETS"}
    assert second["refreshInterval"] == {"value": None, "source": "environment FLAGSVC_TEST_FETCH_INTERVAL"}
    assert [text.split()[:2] for text in found["problems"]] == [
        ["environments.test:", "refreshInterval"],
        ["environments.test:", "flagsvcUrl"],
        ["environments.test:", "flagsvcApiToken"],
    ]


def test_a_single_environment_has_no_name() -> None:
    """The dump and the JSON of an ordinary configuration do not speak of environments."""
    resolved = resolve(BASE, None, {})
    assert "environments" not in as_json(resolved) + in_effect(resolved) + what_is_set(resolved)
