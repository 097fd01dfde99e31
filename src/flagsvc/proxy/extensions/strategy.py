"""The shape of a custom activation strategy (specification: Options).

A strategy is asked once per toggle that uses it: parameters of the toggle's strategy in, true or false out. It is
handed the evaluation context to look at. It does no I/O: it runs inside the evaluation, between two bytes of an
answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol


class ContextView(Protocol):
    """What a custom strategy sees of the evaluation context: to be read, never changed.

    A standard field the caller did not send is None, never the empty text. `properties` holds everything else by name.
    `current_time` is epoch milliseconds as the caller gave it, or None; `now` the epoch milliseconds the evaluation
    counts with.
    """

    @property
    def app_name(self) -> str | None:
        """The name of the calling application."""

    @property
    def environment(self) -> str | None:
        """The environment the evaluation is for."""

    @property
    def user_id(self) -> str | None:
        """The user the evaluation is for."""

    @property
    def session_id(self) -> str | None:
        """The session of that user."""

    @property
    def remote_address(self) -> str | None:
        """The caller's address."""

    @property
    def current_time(self) -> float | None:
        """The caller's own idea of the time, in epoch milliseconds."""

    @property
    def now(self) -> float:
        """The time the evaluation counts with where the caller gave none, in epoch milliseconds."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Every other field, by name."""

    def get(self, field: str) -> str | None:
        """Return the standard field or property of that name, as on the wire (`userId`, `region`), or None."""


class Strategy(ABC):
    """A base class for custom strategies, for those who want one: set `name`, write `is_enabled`.

    `pure` promises that equal parameters and an equal context always give an equal result (no clock, and `now` is
    one, no random draw, no file): answers can then be told unchanged without evaluating. `reads` names the context
    fields the strategy looks at, as on the wire (`userId`, `region`); None, or `properties` among them, stands for any.
    Both are optional and only ever save work.
    """

    name: str = ""
    pure: bool = False
    reads: frozenset[str] | None = None

    @abstractmethod
    def is_enabled(self, parameters: Mapping[str, str], context: ContextView) -> object:
        """Return whether the strategy is on for `context`; taken by truth.

        `parameters` are those of the toggle's strategy, text by text, after the upstream document. An exception
        counts as false and is logged once per strategy name (behaviour: Statuses and bodies).
        """
