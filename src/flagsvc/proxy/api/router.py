"""Passes each request to the service of the environment that its key opens (behaviour: Several environments). Compiled.

Each environment has a service of its own: its keys, evaluators, answer cache and counters belong to no other. The service of the
process answers what needs no key, and every caller whose key opens nothing. A key that is not known may be a token that the
upstream knows: then the answer waits for the look-up.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol

from flagsvc.http import http_errors
from flagsvc.http.call import Call, FunctionHandler
from flagsvc.http.contract import Contract
from flagsvc.http.keys import SCHEME, salted
from flagsvc.http.messages import OPTIONS, HttpError, Response
from flagsvc.proxy.api.service import Service


class KeyTable:
    """The services that keys open, by salted digests of the keys: listed keys, and tokens that were looked up."""

    def __init__(self, listed: Iterable[tuple[str, Service]]) -> None:
        self.listed: Final = {salted(key.encode("utf-8", "surrogateescape")): service for key, service in listed}
        self.admitted: dict[bytes, Service] = {}

    def find(self, sent: bytes) -> Service | None:
        """Return the service that a key opens, as it came in the header: alone, or after `Bearer`."""
        key = sent.strip(b" \t")
        found = self.find_alone(key)
        if found is None and key[: len(SCHEME)].lower() == SCHEME:
            found = self.find_alone(key[len(SCHEME) :].strip(b" \t"))
        return found

    def find_alone(self, key: bytes) -> Service | None:
        digest = salted(key)
        found = self.listed.get(digest)
        return self.admitted.get(digest) if found is None else found


class Entrance(Contract):
    """Passes each request on to the contract that answers now. Another one takes its place between two requests."""

    def __init__(self, current: Contract) -> None:
        super().__init__(current.headers, current.header_limit, current.query_limit, current.reached, current.log, current.traffic)
        self.current: Contract = current

    def check_head(self, call: Call) -> Call | Response:
        """Let the present contract check a call, and answer it."""
        call.handler = self.current
        return self.current.check_head(call)

    def network(self, peer: str) -> bytes:
        return self.current.network(peer)

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        return self.current.early_refusal(status, crowded)

    def tls_refusal(self) -> Response:
        return self.current.tls_refusal()

    def fail(self, call: Call, error: Exception) -> Response:
        return self.current.fail(call, error)


class TokenFinder(Protocol):
    """Finds the services that tokens open which no option lists."""

    def is_refused(self, token: str) -> bool:
        """Return whether it is known that a token opens nothing, so that no caller needs to wait."""

    async def find(self, token: str, network: bytes) -> Service | None:
        """Return the service that a token opens; None for none. Raises HttpError (503) if that cannot be found out now."""


class Router(Entrance):
    """The contract of a process whose keys open different services. What is no call goes to the service of the process.

    `process` is the service of the process itself. `opened` are the listed keys, each with the service that it opens. `finder`
    looks up other tokens; None if only listed keys count.
    """

    def __init__(self, process: Service, opened: Iterable[tuple[str, Service]], finder: TokenFinder | None = None) -> None:
        super().__init__(process)
        self.process: Final = process
        self.finder: Final = finder
        self.table: Final = KeyTable(opened)

    def admit_token(self, token: str, service: Service) -> None:
        """Pass requests with this token on to a service, too."""
        self.table.admitted[salted(token.encode("utf-8", "surrogateescape"))] = service

    def revoke_token(self, token: str) -> None:
        """Pass requests with this token on no longer, unless it is a listed key."""
        self.table.admitted.pop(salted(token.encode("utf-8", "surrogateescape")), None)

    def forget_service(self, service: Service) -> None:
        """Pass requests with tokens on to this service no longer, until the tokens are looked up again."""
        admitted = self.table.admitted
        for digest in service.keys.either.added:
            if admitted.get(digest) is service:
                del admitted[digest]

    def find_service(self, call: Call) -> Service | None:
        """Return the service that answers a call; None if its key opens nothing."""
        process = self.process
        request = call.request
        key = call.key
        if key is None or call.keyed_twice or request.method == OPTIONS:
            return process
        resource = process.find_resource(request.path)
        if resource is not None:
            endpoint = resource.endpoints.get(request.method)
            if endpoint is not None and endpoint.key_check is None:
                return process
        return self.table.find(key)

    def check_head(self, call: Call) -> Call | Response:
        """Let the service of the caller's environment check a call."""
        service = self.find_service(call)
        if service is not None:
            call.handler = service
            return service.check_head(call)
        call.handler = self.process
        if self.finder is not None:
            token = self.unknown_token(call)
            if token and not self.finder.is_refused(token):
                call.handler = FunctionHandler(partial(self.answer_later, self.finder, token))
                call.key_pending = True
        return self.process.check_head(call)

    def unknown_token(self, call: Call) -> str:
        """Return the token of a call with an unknown key, if its route needs one and it can be looked up; else nothing."""
        key = call.key
        if key is None:
            return ""
        resource = self.process.find_resource(call.request.path)
        endpoint = None if resource is None else resource.endpoints.get(call.request.method)
        if endpoint is None or endpoint.key_check is None:
            return ""
        return endpoint.key_check.read_key(key).decode("latin-1")

    async def answer_later(self, finder: TokenFinder, token: str, call: Call, body: bytes) -> Response:
        """Wait until it is known what a token opens, and return the response of that service."""
        try:
            service = await finder.find(token, self.process.trust.caller_network(call.request.peer, call.forwarded))
        except HttpError as refused:
            return self.process.refuse(call, refused)
        except Exception as error:  # as in admit
            return self.process.fail(call, error)
        call.key_pending = False
        if service is None:
            return self.process.refuse(call, http_errors.unauthorized())
        call.handler = service
        checked = service.check_head(call)
        if isinstance(checked, Response):
            return checked
        answer = service.answer(checked, body)
        return answer if isinstance(answer, Response) else await answer
