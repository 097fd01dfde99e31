"""How a flag server starts on its database, and what it says when it is ready."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flagsvc.core.log import Logger
from flagsvc.core.notices import Notice
from flagsvc.server.store.first_start import first_start
from flagsvc.server.store.seed.apply import Seed
from flagsvc.server.store.seed.once import SeedOutcome, apply_seed_once, count_features
from flagsvc.server.store.store import Store, database_url
from flagsvc.settings.rows.server import ADD
from flagsvc.settings.server import ServerOptions

HOW_TO_GO_ON = """
First start: this is the token of an administrator. It is shown only this once.

  export FLAGSVC_ADMIN_TOKEN={secret}

Create a flag and switch it on:

  curl {url}/api/admin/projects/default/features -H "Authorization: $FLAGSVC_ADMIN_TOKEN" \\
    -H 'Content-Type: application/json' -d '{{"name": "first-flag"}}'
  curl -X POST {url}/api/admin/projects/default/features/first-flag/environments/development/on \\
    -H "Authorization: $FLAGSVC_ADMIN_TOKEN"

Create a token for proxies and server-side SDKs:

  curl {url}/api/admin/api-tokens -H "Authorization: $FLAGSVC_ADMIN_TOKEN" -H 'Content-Type: application/json' \\
    -d '{{"tokenName": "proxy", "type": "client", "environment": "development", "projects": ["*"]}}'

Start a proxy on it, with the secret that was answered:

  flagsvc proxy --url {url}/api --api-token <secret> --client-keys some-key

Every endpoint, to read and to try: {url}/docs/openapi"""


SEED_LEFT = (
    "the seed is not applied: the database is in use and has not had this seed. --seed-mode add (FLAGSVC_SEED_MODE=add) adds "
    "what is missing and changes nothing that is there"
)


def begin(store: Store, options: ServerOptions, url: str, seed: Seed | None, log: Logger) -> list[Notice]:
    """Write the seed, make sure that somebody can come in, and return what to tell the person who started the server.

    A seed that a database in use does not have is left out, with a warning, unless `seedMode` says to add it.
    """
    sown = [] if seed is None else sow(store, options, seed, log)
    secret = first_start(store)
    count = count_features(store)
    line = f"flagsvc ready: {count} feature flag{'' if count == 1 else 's'} in {place(options.database)}"
    return [Notice(line), *sown] + ([] if secret is None else [how_to_go_on(secret, url)])


def sow(store: Store, options: ServerOptions, seed: Seed, log: Logger) -> list[Notice]:
    """Write the seed where it belongs, and return what to tell of it; a warning goes to the log."""
    seed_result = apply_seed_once(store, seed, add=options.seed_mode == ADD)
    if seed_result.outcome is SeedOutcome.LEFT:
        log.warn(SEED_LEFT, seed=options.seed, database=listed(seed_result.there))
    if seed_result.outcome not in (SeedOutcome.PLANTED, SeedOutcome.ADDED):
        return []
    added = f"added {listed(seed_result.written)}" if seed_result.written else "nothing to add"
    return [Notice(f"flagsvc seed: {added}", seed_result.written)]


def listed(counts: Mapping[str, int]) -> str:
    """Return counts in words: `2 features, 1 token, 1 context field`."""
    return ", ".join(f"{count} {_words(name, count)}" for name, count in counts.items())


def _words(section: str, count: int) -> str:
    """Return what the entries of a section are called, `count` of them."""
    name = re.sub("[A-Z]", lambda found: f" {found[0].lower()}", section)
    return name if count != 1 else "strategy" if name == "strategies" else name.removesuffix("s")


def how_to_go_on(secret: str, url: str) -> Notice:
    """Return what to tell after a first start: the token, for a program in a field, for a person with what to do with it."""
    fields = {"token": secret, "documentation": f"{url}/docs/openapi"}
    event = "flagsvc first start: `token` is the token of an administrator, shown only this once"
    return Notice(event, fields, HOW_TO_GO_ON.format(secret=secret, url=url))


def place(database: str) -> str:
    """Return where the flags are, without a user name or a password."""
    url = database_url(database)
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return f"PostgreSQL, database `{url.database}` on {url.host or 'this machine'}"
