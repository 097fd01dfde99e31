"""`flagsvc server`: the flag server as a process of its own, under uvicorn.

Prints one line when it listens and one when it is ready; after a first start also the token it made, and how to go on. SIGTERM and
SIGINT end it in order, after SIGTERM with a time of grace; exit code 0.
"""

from __future__ import annotations

from functools import partial

import uvicorn

from flagsvc.apps.ending import Grace
from flagsvc.apps.flagserver import FlagServer, create_flag_server
from flagsvc.apps.listen import listen, scope, url
from flagsvc.apps.process import Server, run_process, server_config
from flagsvc.apps.protocol import bounded
from flagsvc.apps.tls import make_tls
from flagsvc.flagserver.pipeline import HEADER_LIMIT
from flagsvc.settings.server import ServerOptions


def serve_flags(options: ServerOptions) -> int:
    """Run the flag server until SIGTERM or SIGINT; return the exit code.

    Raises DatabaseError where the database cannot be used, SeedError where the seed cannot, ConfigurationError where
    certificates cannot, and ListenError where the port cannot be had.
    """
    sockets = listen(options.host, options.port, mode=options.socket_mode)
    address = url(sockets, options.host, options.base_path, tls=options.tls_cert is not None)
    server = create_flag_server(options, address)
    tls = make_tls(options, server.log)
    where = address + scope(sockets, options.host)
    protocol = bounded(HEADER_LIMIT, server.early_refusal)
    config = server_config(server, protocol, options.keep_alive_timeout)
    grace = Grace(options.shutdown_grace, partial(drain, server, config))
    listening = Server(config, grace, tls, f"flagsvc listening on {where}")
    run_process(server, listening, sockets, [] if tls is None else [tls])
    return 0


def drain(server: FlagServer, config: uvicorn.Config) -> None:
    """Fail readiness, and have every answer from now on be the last of its connection."""
    server.drain()
    config.encoded_headers.append((b"connection", b"close"))
