"""The options of the flag server: `ServerOptions`, from flags, environment, file and defaults by the rows of SERVER_OPTIONS.

Precedence, files of secrets, every problem at once: as with the proxy's, whose machinery this is (`load.py`, `settle.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

from flagsvc.settings.load import SERVER, Resolved, refuse, resolve
from flagsvc.settings.render import page
from flagsvc.settings.server_table import SERVER_OPTIONS

if TYPE_CHECKING:
    from os import PathLike

BY_FIELD = {option.field: option for option in SERVER_OPTIONS}


@dataclass(frozen=True, repr=False)
class ServerOptions:
    """The options of one flag server, valid and normalised. `host` None is every address, `seed` None no file.

    `database` is a URL or a path and may hold a password: it is shown masked.
    """

    database: str
    port: int = 4242
    host: str | None = None
    base_path: str = ""
    keep_alive_timeout: int = 75
    shutdown_grace: int = 5
    max_connections: int = 10_000
    request_memory: int | None = None
    header_timeout: int = 20
    body_timeout: int = 60
    write_timeout: int = 60
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_key_password: str | None = None
    tls_min_version: str = "1.2"
    tls_client_ca: str | None = None
    tls_handshake_timeout: int = 10
    socket_mode: str = "0660"
    header_limit: int = 16 * 1024
    body_limit: int = 500 * 1024
    seed: str | None = None
    seed_mode: str = "once"
    use_json_logger: bool = False
    log_level: str = "warn"

    def __repr__(self) -> str:
        """Return the options, secrets masked."""
        shown = (f"{field.name}={BY_FIELD[field.name].masked(getattr(self, field.name))!r}" for field in fields(self))
        return f"ServerOptions({', '.join(shown)})"


class LoadedServer(NamedTuple):
    """Valid options, where each came from (by option name), and what to warn of."""

    options: ServerOptions
    sources: dict[str, str]
    warnings: list[str]


def load_server(
    environment: Mapping[str, str], flags: Mapping[str, str], file: PathLike[str] | str | None = None
) -> LoadedServer:
    """Return the options of `flags` (by option name), `environment` and the table `[server]` of a TOML `file`.

    Raises `ConfigurationError` with every problem at once: none holds a secret.
    """
    return accepted_server(resolve_server(environment, file, flags))


def resolve_server(
    environment: Mapping[str, str], file: PathLike[str] | str | None, flags: Mapping[str, str]
) -> Resolved:
    """Return what flags, environment and file say, with the problems instead of an error.

    What Kubernetes sets for a service named `flagsvc-server`, such as FLAGSVC_SERVER_PORT=tcp://…, is no option.
    """
    return resolve(environment, file, flags, SERVER)


def accepted_server(resolved: Resolved) -> LoadedServer:
    """Return the options of what was found; raise `ConfigurationError` with every problem at once."""
    refuse(resolved)
    options = ServerOptions(**{option.field: resolved.values[option.name] for option in SERVER_OPTIONS})
    return LoadedServer(options, resolved.sources, resolved.warnings)


def server_reference() -> str:
    """Return the reference page of every option of the flag server, as Markdown."""
    return page(INTRODUCTION, SERVER_OPTIONS)


INTRODUCTION = """# Options of the flag server

Every option of `flagsvc server`, one row each. This page is written by `make docs`.

A value is looked for in this order: the flag, the environment variable, the file of `--config`, the default. A value of nothing
but blanks is not given. `flagsvc config --server` shows what is in effect, and where each value came from.

In the file the options stand in a table `[server]`, so that one file, named by `FLAGSVC_CONFIG`, may hold those of both programs:

```toml
[server]
port = 4242
database = "state/flags.db"
seed = "seed.yaml"
```

Relative paths go by the file that they stand in.

What holds for [the proxy's options](options.md) holds here: variables that start with `FLAGSVC_` also answer with `UNLEASH_` in
its place, beside a secret's variable stands one that ends in `_FILE`, and a value that does not parse stops the start with exit
code 2 and a list of every problem.
"""
