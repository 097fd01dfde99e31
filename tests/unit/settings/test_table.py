"""The option table has all options of the specification, and names in it are unique."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from flagsvc.settings.base import Converted
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.option import Option, Section, Variable
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.server import ServerOptions
from flagsvc.settings.table import BY_NAME, OPTIONS, SERVER_OPTIONS, ProxyRows, ServerRows
from support.option_samples import SAMPLES, bounds, sample

CONTRACT = (Path(__file__).resolve().parents[3] / "docs" / "contract" / "specification").with_suffix(".md")
ROW = re.compile(r"^\| (\S+) \| (\(none\)|[A-Z_]+(?: or [A-Z_]+)*) \| (.+?) \| .+ \|$", re.MULTILINE)
SPECIFIED = ROW.findall(CONTRACT.read_text())
"""The two tables of options: name, variables, default (specification: Options; Experimental options)."""
NO_VALUE = ("required", "none", "unset", "empty", "generated", "a simple logger", "those that the preflight asks for")
"""What stands in the place of a default that is no value."""

RENAMED = {"exp_bootstrap_url_headers_authorization": "exp_bootstrap_authorization"}
"""The options whose name in code is not their name in snake case."""


@pytest.mark.parametrize(("name", "variables", "default"), SPECIFIED)
def test_rows_of_the_specification(name: str, variables: str, default: str) -> None:
    """The table has every option of the specification with its variables and its default."""
    reads = tuple(re.findall("[A-Z_]+", variables))
    option = BY_NAME.get(name) or next(row for row in OPTIONS if row.reads[:1] == reads[:1])
    assert option.reads[: len(reads)] == reads and option.in_code_only == (not reads)
    expected = ("", (), None) if default in NO_VALUE else (option.parse(default.strip("`")),)
    assert option.default in expected


def test_the_specification_has_its_rows() -> None:
    """All rows of the specification's tables are read. Three options are required for start-up (specification: Configuration)."""
    assert len(SPECIFIED) == 40
    assert {option.name for option in OPTIONS if option.required} == {"flagsvcUrl", "flagsvcApiToken", "clientKeys"}


def test_variables_have_aliases() -> None:
    """A FLAGSVC_ variable has an UNLEASH_ alias after it. Other names have no alias (behaviour: Names of variables)."""
    assert BY_NAME["flagsvcUrl"].variables == (Variable("FLAGSVC_URL", False), Variable("UNLEASH_URL", False))
    assert BY_NAME["port"].variables == (Variable("PORT", False), Variable("PROXY_PORT", False))


@pytest.mark.parametrize("rows", [OPTIONS, SERVER_OPTIONS], ids=["proxy", "flag server"])
def test_no_two_rows_share_a_name(rows: tuple[Option, ...]) -> None:
    """Each name, field, flag and variable belongs to only one row of a program."""
    for names in (
        [option.name for option in rows],
        [option.field for option in rows],
        [option.flag for option in rows if option.flag],
        [variable.name for option in rows for variable in option.variables],
    ):
        assert [name for name, count in Counter(names).items() if count > 1] == []


def test_code_takes_and_keeps_every_option() -> None:
    """`ProxyOptions` has a field for every row, one for `environments`, and no other; `ServerOptions` has those of its rows."""
    assert {field.name for field in fields(ProxyOptions)} == {*(option.field for option in OPTIONS), "environments"}
    assert {field.name for field in fields(ServerOptions)} == {option.field for option in SERVER_OPTIONS}


@pytest.mark.parametrize("option", [*OPTIONS, *SERVER_OPTIONS], ids=lambda option: option.name)
def test_name_in_code_and_type_of_an_option(option: Option) -> None:
    """The name in code is the option's name in snake case, and a default and a sample have the declared type."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", option.name).replace(".", "_").lower()
    assert option.field == RENAMED.get(snake, snake)
    held = held_type(get_type_hints(ProxyRows if option in OPTIONS else ServerRows)[option.field])
    assert isinstance(option.default_for({}), held) or option.required
    if not option.in_code_only:
        assert isinstance(sample(option)[1], held)


def held_type(declared: object) -> tuple[type, ...]:
    """Return the value types of an option from its annotation."""
    if get_origin(declared) is Converted:
        declared = get_args(declared)[0]
    each = get_args(declared) if isinstance(declared, UnionType) else (declared,)
    return tuple(object if one is Any else get_origin(one) or one for one in each)


@pytest.mark.parametrize("option", [each for each in (*OPTIONS, *SERVER_OPTIONS) if bounds(each)], ids=lambda option: option.name)
def test_a_number_has_the_range_that_is_told(option: Option) -> None:
    """The documented minimum and maximum are accepted, and numbers beyond them are refused."""
    least, largest = bounds(option) or (0, 0)
    assert [option.parse(number) for number in (least, largest)] == [least, largest]
    for number in (least - 1, largest + 1):
        if number or "0, or" not in option.kind.expects:
            with pytest.raises(RefusedError):
                option.parse(number)


def test_rows_are_fit_to_be_read() -> None:
    """Rows are ordered by section. The help has more than ten characters and no full stop. The name tells a secret."""
    secret = ("Token", "Keys", "Secrets", "Authorization", "tokens", "Password", "upstreamHeaders")
    assert [option.name for option in OPTIONS if option.help.endswith(".") or len(option.help) <= 10] == []
    assert [option.name for option in OPTIONS if option.secret != option.name.endswith(secret)] == []
    assert [option.section for option in OPTIONS] == sorted((option.section for option in OPTIONS), key=list(Section).index)


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_read_as_they_should(name: str) -> None:
    """A sample parses as its value, which differs from the default and parses as itself, also rendered unless it is a secret."""
    option, (text, value) = BY_NAME[name], SAMPLES[name]
    assert option.parse(text) == value != option.default
    assert option.parse(value) == value
    assert option.secret or option.parse(option.render(value)) == value
