"""An option of the process that needs another one, which environments have (behaviour: Several environments)."""

from __future__ import annotations

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.load import load
from flagsvc.settings.options import ProxyOptions

CERT, KEY = "cert.pem", "key.pem"


def some_with(*certificates: str) -> dict[str, str]:
    """Return variables of two environments, and the key of the process. Some of the two have a certificate."""
    names = [f"{name}_{variable}" for name in "AB" for variable in ("API_TOKEN", "PROXY_CLIENT_KEYS")]
    both = {f"FLAGSVC_{name}": name for name in names}
    own = {f"FLAGSVC_{name}_UPSTREAM_CERT": CERT for name in certificates}
    return {"FLAGSVC_ENVIRONMENTS": "a,b", "FLAGSVC_URL": "http://h/api", "FLAGSVC_UPSTREAM_KEY": KEY, **both, **own}


@pytest.mark.parametrize("certificates", [("A",), ("A", "B")])
def test_the_key_of_certificates_that_environments_have(certificates: tuple[str, ...]) -> None:
    """The process has the key for all; one environment with a certificate is enough."""
    loaded = load(some_with(*certificates), None, {})
    found = {each.name: (each.options.upstream_cert, each.options.upstream_key) for each in loaded.options.environments}
    assert found == {name: (CERT if name.upper() in certificates else None, KEY) for name in "ab"}
    tables: dict[str, dict[str, object]] = {
        name: {"flagsvc_api_token": name, "client_keys": name, "upstream_cert": CERT} for name in "ab"
    }
    made = ProxyOptions(flagsvc_url="http://h/api", upstream_key=KEY, environments=tables)
    assert [each.options.upstream_key for each in made.environments] == [KEY, KEY]


def test_a_key_that_no_environment_can_use() -> None:
    """It is a problem of the process, told once; also in code."""
    with pytest.raises(ConfigurationError) as error:
        load(some_with(), None, {})
    assert list(error.value.problems) == [
        "upstreamKey (environment FLAGSVC_UPSTREAM_KEY): has no effect without upstreamCert; give both, or neither"
    ]
    tables: dict[str, dict[str, object]] = {name: {"flagsvc_api_token": name, "client_keys": name} for name in "ab"}
    with pytest.raises(ConfigurationError, match="upstream_key: has no effect without upstream_cert; give both"):
        ProxyOptions(flagsvc_url="http://h/api", upstream_key=KEY, environments=tables)
