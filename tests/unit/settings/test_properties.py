"""Properties of any configuration: it raises only ConfigurationError, shows no secret, and parses its results unchanged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.load import load, resolve
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.render import as_json, in_effect
from flagsvc.settings.table import BY_NAME, OPTIONS
from support.option_samples import SAMPLES

BOUNDED = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
"""Includes lone surrogates, which os.environ contains for bytes that are not UTF-8."""

PLAUSIBLE = st.sampled_from(
    [
        *(text for text, _ in SAMPLES.values()),
        "true",
        "1",
        "0",
        "-1",
        "a,b",
        "*",
        "none",
        "file:",
        "[::1]",
        "http://[",
        "::ffff:1.2.3.4/8",
    ]
)
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
SECRET_URLS = st.sampled_from(
    [
        f"http://u:{SECRET}@h",
        f"ftp://{SECRET}@h/x",
        f"http://h:p/?s={SECRET}",
        f"*:dev.{SECRET}",
        f"http://u:/{SECRET}@h:x",
        f"x:{SECRET}",
    ]
)


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
@given(
    given=st.dictionaries(st.sampled_from(sorted(option.field for option in OPTIONS)) | ANY_TEXT, NATIVE, max_size=8)
)
@pytest.mark.filterwarnings("ignore:proxy_secrets:DeprecationWarning")
def test_options_in_code_raise_nothing_else(given: dict[str, object]) -> None:
    """Any values in code give options, or every problem at once."""
    made, problems = attempt(lambda: ProxyOptions(**given))  # type: ignore[arg-type]
    assert (made is None) == bool(problems)
    assert made is None or repr(made).startswith("ProxyOptions(")


@BOUNDED
@example(environment={}, secrets={"EXP_BOOTSTRAP_AUTHORIZATION_FILE": f"/{SECRET}"}, urls={})
@example(environment={}, secrets={}, urls={"FLAGSVC_URL": f"http://u:/{SECRET}@h:x"})
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
