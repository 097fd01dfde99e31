"""What follows from one row: names, variables, flag."""

from __future__ import annotations

import pytest

from flagsvc.settings.option import Option, Section, Variable
from flagsvc.settings.parse import SECRET, TEXT


def row(**given: object) -> Option:
    """Return an option with some name and kind."""
    defaults: dict[str, object] = {"name": "some.fullName", "kind": TEXT, "section": Section.CORS, "help": "some"}
    return Option(**(defaults | given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "field", "flag"),
    [
        ("flagsvcUrl", "flagsvc_url", "--url"),
        ("clientKeys", "client_keys", "--client-keys"),
        ("enableOAS", "enable_oas", "--enable-oas"),
        ("cors.maxAge", "cors_max_age", "--cors-max-age"),
        ("expServerSideSdkConfig.tokens", "exp_server_side_sdk_config_tokens", "--exp-server-side-sdk-config-tokens"),
    ],
)
def test_names_follow_from_the_name(name: str, field: str, flag: str) -> None:
    """The name in code and the flag are the specification's name in another spelling."""
    assert (row(name=name).field, row(name=name).flag) == (field, flag)


def test_an_option_for_code_only_has_no_flag() -> None:
    """What only code can give has no flag and no variable."""
    option = row(in_code_only=True)
    assert option.flag == "" and option.variables == ()


def test_variables_with_their_aliases() -> None:
    """FLAGSVC_ also answers as UNLEASH_, after it; other names have no alias (behaviour: Names of variables)."""
    assert row(reads=("FLAGSVC_X", "Y")).variables == (
        Variable("FLAGSVC_X", False),
        Variable("UNLEASH_X", False),
        Variable("Y", False),
    )


def test_variables_of_a_secret() -> None:
    """Behind each variable of a secret comes the one that names a file."""
    assert row(reads=("FLAGSVC_X",), secret=True, kind=SECRET).variables == (
        Variable("FLAGSVC_X", False),
        Variable("FLAGSVC_X_FILE", True),
        Variable("UNLEASH_X", False),
        Variable("UNLEASH_X_FILE", True),
    )


def test_a_default_may_come_from_the_environment() -> None:
    """A default is a value, or made from the environment it is for."""
    assert row(default="a").default_for({}) == "a"
    assert row(default_from=lambda environment: environment["A"]).default_for({"A": "b"}) == "b"


def test_rendering_masks() -> None:
    """A secret is masked as value and as text."""
    option = row(kind=SECRET)
    assert option.masked("hidden") == "***" and option.render("hidden") == "***" and option.render(None) == "-"
