"""One shape of logger inside, whatever is outside (specification: Options).

Inside, a line is an event and named fields: `log.warn("upstream answers again", url=url)`. Outside it becomes a line of
text or of JSON on standard error, or a call of the logger that the embedding program gave. A logger never fails its
caller, and never writes one of the secrets it was told.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from time import time
from typing import TYPE_CHECKING, Protocol, TextIO, TypeAlias

from flagsvc.core.errors import FlagsvcError

if TYPE_CHECKING:
    from flagsvc.core.clock import Clock

LEVELS = {"debug": 10, "info": 20, "warn": 30, "error": 40, "fatal": 50}
"""The levels by severity, numbered as in the standard library."""

METHODS = {
    "debug": ("debug",),
    "info": ("info",),
    "warn": ("warning", "warn"),
    "error": ("error",),
    "fatal": ("critical", "fatal", "error"),
}
"""Level → the names a logger from outside may have for it, the usual one first."""

SHORTEST_SECRET = 8
"""A secret shorter than this is not searched for: as a part of other words it would blot out harmless lines."""

Fields: TypeAlias = Mapping[str, object]
Write: TypeAlias = Callable[[str, Fields], object]


class Logger(Protocol):
    """A logger of lines that are one event and named fields each."""

    def debug(self, event: str, **fields: object) -> None:
        """Write at level debug: the only level that may carry context, and only when asked for."""

    def info(self, event: str, **fields: object) -> None:
        """Write at level info."""

    def warn(self, event: str, **fields: object) -> None:
        """Write at level warn."""

    def error(self, event: str, **fields: object) -> None:
        """Write at level error."""

    def fatal(self, event: str, **fields: object) -> None:
        """Write at level fatal."""


class Secrets:
    """What must be written nowhere: it may become more while loggers are at work."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Have these written nowhere either."""
        found = {text for text in texts if len(text) >= SHORTEST_SECRET}
        # the longest first: one that another begins with must not leave the rest of that other behind
        self._texts = sorted(found.union(self._texts), key=len, reverse=True)

    def masked(self, value: object) -> object:
        """Return `value`, or where a secret stands in its text, that text with `***` in the secret's place."""
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
        """Hand one line over, its secrets masked; whatever goes wrong there is no reason for the caller to fail."""
        write = self._writers.get(level)
        if write is None:
            return
        try:
            masked = self._secrets.masked
            write(str(masked(event)), {name: masked(plain(value)) for name, value in fields.items()})
        except Exception:
            return


def build_logger(
    given: object | None = None,
    *,
    level: str = "warn",
    as_json: bool = False,
    clock: Clock | None = None,
    stream: TextIO | None = None,
    secrets: Iterable[str] | Secrets = (),
) -> EventLogger:
    """Return the logger of an application: over the one `given` in code, else lines on `stream`, standard error.

    `level` is the least severity that is written, `as_json` asks for JSON; neither has an effect on a given logger,
    whose own level decides. `secrets` are masked in whatever is written.
    """
    if given is not None:
        return EventLogger(_calls(given), secrets)
    line = json_line if as_json else text_line
    now = time if clock is None else clock.now
    wanted = [name for name, weight in LEVELS.items() if weight >= LEVELS[level]]
    return EventLogger({name: _printer(name, line, now, stream) for name in wanted}, secrets)


def _printer(
    level: str, line: Callable[[float, str, str, Fields], str], now: Callable[[], float], stream: TextIO | None
) -> Write:
    """Return the function that prints a line at `level`; standard error is looked up each time, it may be replaced."""

    def write(event: str, fields: Fields) -> None:
        out = stream or sys.stderr
        out.write(
            line(now(), level, event, fields) + "\n"
        )  # at once: another thread's line would get between line and end
        out.flush()

    return write


def text_line(moment: float, level: str, event: str, fields: Fields) -> str:
    """Return a line for a person: time, level, event, fields."""
    return f"{timestamp(moment)} {level:<5} {with_fields(event, fields)}"


def json_line(moment: float, level: str, event: str, fields: Fields) -> str:
    """Return a line of JSON: `time`, `level`, `message`, and the fields beside them."""
    import json

    own = {"time": timestamp(moment), "level": level, "message": event}
    return json.dumps(own | dict(fields) | own, ensure_ascii=False, default=str)


def timestamp(moment: float) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC, to the millisecond."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def with_fields(event: str, fields: Fields) -> str:
    """Return an event with its fields behind it, in one line: `upstream is away status=503 url=http://…`."""
    return " ".join([_one_line(event), *(f"{name}={_word(value)}" for name, value in fields.items())])


def _one_line(text: str) -> str:
    """Return a text with line ends and other control characters escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _word(value: object) -> str:
    """Return a field's value, in quotation marks where it would not stand as one word."""
    import json

    text = str(value)
    is_word = bool(text) and text.isprintable() and not any(char in ' "=' for char in text)
    return text if is_word else _one_line(json.dumps(text, ensure_ascii=False))


def plain(value: object) -> object:
    """Return a field's value as it may be written: of an exception that is not ours only its type.

    The text of a foreign exception may quote what a caller sent.
    """
    if isinstance(value, BaseException) and not isinstance(value, FlagsvcError):
        return type(value).__name__
    return str(value) if isinstance(value, FlagsvcError) else value


def where(error: BaseException) -> str:
    """Return the class of an exception and the line it was raised at; never its text, which may hold what was sent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    kind = type(error).__name__
    return kind if trace is None else f"{kind} at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def in_brief(error: BaseException) -> str:
    """Return what may be written of any exception: the text of one of ours, else its class and place.

    Of an error of the system also what its number means.
    """
    if isinstance(error, FlagsvcError):
        return str(error)
    number = error.errno if isinstance(error, OSError) else None
    return f"{where(error)}: {os.strerror(number)}" if isinstance(number, int) else where(error)


def _calls(logger: object) -> dict[str, Write]:
    """Return the function of each level that calls a logger from outside in its own shape."""
    shape = _standard if _is_standard(logger) else _named if takes_fields(logger) else _plain_text
    return {level: shape(method) for level, names in METHODS.items() if (method := _method(logger, names)) is not None}


def _standard(method: Callable[..., object]) -> Write:
    """Call a method of the standard library's logger: one text, and the fields for its formatters."""
    return lambda event, fields: method(with_fields(event, fields), extra={"flagsvc": {"event": event, **fields}})


def _named(method: Callable[..., object]) -> Write:
    """Call a method of structlog's shape: the event, and the fields by name."""
    return lambda event, fields: method(event, **fields)


def _plain_text(method: Callable[..., object]) -> Write:
    """Call a method that takes a text and is not known to take anything else."""
    return lambda event, fields: method(with_fields(event, fields))


def _is_standard(logger: object) -> bool:
    """Return whether this is a logger of the standard library; without importing what nobody else has."""
    logging = sys.modules.get("logging")
    return logging is not None and isinstance(logger, logging.Logger | logging.LoggerAdapter)


def takes_fields(logger: object) -> bool:
    """Return whether a logger has structlog's shape: it binds, or its methods take `event` and any fields by name."""
    if callable(getattr(logger, "bind", None)):
        return True
    from inspect import Parameter, signature

    try:
        parameters = list(signature(_method(logger, METHODS["info"])).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return bool(parameters) and parameters[0].name == "event" and parameters[-1].kind is Parameter.VAR_KEYWORD


def _method(logger: object, names: tuple[str, ...]) -> Callable[..., object] | None:
    """Return the first of a logger's methods that it has."""
    found = (getattr(logger, name, None) for name in names)
    return next((method for method in found if callable(method)), None)
