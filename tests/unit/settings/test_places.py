"""The places of an option in their order, and the choice of the first that is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc.settings.environments import Written, rows_for
from flagsvc.settings.normalise import Given
from flagsvc.settings.places import (
    NO_TABLES,
    NOTHING,
    Candidate,
    Resolved,
    Tables,
    candidates,
    choose,
    in_tables,
    of_variables,
    reason,
)
from flagsvc.settings.table import BY_NAME

TOKEN, PORT, CA = BY_NAME["flagsvcApiToken"], BY_NAME["port"], BY_NAME["upstreamCa"]


def nothing_found() -> Resolved:
    """Return what was found before anything was looked for."""
    return Resolved({}, {}, {}, [], {})


def test_the_order_of_places() -> None:
    """Flag, file of the flag, each variable with its file, the configuration file, and the file that it names."""
    found = list(candidates(TOKEN, {}, {}, Tables({}, "file f", "", NOTHING)))
    assert [(place.source, place.layer, place.holds_path) for place in found] == [
        ("flag --api-token", "flag", False),
        ("flag --api-token-file", "flag", True),
        ("environment FLAGSVC_API_TOKEN", "environment", False),
        ("environment FLAGSVC_API_TOKEN_FILE", "environment", True),
        ("environment UNLEASH_API_TOKEN", "environment", False),
        ("environment UNLEASH_API_TOKEN_FILE", "environment", True),
        ("file f", "file", False),
        ("file f, flagsvcApiTokenFile", "file", True),
    ]


def test_the_variables_of_an_environment() -> None:
    """They are looked for in the same way."""
    [row] = [row for row in rows_for("a") if row.name == "flagsvcApiToken"]
    found = list(of_variables(row, {"FLAGSVC_A_API_TOKEN": "x", "UNLEASH_A_API_TOKEN_FILE": "y"}))
    assert [(place.source.split()[1], place.value) for place in found] == [
        ("FLAGSVC_A_API_TOKEN", "x"),
        ("FLAGSVC_A_API_TOKEN_FILE", None),
        ("UNLEASH_A_API_TOKEN", None),
        ("UNLEASH_A_API_TOKEN_FILE", "y"),
    ]


def test_paths_in_tables() -> None:
    """They go by the folder of the tables; without one, they stay."""
    tables = Tables({"upstreamCa": "ca.pem", "flagsvcApiTokenFile": "token"}, "file f", "/etc", Written({}, "file f"))
    assert [place.value for place in in_tables(CA, tables)] == ["/etc/ca.pem", None]
    assert [place.value for place in in_tables(TOKEN, tables)] == [None, "/etc/token"]
    assert [place.value for place in in_tables(CA, tables._replace(folder=""))] == ["ca.pem", None]
    assert [place.value for place in in_tables(CA, NO_TABLES)] == [None, None]


def test_the_first_that_is_given() -> None:
    """Blanks are not given. Nothing is read from later places."""
    places = [Candidate(value, f"place {number}", "x", False) for number, value in enumerate((None, " ", "8", "9"))]
    resolved = nothing_found()
    assert choose(PORT, places, resolved) == Given("8", "place 2") and choose(PORT, places[:2], resolved) is None
    assert resolved == nothing_found()


def test_a_file_of_a_secret(tmp_path: Path) -> None:
    """It is read and watched. One of the same layer that is not read gives a warning, one that cannot be read a problem."""
    path = tmp_path / "token"
    path.write_text(" t0ken\n")
    value, file, missing = (
        Candidate("x", "variable", "environment", False),
        Candidate(str(path), "variable of a file", "environment", True),
        Candidate(str(tmp_path / "none"), "file f", "file", True),
    )
    resolved = nothing_found()
    assert choose(TOKEN, [file], resolved) == Given("t0ken", "variable of a file") and list(resolved.files) == [
        str(path)
    ]
    assert choose(TOKEN, [value, file, missing], resolved) == Given("x", "variable")
    assert resolved.warnings == ["flagsvcApiToken (variable of a file) is ignored: variable is given"]
    assert choose(TOKEN, [missing], resolved) is None
    assert resolved.problems == {
        "flagsvcApiToken": f"flagsvcApiToken (file f): cannot read `{tmp_path}/none`: no such file or directory"
    }


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError(2, "No such file or directory"), "no such file or directory"),
        (OSError("s3cret"), "oserror"),
        (UnicodeDecodeError("utf-8", b"s3cret", 0, 1, "x"), "it is not UTF-8"),
        (ValueError("s3cret"), "it is not a valid path"),
    ],
)
def test_why_a_file_cannot_be_read(error: Exception, text: str) -> None:
    """In lower case, and without its content."""
    assert reason(error) == text
