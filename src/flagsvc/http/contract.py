"""The interface between a transport and a program that answers requests: the proxy or the flag server. Compiled.

The HTTP/1.1 connection, the adapter for ASGI servers and tests use it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from time import monotonic

from mypy_extensions import mypyc_attr

from flagsvc.core.log import Logger
from flagsvc.http.call import Call, Handler
from flagsvc.http.counts import Traffic
from flagsvc.http.messages import Request, Response
from flagsvc.http.reached_limits import Reached
from flagsvc.http.token_buckets import network_of
from flagsvc.http.trust import unmap_ipv4


@mypyc_attr(allow_interpreted_subclasses=True)
class Contract(Handler, ABC):
    """Answers requests. None of its methods raises.

    `headers` has the kind of each header that is read, by its name in lower case. `header_limit` and `query_limit` are in bytes.
    `reached` counts refusals by limit, and `traffic` what connections do. Unexpected errors are written to `log`.
    """

    def __init__(
        self,
        headers: dict[bytes, int],
        header_limit: int,
        query_limit: int,
        reached: Reached,
        log: Logger,
        traffic: Traffic | None = None,
    ) -> None:
        self.headers = headers
        self.header_limit = header_limit
        self.query_limit = query_limit
        self.reached = reached
        self.log = log
        self.traffic = Traffic() if traffic is None else traffic

    def admit(self, request: Request) -> Call | Response:
        """Return the call of a request, or the answer if its head already decides that."""
        call = Call(request)
        call.handler = self
        call.started = monotonic()
        try:
            call.read(self.headers)
            call.use_spare_key()
        except Exception as error:  # the last resort: every request gets an answer
            return self.fail(call, error)
        return self.check_head(call)

    @abstractmethod
    def check_head(self, call: Call) -> Call | Response:
        """Do what `admit` does for a call whose headers and their size are already read.

        The `handler` of the call is this contract, unless this method chooses another handler. If the call is returned, its
        `limit` is how much of its body to read, and its handler answers it. The handler gets one byte more of a body that is
        too large.
        """

    def network(self, peer: str) -> bytes:
        """Return the network of a peer, by which limits count; empty for a peer that forwards requests of many callers."""
        return network_of(unmap_ipv4(peer))

    @abstractmethod
    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        """Return the answer to a request that is refused before it is parsed: no HTTP (400), too large a head (431), no room (503).

        Without `crowded`, there are too many connections. With it, unfinished requests use too much memory.
        """

    async def run_beside(self) -> None:
        """Do what goes on while this contract is served, until cancelled. Most contracts do nothing."""

    def tls_refusal(self) -> Response:
        """Return the answer (400) to a caller that speaks TLS on a port of plain HTTP."""
        return self.early_refusal(400)

    @abstractmethod
    def fail(self, call: Call, error: Exception) -> Response:
        """Log an unexpected exception and return the 500."""
