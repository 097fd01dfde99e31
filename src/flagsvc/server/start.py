"""Prepares the database at the start of a flag server, and composes the startup notices.

In a database without API tokens it creates those of the options, as a real server does (decision 0003).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import func, select

from flagsvc.core.errors import ConfigurationError, UnwritableError
from flagsvc.core.log import Logger
from flagsvc.core.notices import Notice
from flagsvc.server.store.engines import database_url, describe_place
from flagsvc.server.store.keyring import OF_USERS
from flagsvc.server.store.schema import environments, projects, tokens
from flagsvc.server.store.seed.apply import apply_seed as write_seed
from flagsvc.server.store.seed.file import Seed
from flagsvc.server.store.seed.once import (
    FirstSecrets,
    SeedOutcome,
    apply_seed_once,
    count_features,
    create_first_token,
)
from flagsvc.server.store.store import Store, Tx
from flagsvc.settings.kinds import printable
from flagsvc.settings.rows.server import ADD
from flagsvc.settings.server import ServerOptions
from flagsvc.settings.tokens import EVERY_ENVIRONMENT, EVERY_PROJECT, read_scope

PAGES_TEXT = (
    "There, `Create flag` makes a flag. The page Tokens makes a token, and shows the line that starts a proxy: {url}/ui/tokens"
)
ON_TERMINAL = f"""
First start. Sign in at the pages within 15 minutes: {{url}}/ui/sign-in#{{secrets.link}}
{PAGES_TEXT}

This is the token of an administrator. It signs in, too, and is shown only this once:

  export FLAGSVC_ADMIN_TOKEN={{secrets.token}}
"""
IN_LOG = f"""
First start. The secrets of the administrator are not printed, because this is no terminal. This command, with the options of the
server, prints a link to the pages:

  {{link_command}}

{PAGES_TEXT}

This one makes a token of the administrator:

  export FLAGSVC_ADMIN_TOKEN=$({{token_command}})
"""
NEXT_STEPS = """
Without the pages, create a flag and switch it on:

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
"""How a first start begins on a terminal, where a person reads it, and in a log, which is kept; and how it goes on."""


NEW_ON_VOLUME = "flagsvc made a new database: {file}, on a volume or another mount"
NEW_IN_CONTAINER = (
    "flagsvc made a new database: {file}; it goes with this container. Mount a volume at {folder}, or set FLAGSVC_DATABASE_URL to a"
    " file on a volume or to a PostgreSQL"
)

Made = TypeVar("Made")
SEED_SKIPPED = (
    "the seed is not applied: the database is in use and has not had this seed. --seed-mode add (FLAGSVC_SEED_MODE=add) adds "
    "what is missing and changes nothing that is there"
)


def initialize(store: Store, options: ServerOptions, url: str, seed: Seed | None, log: Logger) -> list[Notice]:
    """Apply the seed, make sure that a token exists, create the initial tokens, and return the startup notices.

    If the database is in use and has not had this seed, the seed is skipped with a warning, unless `seedMode` is `add`. What a
    database that takes no changes lacks is left out, too, each with a warning.

    Raises ConfigurationError if an initial token names an unknown project or environment.
    """
    seeded = None if seed is None else write_or_warn(log, "the seed", lambda: apply_seed(store, options, seed, log))
    wanted = find_wanted_tokens(store, options)
    # before the initial tokens: no user has one of those
    secrets = write_or_warn(log, "the first token of an administrator", lambda: create_first_token(store))
    first = [] if secrets is None else [first_start_notice(secrets, url)]
    created = write_or_warn(log, "the initial tokens", lambda: create_initial_tokens(store, wanted))
    initial = token_notices(created or 0)
    count = count_features(store)
    line = f"flagsvc ready: {count} feature flag{'' if count == 1 else 's'} in {describe_location(options.database)}"
    return [Notice(line), *(seeded or []), *first, *initial]


def write_or_warn(log: Logger, what: str, write: Callable[[], Made]) -> Made | None:
    """Return what `write` returns; None, after a warning, if the database takes no changes. `what` is missing then."""
    try:
        return write()
    except UnwritableError as error:
        log.warn(f"{what} cannot be written: restart the server once the database takes changes", error=str(error))
        return None


def token_notices(count: int) -> list[Notice]:
    """Return a notice about the initial tokens that were created, if any."""
    return [Notice(f"flagsvc initial tokens: created {count}", {"tokens": count})] if count else []


def apply_seed(store: Store, options: ServerOptions, seed: Seed, log: Logger) -> list[Notice]:
    """Apply the seed once, and return notices about it; log a warning if it is skipped."""
    seed_result = apply_seed_once(store, seed, add=options.seed_mode == ADD)
    if seed_result.outcome is SeedOutcome.SKIPPED:
        log.warn(SEED_SKIPPED, seed=options.seed, database=format_counts(seed_result.there))
    if seed_result.outcome not in (SeedOutcome.WRITTEN, SeedOutcome.ADDED):
        return []
    added = f"added {format_counts(seed_result.written)}" if seed_result.written else "nothing to add"
    return [Notice(f"flagsvc seed: {added}", seed_result.written)]


def format_counts(counts: Mapping[str, int]) -> str:
    """Return counts in words: `2 features, 1 token, 1 context field`."""
    return ", ".join(f"{count} {_section_name(name, count)}" for name, count in counts.items())


def _section_name(section: str, count: int) -> str:
    """Return the name of the entries of a section, singular or plural."""
    name = re.sub("[A-Z]", lambda found: f" {found[0].lower()}", section)
    return name if count != 1 else "strategy" if name == "strategies" else name.removesuffix("s")


def first_start_notice(secrets: FirstSecrets, url: str) -> Notice:
    """Return the notice after a first start: the next steps. Only what a terminal shows has the secrets."""
    user = shlex.quote(secrets.user)
    link = f"flagsvc server sign-in-link {user} --url {shlex.quote(url)}"
    token = f"flagsvc server token create first --user {user}"
    fields = {"linkCommand": link, "tokenCommand": token, "documentation": f"{url}/docs/openapi"}
    in_log, on_terminal = (
        (start + NEXT_STEPS).format(url=url, secrets=secrets, link_command=link, token_command=token)
        for start in (IN_LOG, ON_TERMINAL)
    )
    event = "flagsvc first start: two commands print a link that signs an administrator in, and a token"
    return Notice(event, fields, in_log, on_terminal)


def new_database_notices(made: Path | None, environment: Mapping[str, str], root: Path = Path("/")) -> list[Notice]:
    """Return a notice that says where the data is, if this start made an SQLite file in a container. `root` is the root folder."""
    if made is None or not in_container(environment, root):
        return []
    file = made.absolute()
    if is_mounted(file.parent, root):
        return [Notice(NEW_ON_VOLUME.format(file=file), {"database": str(file)})]
    return [Notice(NEW_IN_CONTAINER.format(file=file, folder=file.parent), {"database": str(file)})]


def describe_location(database: str) -> str:
    """Return where the database is, without user name and password."""
    return describe_place(database_url(database))


MARKS = (".dockerenv", "run/.containerenv")
"""Files that Docker and Podman put into every container, below the root."""
KUBERNETES = "KUBERNETES_SERVICE_HOST"
"""The variable that Kubernetes sets in every container."""


def in_container(environment: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Return whether this process runs in a container, as far as Docker, Podman and Kubernetes tell."""
    return bool(environment.get(KUBERNETES)) or any((root / mark).exists() for mark in MARKS)


def is_mounted(folder: str | Path, root: Path = Path("/")) -> bool:
    """Return whether a folder is on another file system than the root: on a volume or a folder of the host."""
    try:
        return os.stat(folder).st_dev != os.stat(root).st_dev
    except OSError:
        return False


Entry: TypeAlias = dict[str, Any]
"""A token as the entry of a seed."""

NAME = "initial"
"""The name of each of these tokens."""
KINDS = {"admin": "init_admin_tokens", "backend": "init_backend_tokens", "frontend": "init_frontend_tokens"}
"""The kinds of token, and the options that list them."""


def find_wanted_tokens(store: Store, options: ServerOptions) -> list[Entry]:
    """Return the initial tokens of the options that the database lacks: none if it has an API token.

    Raises ConfigurationError for a token of an unknown project or environment.
    """
    wanted = _entries(options)
    with store.reading() as tx:
        if not wanted or _has_api_tokens(tx):
            return []
        problems = list(_problems(tx, wanted))
    if problems:
        raise ConfigurationError(problems)
    return wanted


def create_initial_tokens(store: Store, wanted: list[Entry]) -> int:
    """Create tokens and return how many; none if another server of the database came first."""
    if not wanted:
        return 0
    with store.writing(None, "start") as tx:
        if _has_api_tokens(tx):
            return 0
        write_seed(tx, Seed({"tokens": wanted}))
    return len(wanted)


def _entries(options: ServerOptions) -> list[Entry]:
    """Return the tokens as entries of a seed. A secret that several options list is of the last kind."""
    entries: dict[str, Entry] = {}
    for kind, field in KINDS.items():
        for secret in getattr(options, field):
            scope = read_scope(secret)
            if scope is not None:
                named = {"environment": scope.environment, "projects": [scope.project]}
                entries[secret] = {"type": kind, "name": NAME, "secret": secret, **named}
    return list(entries.values())


def _has_api_tokens(tx: Tx) -> bool:
    """Return whether there is a token that belongs to no user."""
    counted = select(func.count()).select_from(tokens).where(tokens.c.kind.not_in(OF_USERS))
    return bool(tx.db.execute(counted).scalar_one())


def _problems(tx: Tx, wanted: list[Entry]) -> Iterator[str]:
    """Yield a problem for each name of a project or environment that the database does not have."""
    for key, column, every in (
        ("environment", environments.c.name, EVERY_ENVIRONMENT),
        ("project", projects.c.id, EVERY_PROJECT),
    ):
        known = {every, *tx.db.execute(select(column)).scalars()}
        named = (each["environment"] if key == "environment" else each["projects"][0] for each in wanted)
        for name in dict.fromkeys(name for name in named if name not in known):
            yield f"initial tokens: no {key} `{printable(name)}`; create it with a seed (FLAGSVC_SEED), or correct the token"
