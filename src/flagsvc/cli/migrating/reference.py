"""From the variables of the reference proxy, npm `@unleash/proxy`, to options. Each means the same here (behaviour: Drop-in)."""

from __future__ import annotations

from collections.abc import Mapping

from flagsvc.cli.migrating.migration import ENVIRONMENT, About, Migration, Peer, Value
from flagsvc.settings.kinds import BOOLEANS
from flagsvc.settings.load import resolve
from flagsvc.settings.normalise import FOLLOWS
from flagsvc.settings.option import ALIAS, PREFIX
from flagsvc.settings.table import OPTIONS
from flagsvc.settings.unread import unread

APP_NAME = "UNLEASH_APP_NAME"
AUTHORITIES = "NODE_EXTRA_CA_CERTS"
UNVERIFIED = "NODE_TLS_REJECT_UNAUTHORIZED"
JSON_LOGGER = "JSON_LOGGER"
DEFAULT = "default"


def readable() -> dict[str, str]:
    """Return the names of variables as the reference has them, with their options: without our prefix, and those of files."""
    return {
        variable.name: option.name
        for option in OPTIONS
        for variable in option.variables
        if not variable.holds_path and not variable.name.startswith(PREFIX)
    }


def translate_reference(given: Mapping[str, str]) -> Migration:
    """Return what the variables of the reference mean here. A value that it guesses at, and flagsvc refuses, becomes a note."""
    migration = Migration(Peer.PROXY)
    names = readable()
    resolved = resolve({name: value for name, value in given.items() if name in names}, None, {})
    for option in OPTIONS:
        source = resolved.sources.get(option.name, DEFAULT)
        if source == DEFAULT or source.endswith(FOLLOWS):
            continue
        if option.name in resolved.problems:
            migration.note_problem(resolved.problems[option.name], option.name, source)
        elif resolved.values[option.name] not in ((), "", None):
            migration.options[option.name] = native(resolved.values[option.name])
    migration.set_default("variantFeatureState", True, "variants as the reference gives them: SDKs read featureEnabled")
    _translate_node(given, migration)
    _note_differences(given, migration)
    return migration


def native(value: object) -> Value:
    """Return a normalised value as a file has it: a list for several, `name:value` for a pair."""
    if isinstance(value, tuple):
        return [":".join(item) if isinstance(item, tuple) else str(item) for item in value]
    return value if isinstance(value, bool | int) else str(value)


def _translate_node(given: Mapping[str, str], migration: Migration) -> None:
    """Set what variables of Node.js say about the upstream."""
    if AUTHORITIES in given:
        migration.set("upstreamCa", given[AUTHORITIES].strip(), AUTHORITIES)
        migration.note(About.CHANGED, AUTHORITIES, "it is Node's: here upstreamCa has the authorities")
    if given.get(UNVERIFIED, "").strip() == "0":
        migration.set("httpOptions.rejectUnauthorized", False, UNVERIFIED)
        migration.note(About.CHANGED, UNVERIFIED, "it is Node's: here httpOptions.rejectUnauthorized is false")


def _note_differences(given: Mapping[str, str], migration: Migration) -> None:
    """Add notes on what the reference reads in another way, and on what it does without being told."""
    if APP_NAME not in given:
        text = "unset: the flag server sees the application `flagsvc-proxy`, not `unleash-proxy`"
        migration.note(About.CHANGED, APP_NAME, text)
    if BOOLEANS.get(given.get(JSON_LOGGER, "true").strip().lower()) is False:
        migration.note(
            About.CHANGED, JSON_LOGGER, "the reference takes every text for true, flagsvc takes this for false"
        )
    if "UNLEASH_PROXY_SECRETS" in given and "UNLEASH_PROXY_CLIENT_KEYS" not in given:
        migration.note(About.CHANGED, "UNLEASH_PROXY_SECRETS", "the keys are clientKeys here")
    for text in unread({name: value for name, value in given.items() if name.startswith(ALIAS)}):
        name, _, rest = text.removeprefix(ENVIRONMENT).partition(": ")
        migration.note(About.IGNORED, name, rest)
