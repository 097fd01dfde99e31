"""The options of a running process, and those that it reloads without a restart."""

from __future__ import annotations

from flagsvc.settings.table import BY_NAME, OPTIONS, SERVER_OPTIONS


def test_the_options_that_may_change_while_the_proxy_runs() -> None:
    """Only keys and tokens can be reloaded. They are secrets, and none is for code only."""
    rows = [option for option in OPTIONS if option.reloads]
    assert [row.name for row in rows] == ["flagsvcApiToken", "clientKeys", "expServerSideSdkConfig.tokens"]
    assert all(row.secret and not row.in_code_only for row in rows)


def test_both_programs_end_alike() -> None:
    """The flag server has the same option for the grace period as the proxy."""
    assert BY_NAME["shutdownGrace"] in SERVER_OPTIONS


def test_the_defaults() -> None:
    """The defaults, in seconds, suit a load balancer that probes every few seconds, and callers that change their keys."""
    found = [BY_NAME[name].default for name in ("shutdownGrace", "watchInterval", "keyOverlap")]
    assert found == [5, 2, 60]
