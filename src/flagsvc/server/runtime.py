"""What lasts while a flag server runs: the database, what is served from memory, and the contract over both.

`open_runtime` makes it, in any thread and without a loop; a start that fails leaves nothing open.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger
from flagsvc.core.notices import Notice
from flagsvc.server.api.asgi import FlagServerContract
from flagsvc.server.api.call import ApiContext
from flagsvc.server.api.pipeline import Pipeline
from flagsvc.server.api.routes import ROUTES
from flagsvc.server.start import begin
from flagsvc.server.store.access import Keyring
from flagsvc.server.store.documents import Documents
from flagsvc.server.store.seed.apply import read_seed
from flagsvc.server.store.store import Store, database_url, open_store
from flagsvc.server.store.tidying import Tidying
from flagsvc.settings.server import ServerOptions

NOTE_SEEN_S = 60.0
"""Seconds between two times that it is stored when tokens were seen, and looked whether there is something to tidy."""


@dataclass
class ServerRuntime:
    """The parts of one running flag server. `greeting` is what to tell whoever started it, perhaps with the first token."""

    server: ApiContext
    contract: FlagServerContract
    greeting: list[Notice] = field(repr=False)
    parts: ExitStack

    def greet(self) -> list[Notice]:
        """Return what to tell whoever started it; from then on that is one line, without the first token."""
        greeting, self.greeting = self.greeting, self.greeting[:1]
        return greeting

    def close(self) -> None:
        """Finish what is under way and close everything, the last thing opened first."""
        self.parts.close()


class TokenUseRecorder:
    """A thread that stores now and then when tokens were seen, and once more at the end; and that deletes what is too old."""

    def __init__(self, keyring: Keyring, tidying: Tidying) -> None:
        self._keyring = keyring
        self._tidying = tidying
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flagsvc tokens seen", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.wait(NOTE_SEEN_S):
            self._keyring.note_seen()
            self._tidying.tidy()

    def close(self) -> None:
        """End, and store what is left."""
        self._ending.set()
        self._thread.join()
        self._keyring.note_seen()


def open_runtime(options: ServerOptions, clock: Clock, log: Logger, url: str = "") -> ServerRuntime:
    """Return the parts of a flag server, at work. `url` is the address it is reached at, as far as it is known.

    Raises DatabaseError where the database cannot be used, and SeedError where the seed file cannot.
    """
    with ExitStack() as parts:
        seed = None if options.seed is None else read_seed(options.seed)  # before anything is made
        prepare_folder(options.database)
        store = open_store(options.database, clock, log)
        parts.callback(store.close)
        greeting = begin(store, options, url, seed, log)
        documents = Documents(store, clock, log)  # told of a change before the keyring, which then asks the database
        keyring = load_keyring(store, clock, log)
        parts.callback(TokenUseRecorder(keyring, Tidying(store, clock, log)).close)
        server = ApiContext(store, documents, keyring, clock, log, url, options.base_path)
        pipeline = Pipeline(ROUTES, server, body_limit=options.body_limit, header_limit=options.header_limit)
        contract = FlagServerContract(pipeline)
        parts.callback(contract.close)
        return ServerRuntime(server, contract, greeting, parts.pop_all())


def load_keyring(store: Store, clock: Clock, log: Logger) -> Keyring:
    """Return the keyring of a database, read, and kept up to date."""
    keyring = Keyring(store, clock, log)
    store.watch(keyring.load)
    keyring.load()
    return keyring


def prepare_folder(database: str) -> None:
    """Make the folder of an SQLite file, and an empty file, for this user alone, where there is none.

    Raises DatabaseError where the folder cannot be made; of the file SQLite tells that.
    """
    url = database_url(database)
    if url.get_backend_name() != "sqlite" or not url.database:
        return
    folder = Path(url.database).parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else "it is in the way"
        raise DatabaseError(f"the folder `{folder}` of the database cannot be made: {reason}") from None
    if not url.database.startswith("file:"):
        with suppress(OSError):
            os.close(os.open(url.database, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
