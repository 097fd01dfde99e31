"""Processes: listening sockets, TLS, signals, reload, start and shutdown. Nothing is created at import.

- The start: `serve` in `serve.py` for one process, serve_workers.py for several, serve_flags.py for the flag server.
- SIGHUP: `Reloader` in `reload.py` (see flagsvc.proxy.generations).
- SIGTERM: `UvicornServer.on_tick` in `process.py` starts the grace period, `ShutdownGrace` in `shutdown.py`: readiness fails, and
  requests are answered. Then `UvicornServer.shutdown` takes the connections that already wait, and waits for open requests, at most
  `OPEN_REQUESTS_S`. Then the application stops: `UpstreamSync.stop` sends the last counts, `FlagServer.aclose` closes the database.
  With workers, `ParentProcess.run` in `serve_workers.py` ends them first.
- What systemd is told: `ServiceManager` in `service_manager.py`.
- OpenTelemetry: `make_telemetry` in `telemetry.py` reads the variables, and `Telemetry` exports; `otlp.py` has the forms.
"""
