"""What a change of options means for an environment that runs (behaviour: Changes without a restart; Several environments).

Some options decide which flags a key opens. Keys that come together with another value of these must not open the former flags.
"""

from __future__ import annotations

from typing import Any

from flagsvc.core.log import Logger
from flagsvc.settings.network import is_gitlab
from flagsvc.settings.options import Environment, ProxyOptions, differing, with_values
from flagsvc.settings.rows.callers import LOOKED_UP
from flagsvc.settings.tokens import read_exact_scope, read_scope

KEY_OPTIONS = ("client_keys", "exp_server_side_sdk_config_tokens")
"""The options with the keys and tokens of callers."""
TOKEN = "flagsvcApiToken"  # noqa: S105 - the name of an option
DECIDING = ("flagsvc_url", "upstream_headers", "project_name", "name_prefix", "tags", "environment")
"""The options that decide which flags a key opens, beside the upstream's token."""
DECIDING_AT_GITLAB = ("flagsvc_app_name", "flagsvc_instance_id")
"""Further ones if the upstream is GitLab, which reads no token."""


def has_other_scope(old: str, new: str) -> bool:
    """Return whether two tokens name different projects or environments. One that names none is not known to differ."""
    former, present = read_scope(old), read_scope(new)
    return former is not None and present is not None and former != present


def find_other_flags(old: ProxyOptions, new: ProxyOptions) -> list[str]:
    """Return the names of the changed options that decide which flags a key opens; none if these are known to be the same.

    A token that does not name its projects and its environment is in doubt: another one may be for other flags.
    """
    at_gitlab = is_gitlab(old.flagsvc_url) or is_gitlab(new.flagsvc_url)
    fields = (*DECIDING, *DECIDING_AT_GITLAB) if at_gitlab else DECIDING
    names = [row.name for row in differing(old, new) if row.field in fields]
    return [*names, TOKEN] if may_have_other_scope(old.flagsvc_api_token, new.flagsvc_api_token) else names


def may_have_other_scope(old: str, new: str) -> bool:
    """Return whether two tokens are not known to be for the same projects and the same environment."""
    former = read_exact_scope(old)
    return old != new and (former is None or former != read_exact_scope(new))


def find_waiting(old: ProxyOptions, new: ProxyOptions) -> list[str]:
    """Return the names of the changed options for which new keys wait in a process with a single environment.

    It needs a restart for them, because the only environment cannot be replaced. A token whose scope is in doubt needs none,
    unless tokens are looked up: the upstream says what they open with the new token, while the flags are still those of the
    former one.
    """
    is_known = has_other_scope(old.flagsvc_api_token, new.flagsvc_api_token) or old.token_validation == LOOKED_UP
    return [name for name in find_other_flags(old, new) if name != TOKEN or is_known]


def hold_back(used: ProxyOptions, read: ProxyOptions, log: Logger | None) -> ProxyOptions:
    """Return the options in use, although others were read: keys and tokens wait for the restart of the only environment.

    They may be for other flags. But keys end at once if they were only taken away. What waits is logged, if there is a log.
    """
    old, new = keys_of(used), keys_of(read)
    is_removal = all(set(new[place]) <= set(old[place]) for place in old)
    usable = with_values(used, {field: keys for (_, field), keys in new.items()}) if is_removal else used
    waiting = find_waiting(used, read)
    if log is not None and TOKEN in waiting:
        is_known = has_other_scope(used.flagsvc_api_token, read.flagsvc_api_token)
        log.warn(
            f"flagsvcApiToken {'is' if is_known else 'may be'} of another project or environment now and needs a restart"
        )
    if log is not None and any(row.reloads for row in differing(usable, read)):
        log.warn("new keys and tokens wait for the restart that these options need", options=", ".join(waiting))
    return usable


def needs_replacement(old: ProxyOptions, new: ProxyOptions) -> bool:
    """Return whether an environment with the new options must be started beside the old one, because more than keys differ."""
    return not all(row.reloads for row in differing(old, new)) or bool(find_other_flags(old, new))


def keys_of(options: ProxyOptions) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the keys and tokens of callers by environment and option; the environment is empty if there is a single one."""
    parts = options.environments or (Environment("", options),)
    return {(part.name, field): getattr(part.options, field) for part in parts for field in KEY_OPTIONS}


def with_keys_meanwhile(former: ProxyOptions, coming: ProxyOptions) -> ProxyOptions:
    """Return the options of an environment that answers until another one takes its place, with the keys that open it meanwhile.

    If the other one has the same flags, they are its keys. Otherwise they are those that both have: new keys do not open the former
    flags, and neither do keys that have ended.
    """
    is_other = bool(find_other_flags(former, coming))
    values: dict[str, Any] = {}
    for name in KEY_OPTIONS:
        had, wanted = getattr(former, name), getattr(coming, name)
        values[name] = tuple(key for key in had if key in wanted) if is_other else wanted
    return with_values(former, values)
