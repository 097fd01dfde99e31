"""What the frontend API evaluates: a snapshot for each environment, compiled when it changes, and services on top of it.

A snapshot is made of the document that backend tokens get. A token of some projects opens a part of it, as in the proxy.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor

from flagsvc.core.errors import DatabaseError
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.frontend.caller import unavailable
from flagsvc.proxy.api.scopes import ScopedHolder, ScopedServices
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration.prepare import Preparer
from flagsvc.server.api.asgi import run_in_pool
from flagsvc.server.store.actors import ALL, ClientToken
from flagsvc.server.store.documents import DocumentQuery, Documents
from flagsvc.settings.defaults import host_name

MAX_ENVIRONMENTS = 8
"""The most environments with a snapshot in memory. For one more, the one ends that was asked for least recently."""

MakeService = Callable[[Holder | ScopedHolder], Service]


class FrontendEnvironment:
    """One environment: its number, its snapshot in `holder`, and the service of all of its projects."""

    def __init__(self, number: int, name: str, make_service: MakeService) -> None:
        self.number = number
        self.query = DocumentQuery(name)
        self.holder = Holder()
        self.service = make_service(self.holder)
        self._digest = ""
        self._renewing = asyncio.Lock()

    def is_current(self, documents: Documents) -> bool:
        """Return whether the snapshot is that of the last committed change."""
        found = documents.get_cached(self.query)
        return found is not None and found.digest == self._digest

    async def renew(self, documents: Documents, readers: Executor, prepare: Preparer) -> None:
        """Compile the document if it has changed; all who ask meanwhile wait for it. Raises DatabaseError without any document."""
        async with self._renewing:
            document = await run_in_pool(readers, documents.get, self.query)
            if document.digest == self._digest:
                return
            made = await prepare(document.body, self.holder.current)
            self.holder.replace(made.snapshot, made.document, len(made.left_out), len(made.odd))
            self._digest = document.digest


class FrontendEnvironments:
    """The environments that tokens open, and their services. `documents` are read in the threads of `readers`."""

    def __init__(self, documents: Documents, readers: Executor, make_service: MakeService) -> None:
        self._documents = documents
        self._readers = readers
        self._make_service = make_service
        self._prepare = Preparer(Compiler(CompileOptions(hostname=host_name(os.environ))))
        self._found: OrderedDict[str, FrontendEnvironment] = OrderedDict()
        self._made = 0
        self._scoped: ScopedServices[FrontendEnvironment] = ScopedServices(
            lambda _, holder: make_service(holder), lambda _: None
        )

    def find_current(self, token: ClientToken) -> Service | None:
        """Return the service for a token; None if a change has to be compiled first."""
        environment = self._find(token.environment)
        return self._open(environment, token) if environment.is_current(self._documents) else None

    async def find(self, token: ClientToken) -> Service:
        """Return the service for a token, from the last committed change. Raises HttpError (503) if the database is away."""
        environment = self._find(token.environment)
        try:
            await environment.renew(self._documents, self._readers, self._prepare)
        except DatabaseError as error:
            raise unavailable(error) from None
        return self._open(environment, token)

    def _open(self, environment: FrontendEnvironment, token: ClientToken) -> Service:
        """Return the service for the projects of a token."""
        if ALL in token.projects:
            return environment.service
        return self._scoped.find(environment, frozenset(token.projects))

    def _find(self, name: str) -> FrontendEnvironment:
        """Return an environment. For a new one, the one that was asked for least recently may end."""
        found = self._found.get(name)
        if found is None:
            self._made += 1
            found = self._found[name] = FrontendEnvironment(self._made, name, self._make_service)
            if len(self._found) > MAX_ENVIRONMENTS:
                self._found.popitem(last=False)
                self._scoped.keep(self._found.values())
        self._found.move_to_end(name)
        return found
