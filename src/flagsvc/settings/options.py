"""The options in code: `ProxyOptions`, frozen, valid and normalised by the rows of OPTIONS.

The same rows serve `load.py`; a value means the same wherever it is given.
"""

from __future__ import annotations

from collections.abc import Mapping

from flagsvc.settings.advice import advice_on
from flagsvc.settings.kinds import is_blank
from flagsvc.settings.names import flatten
from flagsvc.settings.normalise import CODE, Given
from flagsvc.settings.option import Option
from flagsvc.settings.storage import server_at
from flagsvc.settings.table import BY_NAME, OPTIONS, ProxyRows

__all__ = ["OPTIONS", "Option", "ProxyOptions", "advice"]


class ProxyOptions(ProxyRows):
    """The options of one proxy (specification: Configuration), valid and normalised; intervals are milliseconds.

    Takes each option as a native value or as the text that a variable would hold; an option that is None, or a text of blanks,
    has its default. `proxy_secrets` and `exp_bootstrap` are other ways to give `client_keys`, `exp_bootstrap_url` and
    `exp_bootstrap_authorization`: they are found there, and are themselves empty. Raises `ConfigurationError` with every
    problem at once. The environment is not read: `flagsvc.settings.load.load` does that.
    """

    @classmethod
    def _entries(cls, given: Mapping[str, object]) -> tuple[dict[str, Given], list[str]]:
        """Put the parts of exp_bootstrap, a URL or a mapping, where no part of their own is given."""
        entries, problems = super()._entries({field: given[field] for field in given if field != "exp_bootstrap"})
        value = given.get("exp_bootstrap")
        if is_blank(value):
            return entries, problems
        tree = {"expBootstrap": {"url": value} if isinstance(value, str) else value}
        found, wrong = flatten(tree, "in code", BY_NAME)
        return {name: Given(part, CODE) for name, part in found.items()} | entries, problems + wrong


def advice(options: ProxyOptions) -> list[str]:
    """Return a warning for each combination of options that is valid but probably a mistake."""
    return advice_on({name: getattr(options, option.field) for name, option in BY_NAME.items()})


def differing(one: ProxyOptions, other: ProxyOptions) -> list[Option]:
    """Return the rows of the options whose values differ."""
    return [option for option in OPTIONS if getattr(one, option.field) != getattr(other, option.field)]


def secrets_of(options: ProxyOptions) -> list[str]:
    """Return every secret in the options."""
    found: list[str] = []
    for option in OPTIONS:
        value = getattr(options, option.field) if option.secret else None
        for each in value if isinstance(value, tuple) else (value,):
            found += [each[1] if isinstance(each, tuple) else each] if each else []
    server = server_at(options.storage)
    return found if server is None or not server.password else [*found, server.password]
