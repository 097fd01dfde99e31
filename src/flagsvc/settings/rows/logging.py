"""The options of the log."""

from __future__ import annotations

from flagsvc.settings import kinds as of
from flagsvc.settings.base import Options
from flagsvc.settings.option import Section, option


class LoggingOptions(Options):
    """What is logged, and how."""

    section = Section.LOGGING

    logger: object = option(
        "logger",
        kind=of.LOGGER,
        default=None,
        default_text="a simple logger to standard error",
        help="custom logger of the standard library's or structlog's shape",
        advanced=True,
    )
    use_json_logger: bool = option(
        "useJsonLogger",
        reads=("JSON_LOGGER",),
        kind=of.BOOLEAN,
        default=False,
        help="log one line of JSON per event; no effect with a custom logger",
    )
    log_level: str = option(
        "logLevel",
        reads=("LOG_LEVEL",),
        kind=of.LOG_LEVEL,
        default="warn",
        help="least severity that is logged; the lines of start, readiness and end always appear, as info",
    )
    access_log: bool = option(
        "accessLog",
        reads=("FLAGSVC_ACCESS_LOG",),
        kind=of.BOOLEAN,
        default=False,
        help="log a line for each request: method, route, status, size and time, nothing about the user",
    )
