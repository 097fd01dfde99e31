"""Warnings about environments that share their flags, or the tokens of callers that would open them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flagsvc.settings.load import load
from flagsvc.settings.shared_scopes import shared_scopes

URL, UP, OTHER = "https://h/api", "*:production.s3cret-1", "*:production.s3cret-2"
SAME_FLAGS = "have the same upstream token and project: they have the same flags"
SAME_SCOPE = "have the same environment and projects upstream"
ASKED = "have several upstreams for environments of one name: each of these upstreams may be asked about a token that none of them"


def warnings(looking: bool, *given: dict[str, Any]) -> list[str]:
    """Return the warnings about environments `a`, `b` and so on, each with values that differ from the first ones."""
    base = {"flagsvcUrl": URL, "flagsvcApiToken": UP, "tokenValidation": "upstream" if looking else "static"}
    return list(shared_scopes(("abc"[at], base | each) for at, each in enumerate(given)))


@pytest.mark.parametrize(
    ("given", "listed", "looking"),
    [
        ([{}, {}], SAME_FLAGS, f"{SAME_FLAGS}, and tokens that are looked up open `a` alone"),
        ([{"projectName": "p"}, {"projectName": "p"}], SAME_FLAGS, f"{SAME_FLAGS}, and "),
        ([{}, {"namePrefix": "x"}], "", f"{SAME_SCOPE}: tokens that are looked up open `a` alone"),
        ([{}, {"tags": (("team", "x"),)}], "", SAME_SCOPE),
        ([{}, {"flagsvcApiToken": OTHER}], "", SAME_SCOPE),
        ([{"projectName": "p"}, {"flagsvcApiToken": "p:production.s3cret"}], "", SAME_SCOPE),
        ([{"flagsvcApiToken": "[]:production.s3cret"}] * 2, SAME_FLAGS, f"{SAME_FLAGS}, and "),
        ([{"flagsvcApiToken": "s3cret"}, {"flagsvcApiToken": "s3cret", "namePrefix": "x"}], "", SAME_SCOPE),
        ([{"flagsvcApiToken": "[]:production.s3cret-1"}, {"flagsvcApiToken": "[]:production.s3cret-2"}], "", ""),
        ([{}, {"projectName": "p"}], "", ""),
        ([{}, {"flagsvcUrl": "https://other/api"}], "", ASKED),
        ([{}, {"upstreamHeaders": (("x-tenant", "a"),)}], "", ASKED),
        ([{}, {"flagsvcUrl": "https://other/api", "flagsvcApiToken": "s3cret"}], "", ASKED),
        ([{"flagsvcApiToken": "s3cret"}, {"flagsvcUrl": "https://other/api", "flagsvcApiToken": "s3cret"}], "", ASKED),
        ([{}, {"flagsvcUrl": "https://other/api", "flagsvcApiToken": "*:development.s3cret"}], "", ""),
        ([{}, {"flagsvcUrl": "https://other/api", "flagsvcApiToken": None}], "", ""),
        ([{}, {"flagsvcApiToken": "*:development.s3cret"}], "", ""),
        ([{"flagsvcApiToken": None}] * 2, "", ""),
        ([{"flagsvcApiToken": "p:production.1", "projectName": "q"}, {"flagsvcApiToken": "q:production.2"}], "", ""),
    ],
)
def test_two_environments(given: list[dict[str, Any]], listed: str, looking: str) -> None:
    """With listed keys those of the same flags are told, with looked-up tokens also those that the same tokens would open.

    So are those whose upstreams may both be asked about a token.
    """
    for is_looking, expected in ((False, listed), (True, looking)):
        found = warnings(is_looking, *given)
        assert [text.startswith(f"environments: `a` and `b` {expected}") for text in found] == [True] * bool(expected)
        assert "s3cret" not in str(found)


def test_one_that_looks_up_and_one_that_does_not() -> None:
    """Looked-up tokens open only one of them."""
    assert warnings(False, {"tokenValidation": "upstream"}, {"flagsvcApiToken": OTHER}) == []


def test_three_environments() -> None:
    """One line has all of them, and tokens open the first one by name."""
    [line] = shared_scopes(
        (name, {"flagsvcUrl": URL, "flagsvcApiToken": UP, "tokenValidation": "upstream"}) for name in "bca"
    )
    assert line.startswith("environments: `b`, `c` and `a` have the same upstream token") and "open `a` alone" in line


def test_where_the_warning_is_shown() -> None:
    """It is one of the warnings that `flagsvc config` shows and that the start logs. The token is not shown."""
    tables = {name: {"flagsvcApiToken": UP, "clientKeys": name} for name in ("production", "development")}
    given = {"FLAGSVC_URL": URL, "FLAGSVC_ENVIRONMENTS": json.dumps(tables)}
    assert load(given, None, {}).warnings == [f"environments: `production` and `development` {SAME_FLAGS}"]
    tables["development"]["flagsvcApiToken"] = "*:development.s3cret"
    assert load(given | {"FLAGSVC_ENVIRONMENTS": json.dumps(tables)}, None, {}).warnings == []
