"""From options to the lasting parts of an application."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError, ExtensionError
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.generations.setup import (
    RENAMED,
    make_setup,
    next_setup,
    what_decides_flags,
    what_decides_the_side,
    with_keys_of_both,
)
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.table import BY_NAME
from flagsvc.testing import RecordingLog
from support.apps_options import options
from support.option_samples import SAMPLES


@pytest.mark.parametrize(
    ("token", "environment"),
    [("a.b:production.secret", "production"), ("*:test.sec.ret", "test"), ("secret", "named"), ("se.cret", "named")],
)
def test_the_environment_of_the_upstream(token: str, environment: str) -> None:
    """The upstream's token names it, with any name of its project; else the one that the options name."""
    setup = make_setup(options(flagsvc_api_token=token, environment="named"))
    assert setup.service_settings.upstream_environment == environment


def test_every_setting_of_the_contract_has_an_option() -> None:
    """Each field of ServiceSettings is an option of the same name, or one that RENAMED names; none is left at its default."""
    samples = {BY_NAME[name].field: value for name, (_, value) in SAMPLES.items()}
    samples |= {
        "custom_strategies": [SimpleNamespace(name="mine", is_enabled=lambda parameters, context: True)],
        "rate_limit_burst": 1_000_000,
    }
    names = [RENAMED.get(field.name, field.name) for field in fields(ServiceSettings)]
    given = {name: samples[name] for name in names if name != "upstream_environment"}
    plain, other = (make_setup(options(**each)).service_settings for each in ({}, given | {"flagsvc_api_token": "*:other.secret"}))
    assert not [field.name for field in fields(other) if getattr(plain, field.name) == getattr(other, field.name)]
    assert other.server_tokens == given["exp_server_side_sdk_config_tokens"]
    assert (other.base_path, other.app_name) == (given["proxy_base_path"], given["flagsvc_app_name"])


def test_secrets_do_not_reach_the_log() -> None:
    """No log line contains a secret of the options."""
    log = RecordingLog()
    given = ProxyOptions(
        flagsvc_url="http://127.0.0.1:1/api",
        flagsvc_api_token="the-api-token",
        http_proxy="http://me:the-proxy-secret@127.0.0.1:1",
        https_proxy="http://me:the-proxy-secret@127.0.0.1:1",
        client_keys="first-client-key,other-client-key",
        exp_server_side_sdk_config_tokens="the-server-token",
        exp_bootstrap_url="http://127.0.0.1:1/b",
        exp_bootstrap_authorization="the-bootstrap-secret",
        logger=log,
    )
    setup = make_setup(given)
    text = "the-api-token first-client-key other-client-key the-server-token the-bootstrap-secret"
    setup.log.warn(text, field=text)
    assert log.lines[0].event == "*** *** *** *** ***"
    assert log.lines[0].fields == {"field": "*** *** *** *** ***"}
    for secret in [*text.split(), "the-proxy-secret"]:
        assert secret not in repr(setup)
    assert "client_keys_header_name" in repr(setup.service_settings)


def divided(**given: Any) -> ProxyOptions:
    """Return options of two environments, the second one with more."""
    environments = {"a": {"client_keys": "client-key-a"}, "b": {"client_keys": "client-key-b", **given.pop("b", {})}}
    return ProxyOptions(**{"flagsvc_url": "file:///flags.json", "environments": environments, **given})


def test_setups_of_environments() -> None:
    """Each environment has options, keys and a name, which its log lines have. The process has the clock and the secrets."""
    log = RecordingLog()
    made = make_setup(divided(logger=log, b={"name_prefix": "x", "flagsvc_app_name": "app-b"}))
    first, second = made.environments
    assert (made.name, first.name, second.name) == ("", "a", "b") and made.has_several
    assert (first.service_settings.client_keys, second.service_settings.client_keys) == (("client-key-a",), ("client-key-b",))
    assert (first.compile_options.name_prefix, second.compile_options.name_prefix) == (None, "x")
    assert first.compile_options.hostname == second.compile_options.hostname != ""
    assert (first.identity.app_name, second.identity.app_name) == ("flagsvc-proxy", "app-b")
    assert first.clock is second.clock is made.clock and first.secrets is made.secrets
    for each in (made, first, second):
        each.log.info("event client-key-a", more=1)
        each.service_log.info("request")
    a, b = {"environment": "a"}, {"environment": "b"}
    assert [line.fields for line in log.lines] == [{"more": 1}, {}, {**a, "more": 1}, a, {**b, "more": 1}, b]
    assert {line.event for line in log.lines} == {"event ***", "request"}


def coded(folder: Path, *names: str, **given: Any) -> ProxyOptions:
    """Return options of two environments with a strategy of each of two names: of the process, and of the second environment."""
    for name in names:
        text = f"class A:\n    name = {name!r}\n    def is_enabled(self, p, c): ...\nstrategies = [A()]\n"
        (folder / f"{name}.py").write_text(text)
    whole, own = (f"{folder}/{name}.py" for name in names)
    return divided(custom_strategies=whole, b={"custom_strategies": own}, **given)


def test_custom_code_of_environments(tmp_path: Path) -> None:
    """An environment without files of its own shares the code of the process; one with files has its own."""
    made = make_setup(coded(tmp_path, "all", "own"))
    first, second = made.environments
    assert first.strategies is made.strategies and list(second.strategies.by_name) == ["own"]
    assert list(second.compile_options.custom_strategies) == ["own"]
    assert first.compile_options.code_digest != second.compile_options.code_digest != ""
    with pytest.raises(ExtensionError, match="does not exist"):
        make_setup(divided(b={"custom_strategies": "none.py"}))
    with pytest.raises(ConfigurationError, match="upstreamCa"):
        make_setup(divided(b={"upstream_ca": "none.pem"}))


def test_custom_strategies_with_the_names_of_built_in_ones(tmp_path: Path) -> None:
    """Each warning comes once, with the environment if only this environment has it; a worker tells nothing."""
    log = RecordingLog()
    given = coded(tmp_path, "default", "userWithId", logger=log)
    make_setup(given)
    assert [(line.level, line.fields) for line in log.lines] == [
        ("warn", {"strategy": "default"}),
        ("warn", {"environment": "b", "strategy": "userWithId"}),
    ]
    log.lines.clear()
    make_setup(given, is_worker=True)
    assert log.lines == []


def test_renewed_setups_of_environments() -> None:
    """The setup that has not changed is the same. With other keys it has the same upstream side."""
    log = RecordingLog()
    before = make_setup(divided(logger=log, b={"flagsvc_api_token": "*:a.former"}))
    same = next_setup(before, divided(logger=log, b={"flagsvc_api_token": "*:a.former"}))
    assert same.environments[0] is before.environments[0] and same.environments[1] is before.environments[1]
    keys = {"client_keys": "present-key", "exp_server_side_sdk_config_tokens": "a-server-token"}
    keyed = next_setup(before, divided(logger=log, b={**keys, "flagsvc_api_token": "*:a.present"}))
    assert (keyed.log, keyed.identity, keyed.strategies) == (before.log, before.identity, before.strategies)
    first, second = keyed.environments
    assert first is before.environments[0] and second is not before.environments[1]
    assert second.side == before.environments[1].side and second.strategies is before.environments[1].strategies
    settings = second.service_settings
    assert (settings.client_keys, settings.server_tokens) == (("present-key",), ("a-server-token",))
    assert second.options.flagsvc_api_token == "*:a.present"
    for setup in (before, keyed):
        setup.log.warn("*:a.former client-key-b present-key *:a.present a-server-token")
    assert [line.event for line in log.lines] == ["*** *** *** *** ***"] * 2


SCOPED = {"flagsvc_api_token": "*:a.1"}
SEVERAL = {"flagsvc_api_token": "[]:a.1"}
OPAQUE = {"flagsvc_api_token": "one"}
GITLAB = {"flagsvc_url": "https://gitlab.example/api/v4/feature_flags/unleash/7", "flagsvc_instance_id": "one"}


@pytest.mark.parametrize(
    ("former", "more", "flags", "side"),
    [
        (SCOPED, {"flagsvc_api_token": "*:a.2"}, False, False),
        (SCOPED, {"flagsvc_api_token": "*:b.1"}, True, True),
        (SCOPED, {"flagsvc_api_token": "p:a.1"}, True, True),
        (SCOPED, {}, False, False),
        (OPAQUE, {}, False, False),
        (OPAQUE, {"flagsvc_api_token": "two"}, True, True),
        (SEVERAL, {}, False, False),
        (SEVERAL, {"flagsvc_api_token": "[]:a.2"}, True, True),
        (OPAQUE, SCOPED, True, True),
        (SCOPED, OPAQUE, True, True),
        (GITLAB, {"flagsvc_instance_id": "two"}, True, True),
        ({}, {}, False, False),
        ({}, {"client_keys": "new", "exp_server_side_sdk_config_tokens": "new"}, False, False),
        ({}, {"cors_origin": "https://a", "max_staleness": 1, "enable_all_endpoint": True}, False, False),
        ({}, {"refresh_interval": 1}, False, True),
        ({}, {"flagsvc_app_name": "x", "flagsvc_instance_id": "y"}, False, True),
        ({}, {"answer_cache_bytes": 7}, False, True),
        ({}, {"hash_encoding": "utf8"}, False, True),
        ({}, {"flagsvc_url": "http://other/api", "tags": "a:b"}, True, True),
        ({}, {"project_name": "p", "name_prefix": "n"}, True, True),
        ({}, {"upstream_headers": "X-Tenant: a"}, True, True),
        ({}, {"environment": "e"}, True, True),
    ],
)
def test_options_that_decide(former: dict[str, Any], more: dict[str, Any], flags: bool, side: bool) -> None:
    """Some decide which flags a key opens, and more of them what the upstream side is."""
    before, after = options(**former), options(**former | more)
    assert (what_decides_flags(before) != what_decides_flags(after)) is flags
    assert (what_decides_the_side(before) != what_decides_the_side(after)) is side


def test_keys_that_two_setups_list() -> None:
    """A key of another kind now is none of them. Everything else is that of the first setup."""
    former = make_setup(options(client_keys="both,old", exp_server_side_sdk_config_tokens="sdk")).environments[0]
    given = {"client_keys": "both,new,sdk", "exp_server_side_sdk_config_tokens": "", "name_prefix": "x"}
    found = with_keys_of_both(former, make_setup(options(**given)).environments[0])
    assert found.keys == ("both",) and found.options.name_prefix is None and found.side == former.side
    assert with_keys_of_both(former, former) is former
