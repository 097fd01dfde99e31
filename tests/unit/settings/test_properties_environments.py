"""Properties of any configuration with several environments: only ConfigurationError, no secret in any text, equal copies."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flagsvc.settings.load import load, resolve
from flagsvc.settings.names import DIVIDED
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.render import as_json, in_effect, what_is_set
from flagsvc.settings.table import OPTIONS
from support.environment_samples import HOME, nested, required
from unit.settings.test_properties import ANY_TEXT, BOUNDED, NATIVE, SECRET, SECRET_TEXTS, SECRET_URLS, TEXT, attempt

ENVIRONMENT_NAMES = st.sampled_from(["a", "b", "prod-eu", "A", "a-exp-bootstrap"])
ANY_NAMES = ENVIRONMENT_NAMES | ANY_TEXT
OPTION_NAMES = st.sampled_from([option.name for option in DIVIDED])
SECRET_NAMES = st.sampled_from([option.name for option in DIVIDED if option.secret])
VARIABLES = sorted({name.removeprefix("FLAGSVC_") for option in DIVIDED for name, _ in option.variables})
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
    """Return variables of environments, and the one that names them: as names, as JSON of these tables, or any text."""
    name = st.lists(ANY_NAMES, max_size=3).map(",".join) | tables.map(json.dumps) | TEXT
    variables = st.builds("FLAGSVC_{}_{}".format, st.sampled_from(["A", "B", "PROD_EU"]), st.sampled_from(VARIABLES))
    return st.builds(
        lambda text, more: {"FLAGSVC_ENVIRONMENTS": text, **more}, name, st.dictionaries(variables, TEXT, max_size=6)
    )


@BOUNDED
@example(environment={"FLAGSVC_ENVIRONMENTS": "\x00"}, tables={})
@given(environment=named_variables(ANY_TABLES | good_tables()), tables=ANY_TABLES | good_tables() | st.none())
def test_loading_raises_nothing_else(environment: dict[str, str], tables: object, tmp_path: Path) -> None:
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
    assert all(
        f"\n[environments.{name}]\n" in f"\n{dump(resolved)}" for name in names for dump in (in_effect, what_is_set)
    )
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
def test_options_in_code_raise_nothing_else(environments: object) -> None:
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
    urls=st.dictionaries(
        st.sampled_from(["flagsvcUrl", "httpProxy", "httpsProxy", "expBootstrap.url"]), SECRET_URLS, max_size=2
    ),
    text=st.none(),
)
def test_no_secret_in_any_text(
    tables: dict[str, dict[str, object]], secrets: dict[str, str], urls: dict[str, str], text: str | None
) -> None:
    """A secret, valid or not, is in no problem, warning, dump, JSON or repr."""
    given = {name: nested({**table, **urls, **secrets}) for name, table in tables.items()}
    environment = HOME | {"FLAGSVC_ENVIRONMENTS": json.dumps(given) if text is None else text}
    resolved = resolve(environment, None, {})
    shown = [
        in_effect(resolved),
        what_is_set(resolved),
        as_json(resolved),
        *resolved.problems.values(),
        *resolved.warnings,
    ]
    made, problems = attempt(lambda: load(environment, None, {}).options)
    shown += [repr(made), repr(made.environments if made else ()), *problems]
    assert [each for each in shown if SECRET in each] == []
