"""How a flag server starts on its database, and what it says when it is ready."""

from __future__ import annotations

from flagsvc.apps.notices import Notice
from flagsvc.flagstore.beginning import count_features, plant
from flagsvc.flagstore.first_start import first_start
from flagsvc.flagstore.seed import Seed
from flagsvc.flagstore.store import Store, database_url
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


def begin(store: Store, options: ServerOptions, url: str, seed: Seed | None) -> list[Notice]:
    """Plant the seed, make sure that somebody can come in, and return what to tell whoever started the server.

    Raises SeedError where the database is not empty.
    """
    if seed is not None:
        plant(store, seed)
    secret = first_start(store)
    count = count_features(store)
    line = f"flagsvc ready: {count} feature flag{'' if count == 1 else 's'} in {place(options.database)}"
    return [Notice(line)] + ([] if secret is None else [how_to_go_on(secret, url)])


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
