"""Properties of any configuration: it raises only ConfigurationError, shows no secret, and parses its results unchanged.

Properties of any configuration with several environments: only ConfigurationError, no secret in any text, equal copies.
Properties of the forms in which environments are written: all mean the same, and what is wrong is told with its place.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.environments import variable_of
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.load import load, resolve
from flagsvc.settings.names import DIVIDED
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import as_json, in_effect, what_is_set
from flagsvc.settings.table import BY_NAME, OPTIONS
from support.environment_samples import HOME, as_variable, by_variables, nested, required
from support.option_samples import BAD, SAMPLES
from support.same_inputs import examples

BOUNDED = settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
"""Includes lone surrogates, which os.environ contains for bytes that are not UTF-8."""

ODD = ("true", "1", "0", "-1", "a,b", "*", "none", "file:", "[::1]", "http://[", "::ffff:1.2.3.4/8")
PLAUSIBLE = st.sampled_from([*(text for text, _ in SAMPLES.values()), *ODD])
TEXT = PLAUSIBLE | ANY_TEXT
VARIABLES = sorted({variable.name for option in OPTIONS for variable in option.variables})
NAMES = st.sampled_from([*VARIABLES, "HOME", "XDG_STATE_HOME", "LOGNAME", "FLAGSVC_CONFIG", "UNLEASH_PORT"])
ENVIRONMENTS = st.dictionaries(NAMES | ANY_TEXT.map("FLAGSVC_{}".format) | ANY_TEXT, TEXT, max_size=12)
FLAGS = st.dictionaries(st.sampled_from(sorted(SAMPLES)) | ANY_TEXT, TEXT, max_size=5)
NATIVE = st.recursive(
    TEXT | st.integers() | st.floats() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)

SECRET = "S3CRET"
SECRET_TEXTS = st.builds("{}{}{}".format, ANY_TEXT, st.just(SECRET), ANY_TEXT)
SECRET_VARIABLES = sorted({variable.name for option in OPTIONS if option.secret for variable in option.variables})
URL_VARIABLES = ["FLAGSVC_URL", "UNLEASH_URL", "HTTP_PROXY", "https_proxy", "EXP_BOOTSTRAP_URL"]
URLS = ("http://u:{}@h", "ftp://{}@h/x", "http://h:p/?s={}", "*:dev.{}", "http://u:/{}@h:x", "x:{}")
SECRET_URLS = st.sampled_from([url.format(SECRET) for url in URLS])


def attempt(make: Callable[[], ProxyOptions]) -> tuple[ProxyOptions | None, tuple[str, ...]]:
    """Return the options from `make`, or the problems that it raises. Any other error fails the test."""
    try:
        return make(), ()
    except ConfigurationError as error:
        return None, error.problems


@BOUNDED
@given(environment=ENVIRONMENTS, flags=FLAGS, content=st.binary(max_size=40) | st.none())
def test_loading_raises_nothing_else(
    environment: dict[str, str], flags: dict[str, str], content: bytes | None, tmp_path: Path
) -> None:
    """Any mappings and any file give options, or every problem at once in printable lines."""
    path = None
    if content is not None:
        path = tmp_path / "flagsvc.toml"
        path.write_bytes(content)
    made, problems = attempt(lambda: load(environment, path, flags).options)
    assert (made is None) == bool(problems)
    assert all(text.isprintable() for text in (*problems, *resolve(environment, path, flags).warnings))
    if made is not None:
        assert ProxyOptions(**{option.field: getattr(made, option.field) for option in OPTIONS}) == made


@BOUNDED
@example(given={"self": 1})
@given(given=st.dictionaries(st.sampled_from(sorted(option.field for option in OPTIONS)) | ANY_TEXT, NATIVE, max_size=8))
@pytest.mark.filterwarnings("ignore:proxy_secrets:DeprecationWarning")
def test_options_in_code_raise_nothing_else(given: dict[str, object]) -> None:
    """Any values in code give options, or every problem at once."""
    made, problems = attempt(lambda: ProxyOptions(**given))  # type: ignore[arg-type]
    assert (made is None) == bool(problems)
    assert made is None or repr(made).startswith("ProxyOptions(")


@BOUNDED
@example(environment={}, secrets={"EXP_BOOTSTRAP_AUTHORIZATION_FILE": f"/{SECRET}"}, urls={})
@example(environment={}, secrets={}, urls={"FLAGSVC_URL": f"http://u:/{SECRET}@h:x"})
@example(environment={}, secrets={}, urls={"EXP_BOOTSTRAP_URL": f"http://c/f?sig={SECRET}"})
@given(
    environment=st.dictionaries(st.sampled_from(VARIABLES), PLAUSIBLE, max_size=8),
    secrets=st.dictionaries(st.sampled_from(SECRET_VARIABLES), SECRET_TEXTS, min_size=1, max_size=4),
    urls=st.dictionaries(st.sampled_from(URL_VARIABLES), SECRET_URLS, max_size=3),
)
def test_no_secret_in_any_text(environment: dict[str, str], secrets: dict[str, str], urls: dict[str, str]) -> None:
    """A secret, valid or not, is in no problem, warning, dump, JSON or repr."""
    everything = environment | urls | secrets
    resolved = resolve(everything, None, {})
    texts = [in_effect(resolved), as_json(resolved), *resolved.problems.values(), *resolved.warnings]
    made, problems = attempt(lambda: load(everything, None, {}).options)
    texts += [repr(made), *problems]
    assert [text for text in texts if SECRET in text] == []


@BOUNDED
@given(name=st.sampled_from(sorted(SAMPLES)), value=NATIVE)
def test_results_read_as_themselves(name: str, value: object) -> None:
    """Parsing a parsed value returns the same value, so copies of options are equal."""
    option = BY_NAME[name]
    try:
        kept = option.parse(value)
    except RefusedError:
        return
    assert option.parse(kept) == kept
    assert isinstance(option.render(kept), str)


ENVIRONMENT_NAMES = st.sampled_from(["a", "b", "prod-eu", "A", "a-exp-bootstrap"])
ANY_NAMES = ENVIRONMENT_NAMES | ANY_TEXT
OPTION_NAMES = st.sampled_from([option.name for option in DIVIDED])
SECRET_NAMES = st.sampled_from([option.name for option in DIVIDED if option.secret])
VARIABLES_OF_ENVIRONMENTS = sorted({name.removeprefix("FLAGSVC_") for option in DIVIDED for name, _ in option.variables})
ANY_TABLES = st.dictionaries(
    ANY_NAMES, NATIVE | st.dictionaries(OPTION_NAMES | ANY_TEXT, NATIVE, max_size=4).map(nested), max_size=3
)
"""Any tables of environments; most options have a wrong value."""


@st.composite
def good_tables(draw: st.DrawFn) -> dict[str, dict[str, object]]:
    """Return tables of environments that have what they need, with more options, most of them wrong."""
    names = draw(st.lists(st.sampled_from(["a", "b", "prod-eu"]), unique=True, min_size=1))
    more = draw(st.dictionaries(OPTION_NAMES, TEXT, max_size=2))
    return {name: nested({**more, **required(name)}) for name in names}


def named_variables(tables: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, str]]:
    """Return variables of environments. The variable that names them has names, JSON of these tables, or any text."""
    name = st.lists(ANY_NAMES, max_size=3).map(",".join) | tables.map(json.dumps) | TEXT
    variables = st.builds(
        "FLAGSVC_{}_{}".format, st.sampled_from(["A", "B", "PROD_EU"]), st.sampled_from(VARIABLES_OF_ENVIRONMENTS)
    )
    return st.builds(lambda text, more: {"FLAGSVC_ENVIRONMENTS": text, **more}, name, st.dictionaries(variables, TEXT, max_size=6))


@BOUNDED
@example(environment={"FLAGSVC_ENVIRONMENTS": "\x00"}, tables={})
@given(environment=named_variables(ANY_TABLES | good_tables()), tables=ANY_TABLES | good_tables() | st.none())
def test_loading_raises_nothing_else_of_environments(environment: dict[str, str], tables: object, tmp_path: Path) -> None:
    """Any variables and any tables give options, or every problem at once in printable lines. Equal copies can be made."""
    path = None
    if tables is not None:
        path = tmp_path / "flagsvc.toml"
        path.write_text(in_toml(tables), encoding="utf-8", errors="replace")
    made, problems = attempt(lambda: load(HOME | environment, path, {}).options)
    assert (made is None) == bool(problems)
    resolved = resolve(HOME | environment, path, {})
    assert all(text.isprintable() for text in (*problems, *resolved.warnings))
    names = [name for name, _ in resolved.values.get("environments", ())]
    assert all(f"\n[environments.{name}]\n" in f"\n{dump(resolved)}" for name in names for dump in (in_effect, what_is_set))
    assert list(json.loads(as_json(resolved)).get("environments", {})) == names
    if made is not None:
        assert dataclasses.replace(made) == made


def in_toml(tables: object) -> str:
    """Return tables of environments as TOML, with a text of JSON for what TOML cannot say."""
    if not isinstance(tables, dict):
        return f"environments = {text_of(tables)}\n"
    lines = []
    for name, table in tables.items():
        lines.append(f"[environments.{text_of(name)}]")
        for key, value in table.items() if isinstance(table, dict) else ():
            lines.append(f"{text_of(key)} = {inline(value)}")
    return "\n".join(lines)


def inline(value: object) -> str:
    """Return a value as TOML: tables and lists as such."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text_of(key)} = {inline(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    return text_of(value)


def text_of(value: object) -> str:
    """Return a value as a text of TOML: that of JSON, without lone surrogates and without what only JSON leaves unescaped."""
    text = value if isinstance(value, str) else json.dumps(value)
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False).replace("\x7f", "\\u007F")


@BOUNDED
@given(
    environments=NATIVE
    | st.dictionaries(
        ANY_NAMES | st.integers(),
        NATIVE
        | st.dictionaries(
            st.sampled_from(sorted(option.field for option in OPTIONS)) | ANY_TEXT | st.integers(), NATIVE, max_size=5
        ),
        max_size=3,
    )
    | st.tuples(NATIVE, NATIVE)
)
@pytest.mark.filterwarnings("ignore:proxy_secrets:DeprecationWarning")
def test_options_in_code_raise_nothing_else_of_environments(environments: object) -> None:
    """Any environments in code give options, or every problem at once."""
    made, problems = attempt(lambda: ProxyOptions(flagsvc_url="file:///flags.json", environments=environments))  # type: ignore[arg-type]
    assert (made is None) == bool(problems)


@BOUNDED
@example(tables={"a": {}}, secrets={}, urls={}, text=f"*:development.{SECRET}")
@example(tables={"a": {}}, secrets={}, urls={}, text=f'["{SECRET}"]')
@example(tables={"a": {}}, secrets={}, urls={}, text=f'{{"a": {{"clientKeys": "{SECRET}"}}')
@given(
    tables=st.dictionaries(ENVIRONMENT_NAMES, st.dictionaries(OPTION_NAMES, TEXT, max_size=3), min_size=1, max_size=3),
    secrets=st.dictionaries(SECRET_NAMES, SECRET_TEXTS, max_size=4),
    urls=st.dictionaries(st.sampled_from(["flagsvcUrl", "httpProxy", "httpsProxy", "expBootstrap.url"]), SECRET_URLS, max_size=2),
    text=st.none(),
)
def test_no_secret_in_any_text_of_environments(
    tables: dict[str, dict[str, object]], secrets: dict[str, str], urls: dict[str, str], text: str | None
) -> None:
    """A secret, valid or not, is in no problem, warning, dump, JSON or repr."""
    given = {name: nested({**table, **urls, **secrets}) for name, table in tables.items()}
    environment = HOME | {"FLAGSVC_ENVIRONMENTS": json.dumps(given) if text is None else text}
    resolved = resolve(environment, None, {})
    shown = [in_effect(resolved), what_is_set(resolved), as_json(resolved), *resolved.problems.values(), *resolved.warnings]
    made, problems = attempt(lambda: load(environment, None, {}).options)
    shown += [repr(made), repr(made.environments if made else ()), *problems]
    assert [each for each in shown if SECRET in each] == []


Texts = Mapping[str, Mapping[str, str]]
"""Options as texts, by the name of their environment."""

FEW = settings(BOUNDED, max_examples=examples(60))
"""Each example is read in every form."""
FIT_NAMES = st.lists(st.sampled_from(["a", "b", "prod-eu", "Z9.x", "test_2", "7"]), unique=True, min_size=1, max_size=3)
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
    return Given({key: text for part in [HOME, {VARIABLE: ",".join(tables)}, *each] for key, text in part.items()}, None)


def as_json_variable(tables: Texts, folder: Path) -> Given:
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
    as_json_variable: "(environment FLAGSVC_ENVIRONMENTS [environments.{name}])",
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
    for name in draw(FIT_NAMES):
        more = {
            option: SAMPLES[option][0] if draw(st.booleans()) else draw(PLAUSIBLE | ANY_TEXT)
            for option in draw(st.lists(OPTION_NAMES, unique=True, max_size=4))
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
        st.sampled_from(["a", "prod-eu"]), st.lists(OPTION_NAMES, unique=True, min_size=1, max_size=4), min_size=1
    )
)
def test_a_wrong_value_is_one_problem_with_its_place(wrong: dict[str, list[str]], tmp_path: Path) -> None:
    """Each wrong value is one problem, in each form, with the place and the option, and without a secret."""
    tables = {name: {**required(name), **dict.fromkeys(options, f"{BAD}{SECRET}")} for name, options in wrong.items()}
    for form, place in FORMS.items():
        written = form(tables, tmp_path)
        problems = resolve(*written, {}).problems
        assert set(problems) == {f"environments.{name}.{option}" for name, options in wrong.items() for option in options}
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
