"""The logger of this package, which can write to any logger that the user passes (specification: Options).

Code of this package logs an event with named fields: `log.info("upstream answers again", url=url)`. The line goes to standard
error as text or JSON, or to the logger that the embedding program passes. A logger never raises, and masks the secrets it knows.

`Throttle` limits how often the same problem is logged, and `OutageLog` logs the begin and the end of an outage.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from time import time
from typing import TYPE_CHECKING, Protocol, TextIO, TypeAlias

from flagsvc.core.errors import FlagsvcError, UpstreamError
from flagsvc.core.tracing import log_fields

if TYPE_CHECKING:
    from flagsvc.core.clock import Clock

LEVELS = {"debug": 10, "info": 20, "warn": 30, "error": 40, "fatal": 50}
"""Each level with its severity, numbered as in the standard library."""

METHODS = {
    "debug": ("debug",),
    "info": ("info",),
    "warn": ("warning", "warn"),
    "error": ("error",),
    "fatal": ("critical", "fatal", "error"),
}
"""Level → the method names that a foreign logger may have for it, the usual name first."""

SHORTEST_SECRET = 8
"""Shorter secrets are not masked: a short text also occurs inside harmless words."""

Fields: TypeAlias = Mapping[str, object]
Write: TypeAlias = Callable[[str, Fields], object]


class Logger(Protocol):
    """A logger whose lines consist of an event and named fields."""

    def debug(self, event: str, **fields: object) -> None:
        """Write at level debug: the only level at which fields may hold an evaluation context, and only if that is requested."""

    def info(self, event: str, **fields: object) -> None:
        """Write at level info."""

    def warn(self, event: str, **fields: object) -> None:
        """Write at level warn."""

    def error(self, event: str, **fields: object) -> None:
        """Write at level error."""

    def fatal(self, event: str, **fields: object) -> None:
        """Write at level fatal."""


class Secrets:
    """Texts that must not be written to a log. More can be added while loggers use this object."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        found = {text for text in texts if len(text) >= SHORTEST_SECRET}
        # longest first: if one secret is a prefix of another, masking the short one first would leave the rest visible
        self._texts = sorted(found.union(self._texts), key=len, reverse=True)

    def mask(self, value: object) -> object:
        """Return `value`. If its text contains secrets, return that text with `***` in their place."""
        text = str(value)
        found = [secret for secret in self._texts if secret in text]
        for secret in found:
            text = text.replace(secret, "***")
        return text if found else value


class EventLogger:
    """A `Logger` over one function per level; a level without a function writes nothing."""

    def __init__(self, writers: Mapping[str, Write], secrets: Iterable[str] | Secrets = ()) -> None:
        self._writers = dict(writers)
        self._secrets = secrets if isinstance(secrets, Secrets) else Secrets(secrets)

    def bind(self, **fields: object) -> EventLogger:
        """Return a logger that adds these fields to every line."""
        return EventLogger({level: _with_more(write, fields) for level, write in self._writers.items()}, self._secrets)

    def debug(self, event: str, **fields: object) -> None:
        """Write at level debug."""
        self._write("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Write at level info."""
        self._write("info", event, fields)

    def warn(self, event: str, **fields: object) -> None:
        """Write at level warn."""
        self._write("warn", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Write at level error."""
        self._write("error", event, fields)

    def fatal(self, event: str, **fields: object) -> None:
        """Write at level fatal."""
        self._write("fatal", event, fields)

    def _write(self, level: str, event: str, fields: Fields) -> None:
        """Pass one line on with its secrets masked. Errors are ignored: logging must not fail the caller."""
        write = self._writers.get(level)
        if write is None:
            return
        try:
            mask = self._secrets.mask
            write(str(mask(event)), {name: mask(loggable_value(value)) for name, value in fields.items()})
        except Exception:
            return


def _with_more(write: Write, more: Fields) -> Write:
    """Return a function that writes a line with more fields, which come first."""
    return lambda event, fields: write(event, {**more, **fields})


def build_logger(
    given: object | None = None,
    *,
    level: str = "warn",
    as_json: bool = False,
    clock: Clock | None = None,
    stream: TextIO | None = None,
    secrets: Iterable[str] | Secrets = (),
) -> EventLogger:
    """Return the logger of an application. It calls the logger `given` in code, else it writes to `stream` or standard error.

    `level` is the lowest severity that is written, and `as_json` selects JSON. Both apply only if no logger is given: a given
    logger has its own level. `secrets` are masked in every line.
    """
    if given is not None:
        return EventLogger(_adapt_methods(given), secrets)
    line = json_line if as_json else text_line
    now = time if clock is None else clock.now
    enabled = [name for name, severity in LEVELS.items() if severity >= LEVELS[level]]
    return EventLogger({name: _make_writer(name, line, now, stream) for name in enabled}, secrets)


def _make_writer(
    level: str, line: Callable[[float, str, str, Fields], str], now: Callable[[], float], stream: TextIO | None
) -> Write:
    """Return the function that prints a line at `level`. It looks up standard error each time, because it may be replaced."""

    def write(event: str, fields: Fields) -> None:
        out = stream or sys.stderr
        # one call: otherwise another thread's line could come between this line and its end
        out.write(line(now(), level, event, fields) + "\n")
        out.flush()

    return write


def text_line(moment: float, level: str, event: str, fields: Fields) -> str:
    """Return a line for a person: time, level, event, fields."""
    return f"{timestamp(moment)} {level:<5} {with_fields(event, fields)}"


def json_line(moment: float, level: str, event: str, fields: Fields) -> str:
    """Return a line of JSON: `time`, `level`, `message`, the trace and the span it belongs to, and the fields."""
    import json

    own = {"time": timestamp(moment), "level": level, "message": event, **log_fields()}
    return json.dumps(own | dict(fields) | own, ensure_ascii=False, default=str)


def timestamp(moment: float) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC, with milliseconds."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def with_fields(event: str, fields: Fields) -> str:
    """Return an event followed by its fields, in one line: `upstream is away status=503 url=http://…`."""
    return " ".join([_escape(event), *(f"{name}={_quote(value)}" for name, value in fields.items())])


def _escape(text: str) -> str:
    """Return a text with line ends and other control characters escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _quote(value: object) -> str:
    """Return a field's value as text, in quotation marks unless it is a single word."""
    import json

    text = str(value)
    is_word = bool(text) and text.isprintable() and not any(char in ' "=' for char in text)
    return text if is_word else _escape(json.dumps(text, ensure_ascii=False))


def loggable_value(value: object) -> object:
    """Return a field's value in a form that may be logged. A foreign exception becomes the name of its class.

    Its text is left out, because it may quote what a caller sent.
    """
    if isinstance(value, BaseException) and not isinstance(value, FlagsvcError):
        return type(value).__name__
    return str(value) if isinstance(value, FlagsvcError) else value


def locate_error(error: BaseException) -> str:
    """Return the class of an exception and the line that raised it. Its text is left out: it may quote what a caller sent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    kind = type(error).__name__
    return kind if trace is None else f"{kind} at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def describe_error(error: BaseException) -> str:
    """Return a description of an exception that may be logged: the text of a FlagsvcError, else class and line.

    An error of the operating system is described with the meaning of its number.
    """
    if isinstance(error, FlagsvcError):
        return str(error)
    number = error.errno if isinstance(error, OSError) else None
    return f"{locate_error(error)}: {os.strerror(number)}" if isinstance(number, int) else locate_error(error)


def _adapt_methods(logger: object) -> dict[str, Write]:
    """Return for each level a function that calls the method of a foreign logger in that logger's own way."""
    adapt = _adapt_standard if _is_standard(logger) else _adapt_named if takes_fields(logger) else _adapt_text
    return {level: adapt(found) for level, names in METHODS.items() if (found := _find_method(logger, names)) is not None}


def _adapt_standard(method: Callable[..., object]) -> Write:
    """Adapt a method of the standard library's logger: it gets one text, and the fields for its formatters."""
    return lambda event, fields: method(with_fields(event, fields), extra={"flagsvc": {"event": event, **fields}})


def _adapt_named(method: Callable[..., object]) -> Write:
    """Adapt a method like structlog's: it gets the event, and the fields by name."""
    return lambda event, fields: method(event, **fields)


def _adapt_text(method: Callable[..., object]) -> Write:
    return lambda event, fields: method(with_fields(event, fields))


def _is_standard(logger: object) -> bool:
    """Return whether this is a logger of the standard library. It is not if nothing has imported `logging`."""
    logging = sys.modules.get("logging")
    return logging is not None and isinstance(logger, logging.Logger | logging.LoggerAdapter)


def takes_fields(logger: object) -> bool:
    """Return whether a logger is like structlog's: it has `bind`, or its methods take `event` and any fields by name."""
    if callable(getattr(logger, "bind", None)):
        return True
    from inspect import Parameter, signature

    try:
        parameters = list(signature(_find_method(logger, METHODS["info"])).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return bool(parameters) and parameters[0].name == "event" and parameters[-1].kind is Parameter.VAR_KEYWORD


def _find_method(logger: object, names: tuple[str, ...]) -> Callable[..., object] | None:
    """Return the logger's first method among these names, or None."""
    found = (getattr(logger, name, None) for name in names)
    return next((method for method in found if callable(method)), None)


MAX_REMEMBERED = 1000


class Throttle:
    """Allows each name once in `seconds`, or only once if `seconds` is None. At most MAX_REMEMBERED names are allowed."""

    def __init__(self, clock: Clock, seconds: float | None) -> None:
        self._clock = clock
        self._seconds = seconds
        self._last: dict[str, float] = {}

    def allows(self, name: str) -> bool:
        """Return whether `name` may be logged now, and remember the time if so."""
        now = self._clock.monotonic()
        last = self._last.get(name)
        if last is not None and (self._seconds is None or now - last < self._seconds):
            return False
        if last is None and len(self._last) >= MAX_REMEMBERED:
            return False
        self._last[name] = now
        return True


class OutageLog:
    """The present outage of one task. A long outage gives two lines in the log, not one line for each attempt.

    A failure of the same kind and status as the last one is written at level debug, a different failure at level warn. A refused
    token is written at level error, because only a person can fix it. The recovery is written at level warn: a log that shows that
    an outage began also shows that it ended. With `is_quiet` all of this is written at level info, because nothing is worse for it.
    `failures` counts all of them.
    """

    def __init__(self, log: Logger, failed: str, recovered: str, *, is_quiet: bool = False) -> None:
        """Take the logger, and the events to write for a failure and for the recovery."""
        self.failures = 0
        self._log = log
        self._is_quiet = is_quiet
        self._failed = failed
        self._recovered = recovered
        self._current: tuple[str, int | None] | None = None

    def log_failure(self, error: Exception) -> None:
        """Write a failure: at level debug if it is of the same kind as the last one."""
        self.failures += 1
        kind = error.kind if isinstance(error, UpstreamError) else type(error).__name__
        status = error.status if isinstance(error, UpstreamError) else None
        write_change = self._log.error if kind == "unauthorized" else self._log.warn
        write_change = self._log.info if self._is_quiet else write_change
        write = self._log.debug if self._current == (kind, status) else write_change
        write(self._failed, error=describe_error(error), kind=kind)
        self._current = (kind, status)

    def log_recovery(self) -> None:
        """Write that the task works again, if there was an outage."""
        if self._current is not None:
            (self._log.info if self._is_quiet else self._log.warn)(self._recovered)
        self._current = None
