"""Properties of the forms in which environments are written: all mean the same, and what is wrong is told with its place."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.settings.environments import variable_of
from flagsvc.settings.load import load, resolve
from flagsvc.settings.names import DIVIDED
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.places import Resolved
from flagsvc.settings.table import BY_NAME
from support.environment_samples import HOME, as_variable, by_variables, nested, required
from support.option_samples import BAD, SAMPLES
from unit.settings.test_properties import ANY_TEXT, BOUNDED, PLAUSIBLE, SECRET
from unit.settings.test_properties_environments import in_toml

Texts = Mapping[str, Mapping[str, str]]
"""Options as texts, by the name of their environment."""

FEW = settings(BOUNDED, max_examples=60)
"""Each example is read in every form."""
NAMES = st.lists(st.sampled_from(["a", "b", "prod-eu", "Z9.x", "test_2", "7"]), unique=True, min_size=1, max_size=3)
OPTIONS = st.sampled_from([option.name for option in DIVIDED])
VARIABLE, JSON_FILE = "FLAGSVC_ENVIRONMENTS", "FLAGSVC_ENVIRONMENTS_FILE"
PLACE = re.compile(r"\((environment|file) [^)]*\)")
SOMEWHERE = re.compile(rf"{PLACE.pattern}|^configuration file |: set FLAGSVC_\w+, |: a key is both in `.+` and in `")
"""What every problem has: where a value stands, or where one may be given, or which environments share it."""


class Given(NamedTuple):
    """What the loader is given: variables, and a configuration file."""

    variables: Mapping[str, str]
    file: Path | None


def as_tables(tables: Texts, folder: Path) -> Given:
    """Return tables of a configuration file."""
    path = folder / "flagsvc.toml"
    path.write_text(in_toml({name: nested(table) for name, table in tables.items()}), encoding="utf-8")
    return Given(HOME, path)


def as_variables(tables: Texts, folder: Path) -> Given:
    """Return a variable with the names, and a variable for each option."""
    each = [by_variables(name, table) for name, table in tables.items()]
    return Given(
        {key: text for part in [HOME, {VARIABLE: ",".join(tables)}, *each] for key, text in part.items()}, None
    )


def as_json(tables: Texts, folder: Path) -> Given:
    """Return one variable with a JSON object."""
    return Given(as_variable(tables), None)


def as_json_file(tables: Texts, folder: Path) -> Given:
    """Return a variable that names a file with the JSON object."""
    path = folder / "environments.json"
    path.write_text(as_variable(tables)[VARIABLE], encoding="utf-8")
    return Given(HOME | {JSON_FILE: str(path)}, None)


def as_names_and_tables(tables: Texts, folder: Path) -> Given:
    """Return a variable with the names, and the tables of a configuration file in another order."""
    _, path = as_tables(dict(reversed(list(tables.items()))), folder)
    return Given(HOME | {VARIABLE: ",".join(tables)}, path)


FORMS: dict[Callable[[Texts, Path], Given], str] = {
    as_tables: "(file {file} [environments.{name}])",
    as_variables: "(environment {variable})",
    as_json: "(environment FLAGSVC_ENVIRONMENTS [environments.{name}])",
    as_json_file: "(environment FLAGSVC_ENVIRONMENTS_FILE [environments.{name}])",
    as_names_and_tables: "(file {file} [environments.{name}])",
}
"""Form → how a problem tells the place of a value."""


def is_the_same_everywhere(name: str, text: str) -> bool:
    """Return whether a text means the same in all forms: a relative path does not, and TOML has no lone surrogates."""
    is_text = not any("\ud800" <= char <= "\udfff" for char in text)
    return is_text and BY_NAME[name].kind.relative_to(text, "/elsewhere") == text


@st.composite
def any_tables(draw: st.DrawFn) -> Texts:
    """Return tables of environments whose values may be wrong, or missing."""
    tables = {}
    for name in draw(NAMES):
        more = {
            option: SAMPLES[option][0] if draw(st.booleans()) else draw(PLAUSIBLE | ANY_TEXT)
            for option in draw(st.lists(OPTIONS, unique=True, max_size=4))
        }
        left_out = draw(st.sampled_from(["", "", "clientKeys", "flagsvcUrl"]))
        table = {**required(name, left_out), **more}
        tables[name] = {option: text for option, text in table.items() if is_the_same_everywhere(option, text)}
    return tables


def meaning(resolved: Resolved) -> tuple[object, ...]:
    """Return what was found, without the places."""
    texts = ([PLACE.sub("", text) for text in each] for each in (resolved.problems.values(), resolved.warnings))
    return (resolved.values, list(resolved.problems), *texts)


@FEW
@given(tables=any_tables())
@pytest.mark.filterwarnings("ignore:proxy_secrets:DeprecationWarning")
def test_all_forms_mean_the_same(tables: Texts, tmp_path: Path) -> None:
    """Values, problems and warnings are the same in each form but for the places; without a problem they are those of code."""
    found = [resolve(*form(tables, tmp_path), {}) for form in FORMS]
    assert [meaning(each) for each in found] == [meaning(found[0])] * len(FORMS)
    if found[0].problems:
        return
    in_code = {name: {BY_NAME[key].field: text for key, text in table.items()} for name, table in tables.items()}
    with patch.dict(os.environ, HOME, clear=True):
        made = ProxyOptions(environments=in_code)  # type: ignore[call-arg]
    assert [load(*form(tables, tmp_path), {}).options for form in FORMS] == [made] * len(FORMS)
    assert [name for name, _ in made.environments] == list(tables)


@FEW
@given(
    wrong=st.dictionaries(
        st.sampled_from(["a", "prod-eu"]), st.lists(OPTIONS, unique=True, min_size=1, max_size=4), min_size=1
    )
)
def test_a_wrong_value_is_one_problem_with_its_place(wrong: dict[str, list[str]], tmp_path: Path) -> None:
    """Each wrong value is one problem, in each form, with the place and the option, and without a secret."""
    tables = {name: {**required(name), **dict.fromkeys(options, f"{BAD}{SECRET}")} for name, options in wrong.items()}
    for form, place in FORMS.items():
        written = form(tables, tmp_path)
        problems = resolve(*written, {}).problems
        assert set(problems) == {
            f"environments.{name}.{option}" for name, options in wrong.items() for option in options
        }
        for name, options in wrong.items():
            for option in options:
                variable = variable_of(name, BY_NAME[option].reads[0])
                where = place.format(file=written.file, name=name, variable=variable)
                told = problems[f"environments.{name}.{option}"]
                assert told.startswith(f"environments.{name}: {option} {where}: ")
                assert not (BY_NAME[option].secret and SECRET in told)


@st.composite
def damaged(draw: st.DrawFn, whole: str) -> str:
    """Return a text with one character more, with one less, or with a part of it alone."""
    at = draw(st.integers(0, len(whole) - 1))
    more = draw(st.sampled_from(["", "", *'{}[],:="\\\n#5 \x00é']))
    ways: list[str] = [whole[:at] + more + whole[at + 1 :], whole[:at] + more + whole[at:], whole[:at]]
    return draw(st.sampled_from(ways))


TABLES = {name: {**required(name), "clientKeys": [f"{SECRET}-{name}"], "flagsvcApiToken": SECRET} for name in "ab"}
BY_ENVIRONMENT = {name: nested(table) for name, table in TABLES.items()}


def check_damage(variables: Mapping[str, str], file: Path | None) -> None:
    """Assert that each problem has a place, and that no text has a secret."""
    resolved = resolve(HOME | dict(variables), file, {})
    for text in resolved.problems.values():
        assert SOMEWHERE.search(text), text
    assert [text for text in (*resolved.problems.values(), *resolved.warnings) if SECRET in text] == []


@FEW
@given(text=damaged(json.dumps(BY_ENVIRONMENT, indent=1)))
def test_damaged_json_is_told_with_its_place(text: str, tmp_path: Path) -> None:
    """Nothing raises. What is no JSON is one problem with line and column, from the variable and from its file."""
    path = tmp_path / "environments.json"
    path.write_text(text, encoding="utf-8")
    for variables in ({VARIABLE: text}, {JSON_FILE: str(path)}):
        check_damage(variables, None)
        problems = [*resolve(HOME | variables, None, {}).problems.values()]
        if any("is not JSON" in told for told in problems):
            [told] = problems
            assert re.search(r"\(at line \d+, column \d+\)$", told)


@FEW
@given(text=damaged(in_toml(BY_ENVIRONMENT)))
def test_damaged_toml_is_told_with_its_place(text: str, tmp_path: Path) -> None:
    """Nothing raises. What is no TOML is one problem with the place in the file."""
    path = tmp_path / "flagsvc.toml"
    path.write_text(text, encoding="utf-8")
    check_damage({}, path)
    problems = [*resolve(HOME, path, {}).problems.values()]
    if any("not TOML" in told for told in problems):
        [told] = problems
        assert told.startswith(f"configuration file {path}: not TOML: ")
        assert re.search(r"\(at (line \d+, column \d+|end of document)\)$", told)
