"""The shape of a custom activation strategy (specification: Options).

The engine calls a strategy for each toggle that uses it, with the parameters of the toggle's strategy and the evaluation context.
The strategy returns true or false. It does no I/O, because it runs inside the evaluation of a request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol


class ContextView(Protocol):
    """The evaluation context as a custom strategy gets it. It must not be changed.

    A standard field that the caller did not send is None, never the empty text. `properties` contains all other fields by name.
    `current_time` is the caller's time in epoch milliseconds, or None. `now` is the time that the evaluation uses, in epoch
    milliseconds.
    """

    @property
    def app_name(self) -> str | None:
        """The name of the calling application."""

    @property
    def environment(self) -> str | None:
        """The environment of the evaluation."""

    @property
    def user_id(self) -> str | None:
        """The user of the evaluation."""

    @property
    def session_id(self) -> str | None:
        """The session of that user."""

    @property
    def remote_address(self) -> str | None:
        """The caller's address."""

    @property
    def current_time(self) -> float | None:
        """The caller's time, in epoch milliseconds, or None."""

    @property
    def now(self) -> float:
        """The time of the evaluation if the caller sent none, in epoch milliseconds."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Every other field, by name."""

    def get(self, field: str) -> str | None:
        """Return the standard field or property of that name, as on the wire (`userId`, `region`), or None."""


class Strategy(ABC):
    """An optional base class for custom strategies: set `name` and write `is_enabled`.

    `pure` promises that equal parameters and an equal context always give an equal result: the strategy uses no clock (`now`
    is one), no random numbers and no file. Then the proxy knows that an answer is unchanged without an evaluation. `reads`
    names the context fields that the strategy reads, as on the wire (`userId`, `region`); None, or `properties` among them,
    stands for any field. Both are optional and only save work.
    """

    name: str = ""
    pure: bool = False
    reads: frozenset[str] | None = None

    @abstractmethod
    def is_enabled(self, parameters: Mapping[str, str], context: ContextView) -> object:
        """Return whether the strategy is on for `context`; taken by truth.

        `parameters` are those of the toggle's strategy; names and values are texts, as in the upstream's document. An
        exception counts as false and is logged once for each name of a strategy (behaviour: Statuses and bodies).
        """
