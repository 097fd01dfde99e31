"""The interface between a transport and a program that answers requests: the proxy or the flag server. Compiled.

The HTTP/1.1 connection, the adapter for ASGI servers and tests use it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from flagsvc.core.log import Logger
from flagsvc.http.call import Answer, Call
from flagsvc.http.messages import Request, Response
from flagsvc.http.networks import network_of
from flagsvc.http.reached_limits import Reached
from flagsvc.http.trust import unmap_ipv4


@mypyc_attr(allow_interpreted_subclasses=True)
class Contract(ABC):
    """Answers requests. None of its methods raises.

    `headers` has the kind of each header that is read, by its name in lower case. `header_limit` and `query_limit` are in bytes.
    `reached` counts refusals by limit. Unexpected errors are written to `log`.
    """

    def __init__(
        self, headers: dict[bytes, int], header_limit: int, query_limit: int, reached: Reached, log: Logger
    ) -> None:
        self.headers = headers
        self.header_limit = header_limit
        self.query_limit = query_limit
        self.reached = reached
        self.log = log

    def admit(self, request: Request) -> Call | Response:
        """Return the call of a request, or the answer if its head already decides that."""
        call = Call(request)
        try:
            call.read(self.headers)
        except Exception as error:  # the last resort: every request gets an answer
            return self.fail(call, error)
        return self.check_head(call)

    @abstractmethod
    def check_head(self, call: Call) -> Call | Response:
        """Do what `admit` does for a call that holds its headers already, their size included.

        A call that is returned names in `limit` how much of its body is wanted.
        """

    @abstractmethod
    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the response to an admitted call with its body, or an awaitable of it.

        The body has at most one byte more than the call's limit: the excess is the contract's to refuse.
        """

    def network(self, peer: str) -> bytes:
        """Return what stands for the network of a peer; empty for one that speaks for many callers."""
        return network_of(unmap_ipv4(peer))

    @abstractmethod
    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        """Return the answer to what is refused before it is a request: no HTTP (400), too large a head (431), no room (503).

        The room is that for connections or, where it is `crowded`, for the bytes of requests under way.
        """

    def tls_refusal(self) -> Response:
        """Return the answer (400) to a caller that speaks TLS where plain HTTP is spoken."""
        return self.early_refusal(400)

    @abstractmethod
    def fail(self, call: Call, error: Exception) -> Response:
        """Log an unexpected exception and return the 500."""
