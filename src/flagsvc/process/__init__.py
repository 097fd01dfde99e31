"""Processes: listening sockets, TLS, signals, reload, start and shutdown. Nothing is created at import."""
