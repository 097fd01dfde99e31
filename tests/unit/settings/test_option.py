"""The names, variables and flag that an option row defines."""

from __future__ import annotations

import pytest

from flagsvc.settings.base import Options, rows_of
from flagsvc.settings.kinds import SECRET, TEXT
from flagsvc.settings.option import Option, Section, Variable, option


def row(field: str = "some_name", **given: object) -> Option:
    """Return an option with a name and a kind, from a class of options."""
    made = option("some.fullName", **({"kind": TEXT, "help": "some"} | given))  # type: ignore[arg-type]
    return rows_of(type("Some", (Options,), {"section": Section.CORS, field: made}))[0]


@pytest.mark.parametrize(
    ("field", "flag"), [("flagsvc_url", "--url"), ("client_keys", "--client-keys"), ("cors_max_age", "--cors-max-age")]
)
def test_the_class_gives_the_name_in_code_the_section_and_the_flag(field: str, flag: str) -> None:
    """The name in code is the attribute's name. The flag derives from it."""
    made = row(field, reads=("X",))
    assert (made.field, made.flag, made.section) == (field, flag, Section.CORS)


def test_a_row_may_stand_in_two_classes() -> None:
    """A row in two classes keeps the name and the section of the first class."""
    made = row()
    other = type("Other", (Options,), {"section": Section.LOGGING, "some_name": made})
    assert rows_of(other) == (made,) and made.section is Section.CORS


def test_rows_come_in_the_order_of_the_base_classes() -> None:
    """The rows of the first base class come first."""
    one = type("One", (Options,), {"section": Section.CORS, "b": option("b", kind=TEXT, help="b")})
    two = type("Two", (Options,), {"section": Section.CORS, "a": option("a", kind=TEXT, help="a")})
    assert [each.name for each in rows_of(type("Both", (one, two), {}))] == ["b", "a"]


def test_an_option_for_code_only_has_no_flag() -> None:
    """An option for code only has no flag and no variable."""
    made = row()
    assert made.in_code_only and made.flag == "" and made.variables == ()


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


def test_a_default_may_come_from_the_environment() -> None:
    """A default is a value, or a function of the environment."""
    assert row(default="a").default_for({}) == "a"
    assert row(default_factory=lambda environment: environment["A"]).default_for({"A": "b"}) == "b"


def test_rendering_masks() -> None:
    """A secret is masked both as a value and as text."""
    made = row(kind=SECRET)
    assert made.masked("hidden") == "***" and made.render("hidden") == "***" and made.render(None) == "-"
