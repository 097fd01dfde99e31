"""What uvicorn is given as its HTTP protocol: it makes a connection of ours for each of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from flagsvc.http.contract import Contract
from flagsvc.http.server.connection import Connection
from flagsvc.http.server.limits import Limits
from flagsvc.http.server.names import Names
from flagsvc.http.server.site import Site, State


class Front:
    """Makes the connections of a server, as uvicorn calls a protocol class. Each asks `provide` for the service once."""

    def __init__(self, provide: Callable[[], Contract], limits: Limits) -> None:
        self._provide = provide
        self._limits = limits
        self._draining = False
        self._site: Site | None = None
        self._names = Names({})
        self._contract: dict[bytes, int] | None = None

    def __call__(
        self,
        config: object,
        server_state: State,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Connection:
        """Return the protocol of a new connection; `config` and `app_state` are uvicorn's, and not needed."""
        site = self._site
        if site is None or site.state is not server_state:
            site = self._site = Site(server_state, self._limits, _loop or asyncio.get_running_loop())
            site.ending = self._draining
        service = self._provide()
        if service.headers is not self._contract:
            self._contract, self._names = service.headers, Names(service.headers)
        return Connection(site, service, self._names)

    def drain(self) -> None:
        """Have every answer from now on be the last of its connection: who asks again comes to another server."""
        self._draining = True
        if self._site is not None:
            self._site.ending = True


def front(provide: Callable[[], Contract], limits: Limits) -> Front:
    """Return the factory of the connections of one server: `uvicorn.Config(http=front(lambda: service, Limits()))`."""
    return Front(provide, limits)
