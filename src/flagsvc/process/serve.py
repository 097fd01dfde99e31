"""`flagsvc proxy`: the proxy as a process of its own, under uvicorn (specification: Configuration, PORT; behaviour: Drop-in).

Prints one line when it listens, one when it is ready and one when it stops. SIGTERM and SIGINT end it in order: after SIGTERM
readiness fails first and requests are answered for a while longer; then no new connections, answers on their way are finished, the
last usage metrics leave, exit code 0. SIGHUP has keys, tokens and certificates read again, and the upstream asked.
"""

from __future__ import annotations

from random import random

from flagsvc.core.notices import make_notice_printer
from flagsvc.http.server import front
from flagsvc.process.limits import front_limits
from flagsvc.process.listen import listen, scope, url
from flagsvc.process.operators import announced, make_operators_server
from flagsvc.process.process import UvicornServer, run_process, server_config
from flagsvc.process.reload import ConfigurationFiles, Reloader
from flagsvc.process.shutdown import ShutdownGrace
from flagsvc.process.tls import make_tls
from flagsvc.proxy.application import ProxyApp
from flagsvc.proxy.setup import make_setup
from flagsvc.settings.options import ProxyOptions


def serve(options: ProxyOptions, again: ConfigurationFiles | None = None) -> int:
    """Run the proxy until SIGTERM or SIGINT; return the exit code. `again` tells how its configuration is read again, if it is.

    With several workers see `serve_workers`. Raises ExtensionError where custom strategies or enrichers cannot be used,
    ConfigurationError where certificates cannot, and ListenError where an address to listen on cannot be had.
    """
    if options.workers > 1:
        from flagsvc.process.serve_workers import serve_workers

        return serve_workers(options, again)
    plan = make_setup(options)
    app = ProxyApp(plan)
    tls = make_tls(options, app.log, options.watch_interval)
    sockets = listen(options.host, options.port, mode=options.socket_mode)
    operators_server = make_operators_server(options, lambda: app.operators, sockets)
    path = f"{options.proxy_base_path}/proxy"
    address = url(sockets, options.host, path, tls=tls is not None) + scope(sockets, options.host)
    protocol = front(lambda: app.service, front_limits(options, app.log))

    def drain() -> None:
        app.drain()
        protocol.drain()

    async def take(fresh: ProxyOptions) -> None:
        app.renew(fresh)

    config = server_config(app, protocol, options.keep_alive_timeout)
    print_notice = make_notice_printer(as_json=options.use_json_logger)
    server = UvicornServer(
        config,
        ShutdownGrace(options.shutdown_grace, drain, print_notice),
        tls,
        announced(address, operators_server),
        print_notice,
    )
    server.hangups.append(app.look_again)
    reload = None if again is None else Reloader(options, again, take, clock=app.clock, log=app.log, draw=random)
    if reload is not None:
        server.hangups.append(reload.ask)
    plan.loops.update({name: loop for name, loop in (("tls", tls), ("reload", reload)) if loop is not None})
    run_process(app, server, sockets, [each for each in (tls, operators_server, reload) if each is not None])
    return 0
