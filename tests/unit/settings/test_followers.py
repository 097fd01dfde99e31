"""A deployment of the reference gets the reference's shape of a variant, others the contract's (decision 0003)."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc import ProxyOptions
from flagsvc.settings.load import load, resolve

NAME = "variantFeatureState"
URL = "http://flags.example/api"
TOKENS = {"UNLEASH_API_TOKEN": "t", "UNLEASH_PROXY_CLIENT_KEYS": "k"}
REFERENCE = TOKENS | {"UNLEASH_URL": URL}
OURS = {"FLAGSVC_API_TOKEN": "t", "FLAGSVC_PROXY_CLIENT_KEYS": "k", "FLAGSVC_URL": URL}
FOLLOWS = "environment UNLEASH_URL, as the reference answers"


@pytest.mark.parametrize(
    ("env", "value", "source"),
    [
        (REFERENCE, True, FOLLOWS),
        (OURS, False, "default"),
        (OURS | {"UNLEASH_URL": URL}, False, "default"),
        (REFERENCE | {"FLAGSVC_URL": " "}, True, FOLLOWS),
        (TOKENS | {"FLAGSVC_URL": URL}, False, "default"),
        (
            REFERENCE | {"FLAGSVC_VARIANT_FEATURE_STATE": "false"},
            False,
            "environment FLAGSVC_VARIANT_FEATURE_STATE",
        ),
        (OURS | {"UNLEASH_VARIANT_FEATURE_STATE": "true"}, True, "environment UNLEASH_VARIANT_FEATURE_STATE"),
    ],
)
def test_the_default_follows_the_name_of_the_upstream(env: dict[str, str], value: bool, source: str) -> None:
    """UNLEASH_URL makes it true, FLAGSVC_URL false, and a value of its own wins. The source says why."""
    loaded = load(env, None, {})
    assert (loaded.options.variant_feature_state, loaded.sources[NAME]) == (value, source)


def test_places_that_the_reference_does_not_have(tmp_path: Path) -> None:
    """A flag, a file and code give the contract's shape. An option in a file wins over UNLEASH_URL."""
    file = tmp_path / "flagsvc.toml"
    file.write_text(f'flagsvcUrl = "{URL}"\n')
    assert not load(TOKENS, file, {}).options.variant_feature_state
    assert not load(REFERENCE, None, {"flagsvcUrl": URL}).options.variant_feature_state
    assert not ProxyOptions(flagsvc_url=URL, flagsvc_api_token="t", client_keys="k").variant_feature_state
    file.write_text(f"{NAME} = false\n")
    assert not load(REFERENCE, file, {}).options.variant_feature_state


def test_each_environment_follows_its_own_upstream() -> None:
    """An environment without an upstream of its own follows that of the process."""
    env = {"FLAGSVC_ENVIRONMENTS": "a,b,c,d", "UNLEASH_URL": URL}
    env |= {f"FLAGSVC_{name}_API_TOKEN": name for name in "ABCD"}
    env |= {f"FLAGSVC_{name}_PROXY_CLIENT_KEYS": f"{name}-key" for name in "ABCD"}
    env |= {"FLAGSVC_B_URL": URL, "UNLEASH_C_URL": URL, "FLAGSVC_D_VARIANT_FEATURE_STATE": "no"}
    resolved = resolve(env, None, {})
    assert not resolved.problems
    states = {name: values[NAME] for name, values in resolved.values["environments"]}
    assert states == {"a": True, "b": False, "c": True, "d": False}
    assert resolved.sources[f"environments.c.{NAME}"] == "environment UNLEASH_C_URL, as the reference answers"
    env["FLAGSVC_VARIANT_FEATURE_STATE"] = "false"
    assert not any(values[NAME] for _, values in resolve(env, None, {}).values["environments"])
