"""The event logger: lines of text and of JSON, foreign loggers, levels, secrets, failures.

The lines on standard output: text for a person, or one line of JSON each.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
import structlog

from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import (
    LEVELS,
    MAX_REMEMBERED,
    EventLogger,
    Logger,
    OutageLog,
    Secrets,
    Throttle,
    build_logger,
    describe_error,
    locate_error,
    takes_fields,
)
from flagsvc.core.notices import Notice, make_notice_printer, print_notices
from flagsvc.testing import FakeClock, RecordingLog

EVENING = 1_795_221_123.4567
MOMENT = "2026-11-21T00:32:03.456Z"


def lines(**given: Any) -> tuple[EventLogger, io.StringIO]:
    """Return the default logger and its stream."""
    stream = io.StringIO()
    return build_logger(clock=FakeClock(EVENING), stream=stream, **given), stream


def write_all(log: Logger) -> None:
    """Write a line at every level."""
    for level in LEVELS:
        getattr(log, level)(f"at {level}")


def test_a_line_of_text() -> None:
    """A line of text has time, level, event and fields."""
    log, stream = lines()
    log.warn("upstream is away", status=503, url="http://h/api", retry=1.5, reason="no answer", empty="", none=None)
    assert stream.getvalue() == (
        f'{MOMENT} warn  upstream is away status=503 url=http://h/api retry=1.5 reason="no answer" empty="" none=None\n'
    )


def test_a_line_of_json() -> None:
    """A line of JSON has the event as `message` and the fields. No field overrides time, level or message."""
    log, stream = lines(as_json=True)
    log.error("ünsent", status=503, level="mine", message="mine", thing=FakeClock, many=("a", 1))
    found = json.loads(stream.getvalue())
    assert stream.getvalue().count("\n") == 1 and "ünsent" in stream.getvalue()
    assert found["thing"] == str(FakeClock)
    del found["thing"]
    assert found == {"time": MOMENT, "level": "error", "message": "ünsent", "status": 503, "many": ["a", 1]}


@pytest.mark.parametrize("as_json", [False, True])
def test_values_cannot_add_a_line(as_json: bool) -> None:
    """Line ends and terminal codes in values stay inside the line."""
    log, stream = lines(as_json=as_json)
    log.warn("one\ntwo", value="three\r\nfour\x1b[31m\u2028\x85five", quoted='"=')
    assert len(stream.getvalue().splitlines()) == 1 or as_json
    assert stream.getvalue().count("\n") == 1 and "\x1b" not in stream.getvalue() and "\r" not in stream.getvalue()


@pytest.mark.parametrize("level", LEVELS)
def test_levels(level: str) -> None:
    """Lines below logLevel are not written (specification: Configuration)."""
    log, stream = lines(level=level)
    write_all(log)
    written = [line.split()[1] for line in stream.getvalue().splitlines()]
    assert written == list(LEVELS)[list(LEVELS).index(level) :]


def test_the_default_is_warn_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The default log goes to standard error from level warn. Standard output is for the command's output."""
    write_all(build_logger())
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.split()[1] for line in printed.err.splitlines()] == ["warn", "error", "fatal"]


@pytest.mark.parametrize("adapted", [False, True])
def test_a_standard_library_logger(caplog: pytest.LogCaptureFixture, adapted: bool) -> None:
    """The logger gets one text at its own level, and the fields as a record attribute. Percent signs are not interpreted."""
    logger = logging.Logger("embedding", logging.INFO)
    logger.addHandler(caplog.handler)
    log = build_logger(logging.LoggerAdapter(logger, {}) if adapted else logger, level="fatal", as_json=True)
    write_all(log)
    log.warn("100% away", status=503, name="x")
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "ERROR", "CRITICAL", "WARNING"]
    assert caplog.records[-1].getMessage() == "100% away status=503 name=x"
    assert adapted or vars(caplog.records[-1])["flagsvc"] == {"event": "100% away", "status": 503, "name": "x"}


def test_a_structlog_logger() -> None:
    """A structlog logger gets the event and the fields by name."""
    kept = structlog.testing.LogCapture()
    log = build_logger(structlog.wrap_logger(structlog.PrintLogger(io.StringIO()), processors=[kept]))
    write_all(log)
    log.warn("away", status=503)
    assert [entry["log_level"] for entry in kept.entries] == ["debug", "info", "warning", "error", "critical", "warning"]
    assert kept.entries[-1] == {"event": "away", "status": 503, "log_level": "warning"}


class Fields:
    """A logger with structlog's signature, but without `bind`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, object]]] = []

    def _keep(self, level: str, event: str, **fields: object) -> None:
        self.calls.append((level, event, fields))

    debug = partialmethod(_keep, "debug")
    info = partialmethod(_keep, "info")
    warn = partialmethod(_keep, "warn")
    error = partialmethod(_keep, "error")


class Texts:
    """A logger with the standard library's signature. It fails on unknown keyword arguments."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def info(self, message: str, *values: object, **forwarded: object) -> None:
        logging.Logger("inner").info(message, *values, **forwarded)  # type: ignore[arg-type]
        self.calls.append(message)

    debug = warning = error = info


def test_loggers_of_other_makers() -> None:
    """A logger that takes `event` and fields gets them. Any other logger gets one text. Fatal falls back to error."""
    fields, texts = Fields(), Texts()
    for given in (fields, texts):
        write_all(build_logger(given))
        build_logger(given).warn("away", status=503)
    assert [call[0] for call in fields.calls] == [*[*LEVELS][:4], "error", "warn"]
    assert fields.calls[-1] == ("warn", "away", {"status": 503})
    assert texts.calls[-1] == "away status=503" and len(texts.calls) == 6


def test_which_shape() -> None:
    """A logger with `bind` is like structlog's; one without a readable signature gets a text. Missing levels drop their lines."""
    assert takes_fields(structlog.get_logger()) and takes_fields(Fields())
    assert not takes_fields(Texts())
    assert not takes_fields(type("C", (), {"info": print})()) and not takes_fields(type("D", (), {"info": dict.get})())
    assert not takes_fields(object())
    calls: list[str] = []
    log = build_logger(type("Few", (), {"error": lambda self, text: calls.append(text)})())
    write_all(log)
    assert calls == ["at error", "at fatal"]


def test_without_the_standard_library_s_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log works if `logging` is not imported."""
    fields = Fields()
    monkeypatch.delitem(sys.modules, "logging")
    build_logger(fields).info("event", a=1)
    assert fields.calls == [("info", "event", {"a": 1})]


@pytest.mark.parametrize("as_json", [False, True])
def test_secrets_are_masked(as_json: bool) -> None:
    """A known secret is masked in events and fields. Short secrets are not masked."""
    log, stream = lines(as_json=as_json, secrets=["*:dev.s3cret-token", "short", "client-key-s3cret"])
    log.error("no *:dev.s3cret-token here", header="Bearer *:dev.s3cret-token", both=["client-key-s3cret", "x"], n=5)
    assert "s3cret" not in stream.getvalue() and "no *** here" in stream.getvalue()
    log.error("short words stay")
    assert "short words stay" in stream.getvalue()


def test_secrets_may_become_more() -> None:
    """Added secrets are masked from then on, the longest first. Earlier secrets stay masked."""
    secrets = Secrets(["old-client-key"])
    log, stream = lines(secrets=secrets)
    secrets.add(["new-client-key", "old-client-key-of-the-shop", "short"])
    log.error("x", keys=["old-client-key", "new-client-key"], other="old-client-key-of-the-shop", word="short")
    assert "client-key" not in stream.getvalue() and "shop" not in stream.getvalue() and "word=short" in stream.getvalue()
    assert "client-key" not in repr(secrets)


def test_fields_of_every_line() -> None:
    """They come first; a field of the line wins. Level and secrets come from the bound logger, which may be from outside."""
    log, secrets = RecordingLog(), Secrets(())
    bound = build_logger(log, secrets=secrets).bind(environment="a", place=1)
    secrets.add(["some-secret"])
    bound.warn("event some-secret", place=2, more="some-secret")
    bound.bind(place=4).info("other")
    assert [(line.level, line.event, list(line.fields.items())) for line in log.lines] == [
        ("warn", "event ***", [("environment", "a"), ("place", 2), ("more", "***")]),
        ("info", "other", [("environment", "a"), ("place", 4)]),
    ]


class Broken:
    """A value without a text, and a logger that raises."""

    def __str__(self) -> str:
        raise RuntimeError("broken")

    def info(self, text: str) -> None:
        raise RuntimeError("broken")


def test_a_logger_never_fails_its_caller() -> None:
    """A closed stream, a broken logger and a broken value raise no error in the caller."""
    log, stream = lines()
    log.error("broken", value=Broken())
    stream.close()
    log.error("closed")
    build_logger(Broken()).info("x")


def test_locate_error_names_the_line_and_not_the_text() -> None:
    """The result is the class and the innermost line. An exception that was never raised has no line."""
    try:
        int("user-4711")
    except ValueError as error:
        location = locate_error(error)
    assert location.startswith("ValueError at ")
    assert __file__ in location
    assert "4711" not in location
    assert locate_error(KeyError("user-4711")) == "KeyError"


def test_describe_error_quotes_only_our_own_errors() -> None:
    """A FlagsvcError is described by its text, a foreign one by its class, a system error also by its number's meaning."""
    assert describe_error(UpstreamError("server", "no answer")) == "no answer"
    assert describe_error(ValueError("user-4711")) == "ValueError"
    assert describe_error(OSError(28, "user-4711", "/home/4711")) == "OSError: No space left on device"
    assert describe_error(OSError("user-4711")) == "OSError"
    log, stream = lines()
    log.error("failed", error=ValueError("invalid literal: 'user-4711'"), ours=UpstreamError("network", "no route"))
    assert stream.getvalue().endswith('failed error=ValueError ours="no route"\n')


def test_lines_of_several_threads_are_whole(tmp_path: Path) -> None:
    """A line and its end are written in one call, so that no other thread's line gets between them."""

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            pieces.append(text)
            return super().write(text)

    pieces: list[str] = []
    log = build_logger(stream=Stream(), as_json=True)
    log.error("one")
    log.error("two")
    assert len(pieces) == 2 and all(piece.endswith("}\n") for piece in pieces)

    path = tmp_path / "log"
    with path.open("w") as file:
        log = build_logger(stream=file)

        def work(number: int) -> None:
            for _ in range(400):
                log.error(f"thread-{number}")

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
    found = path.read_text().splitlines()
    assert len(found) == 2400 and all(re.search(r" error thread-\d$", each) for each in found)


@pytest.mark.parametrize(("period", "seconds", "again"), [(None, 10**9, False), (60, 59, False), (60, 60, True)])
def test_once_for_each_name(period: float | None, seconds: float, again: bool) -> None:
    """Without a period each name is allowed only once. With a period, a name is allowed again after the period."""
    clock = FakeClock()
    sparing = Throttle(clock, period)
    assert [sparing.allows(name) for name in "aba"] == [True, True, False]
    asyncio.run(clock.advance(seconds))
    assert sparing.allows("a") is again


def test_what_is_remembered_is_bounded() -> None:
    """Beyond the limit, new names are not allowed. Known names still are."""
    sparing = Throttle(FakeClock(), 0)
    assert sum(sparing.allows(f"name-{number}") for number in range(MAX_REMEMBERED + 10)) == MAX_REMEMBERED
    assert sparing.allows("name-0")


@pytest.mark.parametrize(
    ("errors", "levels"),
    [
        ([UpstreamError("network", "refused")] * 3, ["warn", "debug", "debug"]),
        ([UpstreamError("unauthorized", "no", status=status) for status in (401, 401, 403, 403, 401)],
         ["error", "debug", "error", "debug", "error"]),
        ([OSError("disk"), OSError("disk again"), ValueError("other")], ["warn", "debug", "warn"]),
    ],
)  # fmt: skip
def test_an_outage(errors: list[Exception], levels: list[str]) -> None:
    """A warning reports the start and the end, with failures in between at level debug. Another class of errors is another outage.

    A refused token is an error once per change.
    """
    log = RecordingLog()
    outage = OutageLog(log, "broken", "fine")
    for error in errors:
        outage.log_failure(error)
    assert [line.fields["kind"] for line in log.lines] == [getattr(error, "kind", type(error).__name__) for error in errors]
    outage.log_recovery()
    outage.log_recovery()
    assert [(line.level, line.event) for line in log.lines] == [*((level, "broken") for level in levels), ("warn", "fine")]


def test_an_outage_that_harms_nothing() -> None:
    """A quiet log has its start and its end at level info, also of a refused token."""
    log = RecordingLog()
    outage = OutageLog(log, "broken", "fine", is_quiet=True)
    for _ in range(2):
        outage.log_failure(UpstreamError("unauthorized", "no", status=401))
    outage.log_recovery()
    assert [(line.level, line.event) for line in log.lines] == [("info", "broken"), ("debug", "broken"), ("info", "fine")]


NOTICES = [Notice("ready"), Notice("first start", {"token": "t"}, "First start:\n\n  a token, t")]


def test_a_secret_is_for_terminals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a terminal shows may hold a secret. Text that goes anywhere else, and JSON, have nothing of it."""
    notice = Notice("first start", text="First start", on_terminal="the secret")
    for terminal, expected in ((False, "First start\n"), (True, "the secret\n")):
        monkeypatch.setattr("sys.stdout.isatty", lambda shows=terminal: shows)
        make_notice_printer(as_json=False)(notice)
        assert capsys.readouterr().out == expected
        make_notice_printer(as_json=True)(notice)
        assert "secret" not in capsys.readouterr().out


def test_notices(capsys: pytest.CaptureFixture[str]) -> None:
    """Each notice is one line of JSON with time, level, message and fields; for a person it is its text, or else its event."""
    print_notices(NOTICES, make_notice_printer(as_json=True))
    ready, first = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert set(ready) == {"time", "level", "message", "always"} and ready["always"] is True and ready["message"] == "ready"
    assert (first["level"], first["message"], first["token"]) == ("info", "first start", "t")
    print_notices(NOTICES, make_notice_printer(as_json=False))
    assert capsys.readouterr().out == "ready\nFirst start:\n\n  a token, t\n"
