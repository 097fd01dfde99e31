"""Turns given values into normalised values and problems. The loader and options made in code both use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flagsvc.settings.kinds import RefusedError, as_text, is_blank
from flagsvc.settings.network import is_gitlab
from flagsvc.settings.option import Option

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

INSTANCE_NEEDED = "flagsvcInstanceId is required for GitLab: set FLAGSVC_INSTANCE_ID to the instance ID of the project"


class Given(NamedTuple):
    """A value as it was given and where: `environment PORT`, `file flagsvc.toml`, `flag --port`; CODE in code."""

    value: object
    source: str


class Normalised(NamedTuple):
    """The normalised values by option name, the default where one was refused; a problem by the name it is about."""

    values: dict[str, Any]
    problems: dict[str, str]
    deprecations: list[str]


def normalise(
    given: Mapping[str, Given],
    environment: Mapping[str, str],
    rows: Sequence[Option],
    *,
    in_code: bool = False,
) -> Normalised:
    """Return the values of every option of `rows`, from those given (by option name) and the defaults for `environment`."""
    found = Normalised({}, {}, [])
    for option in rows:
        entry = given.get(option.name)
        if entry is None or is_blank(entry.value):
            found.values[option.name] = option.default_for(environment)
        else:
            take(option, entry, environment, found)
    by_name = {option.name: option for option in rows}
    _replace_deprecated(by_name, given, found)
    for option in rows:
        if option.name not in found.problems and _is_missing(option, found.values):
            found.problems[option.name] = required_text(option, in_code=in_code)
    refuse_without_needed(by_name, given, found)
    refuse_gitlab_without_instance(given, found)
    return found


def take(option: Option, entry: Given, environment: Mapping[str, str], found: Normalised) -> None:
    """Read one given value. If it is refused, note the problem and use the default."""
    try:
        found.values[option.name] = option.parse(entry.value)
    except RefusedError as refusal:
        found.values[option.name] = option.default_for(environment)
        found.problems[option.name] = refused_text(option, entry, str(refusal))


def _replace_deprecated(rows: Mapping[str, Option], given: Mapping[str, Given], found: Normalised) -> None:
    """Use proxySecrets as clientKeys if clientKeys is not given (behaviour: Drop-in)."""
    secrets = found.values.get("proxySecrets")
    if not secrets:
        return
    found.values["proxySecrets"] = ()
    text = f"{label(rows['proxySecrets'], given['proxySecrets'].source)} is deprecated"
    if "clientKeys" in given:
        found.deprecations.append(f"{text} and ignored: clientKeys is given")
    else:
        found.values["clientKeys"] = secrets
        found.deprecations.append(f"{text}: give the same keys as clientKeys (FLAGSVC_PROXY_CLIENT_KEYS)")


def _is_missing(option: Option, values: Mapping[str, Any]) -> bool:
    """Return whether a required value is missing. A `file:` URL of a document needs no token, and GitLab reads none."""
    if not option.required or values[option.name] not in (None, "", ()):
        return False
    url = str(values["flagsvcUrl"])
    return option.name != "flagsvcApiToken" or not (url.startswith("file:") or is_gitlab(url))


def refuse_gitlab_without_instance(given: Mapping[str, Given], found: Normalised) -> None:
    """Note a problem if the upstream is GitLab and the instance id is not given: GitLab knows its callers by it."""
    if is_gitlab(found.values.get("flagsvcUrl")) and "flagsvcInstanceId" not in given:
        found.problems["flagsvcInstanceId"] = INSTANCE_NEEDED


def refuse_without_needed(rows: Mapping[str, Option], given: Mapping[str, Given], found: Normalised) -> None:
    """Note a problem for each option that has no effect because the option that it needs is not given."""
    for option in rows.values():
        if not option.needs or option.name not in given or is_blank(given[option.name].value):
            continue
        if found.values[option.needs] is None and not found.problems.keys() & {option.name, option.needs}:
            found.problems[option.name] = missing_needed_text(option, given[option.name], rows[option.needs])


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


def missing_needed_text(option: Option, entry: Given, needed: Option) -> str:
    """Return the problem of an option whose needed option is not given."""
    name = needed.name if entry.source else needed.field
    return f"{label(option, entry.source)}: has no effect without {name}; give both, or neither"
