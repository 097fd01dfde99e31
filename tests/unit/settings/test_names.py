"""Option names in nested tables: valid, unknown, and of the wrong type.

The table of Edge's variables: each row says enough for its readers.
"""

from __future__ import annotations

import pytest

from flagsvc.settings import real_server
from flagsvc.settings.edge import BY_VARIABLE, ROWS, EdgeVariable, Fate, Takes
from flagsvc.settings.kinds import BOOLEAN, MOST_HINTS
from flagsvc.settings.names import SETTABLE, TABLES, flatten
from flagsvc.settings.table import BY_NAME, OPTIONS


def test_what_a_table_may_hold() -> None:
    """A table may have all options except those for code only, and a file option for each secret."""
    assert {option.name for option in OPTIONS if not option.in_code_only} <= SETTABLE
    assert {name for name in SETTABLE if name.endswith("File")} == {
        *("flagsvcApiTokenFile", "adminPageKeysFile", "clientKeysFile", "upstreamHeadersFile", "proxySecretsFile"),
        *("expBootstrap.urlHeaders.AuthorizationFile", "expServerSideSdkConfig.tokensFile", "storagePasswordFile"),
        *("storageKeyPasswordFile", "tlsKeyPasswordFile", "upstreamKeyPasswordFile"),
    }
    assert {"cors", "httpOptions", "expBootstrap", "expBootstrap.urlHeaders", "expServerSideSdkConfig"} == TABLES


def test_nested_and_dotted() -> None:
    """A dot in a name means a table. The full name as one key means the same."""
    tree = {"port": 1, "cors": {"maxAge": 2}, "cors.origin": "*", "expBootstrap": {"urlHeaders": {"Authorization": "x"}}}
    assert flatten(tree, "file f") == (
        {"port": 1, "cors.maxAge": 2, "cors.origin": "*", "expBootstrap.urlHeaders.Authorization": "x"},
        [],
        set(),
    )


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({"flagscvUrl": 1}, "unknown option `flagscvUrl` (file f); did you mean `flagsvcUrl`?"),
        ({"unleashUrl": 1}, "unknown option `unleashUrl` (file f); did you mean `flagsvcUrl`?"),
        ({"UNLEASH_URL": 1}, "unknown option `UNLEASH_URL` (file f); did you mean `flagsvcUrl`?"),
        ({"client_keys": 1}, "unknown option `client_keys` (file f); did you mean `clientKeys`?"),
        ({"maxAge": 1}, "unknown option `maxAge` (file f); did you mean `cors.maxAge`?"),
        ({"cors": {"orgin": 1}}, "unknown option `cors.orgin` (file f); did you mean `cors.origin`?"),
        ({"nothingLikeIt": 1}, "unknown option `nothingLikeIt` (file f)"),
        ({"bad\nname": {}}, "unknown option `bad\\nname` (file f)"),
        (
            {"cors": "*"},
            "cors (file f): expected a table with allowedHeaders, credentials, exposedHeaders, maxAge, methods, "
            "optionsSuccessStatus, origin, preflightContinue",
        ),
        ({"logger": "x"}, "logger (file f) can be given in code only"),
        ({"expBootstrap": "http://x"}, None),
    ],
)
def test_wrong_keys(tree: dict[str, object], problem: str | None) -> None:
    """An unknown key is a problem that suggests the nearest name and does not show the value."""
    found, problems, _ = flatten(tree, "file f")
    assert found == {} and len(problems) == 1
    if problem is None:
        assert problems[0].startswith("expBootstrap (file f): expected a table with url")
    else:
        assert problems == [problem]


@pytest.mark.parametrize(
    ("tree", "meant"),
    [
        ({"flagscvUrl": 1, "prot": 1}, {"flagsvcUrl", "port"}),
        ({"clientKeysFil": 1}, {"clientKeys"}),
        ({"FLAGSVC_API_TOKEN": 1}, {"flagsvcApiToken"}),
        ({"cors": {"orgin": 1}}, {"cors.origin"}),
        ({"nothingLikeIt": 1, "database": 1, "logger": 1, "cors": 1}, set()),
    ],
)
def test_what_misspelt_keys_mean(tree: dict[str, object], meant: set[str]) -> None:
    """They mean the options that the hints name, also if a hint names the file of a secret."""
    assert flatten(tree, "file f").meant == meant


def test_a_list_of_unknown_keys() -> None:
    """Every unknown key is a problem, and the first ones have a hint: to look for the nearest name takes milliseconds."""
    found = flatten({f"ports{number}": 1 for number in range(20_000)}, "file")
    assert len(found.problems) == 20_000
    assert sum("did you mean" in each for each in found.problems) == MOST_HINTS
    assert flatten({"port" * 100_000: 1}, "file").meant == set()


HAVE_OPTIONS = (Fate.SAME, Fate.MILLISECONDS, Fate.REVERSED)


def test_a_variable_has_one_row() -> None:
    """No two rows have the same name, in the table of Edge and in that of a real server."""
    assert len(BY_VARIABLE) == len(ROWS) > 80
    assert len(real_server.BY_VARIABLE) == len(real_server.ROWS) > 90


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_whole(row: EdgeVariable) -> None:
    """A row has options if it can be translated by itself, and always a text. Milliseconds and switches fit their options."""
    assert row.here
    assert bool(row.options) == (row.fate in HAVE_OPTIONS)
    options = [BY_NAME[name] for name in row.options]
    if row.fate is Fate.MILLISECONDS:
        assert all(option.kind.metavar == "MS" for option in options) and row.default.isdecimal()
    if row.fate is Fate.REVERSED:
        assert row.takes is Takes.NOTHING and all(option.kind is BOOLEAN for option in options)


@pytest.mark.parametrize("row", [row for row in ROWS if row.options], ids=lambda row: row.name)
def test_the_text_names_the_variable_of_every_option(row: EdgeVariable) -> None:
    """What a user reads and what is translated are the same."""
    assert all(any(name in row.here for name in BY_NAME[option].reads) for option in row.options)
