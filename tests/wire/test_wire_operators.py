"""Every operator that the proxy evaluates can be set at our flag server, is exported and imported, and decides what callers get."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from flagsvc.engine.operators import OPERATORS
from support.flagservers import BACKEND_SECRET, OurFlagServer, our_flag_server
from support.processes import Proxy, our_proxy

FEATURES = "/projects/default/features"
FIELD = "answer"
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "NOT_IN": ({"values": ["no"]}, "yes", "no"),
    "IN": ({"values": ["yes"]}, "yes", "no"),
    "STR_ENDS_WITH": ({"values": ["es"]}, "yes", "no"),
    "STR_STARTS_WITH": ({"values": ["ye"]}, "yes", "no"),
    "STR_CONTAINS": ({"values": ["e"]}, "yes", "no"),
    "NUM_EQ": ({"value": "5"}, "5.0", "6"),
    "NUM_GT": ({"value": "5"}, "6", "5"),
    "NUM_GTE": ({"value": "5"}, "5", "4"),
    "NUM_LT": ({"value": "5"}, "4", "5"),
    "NUM_LTE": ({"value": "5"}, "5", "6"),
    "DATE_AFTER": ({"value": "2026-01-01T00:00:00Z"}, "2026-01-02T00:00:00Z", "2025-12-31T00:00:00Z"),
    "DATE_BEFORE": ({"value": "2026-01-01T00:00:00Z"}, "2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z"),
    "SEMVER_EQ": ({"value": "1.2.3"}, "1.2.3", "1.2.4"),
    "SEMVER_GT": ({"value": "1.2.3"}, "1.10.0", "1.2.3"),
    "SEMVER_LT": ({"value": "1.2.3"}, "1.2.3-beta", "1.2.3"),
    "SEMVER_GTE": ({"value": "1.2.3"}, "1.2.3", "1.2.2"),
    "SEMVER_LTE": ({"value": "1.2.3"}, "1.2.3", "1.2.4"),
    "REGEX": ({"value": "^y"}, "yes", "no"),
    "IN_CIDR": ({"values": ["10.0.0.0/8", "2001:db8::1"]}, "10.9.8.7", "11.0.0.1"),
}
"""Operator → its operand, a field value for which it holds, and one for which it does not."""


@dataclass(frozen=True)
class Both:
    """Our flag server and a proxy on it."""

    server: OurFlagServer
    proxy: Proxy

    def on(self, name: str, value: str) -> bool:
        """Return whether a feature is on for a caller with this value of the field, at this time."""
        field = "currentTime" if name.startswith("DATE_") else f"properties[{FIELD}]"
        return name in self.proxy.toggles(f"?{urlencode({field: value})}")


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    """Make a feature for each operator, named after it, and serve them."""
    with our_flag_server() as server:
        for name, (compared, _, _) in CASES.items():
            constraint = {"contextName": FIELD, "operator": name, **compared}
            server.admin(FEATURES, {"name": name})
            strategies = f"{FEATURES}/{name}/environments/development/strategies"
            server.admin(strategies, {"name": "default", "constraints": [constraint]})
            server.admin(f"{FEATURES}/{name}/environments/development/on", method="POST")
        with our_proxy(server.url, FLAGSVC_API_TOKEN=BACKEND_SECRET) as proxy:
            yield Both(server, proxy)


def test_every_operator_has_a_case() -> None:
    """Both products read one table of operators, and each of them has a case."""
    assert set(CASES) == set(OPERATORS)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_that_is_set_at_the_flag_server_decides_at_the_proxy(both: Both, name: str) -> None:
    """The feature is on for the one value of the field, and off for the other."""
    _, held, not_held = CASES[name]
    assert (both.on(name, held), both.on(name, not_held)) == (True, False)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_exported_and_imported(both: Both, name: str) -> None:
    """The export of one environment can be imported into another, whose export is then the same."""
    batch = "/features-batch"
    data = both.server.admin(f"{batch}/export", {"environment": "development", "features": [name]})
    [strategy] = data["featureStrategies"]
    assert [each["operator"] for each in strategy["constraints"]] == [name]
    body = {"project": "default", "environment": "production", "data": data}
    assert both.server.admin(f"{batch}/validate", body)["errors"] == []
    both.server.admin(f"{batch}/import", body)
    again = both.server.admin(f"{batch}/export", {"environment": "production", "features": [name]})
    assert again["featureStrategies"][0]["constraints"] == strategy["constraints"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["10.0.0.0/8", "ten"], '"values[1]" must be an IP address or a CIDR range. You provided "ten".'),
        (["10.0.0.0/33"], '"values[0]" must be an IP address or a CIDR range. You provided "10.0.0.0/33".'),
        ([], '"value" must contain at least 1 items. You provided [].'),
    ],
)
def test_networks_that_are_none_are_refused(both: Both, values: list[str], problem: str) -> None:
    """The answer names the value."""
    constraint = {"contextName": "remoteAddress", "operator": "IN_CIDR", "values": values}
    answer = both.server.ask("POST", "/admin/constraints/validate", constraint)
    assert answer.status == 400
    assert answer.json()["details"][0]["message"] == problem
