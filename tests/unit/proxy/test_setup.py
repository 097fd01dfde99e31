"""From options to the lasting parts of an application."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
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
from flagsvc.testing import RecordingLog
from support.apps_options import options


class Named:
    """A strategy of any name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def is_enabled(self, parameters: object, context: object) -> bool:
        """Return True."""
        return True


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
    given = {field.name for field in fields(ProxyOptions)}
    for field in fields(ServiceSettings):
        assert RENAMED.get(field.name, field.name) in given | {"custom_strategies", "upstream_environment"}
    changed = options(
        proxy_base_path="base",
        environment="production",
        trust_proxy=True,
        enable_oas=True,
        enable_all_endpoint=True,
        dialects="frontend",
        tags="team:web",
        flagsvc_api_token="*:other.secret",
        access_log=True,
        admin_address="127.0.0.1:9",
        client_keys_header_name="x-key",
        flagsvc_app_name="app",
        cors_allowed_headers="x-one",
        cors_credentials=True,
        cors_exposed_headers="x-two",
        cors_max_age=1,
        cors_methods="PUT",
        cors_options_success_status=200,
        cors_origin="https://example.com",
        cors_preflight_continue=True,
        body_limit=1,
        metrics_body_limit=2,
        header_limit=3,
        query_limit=4,
        json_depth_limit=8,
        context_properties_limit=6,
        context_value_limit=700,
        toggle_limit=8,
        impact_metrics="sales",
        rate_limit_key=9,
        rate_limit_address=10,
        rate_limit_burst=20,
        enricher_timeout=30,
        enricher_failure="context",
        answer_cache_bytes=0,
        max_staleness=5,
        age_header="x-age",
        exp_server_side_sdk_config_tokens="server",
        custom_strategies=[Named("mine")],
    )
    plain, other = make_setup(options()).service_settings, make_setup(changed).service_settings
    same = [field.name for field in fields(ServiceSettings) if getattr(plain, field.name) == getattr(other, field.name)]
    assert same == ["client_keys"]
    assert (other.base_path, other.server_tokens, other.app_name) == ("/base", ("server",), "app")


def test_compiling_knows_the_options() -> None:
    """The engine gets the hash encoding, the filters, the shape of variants and the custom code with its digest."""
    given = options(
        hash_encoding="utf8",
        project_name="shop",
        name_prefix="a.",
        variant_feature_state=True,
        custom_strategies=[Named("mine")],
    )
    compiling = make_setup(given).compile_options
    assert (compiling.hash_encoding, compiling.project, compiling.name_prefix) == ("utf8", "shop", "a.")
    assert compiling.variant_feature_state and list(compiling.custom_strategies) == ["mine"]
    assert compiling.code_digest and compiling.code_digest != make_setup(options()).compile_options.code_digest
    assert compiling.hostname


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


def test_other_keys() -> None:
    """The next setup has the new keys, and everything else of the former; the loggers of both write neither's secrets."""
    log = RecordingLog()
    before = make_setup(replace(options(logger=log), client_keys="former-key"))
    present = replace(before.options, client_keys="present-key", exp_server_side_sdk_config_tokens="a-server-token")
    after = next_setup(before, present)
    assert after.service_settings.client_keys == ("present-key",) and after.service_settings.server_tokens == (
        "a-server-token",
    )
    assert (after.log, after.identity, after.strategies) == (before.log, before.identity, before.strategies)
    for setup in (before, after):
        setup.log.warn("former-key present-key a-server-token")
    assert [line.event for line in log.lines] == ["*** *** ***"] * 2


def divided(**given: Any) -> ProxyOptions:
    """Return options of two environments, the second one with more."""
    environments = {"a": {"client_keys": "client-key-a"}, "b": {"client_keys": "client-key-b", **given.pop("b", {})}}
    return ProxyOptions(**{"flagsvc_url": "file:///flags.json", "environments": environments, **given})


def test_setups_of_environments() -> None:
    """Each has its options, its keys and its name, which is in its log lines; clock and secrets are those of the process."""
    log = RecordingLog()
    made = make_setup(divided(logger=log, b={"name_prefix": "x", "flagsvc_app_name": "app-b"}))
    first, second = made.environments
    assert (made.name, first.name, second.name) == ("", "a", "b") and made.has_several
    assert (first.service_settings.client_keys, second.service_settings.client_keys) == (
        ("client-key-a",),
        ("client-key-b",),
    )
    assert (first.compile_options.name_prefix, second.compile_options.name_prefix) == (None, "x")
    assert (first.identity.app_name, second.identity.app_name) == ("flagsvc-proxy", "app-b")
    assert first.clock is second.clock is made.clock and first.secrets is made.secrets
    for each in (made, first, second):
        each.log.info("event client-key-a", more=1)
        each.service_log.info("request")
    a, b = {"environment": "a"}, {"environment": "b"}
    assert [line.fields for line in log.lines] == [{"more": 1}, {}, {**a, "more": 1}, a, {**b, "more": 1}, b]
    assert {line.event for line in log.lines} == {"event ***", "request"}


def test_a_single_environment_has_no_name_in_the_log() -> None:
    """It is an environment like others, of the options of the process."""
    log = RecordingLog()
    made = make_setup(options(logger=log))
    [only] = made.environments
    only.log.info("event")
    assert (only.name, only.options, made.has_several) == ("", made.options, False)
    assert [line.fields for line in log.lines] == [{}]


def test_custom_code_of_environments(tmp_path: Path) -> None:
    """An environment without files of its own shares the code of the process; one with files has its own."""
    for name in ("all", "own"):
        (tmp_path / f"{name}.py").write_text(
            f"class A:\n    name = {name!r}\n    def is_enabled(self, p, c): ...\nstrategies = [A()]\n"
        )
    made = make_setup(divided(custom_strategies=f"{tmp_path}/all.py", b={"custom_strategies": f"{tmp_path}/own.py"}))
    first, second = made.environments
    assert first.strategies is made.strategies and list(second.strategies.by_name) == ["own"]
    assert list(second.compile_options.custom_strategies) == ["own"]
    with pytest.raises(ExtensionError, match="does not exist"):
        make_setup(divided(b={"custom_strategies": "none.py"}))
    with pytest.raises(ConfigurationError, match="upstreamCa"):
        make_setup(divided(b={"upstream_ca": "none.pem"}))


def test_custom_strategies_with_the_names_of_built_in_ones(tmp_path: Path) -> None:
    """Each warning comes once, with the environment if only this environment has it; a worker tells nothing, because the parent
    has."""
    for name in ("default", "userWithId"):
        (tmp_path / f"{name}.py").write_text(
            f"class A:\n    name = {name!r}\n    def is_enabled(self, p, c): ...\nstrategies = [A()]\n"
        )
    log = RecordingLog()
    given = divided(
        logger=log, custom_strategies=f"{tmp_path}/default.py", b={"custom_strategies": f"{tmp_path}/userWithId.py"}
    )
    make_setup(given)
    assert [(line.level, line.fields) for line in log.lines] == [
        ("warn", {"strategy": "default"}),
        ("warn", {"environment": "b", "strategy": "userWithId"}),
    ]
    log.lines.clear()
    make_setup(given, is_worker=True)
    assert log.lines == []


def test_renewed_setups_of_environments() -> None:
    """The setup that has not changed is the same. With other keys it has the same upstream side; new secrets are masked."""
    log = RecordingLog()
    before = make_setup(divided(logger=log, b={"flagsvc_api_token": "*:a.former"}))
    same = next_setup(before, divided(logger=log, b={"flagsvc_api_token": "*:a.former"}))
    assert same.environments[0] is before.environments[0] and same.environments[1] is before.environments[1]
    keyed = next_setup(
        before, divided(logger=log, b={"client_keys": "present-key", "flagsvc_api_token": "*:a.present"})
    )
    first, second = keyed.environments
    assert first is before.environments[0] and second is not before.environments[1]
    assert second.side == before.environments[1].side and second.strategies is before.environments[1].strategies
    assert (second.service_settings.client_keys, second.options.flagsvc_api_token) == (
        ("present-key",),
        "*:a.present",
    )
    other = next_setup(before, divided(logger=log, b={"flagsvc_api_token": "*:a.former", "refresh_interval": 1}))
    assert other.environments[1].side != before.environments[1].side
    moved = next_setup(before, divided(logger=log, b={"flagsvc_api_token": "*:production.former"}))
    assert moved.environments[1].side != before.environments[1].side
    before.log.warn("*:a.former present-key *:a.present")
    assert [line.event for line in log.lines] == ["*** *** ***"]


# ---- what decides


@pytest.mark.parametrize(
    ("old", "new", "is_other"),
    [
        ("*:a.1", "*:a.2", False),
        ("*:a.1", "*:b.1", True),
        ("*:a.1", "p:a.1", True),
        ("*:a.1", "*:a.1", False),
        ("one", "one", False),
        ("one", "two", True),
        ("[]:a.1", "[]:a.1", False),
        ("[]:a.1", "[]:a.2", True),
        ("one", "*:a.1", True),
        ("*:a.1", "one", True),
    ],
)
def test_tokens_of_other_environments(old: str, new: str, is_other: bool) -> None:
    """Two tokens that name the same scope are for the same flags. In doubt an environment is replaced, which is always right."""
    former, present = options(flagsvc_api_token=old), options(flagsvc_api_token=new)
    assert (what_decides_flags(former) != what_decides_flags(present)) is is_other
    assert (what_decides_the_side(former) != what_decides_the_side(present)) is is_other


@pytest.mark.parametrize(
    ("more", "flags", "side"),
    [
        ({}, False, False),
        ({"client_keys": "new", "exp_server_side_sdk_config_tokens": "new"}, False, False),
        ({"cors_origin": "https://a", "max_staleness": 1, "enable_all_endpoint": True}, False, False),
        ({"refresh_interval": 1}, False, True),
        ({"flagsvc_app_name": "x", "flagsvc_instance_id": "y"}, False, True),
        ({"answer_cache_bytes": 7}, False, True),
        ({"hash_encoding": "utf8"}, False, True),
        ({"flagsvc_url": "http://other/api", "tags": "a:b"}, True, True),
        ({"project_name": "p", "name_prefix": "n"}, True, True),
        ({"upstream_headers": "X-Tenant: a"}, True, True),
        ({"environment": "e"}, True, True),
    ],
)
def test_options_that_decide(more: dict[str, Any], flags: bool, side: bool) -> None:
    """Some decide which flags a key opens, and more of them what the upstream side is."""
    former, present = options(), options(**more)
    assert (what_decides_flags(former) != what_decides_flags(present)) is flags
    assert (what_decides_the_side(former) != what_decides_the_side(present)) is side


def test_names_that_decide_at_gitlab() -> None:
    """GitLab knows its callers by the instance id, and the environment by a name."""
    url = "https://gitlab.example/api/v4/feature_flags/unleash/7"
    one, two = (options(flagsvc_url=url, flagsvc_instance_id=each) for each in ("one", "two"))
    assert what_decides_flags(one) != what_decides_flags(two)


def test_keys_that_two_setups_list() -> None:
    """A key of another kind now is none of them. Everything else is that of the first setup."""
    former = make_setup(options(client_keys="both,old", exp_server_side_sdk_config_tokens="sdk")).environments[0]
    given = {"client_keys": "both,new,sdk", "exp_server_side_sdk_config_tokens": "", "name_prefix": "x"}
    found = with_keys_of_both(former, make_setup(options(**given)).environments[0])
    assert found.keys == ("both",) and found.options.name_prefix is None and found.side == former.side
    assert with_keys_of_both(former, former) is former
