"""From what was given to normalised values and problems: the one core of the loader and of `ProxyOptions` in code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flagsvc.settings.option import Option
from flagsvc.settings.parse import RefusedError, as_text, is_blank
from flagsvc.settings.table import BY_NAME, OPTIONS

CODE = ""
"""The source of a value given in code."""

TYPE_NAMES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
    tuple: "a list",
    dict: "a table",
    str: "a text",
}

QUOTES = "the quotes are part of the value (env files keep them): remove them"
"""What to do about a value in quotes."""


class Given(NamedTuple):
    """A value as it was given and where: `environment PORT`, `file flagsvc.toml`, `flag --port`; CODE in code."""

    value: object
    source: str


class Settled(NamedTuple):
    """The normalised values by option name, the default where one was refused; a problem by the name it is about."""

    values: dict[str, Any]
    problems: dict[str, str]
    deprecations: list[str]


def settle(
    given: Mapping[str, Given],
    environment: Mapping[str, str],
    rows: Sequence[Option] = OPTIONS,
    *,
    in_code: bool = False,
) -> Settled:
    """Return the values of every option of `rows`, from those given (by option name) and the defaults for `environment`."""
    settled = Settled({}, {}, [])
    for option in rows:
        entry = given.get(option.name)
        if entry is None or is_blank(entry.value):
            settled.values[option.name] = option.default_for(environment)
        else:
            take(option, entry, environment, settled)
    _replace_deprecated(given, settled)
    for option in rows:
        if option.name not in settled.problems and _is_missing(option, settled.values):
            settled.problems[option.name] = required_text(option, in_code=in_code)
    refuse_alone(rows, given, settled)
    return settled


def take(option: Option, entry: Given, environment: Mapping[str, str], settled: Settled) -> None:
    """Read one given value; where it is refused, note the problem and go on with the default."""
    try:
        settled.values[option.name] = option.parse(entry.value)
    except RefusedError as refusal:
        settled.values[option.name] = option.default_for(environment)
        settled.problems[option.name] = refused_text(option, entry, str(refusal))


def _replace_deprecated(given: Mapping[str, Given], settled: Settled) -> None:
    """Let proxySecrets stand for clientKeys where those are not given (behaviour: Names of variables)."""
    secrets = settled.values.get("proxySecrets")
    if not secrets:
        return
    settled.values["proxySecrets"] = ()
    text = f"{label(BY_NAME['proxySecrets'], given['proxySecrets'].source)} is deprecated"
    if "clientKeys" in given:
        settled.deprecations.append(f"{text} and ignored: clientKeys is given")
    else:
        settled.values["clientKeys"] = secrets
        settled.deprecations.append(f"{text}: give the same keys as clientKeys (FLAGSVC_PROXY_CLIENT_KEYS)")


def _is_missing(option: Option, values: Mapping[str, Any]) -> bool:
    """Return whether a required value is not there; a document in a file needs no token."""
    if not option.required or values[option.name] not in (None, "", ()):
        return False
    return option.name != "flagsvcApiToken" or not str(values["flagsvcUrl"]).startswith("file:")


def refuse_alone(options: Iterable[Option], given: Mapping[str, Given], settled: Settled) -> None:
    """Note a problem for each option that was given without the one that it has no effect without."""
    for option in options:
        if not option.needs or option.name not in given or is_blank(given[option.name].value):
            continue
        if settled.values[option.needs] is None and not settled.problems.keys() & {option.name, option.needs}:
            settled.problems[option.name] = alone_text(option, given[option.name])


def label(option: Option, source: str) -> str:
    """Return how a problem names an option: `port (environment PORT)`, in code `port`."""
    return f"{option.name} ({source})" if source else option.field


def refused_text(option: Option, entry: Given, hint: str) -> str:
    """Return the problem of a value that was refused: option, source, what was expected, and the value if it may be."""
    got = describe(option, entry.value)
    return (
        f"{label(option, entry.source)}: expected {option.kind.expects}"
        + (f", got {got}" if got else "")
        + (f"; {hint}" if hint else "")
        + (f"; {QUOTES}" if in_quotes(entry.value) else "")
    )


def in_quotes(value: object) -> bool:
    """Return whether a value is a text with the same quotation mark at both ends."""
    text = value.strip() if isinstance(value, str) else ""
    return len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"


def describe(option: Option, value: object) -> str:
    """Return a refused value as it may be shown: a text or a number where it is no secret, else only its type."""
    if isinstance(value, str):
        return option.kind.echo(value) or ""
    small = isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)
    shown = option.kind.echo(as_text(value)) if small else None
    return shown or TYPE_NAMES.get(type(value), f"a value of type {type(value).__name__}")


def required_text(option: Option, *, in_code: bool = False) -> str:
    """Return the problem of a required option that was not given: every way to give it."""
    if in_code:
        return f"{option.field} is required"
    return f"{option.name} is required: set {option.reads[0]}, {option.flag} or {option.name} in a --config file"


def alone_text(option: Option, entry: Given) -> str:
    """Return the problem of an option that was given without the one that it needs."""
    name = option.needs if entry.source else BY_NAME[option.needs].field
    return f"{label(option, entry.source)}: has no effect without {name}; give both, or neither"
