"""What a connection is made of: its state, its requests, its contract, and its share of the server. Compiled."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

from flagsvc.http.contract import Contract
from flagsvc.http.messages import Response
from flagsvc.http.reached_limits import CONNECTIONS
from flagsvc.http.server import request_parser as parsing
from flagsvc.http.server import states
from flagsvc.http.server.header_names import HeaderNames
from flagsvc.http.server.memory_budget import SMALL
from flagsvc.http.server.shared import SharedState
from flagsvc.http.server.stream import Stream

MEMORY_GONE: Final = 0
"""All connections together hold too much. This reason to refuse stands beside the parser's, which are not 0."""


class BaseConnection(Stream):
    """A connection without its events. `contract` answers requests, and `shared` is what all connections of a server share.

    `state` is one of states.WAITING to CLOSED; `since` is the tick at which the current step began. `parser` has the request
    and the bytes that are not parsed yet.
    """

    def __init__(self, shared: SharedState, contract: Contract, names: HeaderNames) -> None:
        super().__init__()
        self.shared: Final = shared
        self.contract: Final = contract
        self.parser: Final = parsing.RequestParser(names)
        self.state: u8 = states.WAITING
        self.since: i64 = shared.now

    def step(self, event: i64) -> i64:
        """Change to the state that follows from an event, and return the action."""
        found = states.cell(self.state, event)
        self.state = states.state_of(found)
        return states.action_of(found)

    def handshake_begins(self) -> bool:
        """Count the connection before its TLS handshake. Returns whether there is room for it."""
        if self.shared.begin_handshake(self):
            return True
        self.contract.reached.add(CONNECTIONS)
        return False

    def handshake_over(self) -> None:
        """Stop counting it if the handshake failed."""
        self.shared.end_handshake(self)

    def blocked(self) -> bool:
        """Return whether no request may be answered now."""
        return self.paused or self.state > states.DISCARDING

    def charge(self) -> None:
        """Charge what it holds: an incomplete request, one that is being answered, unparsed bytes, an answer that is not read."""
        size: i64 = self.untaken + self.pending
        if self.state < states.LAST:
            size += self.parser.memory()
        if self.charged == 0 and size >= SMALL:
            self.network = self.contract.network(self.parser.peer)
        self.shared.budget.charge(self, size)

    def refusal(self, why: u8) -> Response:
        """Return the answer to a refused request."""
        if why == MEMORY_GONE:
            return self.contract.early_refusal(503, crowded=True)
        if why & parsing.TLS_CAME:
            self.shared.count_tls_caller(self.contract.log)
            return self.contract.tls_refusal()
        return self.contract.early_refusal(431 if why & parsing.HEAD_TOO_LARGE else 400)
