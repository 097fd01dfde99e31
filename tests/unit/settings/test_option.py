"""The names, variables and flag that an option row defines."""

from __future__ import annotations

from flagsvc.settings.base import Options, rows_of
from flagsvc.settings.kinds import SECRET, TEXT
from flagsvc.settings.option import Option, Section, Variable, option


def row(field: str = "some_name", **given: object) -> Option:
    """Return an option with a name and a kind, from a class of options."""
    made = option("some.fullName", **({"kind": TEXT, "help": "some"} | given))  # type: ignore[arg-type]
    return rows_of(type("Some", (Options,), {"section": Section.CORS, field: made}))[0]


def test_variables_with_their_aliases() -> None:
    """A FLAGSVC_ variable has an UNLEASH_ alias after it. Other names have no alias (behaviour: Names of variables)."""
    assert row(reads=("FLAGSVC_X", "Y")).variables == (
        Variable("FLAGSVC_X", False),
        Variable("UNLEASH_X", False),
        Variable("Y", False),
    )


def test_variables_of_a_secret() -> None:
    """Each variable of a secret is followed by the variable for its file."""
    assert row(reads=("FLAGSVC_X",), secret=True, kind=SECRET).variables == (
        Variable("FLAGSVC_X", False),
        Variable("FLAGSVC_X_FILE", True),
        Variable("UNLEASH_X", False),
        Variable("UNLEASH_X_FILE", True),
    )
