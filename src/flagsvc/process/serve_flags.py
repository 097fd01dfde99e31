"""`flagsvc server`: the flag server as a process of its own, under uvicorn.

It prints a line when it listens, a line when it is ready, and a line when it stops. After a first start it also prints the next
steps, and on a terminal the token that it has created. SIGTERM and SIGINT start an orderly shutdown, after SIGTERM with a
grace period; exit code 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.core.notices import Notice
from flagsvc.frontend.contract import make_frontend
from flagsvc.process.admin_address import listening_notices, make_admin_address_server
from flagsvc.process.listen import describe_scope, listen, listen_url
from flagsvc.process.process import make_server, run_process
from flagsvc.process.telemetry import FLAG_SERVER, make_telemetry
from flagsvc.process.tls import make_tls
from flagsvc.server.application import create_flag_server
from flagsvc.settings.server import ServerOptions

ALONE = "; --host 127.0.0.1 limits it to this machine"
"""A hint on listening on all addresses: containers and callers on other machines need it, a first try does not."""


def serve_flags(options: ServerOptions, notices: Sequence[Notice] = ()) -> int:
    """Run the flag server until SIGTERM or SIGINT; return the exit code. `notices` are printed when it listens.

    Raises DatabaseError if the database cannot be used, SeedError if the seed cannot be used, ConfigurationError if certificates
    or variables of OpenTelemetry cannot be used, and ListenError if it cannot listen on the port.
    """
    telemetry = make_telemetry(options, FLAG_SERVER)
    sockets = listen(options.host, options.port, mode=options.socket_mode)
    address = listen_url(sockets, options.host, options.base_path, tls=options.tls_cert is not None)
    # our connections know their peers, and read no address from a header
    server = create_flag_server(options, options.public_url or address, make_frontend, trust_peers=True, serves_admin_address=True)
    tls = make_tls(options, server.log)
    admin_address_server = make_admin_address_server(options, lambda: server.operators, sockets)
    where = address + describe_scope(sockets, options.host, ALONE)
    lines = [*listening_notices(where, admin_address_server), *notices]
    listening = make_server(server, lambda: server.contract, options, tls, lines, telemetry)
    run_process(server, listening, sockets, [each for each in (tls, admin_address_server) if each is not None], telemetry)
    return 0
