"""`flagsvc proxy`: the proxy as a process of its own, under uvicorn (specification: Configuration, PORT; behaviour: Drop-in).

Prints one line when it listens and one when it is ready. SIGTERM and SIGINT end it in order: no new connections, answers on
their way are finished, the last usage metrics leave, exit code 0.
"""

from __future__ import annotations

from flagsvc.apps.listen import listen, scope, url
from flagsvc.apps.process import run_process
from flagsvc.apps.proxy import create_app
from flagsvc.front import Limits, front
from flagsvc.settings.options import ProxyOptions


def serve(options: ProxyOptions) -> int:
    """Run the proxy until SIGTERM or SIGINT; return the exit code.

    With several workers see `serve_workers`. Raises ExtensionError where custom strategies or enrichers cannot be used, and
    ListenError where the port cannot be had.
    """
    if options.workers > 1:
        from flagsvc.apps.serve_workers import serve_workers

        return serve_workers(options)
    app = create_app(options)
    sockets = listen(options.host, options.port)
    address = url(sockets, options.host, f"{options.proxy_base_path}/proxy") + scope(sockets, options.host)
    protocol = front(lambda: app.service, Limits(keep_alive_s=options.keep_alive_timeout))
    run_process(app, sockets, address, protocol=protocol, keep_alive_timeout=options.keep_alive_timeout)
    return 0
