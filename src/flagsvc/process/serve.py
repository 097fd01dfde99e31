"""`flagsvc proxy`: the proxy as a process of its own, under uvicorn (specification: Options; behaviour: Drop-in).

It prints a line when it listens, a line when it is ready, and a line when it stops. SIGTERM and SIGINT start an orderly shutdown.
After SIGTERM, readiness fails and requests are answered for a while longer. Then it takes no new connections, finishes open
requests, sends the last usage metrics, and ends with exit code 0. SIGHUP reloads keys, tokens and certificates, polls the
upstream, and asks it again about tokens of callers.
"""

from __future__ import annotations

from random import random

from flagsvc.process.admin_address import listening_notices, make_admin_address_server
from flagsvc.process.listen import describe_scope, listen, listen_url
from flagsvc.process.process import make_server, run_process
from flagsvc.process.reload import ConfigurationFiles, Reloader
from flagsvc.process.telemetry import PROXY, make_telemetry
from flagsvc.process.tls import make_tls
from flagsvc.proxy.application import ProxyApp
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.settings.options import ProxyOptions


def serve(options: ProxyOptions, files: ConfigurationFiles | None = None) -> int:
    """Run the proxy until SIGTERM or SIGINT; return the exit code. `files` tells how to reload the configuration.

    Several workers are run by `serve_workers`. Raises ExtensionError if custom strategies or enrichers cannot be used,
    ConfigurationError if certificates or variables of OpenTelemetry cannot be used, MissingExtraError if these need an extra, and
    ListenError if it cannot listen on an address.
    """
    if options.workers > 1:
        from flagsvc.process.serve_workers import serve_workers

        return serve_workers(options, files)
    telemetry = make_telemetry(options, PROXY)
    tracer = None if telemetry is None else telemetry.tracer
    setup = make_setup(options, resolved=None if files is None else files.resolved, tracer=tracer)
    app = ProxyApp(setup)
    tls = make_tls(options, app.log, options.watch_interval)
    sockets = listen(options.host, options.port, mode=options.socket_mode)
    admin_address_server = make_admin_address_server(options, lambda: app.desk, sockets)
    path = f"{options.proxy_base_path}/proxy"
    address = listen_url(sockets, options.host, path, tls=tls is not None) + describe_scope(sockets, options.host)
    lines = listening_notices(address, admin_address_server)
    server = make_server(app, lambda: app.service, options, tls, lines, telemetry)

    async def apply_options(fresh: ProxyOptions) -> None:
        app.renew(fresh)

    server.hangups += [app.poll_now, app.check_tokens]
    reload = None if files is None else Reloader(options, files, apply_options, clock=app.clock, log=app.log, draw=random)
    if reload is not None:
        server.hangups.append(reload.request_reload)
    setup.loops.update({name: loop for name, loop in (("tls", tls), ("reload", reload)) if loop is not None})
    run_process(app, server, sockets, [each for each in (tls, admin_address_server, reload) if each is not None], telemetry)
    return 0
