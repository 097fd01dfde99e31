"""`flagsvc server`: the flag server as a process of its own, under uvicorn.

Prints one line when it listens and one when it is ready; after a first start also the token it made, and how to go on. SIGTERM and
SIGINT end it in order, exit code 0.
"""

from __future__ import annotations

from flagsvc.apps.flagserver import create_flag_server
from flagsvc.apps.listen import listen, scope, url
from flagsvc.apps.process import run_process
from flagsvc.apps.protocol import bounded
from flagsvc.flagserver.pipeline import HEADER_LIMIT
from flagsvc.settings.server import ServerOptions


def serve_flags(options: ServerOptions) -> int:
    """Run the flag server until SIGTERM or SIGINT; return the exit code.

    Raises DatabaseError where the database cannot be used, SeedError where the seed cannot, and ListenError where the port
    cannot be had.
    """
    sockets = listen(options.host, options.port)
    address = url(sockets, options.host, options.base_path)
    server = create_flag_server(options, address)
    where = address + scope(sockets, options.host)
    protocol = bounded(HEADER_LIMIT, server.early_refusal)
    run_process(server, sockets, where, protocol=protocol, keep_alive_timeout=options.keep_alive_timeout)
    return 0
