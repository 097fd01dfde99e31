"""Turns given values into normalised values and problems. The loader and options made in code both use it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flagsvc.settings.kinds import RefusedError, as_text, is_blank
from flagsvc.settings.network import is_gitlab
from flagsvc.settings.option import ALIAS, PREFIX, Option, Scope

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

INSTEAD = {"clientKeys": ("proxySecrets", "tokenValidation")}
"""Required option → options that can make it unnecessary."""

INSTANCE_NEEDED = "flagsvcInstanceId is required for GitLab: set FLAGSVC_INSTANCE_ID to the instance ID of the project"


BY_REFERENCE = f"environment {ALIAS}"
"""How the sources begin that are variables of the reference."""
FOLLOWS = ", as the reference answers"
"""How the sources end of options that follow such a variable."""


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
    divided: bool = False,
    lost: Collection[str] = (),
) -> Normalised:
    """Return the values of every option of `rows`, from those given (by option name) and the defaults for `environment`.

    With `divided`, the process has several environments. Then required options belong to the environments, not to the process.
    Options that are `lost` may be given in a place that could not be read: nothing is said of their absence.
    """
    found = Normalised({}, {}, [])
    for option in rows:
        entry = given.get(option.name)
        if entry is None or is_blank(entry.value):
            found.values[option.name] = option.default_for(environment)
        else:
            take(option, entry, environment, found)
    by_name = {option.name: option for option in rows}
    _replace_deprecated(by_name, given, found)
    if divided:
        refuse_own(by_name, given, found)
    else:
        refuse_missing(by_name, found, lost, in_code=in_code)
        if "flagsvcInstanceId" not in lost:
            refuse_gitlab_without_instance(given, found)
        refuse_lookups_without_tokens(given, found)
    refuse_one_header_for_two(given, found)
    inherited = [row.name for row in rows if divided and row.scope is Scope.INHERITED]  # environments may have what they need
    refuse_without_needed(by_name, given, found, {*lost, *inherited})
    return found


def followers(given: Mapping[str, Given], rows: Iterable[Option]) -> dict[str, Given]:
    """Return the values of options that are not given and follow an option that a variable of the reference gives."""
    leaders = ((row, given.get(row.follows)) for row in rows if row.name not in given)
    return {
        row.name: Given(True, f"{leader.source}{FOLLOWS}")
        for row, leader in leaders
        if leader is not None and leader.source.startswith(BY_REFERENCE)
    }


def find_entry(name: str, given: Mapping[str, Given]) -> Given | None:
    """Return what the value of an option was read from. Client keys may be given as proxySecrets (behaviour: Drop-in)."""
    return given.get(name) or (given.get("proxySecrets") if name == "clientKeys" else None)


def refuse_missing(rows: Mapping[str, Option], found: Normalised, lost: Collection[str], *, in_code: bool) -> None:
    """Note a problem for each required option that is missing. One is not missing if what stands for it has a problem already."""
    for option in rows.values():
        known = {option.name, *INSTEAD.get(option.name, ())}.isdisjoint((*found.problems, *lost))
        if known and _is_missing(option, found.values):
            found.problems[option.name] = required_text(option, in_code=in_code)
            if option.name == "clientKeys" and knows_tokens(found.values):
                without = f'{"token_validation" if in_code else "tokenValidation"} = "upstream"'
                found.problems[option.name] += f", or {without}"


def refuse_own(rows: Mapping[str, Option], given: Mapping[str, Given], found: Normalised) -> None:
    """Note a problem for each option that is given for the process, but has a value of its own in every environment."""
    for option in rows.values():
        entry = find_entry(option.name, given)
        if entry is not None and option.scope is Scope.OWN and found.values[option.name]:
            variable = f"{PREFIX}NAME_{option.reads[0].removeprefix(PREFIX)}"
            where = f"give it as {variable}, or in [environments.NAME]"
            found.problems[option.name] = f"{label(option, entry.source)}: each environment has its own; {where}"


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
        found.deprecations.append(f"{text}: give the same keys as clientKeys ({rows['clientKeys'].reads[0]})")


def _is_missing(option: Option, values: Mapping[str, Any]) -> bool:
    """Return whether a required value is missing.

    A `file:` URL of a document needs no token, and GitLab reads none. Tokens that are looked up need no keys beside them.
    """
    if not option.required or values[option.name] not in (None, "", ()):
        return False
    if option.name == "clientKeys":
        return bool(values["tokenValidation"] != "upstream")
    return option.name != "flagsvcApiToken" or knows_tokens(values)


def knows_tokens(values: Mapping[str, Any]) -> bool:
    """Return whether the upstream has tokens: a `file:` URL of a document has none, and neither has GitLab."""
    url = str(values["flagsvcUrl"])
    return not (url.startswith("file:") or is_gitlab(url))


def refuse_lookups_without_tokens(given: Mapping[str, Given], found: Normalised) -> None:
    """Note a problem if tokens are to be looked up at an upstream that has none."""
    if found.values.get("tokenValidation") == "upstream" and not knows_tokens(found.values):
        source = given["tokenValidation"].source
        where = f"tokenValidation ({source})" if source else "token_validation"
        found.problems["tokenValidation"] = f"{where}: this upstream has no tokens; list the keys as clientKeys"


def refuse_gitlab_without_instance(given: Mapping[str, Given], found: Normalised) -> None:
    """Note a problem if the upstream is GitLab and the instance id is not given: GitLab knows its callers by it."""
    if is_gitlab(found.values.get("flagsvcUrl")) and "flagsvcInstanceId" not in given:
        found.problems["flagsvcInstanceId"] = INSTANCE_NEEDED


def refuse_one_header_for_two(given: Mapping[str, Given], found: Normalised) -> None:
    """Note a problem if the same header is to name the person and the groups of the person: it would name no person."""
    name = found.values.get("userHeader")
    if name is not None and name == found.values["userGroupsHeader"]:
        source = given["userGroupsHeader"].source
        where = f"userGroupsHeader ({source})" if source else "user_groups_header"
        found.problems["userGroupsHeader"] = f"{where}: `{name}` names the person already, as userHeader"


def refuse_without_needed(rows: Mapping[str, Option], given: Mapping[str, Given], found: Normalised, lost: Collection[str]) -> None:
    """Note a problem for each option that has no effect because the option that it needs is not given."""
    for option in rows.values():
        if not option.needs or option.needs in lost or option.name not in given or is_blank(given[option.name].value):
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
    if option.environment:
        return f"{option.name} is required: set {option.reads[0]}, or {option.name} in [environments.{option.environment}]"
    return f"{option.name} is required: set {option.reads[0]}, {option.flag} or {option.name} in a --config file"


def missing_needed_text(option: Option, entry: Given, needed: Option) -> str:
    name = needed.name if entry.source else needed.field
    return f"{label(option, entry.source)}: has no effect without {name}; give both, or neither"
