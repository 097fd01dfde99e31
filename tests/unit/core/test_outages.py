"""Log lines about an outage."""

from __future__ import annotations

from flagsvc.core.errors import UpstreamError
from flagsvc.core.outages import OutageLog
from flagsvc.testing import RecordingLog


def test_an_outage_is_two_lines() -> None:
    """A warning reports the start, and a line of level info the recovery. Failures in between are logged at level debug."""
    log = RecordingLog()
    outage = OutageLog(log, "broken", "fine")
    for _ in range(3):
        outage.log_failure(UpstreamError("network", "refused"))
    outage.log_recovery()
    outage.log_recovery()
    assert (log.at("warn", "error"), log.at("info")) == (["broken"], ["fine"])
    assert log.at("debug") == ["broken", "broken"]


def test_a_refused_token_is_an_error_once_per_change() -> None:
    """401, then 403, then 401 again: three lines, however often each is repeated."""
    log = RecordingLog()
    outage = OutageLog(log, "broken", "fine")
    for status in (401, 401, 403, 403, 401):
        outage.log_failure(UpstreamError("unauthorized", "no", status=status))
    assert log.at("error") == ["broken"] * 3


def test_other_exceptions_are_told_apart_by_their_class() -> None:
    """Another exception class is another outage, because a storage provider may raise anything."""
    log = RecordingLog()
    outage = OutageLog(log, "broken", "fine")
    for error in (OSError("disk"), OSError("disk again"), ValueError("other")):
        outage.log_failure(error)
    assert log.at("warn") == ["broken", "broken"]
    assert [line.fields["kind"] for line in log.lines] == ["OSError", "OSError", "ValueError"]
