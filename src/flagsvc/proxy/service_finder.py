"""Finds the services that looked-up tokens open (behaviour: Tokens looked up upstream)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from flagsvc.http.http_errors import key_unavailable
from flagsvc.http.token_questions import known_token
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.token_directory import Admission
from flagsvc.proxy.tokens import UnavailableError
from flagsvc.proxy.tokens.bounds import RETRY_S, answer_deadline
from flagsvc.settings.tokens import EVERY_PROJECT

MAX_TRIES = 3
"""How often a token is looked up for one request, if tokens are revoked or its environment is replaced meanwhile."""


class AdmitToken(Protocol):
    """Looks up the tokens that no option lists, here or in the parent process."""

    def is_refused(self, token: str) -> bool:
        """Return whether it is known that a token opens nothing."""

    async def look_up_all(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        """Return what tokens open. Those that open nothing are left out. `deadline` is a moment of the event loop.

        Raises UnavailableError if it cannot be found out now for one of them.
        """


class AdmittingCallers(Protocol):
    """The callers' side of a process, which passes the requests with a token on to a service."""

    @property
    def revocations(self) -> int:
        """How often tokens were taken back so far, or are to be placed again."""

    def admit(self, token: str, admission: Admission) -> Service | None:
        """Return the service that a token opens, and pass its requests on to it. None if its environment is no longer there."""


class ServiceFinder:
    """Finds the services that tokens open, and makes those for some projects when they are first needed."""

    def __init__(self, callers: AdmittingCallers, admit: AdmitToken) -> None:
        self._callers = callers
        self._admit = admit

    def is_refused(self, token: str) -> bool:
        """Return whether it is known that a token opens nothing, so that no caller needs to wait."""
        return self._admit.is_refused(token)

    async def find(self, token: str, network: bytes) -> Service | None:
        """Return the service that a token opens; None for none. Raises HttpError (503) if that cannot be found out now.

        If a token is revoked between an answer and now, it may be this one. If the environment in the answer has gone meanwhile,
        the token may open the one that took its place. Both need another answer.
        """
        deadline = answer_deadline()
        for _ in range(MAX_TRIES):
            before = self._callers.revocations
            admission = (await self._look_up([token], network, deadline)).get(token)
            if admission is None:
                return None
            service = self._callers.admit(token, admission) if self._callers.revocations == before else None
            if service is not None:
                return service
        raise key_unavailable(RETRY_S)

    async def _look_up(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        """Return what tokens open. Raises HttpError (503) if that cannot be found out now."""
        try:
            return await self._admit.look_up_all(tokens, network, deadline)
        except UnavailableError as error:
            raise key_unavailable(error.seconds) from None

    async def describe(self, tokens: list[str], network: bytes) -> list[dict[str, Any]]:
        """Return what each of these tokens opens, in the words of the real server. Raises HttpError (503)."""
        found = await self._look_up(tokens, network, answer_deadline())
        return [describe_admission(token, found[token]) for token in tokens if token in found]


def describe_admission(token: str, admission: Admission) -> dict[str, Any]:
    """Return what a token opens that was looked up, in the words of the real server."""
    environment, projects = admission.scope
    kind = "client" if admission.is_server else "frontend"
    return known_token(token, kind, [EVERY_PROJECT] if projects is None else sorted(projects), environment)
