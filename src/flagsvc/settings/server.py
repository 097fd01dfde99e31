"""The options of the flag server: `ServerOptions`, from flags, environment, file and defaults by the rows of SERVER_OPTIONS.

Precedence, files of secrets, every problem at once: as with the proxy's, whose machinery this is (`load.py`, `normalise.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flagsvc.settings.load import SERVER, Loaded, accepted, resolve
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import page
from flagsvc.settings.table import SERVER_OPTIONS, ServerRows

if TYPE_CHECKING:
    from os import PathLike


class ServerOptions(ServerRows):
    """The options of one flag server, valid and normalised. `host` None is every address, `seed` None no file.

    `database` is a URL or a path and may hold a password: it is shown masked. Raises `ConfigurationError` with every problem
    at once.
    """


def load_server(
    environment: Mapping[str, str], flags: Mapping[str, str], file: PathLike[str] | str | None = None
) -> Loaded[ServerOptions]:
    """Return the options of `flags` (by option name), `environment` and the table `[server]` of a TOML `file`.

    Raises `ConfigurationError` with every problem at once: none holds a secret.
    """
    return accepted(resolve_server(environment, file, flags), ServerOptions)


def resolve_server(environment: Mapping[str, str], file: PathLike[str] | str | None, flags: Mapping[str, str]) -> Resolved:
    """Return what flags, environment and file say, with the problems instead of an error.

    What Kubernetes sets for a service named `flagsvc-server`, such as FLAGSVC_SERVER_PORT=tcp://…, is no option.
    """
    return resolve(environment, file, flags, SERVER)


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
