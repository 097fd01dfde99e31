"""State exports of old servers: how they are told from other files."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.core.state_export import about_state_export
from support.state_exports import EXPORTS


@pytest.mark.parametrize("version", EXPORTS)
def test_state_exports(version: int) -> None:
    """Every version is recognised, also as the data of a request, and the text says what to do."""
    for value in (EXPORTS[version], {"project": "default", "environment": "a", "data": EXPORTS[version]}):
        about = about_state_export(value)
        assert about.startswith(f"is a state export of an old server (version {version}); flagsvc does not read it: ")
        assert "/api/admin/features-batch/export" in about and "`flagsvc move`" in about


@pytest.mark.parametrize(
    "value",
    [
        {"version": 1, "features": []},
        {"version": 2, "features": [], "segments": [], "query": {}, "meta": {}},
        {"features": [], "featureStrategies": [], "tagTypes": []},
        {"project": "default", "environment": "a", "data": {"features": [], "featureStrategies": [], "tagTypes": []}},
        {"projects": [], "features": [], "environments": []},
        *(None, [], "version", 4, {"data": []}),
    ],
)
def test_other_files(value: Any) -> None:
    """Documents for SDKs, data sets, requests and seed files are none."""
    assert about_state_export(value) == ""


@pytest.mark.parametrize("version", ["s3cret" * 100, None, [4], 10**400, -1])
def test_an_odd_version_is_not_repeated(version: Any) -> None:
    """Only a small number is."""
    assert about_state_export(EXPORTS[4] | {"version": version}).startswith("is a state export of an old server; ")
